"""The app's pages, driven without a browser."""
