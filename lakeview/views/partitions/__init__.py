"""How rows and files are distributed over partitions."""

from lakeview.views.partitions import columns, history, keys, layout, rectangles, sizes, writes

__all__ = ["columns", "history", "keys", "layout", "rectangles", "sizes", "writes"]
