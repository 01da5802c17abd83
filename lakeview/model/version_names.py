"""Short names of versions whose numbers are random: `s14` for the snapshot with sequence number 14.

Iceberg draws snapshot ids at random ("Snapshots"); its sequence numbers count a table's snapshots, on all branches.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from threading import Lock

RANDOM_FROM = 10**11
"""Ids below are shown as they are."""
_MOST_NAMES = 200_000

_numbers: dict[int, int] = {}
_lock = Lock()
_AMBIGUOUS = 0


def register(sequence_numbers: Mapping[int, int]) -> None:
    """Names versions of one table, given as id -> sequence number, for as long as the process runs.

    An id that two tables number differently loses its name, and a number of several ids is none: a link by it could
    lead to another one. Version 1 of Iceberg has no sequence numbers: 0 is no name.
    """
    ids_of = Counter(sequence_numbers.values())
    numbers = {
        version: n if ids_of[n] == 1 else _AMBIGUOUS
        for version, n in sequence_numbers.items()
        if n > 0 and abs(version) >= RANDOM_FROM
    }
    with _lock:
        for version in _numbers.keys() & numbers.keys():
            if numbers[version] != _numbers[version]:
                numbers[version] = _AMBIGUOUS
        _numbers.update(numbers)
        for version in list(islice(_numbers, max(0, len(_numbers) - _MOST_NAMES))):  # the oldest go first
            del _numbers[version]


def name_of(version: int) -> str | None:
    """The name of a version, None where it has none."""
    with _lock:
        number = _numbers.get(version, _AMBIGUOUS)
    return None if number == _AMBIGUOUS else f"s{number}"
