"""What differs between two versions: files, settings, statistics and rows."""

from lakeview.views.compare import row_pairs, rows, statistics, summary, versions

__all__ = ["row_pairs", "rows", "statistics", "summary", "versions"]
