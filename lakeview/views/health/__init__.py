"""Findings about a table, worst first, each with its evidence."""

from lakeview.views.health import findings, history, kinds, layout, maintenance

__all__ = ["findings", "history", "kinds", "layout", "maintenance"]
