"""A version's files to its number of rows, or the tightest bound that the log proves."""

from __future__ import annotations

from lakeview.model.column_values import least_records
from lakeview.model.snapshot import Snapshot
from lakeview.views.units import UNKNOWN, format_count


def rows_text(snapshot: Snapshot, *, exact: bool = False) -> str:
    """The live rows of a version: `61.5 M` (`61,480,112` with `exact`), `≥ 308,641` where that is all that the log
    tells, or unknown."""
    if snapshot.num_records is not None:
        return format_count(snapshot.num_records, exact=exact)
    least = least_records(snapshot.files, snapshot.delete_files)
    return f"\N{GREATER-THAN OR EQUAL TO} {least:,}" if least else UNKNOWN
