"""What differs between two versions: files, settings, statistics and rows."""

from lakeview.views.compare import rows, statistics, summary, versions

__all__ = ["rows", "statistics", "summary", "versions"]
