"""Rows and changes to an Iceberg table: data files, manifests, manifest lists and metadata files."""
