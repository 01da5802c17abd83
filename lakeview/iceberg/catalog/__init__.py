"""Catalogs: a table's name to the place of its metadata file, which lakeview then reads itself.

pyiceberg knows the catalogs (REST, SQL, Glue and others that it is configured for) and is imported only when one is
asked; nothing of it reads a table.
"""
