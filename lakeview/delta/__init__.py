"""Delta Lake: the transaction log to snapshots, and back."""
