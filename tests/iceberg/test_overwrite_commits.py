"""Commits of overwrites and deletes: other writers at the same time, stores that fail, and catalogs."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT
from lakeview.iceberg.table import IcebergTable
from lakeview.iceberg.write.changes import overwrite
from lakeview.iceberg.write.context import write_context
from lakeview.iceberg.write.data_file import write_files
from lakeview.iceberg.write.selection import Selection
from lakeview.iceberg.write.snapshot_commit import CommitOptions
from lakeview.model.config import Config
from lakeview.model.errors import CommitConflictError, StoreUnavailableError
from lakeview.rows.batches import batches_of
from lakeview.storage import LocalStorage
from tests.builders.catalogs import FIELDS, RestState, rest_catalog
from tests.builders.iceberg import IcebergHistory
from tests.builders.opening import open_iceberg_table
from tests.iceberg.test_append import latest
from tests.iceberg.test_append_commits import (
    Dies,
    Fails,
    Interleaved,
    Killed,
    Races,
    files_below,
    ids,
    rows,
    sound,
    table,
)

Step = Callable[[IcebergTable], object]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again costs no time."""
    for module in (
        "iceberg.write.snapshot_commit",
        "iceberg.write.commits",
        "storage.retries",
        "storage.exclusive",
    ):
        monkeypatch.setattr(f"lakeview.{module}.back_off", lambda *_, **__: None)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table by tens, in two files each: 0 to 4, 5 to 9, 10 to 14, 15 to 19."""
    IcebergHistory(tmp_path / "t", FIELDS, ((1, "truncate[10]", "tens"),), location=str(tmp_path / "t"))
    table_found = table(LocalStorage(str(tmp_path / "t"), Config()))
    for first in (0, 5):
        table_found.append(pl.concat([rows(first, 5), rows(first + 10, 5)]))
    return tmp_path / "t"


OURS: dict[str, Step] = {
    "overwrite of all": lambda t: t.overwrite(rows(100)),
    "overwrite by a condition": lambda t: t.overwrite(rows(3), "id < 10"),
    "overwrite of partitions": lambda t: t.overwrite_partitions(rows(3)),
    "delete of some rows": lambda t: t.delete("id BETWEEN 3 AND 6"),
}
OTHERS: dict[str, Step] = {
    "an append to it": lambda t: t.append(rows(4)),
    "a delete of its rows": lambda t: t.delete("id = 4"),
    "an append elsewhere": lambda t: t.append(rows(14)),
    "a delete elsewhere": lambda t: t.delete("id > 14"),
    "an overwrite elsewhere": lambda t: t.overwrite(rows(11), "id > 9"),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("ours", OURS)
def test_what_another_writer_did_meanwhile_is_followed_or_refused(place: Path, ours: str, other: str) -> None:
    is_refused = "elsewhere" not in other or ours == "overwrite of all"
    expected = table(LocalStorage(str(place), Config()))
    before = ids(place)
    store = Interleaved(place, lambda: OTHERS[other](table(Races(place))))
    if is_refused:
        with pytest.raises(CommitConflictError, match="changed by another writer since it was read") as caught:
            OURS[ours](table(store))
        expected.refresh()
        assert (caught.value.kind, caught.value.version) == ("concurrent-change", expected.latest_version)
    else:
        OURS[ours](table(store))
    after = ids(place)
    sound(place)
    expected.refresh()
    others = [i for i in before if i >= 10]
    theirs = {"an append elsewhere": [*others, 14, 15, 16], "a delete elsewhere": others[:5]}
    if is_refused:
        assert expected.versions().height == 3
    else:
        mine = [0, 1, 2, 7, 8, 9] if ours == "delete of some rows" else [3, 4, 5]
        assert after == sorted(mine + theirs.get(other, [11, 12, 13]))
        assert expected.versions().height == 4
    paths = set(expected.snapshot().files["path"].to_list())
    assert len(paths) == expected.snapshot().num_files


def test_an_append_is_placed_after_an_overwrite(place: Path) -> None:
    table(Interleaved(place, lambda: OURS["overwrite by a condition"](table(Races(place))))).append(rows(4))
    assert ids(place) == [3, 4, 4, 5, 5, 6, *range(10, 20)]
    sound(place)


def test_a_refused_overwrite_leaves_no_file(place: Path) -> None:
    other = OTHERS["an append to it"]
    before = files_below(place)
    other(table(Races(place)))
    theirs = files_below(place) - before
    with pytest.raises(CommitConflictError):
        OURS["delete of some rows"](table(Interleaved(place, lambda: other(table(Races(place))))))
    assert len(files_below(place) - before) == 2 * len(theirs)


@pytest.mark.parametrize("ours", OURS)
def test_a_store_that_fails_at_any_write_leaves_the_table_and_the_folder_as_they_were(place: Path, ours: str) -> None:
    before, ids_before = files_below(place), ids(place)
    for after in range(30):
        try:
            OURS[ours](table(Fails(place, after, OSError(errno.ENOSPC, "on purpose"))))
        except StoreUnavailableError:
            assert (files_below(place), ids(place)) == (before, ids_before)
        else:
            break
    assert after > 3
    sound(place)


def test_a_process_that_ends_at_any_write_leaves_the_table_as_it_was_or_as_it_should_be(place: Path) -> None:
    before = ids(place)
    for after in range(30):
        try:
            OURS["overwrite by a condition"](table(Dies(place, after, Killed())))
        except Killed:
            assert ids(place) in (before, [3, 4, 5, *range(10, 20)])
        else:
            break
    assert ids(place) == [3, 4, 5, *range(10, 20)]
    sound(place, "snapshot-orphan-files")


def test_an_overwrite_is_checked_against_what_followed_its_base(place: Path) -> None:
    """The base may be older than the table at the commit, as that of a job that took an hour."""
    base_table = table(LocalStorage(str(place), Config()))
    base, context = base_table.latest_version, write_context(base_table.state)
    selection = Selection.parse("id < 10", base_table.state.metadata.schema)
    base_table.append(rows(14))
    assert overwrite(base_table, base, context, [], selection, CommitOptions()) == base_table.latest_version
    base_table.append(rows(4))
    everything = Selection.parse(None, context.schema)
    for earlier, kind in ((base, "concurrent-change"), (NO_SNAPSHOT, "concurrent-change"), (17, "base-expired")):
        before = files_below(place)
        files = write_files(context, batches_of(rows(30)), base_table.storage)
        with pytest.raises(CommitConflictError) as caught:
            overwrite(base_table, earlier, context, files, everything, CommitOptions())
        assert (caught.value.kind, files_below(place)) == (kind, before)
    assert ids(place) == [4, 5, 6, *range(10, 15), 14, 15, 15, 16, 16, 17, 18, 19]


def test_a_catalog_makes_the_commit_of_an_overwrite(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog_state = RestState([("sales",)], {("sales", "t"): latest(place)})
    with rest_catalog(catalog_state) as address:
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", address)
        ours, other = (table_of_catalog() for _ in range(2))
        other.overwrite(rows(11), "id > 9")
        catalog_state.losses = 1
        OURS["delete of some rows"](ours)
        assert sorted(table_of_catalog().scan().collect()["id"]) == [0, 1, 2, 7, 8, 9, 11, 12, 13]
        commit = other.pointer.commit  # type: ignore[union-attr]

        def late(*change: object) -> bool:
            table_of_catalog().append(rows(4))
            monkeypatch.setattr(other.pointer, "commit", commit)
            return commit(*change)  # type: ignore[arg-type]

        monkeypatch.setattr(other.pointer, "commit", late)
        with pytest.raises(CommitConflictError, match="changed by another writer"):
            OURS["overwrite by a condition"](other)
        assert set(table_of_catalog().audit()["verdict"]) == {"proven"}


def table_of_catalog() -> IcebergTable:
    return open_iceberg_table("catalog://prod/sales.t")
