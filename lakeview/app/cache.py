"""Addresses to Tables, Snapshots and frames, each read once.

Tables are cached by address, Snapshots and frames by (address, version): a version never changes, and no caller changes
a frame. The caches are bounded in number and in bytes. Only "which version is the latest" expires: after 30 s the store
is asked again, at the cost of one listing. Exceptions are not cached.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar

import polars as pl
import streamlit as st

import lakeview as lv
from lakeview.discovery import TABLES
from lakeview.inspection.frames import TableFrames
from lakeview.model.errors import CorruptTableError, LakeviewError
from lakeview.model.memory import Memory, Place, memoize
from lakeview.model.schema import Schema
from lakeview.model.table import Table
from lakeview.sharing.server.refresh import ANOTHER_TABLE, look_again

_Value = TypeVar("_Value")
_Arguments = ParamSpec("_Arguments")


@dataclass(frozen=True, slots=True)
class Freshness:
    """The latest version, when the store was asked for it, and how many times another table was found at the address
    until then."""

    version: int
    checked_at: datetime
    replacements: int = 0


def now() -> datetime:
    """The wall clock, aware. Everything below the pages takes it as an argument."""
    return datetime.now(UTC)


@st.cache_resource(show_spinner=False)
def memory() -> Memory:
    """Returns the memory of this server; a new one after `memory.clear()`."""
    return Memory()


def cache_values(
    entries: int, seconds: float | None = None, *, of: Sequence[str] | None = None
) -> Callable[[Callable[_Arguments, _Value]], Callable[_Arguments, _Value]]:
    """Caches the last `entries` values of a function, for `seconds` if given.

    Its first argument is the table's address; or with `of` an OpenTable, of whose attributes these alone, beside the
    address, tell values apart. Arguments are hashable, or lists of what is.
    """

    def place(first: Any) -> Place:
        if of is None:
            return memory(), str(first), ()
        return memory(), first.address, tuple(getattr(first, part) for part in of)

    return memoize(place, entries=entries, seconds=seconds)


@st.cache_resource(max_entries=32, show_spinner=False)
def table(address: str) -> Table:
    """The table at an address."""
    return lv.open_table(address)


@st.cache_data(ttl=30, max_entries=64, show_spinner=False)
def latest(address: str, ref: str | None = None) -> Freshness:
    """The latest version, or that of a branch or tag; asks the store when the last answer is older than 30 s.

    NotATableError where the table has gone since. One created again, or with another newest commit, is read again.
    """
    current = table(address)
    before, schema_before = current.latest_version, _declared_schema(current)
    there = lv.open_table(address)  # what is open would take an empty listing for no news
    try:
        newer = look_again(current)
        other = current.latest_version == before != there.latest_version
    except CorruptTableError as error:
        if error.kind != ANOTHER_TABLE:
            raise
        newer, other = False, True
    if other:
        current = _instead_of(current, there, address)
    elif newer and (current.latest_version == before or schema_before != _declared_schema(current, before)):
        memory().forget(address)  # a tag, a schema that nothing is written with yet, or that was so until now
    version = current.latest_version if ref is None else current.snapshot(ref=ref).version
    return Freshness(version, now(), _replacements()[address])


def _declared_schema(table: Table, version: int | None = None) -> Schema | None:
    """The columns of a version, or those declared now, where the two may differ: in a table with branches."""
    try:
        return None if table.refs().is_empty() else table.snapshot(version).schema
    except LakeviewError:  # the page says what is wrong with it
        return None


def _instead_of(before: Table, after: Table, address: str) -> Table:
    """The table at an address where the open one is no longer what lies there; all that was read of it is forgotten."""
    if table(address) is before:  # else it was replaced meanwhile
        forget(address)
        if not _tells_the_same(before, after):
            _replacements()[address] += 1
    return table(address)


def _tells_the_same(before: Table, after: Table) -> bool:
    """Whether the newest commit is the same, though its file was written again; also where it cannot be read."""
    if before.latest_version != after.latest_version:
        return False
    try:
        return _newest(after).equals(before.history(1).drop(_OF_THE_STORE))
    except LakeviewError:  # the page says what is wrong with it
        return True


def _newest(there: Table) -> pl.DataFrame:
    """The newest commit as it was recorded, one row at most; CorruptTableError where it can no longer be read."""
    newest = there.history(1)
    for version in newest["version"]:
        there.commit(version)
    return newest.drop(_OF_THE_STORE)


_OF_THE_STORE = ("timestamp", "timestamp_source")
"""Columns of COMMITS that may be the store's word, and change with a copy of the file."""


@st.cache_resource(show_spinner=False)
def _replacements() -> Counter[str]:
    return Counter()


def is_recreated(address: str) -> bool:
    """Whether another table lies at the address by now: one that does not know the version we hold for the latest, or
    tells something else of it.

    Costs opening it once more, so it is asked by a click and never by a clock. CorruptTableError where the newest
    commit can no longer be read.
    """
    version, there = table(address).latest_version, lv.open_table(address)
    newest = _newest(there)
    if version not in there.versions(look=False)["version"]:
        return there.latest_version != version
    cached_commit = frames(address, version).history.head(1).drop(_OF_THE_STORE)
    return version == there.latest_version and not newest.equals(cached_commit)


def frames(address: str, latest: int, ref: str | None = None) -> TableFrames:
    """The frames of a table up to its latest version, in the memory of this server."""
    return TableFrames(table(address), latest, ref, address=address, memory=memory(), clock=now)


@st.cache_data(ttl=60, max_entries=32, show_spinner=False)
def found_tables(root: str) -> pl.DataFrame:
    """Tables below a root: address, format, name."""
    return lv.find_tables(root)


@st.cache_data(ttl=60, max_entries=32, show_spinner=False)
def near_tables(root: str) -> pl.DataFrame:
    """Tables within two folders of what is no table; none where it cannot be listed."""
    try:
        return lv.find_tables(root, depth=2)
    except LakeviewError:
        return pl.DataFrame(schema=TABLES)


def forget_frames() -> None:
    """Forgets frames and listings, which may have changed behind our back; tables stay open."""
    st.cache_data.clear()
    memory.clear()


def forget(address: str) -> None:
    """Forgets everything read of a table: the next page reads it again. Other tables, and their sessions, go on."""
    table.clear(address)
    latest.clear()
    memory().forget(address)
