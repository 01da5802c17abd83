"""A reading of all tables below a root by a few threads, which goes on while one looks at it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Generic, TypeVar

import polars as pl
import streamlit as st

import lakeview as lv
from lakeview import views
from lakeview.app import cache, errors
from lakeview.inspection.inspection import read_entry
from lakeview.model.errors import LakeviewError

READ_AT_ONCE = 4

_Read = TypeVar("_Read")


class Survey(Generic[_Read]):
    """The tables below a root, read one after the other by `read`; what was read can be looked at meanwhile."""

    def __init__(self, root: str, most: int, read: Callable[[views.lake.LakeEntry, datetime], _Read]) -> None:
        self.now = cache.now()
        tables = lv.find_tables(root).select("name", "address", "format")
        self._read = read
        self.entries = [views.lake.LakeEntry(*table) for table in tables.iter_rows()]
        self.results: list[_Read | None] = [None] * len(self.entries)
        self._counting = threading.Lock()
        self.pending = min(len(self.entries), most)
        self.reads = self.pending
        self.done = threading.Event()
        if not self.pending:
            self.done.set()
        pool = ThreadPoolExecutor(READ_AT_ONCE, thread_name_prefix="lake")
        for position in range(self.pending):
            pool.submit(self._read_one, position)
        pool.shutdown(wait=False)

    def _read_one(self, position: int) -> None:
        try:
            self.results[position] = self._read(self.entries[position], self.now)
        finally:
            with self._counting:
                self.pending -= 1
            if not self.pending:
                self.done.set()


def read_table(entry: views.lake.LakeEntry, now: datetime) -> views.lake.LakeEntry:
    """`read_entry`; what it says of a table that cannot be read is without the folders of this machine."""
    entry = read_entry(entry, lv.open_table, now)  # a memory of its own: a lake has more tables than the pages' cache
    if entry.state is not views.lake.LakeState.UNREADABLE:
        return entry
    verdict, finding = (text and errors.public_text(text) for text in (entry.verdict, entry.finding))
    return replace(entry, verdict=verdict, finding=finding)


def read_columns(entry: views.lake.LakeEntry, now: datetime) -> pl.DataFrame | None:
    """LAKE_COLUMNS of one table; None where it cannot be read."""
    try:
        look = lv.inspect(lv.open_table(entry.address), clock=lambda: now)
        few = views.lake.has_few_statistics(look.snapshot)
        tree = look.columns().tree if few else views.schema.columns.schema_tree(look.snapshot.schema)
    except LakeviewError:  # the list of tables says why
        return None
    return views.lake.lake_columns(entry, tree)


def tables_of(survey: Survey[views.lake.LakeEntry]) -> pl.DataFrame:
    """LAKE as far as it is known."""
    pairs = zip(survey.entries, survey.results, strict=True)
    return views.lake.lake([entry if result is None else result for entry, result in pairs])


def columns_of(survey: Survey[pl.DataFrame | None]) -> pl.DataFrame:
    """LAKE_COLUMNS as far as they are known."""
    frames = [frame for frame in survey.results if frame is not None]
    return pl.concat([pl.DataFrame(schema=views.lake.LAKE_COLUMNS), *frames])


@st.cache_resource(ttl=300, max_entries=8, show_spinner=False)
def table_survey(root: str, most: int) -> Survey[views.lake.LakeEntry]:
    """The reading of a root, begun at most every five minutes; errors of its listing are raised."""
    return Survey(root, most, read_table)


@st.cache_resource(ttl=300, max_entries=8, show_spinner=False)
def column_survey(root: str, most: int) -> Survey[pl.DataFrame | None]:
    """The reading of the columns below a root, likewise."""
    return Survey(root, most, read_columns)
