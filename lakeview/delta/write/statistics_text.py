"""Statistics of a file as JSON text, changed without reading a number twice (delta protocol, Per-file Statistics)."""

from __future__ import annotations

import msgspec

from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.record_counts import records_of

_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])


def with_deletions(stats: str | None, rows: int) -> str:
    """Statistics of a file of so many physical rows that has a deletion vector: bounds that are no longer tight.

    "The numRecords statistic must be present and accurate for every file with a deletion vector" (today's protocol).
    """
    known = {} if stats is None else _DECODER.decode(stats)
    return msgspec.json.encode({**known, "numRecords": rows, "tightBounds": False}).decode()


def physical_records(add: AddFile) -> int | None:
    """Rows in the file, deleted ones among them; None where its statistics do not say."""
    return records_of(add.stats)


def logical_records(add: AddFile) -> int | None:
    """Rows that the file gives; None where its statistics do not say."""
    rows = physical_records(add)
    gone = 0 if add.deletion_vector is None else add.deletion_vector.cardinality
    return None if rows is None else rows - gone
