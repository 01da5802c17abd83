"""What a preview of rows shows: a profile of each column, distributions, and the changes of commits."""

from lakeview.views.data import changes, distributions, preview, profile, sampling

__all__ = ["changes", "distributions", "preview", "profile", "sampling"]
