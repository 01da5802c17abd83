"""Short names of versions whose numbers are random: `s14` for the snapshot with sequence number 14.

Iceberg draws snapshot ids at random ("Snapshots"); its sequence numbers count a table's snapshots, on all branches.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

RANDOM_FROM = 10**11
"""Ids below are shown as they are."""
_MOST_NAMES = 200_000

_names: dict[int, str] = {}
_lock = Lock()
_AMBIGUOUS = ""


def register(sequence_numbers: Iterable[tuple[int, int]]) -> None:
    """Names versions, given as (id, sequence number), for as long as the process runs.

    An id that two tables number differently loses its name. Version 1 of Iceberg has no sequence numbers: 0 is no name.
    """
    with _lock:
        for version, number in sequence_numbers:
            if number > 0 and abs(version) >= RANDOM_FROM:
                name = f"s{number}"
                _names[version] = name if _names.get(version, name) == name else _AMBIGUOUS
        for version in list(_names)[: max(0, len(_names) - _MOST_NAMES)]:  # the oldest go first
            del _names[version]


def name_of(version: int) -> str | None:
    """The name of a version, None where it has none."""
    with _lock:
        return _names.get(version) or None
