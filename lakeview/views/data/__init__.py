"""What a preview of rows shows: a profile of each column with its distribution, and the changes of commits."""

from lakeview.views.data import changes, preview, profile

__all__ = ["changes", "preview", "profile"]
