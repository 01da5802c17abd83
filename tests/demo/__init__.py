"""The demo lake."""
