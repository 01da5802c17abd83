"""The demo's table `claims`: one row for each flight that left two hours late, kept by changes of single rows.

Every change is one of lakeview's own transactions, as another writer's log would have it: rows appended with each
period; a merge of corrections; a wider type; a delete that forgot a part of its condition, and the restore after it;
a period whose deletion vectors pile up under updates and deletes; another that is rewritten along a curve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import lakeview as lv
from lakeview.delta.log.commits import predicates
from lakeview.delta.table import DeltaTable
from lakeview.demo.calendar import Calendar, at_hour
from lakeview.demo.iceberg import read_departures
from lakeview.model.data_types import PrimitiveType

if TYPE_CHECKING:
    from lakeview.delta.write.transaction import Transaction

LATE = 120
"""A flight has claims from this many minutes on."""
PILED_UP = 7
"""The period whose file gets one deletion vector after another."""
CLUSTERED = 6
"""The period that is rewritten along a curve."""
SETTLED = ("EV", "B6", "UA", "DL", "9E")
"""Carriers that pay their claims of the piled-up period, each in a night of its own."""
_FEED, _DESK, _CARETAKER = "claims-feed", "claims-desk", "maintenance"
_PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableTypeWidening": "true",
    "delta.enableInCommitTimestamps": "true",
}


def read_claims(calendar: Calendar) -> pl.DataFrame:
    """The rows as the feed brings them: flights that left LATE, in the order of the source, numbered from 1."""
    flights = read_departures(calendar.shift).filter(pl.col("dep_delay") >= LATE)
    return flights.select(
        pl.int_range(1, pl.len() + 1, dtype=pl.Int32).alias("claim"),
        (pl.col("flight_date") - calendar.shift).dt.month().cast(pl.Int32).alias("period"),
        "flight_date",
        "carrier",
        "flight",
        "origin",
        "dest",
        pl.col("dep_delay").alias("minutes"),
        pl.lit("open").alias("state"),
    )


def write_claims(folder: Path, calendar: Calendar) -> Iterator[None]:
    """Write the table below `folder`, its commits by the calendar, one after the other."""
    return _Claims(str(folder / "claims"), calendar).write()


@dataclass
class _Claims:
    """The table while it is written."""

    address: str
    calendar: Calendar

    def write(self) -> Iterator[None]:
        """The whole story, a chapter at a time; a number is the period whose rows are appended."""
        self._rows = read_claims(self.calendar)
        start = at_hour(self.calendar.day(1, 1), 21)
        lv.create_table(
            self.address,
            self._rows.to_arrow().schema,
            partition_by=["period"],
            properties=_PROPERTIES,
            name="claims",
            description=f"Claims for flights that left {LATE} minutes late or more",
            user=_DESK,
            clock=lambda: start,
        )
        table = lv.open_table(self.address)
        assert isinstance(table, DeltaTable), "it was created as one"
        self._table = table
        chapters: list[int | Callable[[], None]] = [
            1, 2, 3, 4, 5, 6, self._correct, self._widen, 7, 8, self._delete_too_much, 9, self._settle, 10,
            self._cluster, 11, 12,
        ]  # fmt: skip
        for chapter in chapters:
            if isinstance(chapter, int):
                self._append(chapter)
            else:
                chapter()
            yield

    def _append(self, period: int) -> None:
        with self._commit("WRITE", self.calendar.after(period), 7, f"claims of period {period}", mode="Append") as txn:
            txn.append(self._rows.filter(pl.col("period") == period))

    def _correct(self) -> None:
        """The largest carrier corrects its delays: some are longer, and some claims were missing."""
        claims = self._rows.filter(pl.col("period") == CLUSTERED, pl.col("carrier") == "EV")
        longer = claims.with_columns(pl.col("minutes") + 5)
        missing = claims.head(20).with_columns(pl.col("claim") + self._rows.height, flight=pl.col("flight") + 1)
        with self._commit("MERGE", self.calendar.day(7, 9), 10, "delays corrected by EV") as txn:
            merge = txn.merge(pl.concat([longer, missing]), ["claim"])
            merge.when_matched_update({"minutes": "source.minutes"}).when_not_matched_insert().execute()

    def _widen(self) -> None:
        column = '{"name":"claim","type":"long"}'
        note = "claim numbers will not fit for long"
        with self._commit("CHANGE COLUMN", self.calendar.day(7, 20), 11, note, column=column) as txn:
            txn.widen_column("claim", PrimitiveType("long"))

    def _delete_too_much(self) -> None:
        """The period was left out of the condition; the version before is restored an hour later."""
        day = self.calendar.day(9, 3)
        before = self._table.latest_version
        self._delete("state = 'open'", day, 9, "open claims closed")
        with self._commit(
            "RESTORE", day, 10, "the delete was meant for period 1 alone", user=_DESK, version=before
        ) as txn:
            txn.restore(before)

    def _settle(self) -> None:
        """Carriers pay, claims under a limit are withdrawn: a small commit each, on the rows of one file."""
        for number, carrier in enumerate(SETTLED, start=4):
            where = f"period = {PILED_UP} AND carrier = '{carrier}'"
            day = self.calendar.day(10, number)
            with self._commit("UPDATE", day, 3, f"paid by {carrier}", predicate=predicates(where)) as txn:
                txn.update({"state": "'paid'"}, where)
        where = f"period = {PILED_UP} AND minutes < {LATE + 10}"
        self._delete(where, self.calendar.day(10, 10), 3, "claims withdrawn")

    def _cluster(self) -> None:
        where, columns = f"period = {CLUSTERED}", ["carrier", "flight_date"]
        day, note = self.calendar.day(11, 8), f"period {CLUSTERED} clustered by carrier and day"
        with self._commit(
            "OPTIMIZE", day, 5, note, _CARETAKER, predicate=predicates(where), zOrderBy='["carrier","flight_date"]'
        ) as txn:
            txn.optimize(where, z_order_by=columns)

    def _delete(self, where: str, day: date, hour: int, note: str) -> None:
        with self._commit("DELETE", day, hour, note, _DESK, predicate=predicates(where)) as txn:
            txn.delete(where)

    @contextmanager
    def _commit(
        self, operation: str, day: date, hour: int, note: str, user: str = _FEED, **parameters: Any
    ) -> Iterator[Transaction]:
        """A transaction at that hour, with the parameters that its operation has in the log."""
        at: datetime = at_hour(day, hour)
        with self._table.transaction(
            operation, parameters=parameters, user=user, user_metadata=note, clock=lambda: at
        ) as txn:
            yield txn
        self._table.refresh()
