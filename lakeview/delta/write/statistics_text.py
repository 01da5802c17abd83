"""Statistics of a file as JSON text, changed without reading a number twice (delta protocol, Per-file Statistics)."""

from __future__ import annotations

import msgspec

_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])


def with_deletions(stats: str | None, rows: int) -> str:
    """Statistics of a file of so many physical rows that has a deletion vector: bounds that are no longer tight.

    "The numRecords statistic must be present and accurate for every file with a deletion vector" (today's protocol).
    """
    statistics = {} if stats is None else _DECODER.decode(stats)
    return msgspec.json.encode({**statistics, "numRecords": rows, "tightBounds": False}).decode()
