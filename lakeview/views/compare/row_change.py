"""The files of two versions to how many more rows the later one has, where delete files leave the numbers open."""

from __future__ import annotations

import polars as pl

from lakeview.model.column_values import least_records, most_records
from lakeview.model.snapshot import Snapshot
from lakeview.views.units import MINUS

_FILE = ["path", "deletion_vector"]


def row_change_bounds(before: Snapshot, after: Snapshot) -> tuple[int, int] | None:
    """At least and at most how many rows the later version has more; None where a file does not count its rows."""
    ends = [(least_records(s.files, s.delete_files), most_records(s.files)) for s in (before, after)]
    (least_before, most_before), (least_after, most_after) = ends
    if most_before is None or most_after is None:
        return None
    least, most = (least_after or 0) - most_before, most_after - (least_before or 0)
    if grown := _grown(before, after):
        return max(least, grown[0]), min(most, grown[1])
    if shrunk := _grown(after, before):
        return max(least, -shrunk[1]), min(most, -shrunk[0])
    return least, most


def _grown(before: Snapshot, after: Snapshot) -> tuple[int, int] | None:
    """The bounds where the later version has all files of the earlier one: what other files delete counts alone."""
    old, new = (s.files.select(*_FILE, "records", "deleted_records") for s in (before, after))
    deletes = after.delete_files.join(before.delete_files, on=_FILE, how="anti", nulls_equal=True)
    removed = [_without(old, new), _without(before.delete_files, after.delete_files)]
    if any(not files.is_empty() for files in removed) or deletes["records"].has_nulls():
        return None
    if not deletes.is_empty() and set(deletes["content"]) != {"position deletes"}:
        return None
    gain = most_records(_without(new, old))
    return None if gain is None else (gain - int(deletes["records"].sum()), gain)


def _without(files: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    return files.join(others, on=_FILE, how="anti", nulls_equal=True)


def bounds_text(bounds: tuple[int, int]) -> str:
    """`+25,320 to +27,268 rows`."""
    return f"{' to '.join(map(_signed, bounds))} rows"


def _signed(number: int) -> str:
    return f"{MINUS}{-number:,}" if number < 0 else f"{number:+,}" if number else "0"
