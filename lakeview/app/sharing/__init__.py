"""Parts of the Sharing page."""
