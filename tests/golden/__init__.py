"""Golden tables: what other writers left behind, read as they say it must be read."""
