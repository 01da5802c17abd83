"""The demo lake: a year of real flights through the Spark pipeline, with troubles for the pages to point at."""

from lakeview.demo.place import demo_path, find_demo

__all__ = ["demo_path", "find_demo"]
