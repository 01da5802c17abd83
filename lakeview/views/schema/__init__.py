"""Columns of a version, their history, and the difference of two schemas."""

from lakeview.views.schema import (
    births,
    breaking,
    column_history,
    columns,
    diff,
    null_shares,
    tree,
)

__all__ = ["births", "breaking", "column_history", "columns", "diff", "null_shares", "tree"]
