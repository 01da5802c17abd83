"""The Iceberg reader."""
