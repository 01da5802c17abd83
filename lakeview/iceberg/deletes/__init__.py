"""Delete files and deletion vectors: which apply to a data file, and which rows they delete."""
