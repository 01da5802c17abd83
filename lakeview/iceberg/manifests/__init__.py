"""Manifest lists and manifests: Avro files to frames of entries, files, partitions and statistics."""
