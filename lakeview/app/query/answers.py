"""Answers to requests for rows: whole ones, and the parts that are there when the time of a request is over."""

import threading
from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

import polars as pl

from lakeview.views.compare.rows import RowDifference, RowDifferenceSum


class Answer(NamedTuple):
    """The rows of a request, and counts: of a `base`, its `gains`, `losses` and `rows_read`, and of its part
    `rows_undecided`; of a profile its `rows`; `stopped`: 1 if it ended before all rows were there, `cancelled`: 1 if
    not because its seconds were over."""

    rows: pl.DataFrame
    counts: dict[str, int]


class _Part:
    """What was read so far. `first_rows`: set once there are rows, or a column of a profile; `seconds_to_answer`: that
    its answer takes."""

    def __init__(self) -> None:
        self.first_rows = threading.Event()
        self.seconds_to_answer = 0.0


class RowsSoFar(_Part):
    """The first rows of a request as they pass, in any order: the answer where its time ends before all are there."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._room = limit
        self._batches: list[pl.DataFrame] = []
        """Where no row was found yet, the first batch: it has the columns."""
        self._lock = threading.Lock()

    def add(self, batch: pl.DataFrame) -> None:
        """Keeps rows of a batch, as many as are missing."""
        with self._lock:
            if self._room and not (batch.is_empty() and self._batches):
                self._batches.append(batch.head(self._room))
                self._room -= self._batches[-1].height
            if not batch.is_empty():
                self.first_rows.set()

    def answer(self) -> Answer | None:
        """The rows, called a part; None before the first batch."""
        with self._lock:
            return Answer(pl.concat(self._batches), {"stopped": 1}) if self._batches else None


class ProfileSoFar(_Part):
    """The figures of a profile's columns as they become known: the answer where its time ends before all are there."""

    def __init__(self) -> None:
        super().__init__()
        self._part: tuple[Sequence[pl.DataFrame], int] | None = None

    def add(self, columns: Sequence[pl.DataFrame], rows: int) -> None:
        """Takes the PROFILE of so many rows, as far as it is known, a frame a column, for the last one."""
        self._part = columns, rows
        self.first_rows.set()

    def answer(self) -> Answer | None:
        """The PROFILE, called a part; None before the first column was read."""
        if (part := self._part) is None:
            return None
        columns, rows = part
        return Answer(pl.concat(columns), {"rows": rows, "stopped": 1})


class DifferenceSoFar(_Part):
    """A row difference as rows of the two versions pass: the answer where its time ends before all are read.

    Adding up twice as many rows as the last time may have just begun.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._sum: RowDifferenceSum | None = None
        self._kind: str | None = None
        self._lock = threading.Lock()

    def begin_side(self, schema: pl.Schema, *, remaining_kind: str | None) -> None:
        """The next batches have this schema; `remaining_kind`: the one kind of change of all rows from now on."""
        with self._lock:
            if self._sum is None:
                self._sum = RowDifferenceSum(schema, self._limit)
            self._kind = remaining_kind

    def add(self, batch: pl.DataFrame) -> None:
        """Adds rows that were read."""
        began = monotonic()
        with self._lock:
            if self._sum is not None:
                self._sum.add(batch)
                self.first_rows.set()
        self.seconds_to_answer = max(self.seconds_to_answer, 2 * (monotonic() - began))

    def answer(self) -> Answer | None:
        """The rows that certainly differ, called a part; None before a row was read."""
        with self._lock:
            if self._sum is None or not self.first_rows.is_set():
                return None
            return _answer_of(self._sum.part(self._kind), stopped=1)

    def whole(self) -> Answer:
        """The difference of all that was added."""
        with self._lock:
            if self._sum is None:
                raise ValueError("no rows were announced")
            return _answer_of(self._sum.whole())


def _answer_of(difference: RowDifference, **counts: int) -> Answer:
    if difference.rows_undecided is not None:
        counts["rows_undecided"] = difference.rows_undecided
    counts |= {"gains": difference.gains, "losses": difference.losses, "rows_read": difference.rows_read}
    return Answer(difference.rows, counts)
