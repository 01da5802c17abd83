"""Parts of the Pruning page."""
