"""How rows and files are distributed over partitions."""

from lakeview.views.partitions import columns, keys, layout, sizes

__all__ = ["columns", "keys", "layout", "sizes"]
