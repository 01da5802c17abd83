"""Findings about a table, worst first, each with its evidence."""

from lakeview.views.health import findings

__all__ = ["findings"]
