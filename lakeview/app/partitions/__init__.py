"""Parts of the Partitions page."""
