"""Parts of the Files page."""
