"""lakeview: look into a lakehouse table from its log alone."""
