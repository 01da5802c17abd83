"""Scan planning and reading: which files a filter needs, and their rows in the table's schema."""
