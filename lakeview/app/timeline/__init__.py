"""Parts of the Timeline page."""
