"""What differs between two versions: files, settings, statistics and rows."""

from lakeview.views.compare import bases, row_pairs, rows, sentences, statistics, summary, versions

__all__ = ["bases", "row_pairs", "rows", "sentences", "statistics", "summary", "versions"]
