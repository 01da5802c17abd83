"""Parts of the Lake page."""
