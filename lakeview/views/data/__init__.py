"""What a preview of rows shows: a profile of each column with its distribution, and the changes of commits."""

from lakeview.views.data import changes, preview, profile, sampling

__all__ = ["changes", "preview", "profile", "sampling"]
