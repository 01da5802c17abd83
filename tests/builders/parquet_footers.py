"""Parquet files with another footer."""

from __future__ import annotations


def with_footer(data: bytes, old: bytes, new: bytes, times: int) -> bytes:
    """The file with other bytes in its footer, so many times."""
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[at:-8]
    assert footer.count(old) == times
    footer = footer.replace(old, new)
    return data[:at] + footer + len(footer).to_bytes(4, "little") + data[-4:]
