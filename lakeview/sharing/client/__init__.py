"""The recipient's end of Delta Sharing: a profile to tables, snapshots and rows."""
