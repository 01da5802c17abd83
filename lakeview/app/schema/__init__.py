"""Parts of the Schema page."""
