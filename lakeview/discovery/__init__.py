"""Addresses to tables: opened, created, and found below a root."""

from lakeview.discovery.folders import TABLES, find_tables
from lakeview.discovery.opening import convert_to_delta, create_table, open_table, readable_folders, scan

__all__ = ["TABLES", "convert_to_delta", "create_table", "find_tables", "open_table", "readable_folders", "scan"]
