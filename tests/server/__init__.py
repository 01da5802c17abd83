"""The Delta Sharing server."""
