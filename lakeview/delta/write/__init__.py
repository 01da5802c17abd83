"""Changes to a Delta table: data files first, then one log entry, exclusively."""
