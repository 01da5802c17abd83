"""Parts of the Quality page."""
