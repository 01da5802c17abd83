"""Delta Sharing, from the recipient's side."""
