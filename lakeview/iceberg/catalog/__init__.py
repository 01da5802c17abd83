"""Catalogs: a table's name to the place of its metadata file, which lakeview then reads itself.

pyiceberg knows the catalogs (REST, SQL, Glue and whatever else it is configured for) and is imported only when one is
asked; nothing of it reads a table.
"""

from __future__ import annotations

from lakeview.iceberg.catalog.address import CatalogAddress, is_catalog_address, parse_address
from lakeview.iceberg.catalog.table import find_catalog_tables, open_catalog_table

__all__ = [
    "CatalogAddress",
    "find_catalog_tables",
    "is_catalog_address",
    "open_catalog_table",
    "parse_address",
]
