"""What reading a table costs, in requests and in files opened and decoded: counted, never timed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lakeview.iceberg.deletes.positions import IcebergDeletes
from lakeview.iceberg.manifests import entries, tree
from lakeview.iceberg.manifests.avro import read_joined
from lakeview.iceberg.manifests.entry_cache import deep_copy
from lakeview.iceberg.metadata.locate import place_of
from lakeview.iceberg.opening import open_iceberg
from lakeview.iceberg.table import IcebergTable
from lakeview.model.config import Config
from lakeview.model.errors import CorruptTableError
from lakeview.storage.local import LocalStorage
from tests.builders.iceberg import IcebergHistory
from tests.builders.opening import open_iceberg_table

FIELDS: list[dict[str, Any]] = [
    {"id": 1, "name": "n", "required": False, "type": "long"},
    {"id": 2, "name": "s", "required": False, "type": "string"},
]
COMMITS = 12


def grown(place: Path, spec: list[tuple[int, str, str]] | None = None) -> IcebergHistory:
    history = IcebergHistory(place / "t", FIELDS, spec or [])
    for number in range(COMMITS):
        history.append(f"f{number}", [{"n": number, "s": str(number)}])
    return history


def cost(table: IcebergTable) -> dict[str, int]:
    """Requests since the last call, by kind; kinds without any left out."""
    requests = {kind: times for kind, times in table.storage.requests.items() if times}
    table.storage.requests.clear()
    return requests


def test_opening_by_a_metadata_file_reads_that_file_alone(tmp_path: Path) -> None:
    history = grown(tmp_path)
    newest = max((history.root / "metadata").glob("v*.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    table = open_iceberg(str(newest))
    assert table.snapshot().schema.names == ["n", "s"]
    assert table.history().height == COMMITS
    assert cost(table) == {"read": 1}


PLANS: dict[str, tuple[list[tuple[int, str, str]], str | None, int]] = {
    "without a filter": ([(1, "identity", "n")], None, COMMITS),
    "by one value": ([(1, "identity", "n")], "n = 3", 1),
    "by a range": ([(1, "identity", "n")], "n >= 9", 3),
    "by nothing that can match": ([(1, "identity", "n")], "n > 100", 0),
    "where the table has no parts": ([], "n = 3", COMMITS),
}


@pytest.mark.parametrize("case", PLANS)
def test_a_plan_asks_for_the_metadata_the_list_and_the_manifests_that_survive(tmp_path: Path, case: str) -> None:
    spec, where, survivors = PLANS[case]
    table = open_iceberg(grown(tmp_path, spec).address)
    tasks = table.tasks(where=where)
    assert len(tasks) == (min(survivors, 1) if case == "where the table has no parts" else survivors)
    assert cost(table) == {"list": 1, "read": 2 + survivors}  # the listing finds the metadata file
    assert len(table.tasks(where=where)) == len(tasks)
    assert cost(table) == {}


def with_totals(history: IcebergHistory, **changes: str) -> IcebergTable:
    """The table with the totals that engines keep in their summaries, some of them other ones."""
    files = open_iceberg(history.address).files()
    summary = {"data-files": files.height, "records": files["records"].sum(), "files-size": files["size"].sum()}
    history.document["snapshots"][-1]["summary"] |= {f"total-{k}": str(v) for k, v in summary.items()} | {
        f"total-{k.replace('_', '-')}": v for k, v in changes.items()
    }
    history._write()
    return open_iceberg(history.address)


def totals(table: IcebergTable) -> tuple[int, int | None, int | None]:
    snapshot = table.snapshot()
    return snapshot.num_files, snapshot.num_records, snapshot.size_bytes


def test_totals_come_from_the_summary_and_the_list_and_open_no_manifest(tmp_path: Path) -> None:
    table = with_totals(grown(tmp_path))
    sums = totals(table)
    assert cost(table) == {"list": 1, "read": 2}
    files = table.files()
    assert sums == (files.height, files["records"].sum(), files["size"].sum())


DOUBTS: dict[str, dict[str, str]] = {
    "another number of files": {"data_files": "99"},
    "another number of rows": {"records": "99"},
    "no number at all": {"files_size": "many"},
    "deletes": {"delete_files": "1"},
}


@pytest.mark.parametrize("case", DOUBTS)
def test_totals_in_doubt_are_counted_from_the_manifests(tmp_path: Path, case: str) -> None:
    table = with_totals(grown(tmp_path), **DOUBTS[case])
    sums = totals(table)
    files = table.files()
    assert sums == (files.height, files["records"].sum(), files["size"].sum())
    assert cost(table) == {"list": 1, "read": 2 + COMMITS}


def test_a_summary_without_bytes_still_tells_files_and_rows(tmp_path: Path) -> None:
    table = with_totals(grown(tmp_path), files_size="many")
    assert (table.snapshot().num_files, table.snapshot().num_records) == (COMMITS, COMMITS)
    assert cost(table) == {"list": 1, "read": 2}
    assert table.snapshot().size_bytes == table.files()["size"].sum()


def test_totals_of_a_table_with_deletes_are_counted(tmp_path: Path) -> None:
    history = grown(tmp_path)
    history.delete_equal("e", [history.fields["n"]], [{"n": 3}])
    table = with_totals(history)
    assert totals(table)[:2] == (COMMITS, None)


def test_manifests_that_snapshots_share_are_read_once(tmp_path: Path) -> None:
    table = open_iceberg(grown(tmp_path).address)
    versions = table.history()["version"].to_list()
    assert table.files(versions[0]).height == COMMITS
    assert cost(table) == {"list": 1, "read": 1 + 1 + COMMITS}
    for older, version in enumerate(versions):
        assert table.files(version).height == COMMITS - older
    assert cost(table) == {"read": COMMITS - 1}  # the other snapshots' lists


def test_files_read_with_their_statistics_are_not_read_again(tmp_path: Path) -> None:
    history = grown(tmp_path)
    history.remove(history.append("gone", [{"n": 20, "s": "20"}]))
    table, other = open_iceberg(history.address), open_iceberg(history.address)
    with_statistics = table.lifetimes(["n"])
    cost(table)
    assert table.lifetimes().equals(other.lifetimes())
    assert table.lifetimes().equals(with_statistics.select(table.lifetimes().columns))
    assert table.files().equals(other.files())
    assert cost(table) == {}


def test_small_manifests_are_decoded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []

    def join_and_count(containers: Any, *more: Any) -> pl.DataFrame | None:
        decoded.append(len(containers))
        return read_joined(containers, *more)

    monkeypatch.setattr(entries, "read_joined", join_and_count)
    assert open_iceberg(grown(tmp_path).address).snapshot().files.height == COMMITS
    assert decoded == [COMMITS]


def test_manifests_come_in_chunks_of_a_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_CHUNK_BYTES", 5_000)
    whole = open_iceberg(grown(tmp_path).address)
    rows = whole.state.tree.manifests(whole.metadata.snapshots[whole.latest_version])
    assert rows["manifest_length"].max() < 5_000 < rows["manifest_length"].sum()  # type: ignore[operator]  # lengths are numbers
    assert sorted(whole.files()["path"].str.slice(-3)) == sorted(f"/f{n}"[-3:] for n in range(COMMITS))


def test_what_is_held_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_CACHED_BYTES", 1)
    table = open_iceberg(grown(tmp_path).address)
    versions = table.history()["version"].to_list()
    for version in (*versions, *versions):
        assert table.files(version).height == COMMITS - versions.index(version)
    assert len(table.state.tree._entries) == 1


def test_metrics_that_were_read_serve_whoever_asks_for_fewer(tmp_path: Path) -> None:
    table = open_iceberg(grown(tmp_path).address)
    assert table.statistics().height == COMMITS
    cost(table)
    assert table.statistics(columns=["n"])["n"].struct.field("min").to_list() == list(range(COMMITS))
    assert table.files().height == COMMITS
    assert cost(table) == {}


def test_entries_stay_when_their_metrics_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_CHUNK_BYTES", 1)
    monkeypatch.setattr(tree, "_CACHED_METRICS", 1)
    table = open_iceberg(grown(tmp_path).address)
    statistics = table.statistics()
    assert len(table.state.tree._metrics) == 1
    cost(table)
    assert table.files()["path"].to_list() == statistics["_path"].to_list()
    assert table.lifetimes()["path"].sort().to_list() == statistics["_path"].sort().to_list()
    assert cost(table) == {"read": COMMITS - 1}  # the other snapshots' lists
    assert table.statistics(columns=["n"])["n"].equals(statistics["n"])
    assert len(table.state.tree._entries) == COMMITS  # and are cached once


class FarStorage(LocalStorage):
    """A folder as a store to which each request is a round trip. Reads of the next `together` manifest lists or
    manifests wait until all of them have been asked for: one after the other they would wait in vain."""

    together = 0
    barrier = threading.Barrier(1)

    @property
    def remote(self) -> bool:
        return True

    def expect(self, together: int) -> None:
        self.together, self.barrier = together, threading.Barrier(max(1, together))

    def read(self, path: str) -> bytes:
        data = super().read(path)
        if path.endswith(".avro") and self.together:
            self.barrier.wait(timeout=30)
        return data


def far(history: IcebergHistory) -> tuple[IcebergTable, FarStorage]:
    storage = FarStorage(history.address, Config())
    return IcebergTable(storage, place_of(history.address)), storage


@pytest.mark.parametrize("missing_lists", [0, 3])
def test_manifest_lists_of_a_remote_store_are_read_at_once_and_missing_ones_skipped(
    tmp_path: Path, missing_lists: int
) -> None:
    table, storage = far(grown(tmp_path))
    snapshots = list(table.metadata.snapshots.values())
    for snapshot in snapshots[:missing_lists]:
        Path(table.state.locations.resolve(str(snapshot.manifest_list))).unlink()
    storage.expect(COMMITS - missing_lists)
    _, errors = table.state.tree.manifests_of(snapshots)
    assert list(errors) == [s.snapshot_id for s in snapshots[:missing_lists]]


@pytest.mark.parametrize("lacks_file", [False, True])
def test_versions_of_a_remote_store_take_four_rounds_of_requests_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks_file: bool
) -> None:
    history = grown(tmp_path)
    for number in range(3):
        history.remove(f"s3://old/table/data/f{number}")  # each with one manifest of all files
    if lacks_file:
        (history.root / "data" / "f0").unlink()
    table, _ = far(history)
    rounds = [0]
    read, entries_of = FarStorage.read, tree.Tree.counted_entries

    def counted_read(self: FarStorage, path: str) -> bytes:
        rounds[-1] += path.endswith(".avro")
        return read(self, path)

    def counted_entries(self: tree.Tree, *args: Any) -> Any:
        rounds.append(0)
        return entries_of(self, *args)

    monkeypatch.setattr(FarStorage, "read", counted_read)
    monkeypatch.setattr(tree.Tree, "counted_entries", counted_entries)
    versions = table.versions()
    assert versions["readable"].to_list() == [True] * 3 + [not lacks_file] * COMMITS
    # all lists; the newest manifest; the first of each other snapshot; the others of those that miss nothing so far
    assert rounds == [COMMITS + 3, 1, 3, *([] if lacks_file else [COMMITS - 1])]


def _buffers(frame: pl.DataFrame) -> set[int]:
    """Where the memory of a frame lies, that of texts within structs too."""
    arrays = [chunk.to_arrow(compat_level=pl.CompatLevel.newest()) for s in frame for chunk in s.get_chunks()]
    return {buffer.address for array in arrays for buffer in array.buffers() if buffer is not None and buffer.size}


def test_entries_without_metrics_are_in_memory_of_their_own() -> None:
    partition = pl.DataFrame(
        {"f1000": ["a text longer than a view holds"] * 3, "f1001": [b"so many bytes as well"] * 3}
    )
    decoded = pl.DataFrame(
        {
            "n": [1, 2, 3],
            "path": ["s3://bucket/table/data/a.parquet"] * 3,
            "key": [None, b"so many bytes as well", None],
            "text": [None, None, "a text longer than a view holds"],
            "ids": [[1], None, [2, 3]],
        }
    )
    decoded = decoded.with_columns(partition.to_struct("partition"))
    own = deep_copy(decoded)
    assert own.equals(decoded)
    assert not _buffers(own) & _buffers(decoded)
    assert deep_copy(decoded.clear()).schema == decoded.schema


def test_a_commit_is_told_alike_whatever_was_read_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_CACHED_BYTES", 1)
    table = open_iceberg(grown(tmp_path).address)
    table.statistics()
    commit = table.commit(table.latest_version)
    assert commit.equals(open_iceberg(table.address).commit(table.latest_version))


def test_what_is_made_ahead_comes_in_order_and_fails_where_it_is_used() -> None:
    items: list[int] = []

    def each() -> Iterator[pl.DataFrame]:
        for number in range(9):
            items.append(number)
            if number == 3:
                raise CorruptTableError("the fourth is broken", fix="mend it", place="4", kind="corrupt-file")
            yield pl.DataFrame({"n": [number]})

    ahead = tree.one_ahead(each())
    assert [next(ahead).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(CorruptTableError, match="the fourth"):
        next(ahead)
    items.clear()
    stopped = tree.one_ahead(each())
    assert next(stopped).item() == 0
    stopped.close()  # type: ignore[attr-defined]  # a generator, as the loop over it does when it is left
    assert items == [0, 1]


def test_delete_manifests_are_read_only_where_deletes_matter(tmp_path: Path) -> None:
    history = grown(tmp_path)
    history.delete_equal("e", [history.fields["n"]], [{"n": 3}])
    table = open_iceberg_table(history.address)
    assert table.files(columns=["path", "size", "records"]).height == COMMITS
    assert cost(table) == {"list": 1, "read": 2 + COMMITS}
    assert table.files().height == COMMITS
    assert cost(table) == {"read": 1}


def test_equality_deletes_of_many_files_are_made_once(tmp_path: Path) -> None:
    history = grown(tmp_path)
    for name in ("d", "e"):
        history.delete_equal(name, [history.fields["n"]], [{"n": 0}, {"n": COMMITS}])
    deleted = [task.deleted_rows for task in open_iceberg(history.address).tasks()]
    first = deleted[0]
    assert isinstance(first, IcebergDeletes)
    assert len(first.equality[0].files) == 2
    assert all(isinstance(d, IcebergDeletes) and d.equality is first.equality for d in deleted)


def test_a_file_whose_bounds_no_equality_delete_meets_is_read_without_any(tmp_path: Path) -> None:
    history = grown(tmp_path)
    history.delete_equal("d", [history.fields["n"]], [{"n": 3}, {"n": 4}])
    history.delete_equal("e", [history.fields["n"], history.fields["s"]], [{"n": 4, "s": "9"}])
    history.delete_equal("f", [history.fields["n"]], [{"n": None}])
    table = open_iceberg(history.address)
    assert [task.path.rpartition("/")[2] for task in table.tasks() if task.deleted_rows is not None] == ["f3", "f4"]
    assert sorted(table.scan().collect()["n"]) == [n for n in range(COMMITS) if n not in (3, 4)]
