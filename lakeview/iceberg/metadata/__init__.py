"""Table metadata files: where they lie, what they record, and the snapshot that a caller asks for."""
