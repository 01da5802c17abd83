"""Lives of files with statistics: what the manifests of the whole history tell of each column, read once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview import views
from lakeview.iceberg.manifests.tree import Tree
from lakeview.model.errors import CorruptTableError, InvalidRequestError, StoreUnavailableError
from lakeview.views.quality.column_loads import column_loads
from lakeview.views.quality.column_states import column_states
from lakeview.views.schema.columns import schema_tree
from tests.builders.iceberg import IcebergHistory
from tests.builders.iceberg_branches import BranchedHistory
from tests.builders.opening import open_iceberg_table

Place = Mapping[str, Any] | None
FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "note", "required": False, "type": "string"},
]


@pytest.fixture
def history(tmp_path: Path) -> IcebergHistory:
    """Three loads, the second without notes; the first is removed at last."""
    written_history = IcebergHistory(tmp_path / "t", FIELDS)
    first = written_history.append("a", [{"id": i, "note": "x"} for i in range(4)])
    written_history.append("b", [{"id": i, "note": None} for i in range(10, 12)])
    written_history.append("c", [{"id": 50, "note": "z"}])
    written_history.remove(first)
    return written_history


def test_loads_and_states_are_told_by_statistics_alone(history: IcebergHistory) -> None:
    table = lv.open_table(history.address)
    lives = table.lifetimes(columns=["id", "note"])
    line = views.timeline.commits.timeline(table.history(), table.lifetimes())
    loads = column_loads(lives, line)
    notes = loads.filter(loads["column"] == "note").select("records", "null_count", "null_share", "min_text")
    assert notes.rows() == [(4, 0, 0.0, "x"), (2, 2, 1.0, None), (1, 0, 0.0, "z")]
    ids = column_states(lives, line).filter(column="id").select("records", "null_count", "low", "high", "range_is")
    assert ids.rows() == [
        (4, 0, 0.0, 3.0, "bound"),
        (6, 0, 0.0, 11.0, "bound"),
        (7, 0, 0.0, 50.0, "bound"),
        (3, 0, 10.0, 50.0, "bound"),
    ]


def test_each_version_is_told_as_its_own_statistics_tell_it(history: IcebergHistory) -> None:
    table = lv.open_table(history.address)
    states = column_states(
        table.lifetimes(columns=["id"]), views.timeline.commits.timeline(table.history(), table.lifetimes())
    )
    for version, low, high in states.select("version", "low", "high").iter_rows():
        bounds = table.statistics(version, ["id"])["id"].struct
        assert (bounds.field("min").min(), bounds.field("max").max()) == (low, high)


def test_statistics_are_told_along_a_branch_and_of_a_tag_in_its_own_schema(tmp_path: Path) -> None:
    history = BranchedHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1, "note": "x"}])
    history.branch("audit").tag("v1")
    with history.on("audit"):
        history.append("b", [{"id": 7, "note": None}])
    history.evolve([FIELDS[0]])
    history.append("c", [{"id": 50}])
    table = lv.open_table(history.address)
    lives = table.ref_lifetimes("audit", ["id"])
    assert lives.select("added", low=pl.col("statistics").struct.field("id").struct.field("min")).rows() == [
        (1001, 1), (1002, 7),
    ]  # fmt: skip
    notes = table.ref_lifetimes("v1", ["note"])["statistics"].struct.field("note").struct.field("max")
    assert notes.to_list() == ["x"]
    with pytest.raises(InvalidRequestError):
        table.ref_lifetimes("audit", ["note"])


def test_statistics_of_the_files_that_snapshots_touch_are_read_of_the_manifests_that_name_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    paths = [history.append(name, [{"id": i, "note": name}]) for i, name in enumerate("abcd")]
    history.remove(paths[0])
    del history.document["snapshots"][:3]  # expired
    history.append("e", [{"id": 9, "note": None}])
    table, metrics_read, own = lv.open_table(history.address), list[int](), Tree.counted_entries
    every = table.lifetimes(["id", "note"])

    def counting(self: Tree, manifests: pl.DataFrame, metrics: Collection[int] = ()) -> Any:
        metrics_read.append(manifests.height if metrics else 0)
        return own(self, manifests, metrics)

    monkeypatch.setattr(Tree, "counted_entries", counting)
    changed = lv.open_table(history.address).changed_lifetimes(["id", "note"])
    assert changed is not None
    assert changed.equals(every.filter(~pl.col("path").is_in(paths[1:3])))
    assert sum(metrics_read) == 4  # of six manifests
    assert changed.height == 3


def test_rows_that_a_load_wrote_are_known_though_deletes_may_apply(history: IcebergHistory) -> None:
    history.delete_equal("d", [history.fields["id"]], [{"id": 50}])
    table = lv.open_table(history.address)
    lives = table.lifetimes(columns=["note"])
    assert lives.select("added", "removed", "records").rows() == [
        (1001, 1004, 4),
        (1002, 1005, 2),
        (1005, None, None),
        (1003, 1005, 1),
        (1005, None, None),
    ]
    loads = column_loads(lives, views.timeline.commits.timeline(table.history(), table.lifetimes()))
    assert loads.select("null_share", "exact", "mark").rows() == [(0.0, True, ""), (1.0, True, ""), (0.0, True, "")]


def test_the_last_moment_of_a_range_is_shown_as_recorded(tmp_path: Path) -> None:
    """Writers of Delta Lake cut times to milliseconds, those of Iceberg do not."""
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "t", "required": False, "type": "timestamp"}])
    last = datetime.fromisoformat("2026-01-31T23:59:59.999999")
    history.append("a", [{"t": last.replace(day=1)}, {"t": last}])
    table = lv.open_table(history.address)
    lives, line = table.lifetimes(columns=["t"]), views.timeline.commits.timeline(table.history(), table.lifetimes())
    of_files = schema_tree(table.schema, table.statistics(), 2)
    texts = [*of_files["max_text"], *column_loads(lives, line)["max_text"], *column_states(lives, line)["max_text"]]
    assert texts == [str(last)] * 3


def by_vectors(history: IcebergHistory, first: str, _: Place = None) -> None:
    history.delete_vectors("v1", {first: [0]})
    history.append("later", [{"id": 70, "note": "y"}])
    history.delete_vectors("v2", {first: [0, 1, 2]})


def by_positions(history: IcebergHistory, first: str, place: Place) -> None:
    history.delete_positions("p", {first: [0]}, partition=place)
    history.append("later", [{"id": 70, "note": "y"}])


def by_positions_then_vectors(history: IcebergHistory, first: str, place: Place) -> None:
    history.delete_positions("p", {first: [0]}, partition=place)
    history.delete_vectors("v", {first: [0, 1]})


def by_values(history: IcebergHistory, first: str, place: Place) -> None:
    history.delete_vectors("v", {first: [0]})
    history.delete_equal("d", [history.fields["id"]], [{"id": 1}], partition=place)
    history.append("later", [{"id": 70, "note": "y"}])


def by_nothing(history: IcebergHistory, first: str, _: Place = None) -> None:
    history.remove(first)


@pytest.mark.parametrize("delete", [by_vectors, by_positions, by_positions_then_vectors, by_values, by_nothing])
@pytest.mark.parametrize("partitioned", [False, True])
def test_rows_are_known_at_every_version_at_which_its_own_listing_knows_them(
    tmp_path: Path, delete: Callable[[IcebergHistory, str, Place], None], partitioned: bool
) -> None:
    spec = [(1, "truncate[100]", "id_trunc")] if partitioned else []
    history = IcebergHistory(tmp_path / "t", FIELDS, spec, version=3)
    first = history.append("a", [{"id": i, "note": "x"} for i in range(5)])
    history.append("b", [{"id": 500, "note": None}])
    delete(history, first, {"id_trunc": 0} if partitioned else None)
    table = lv.open_table(history.address)
    lives, order = table.lifetimes(), table.history().sort("position")["version"].to_list()
    for version in order:
        files = table.snapshot(version).files
        records_by_path = dict(files.select("path", pl.col("records") - pl.col("deleted_records")).iter_rows())
        counts = {
            path: records
            for path, added, removed, records in lives.select("path", "added", "removed", "records").iter_rows()
            if order.index(added) <= order.index(version) and (removed is None or version < removed)
        }
        assert counts == records_by_path
    line = views.timeline.commits.timeline(table.history(), lives)
    assert line["records"].to_list() == [table.snapshot(v).num_records for v in order]
    assert line["files"].to_list() == [table.snapshot(v).num_files for v in order]


def test_a_file_that_came_back_has_a_stay_for_each_time(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    path = history.append("a", [{"id": 1, "note": "x"}])
    file = history._live[path][0]
    other = history.append("b", [{"id": 2, "note": "x"}])
    before = list(history._manifests)
    history.remove(path)
    history._commit("append", [file], 0, {})
    lives = lv.open_table(history.address).lifetimes(columns=["id"])
    stays = lives.select("path", "added", "removed").rows()
    assert sorted(stays, key=str) == sorted([(path, 1001, 1003), (other, 1002, None), (path, 1004, None)], key=str)
    history.remove(path)
    history._manifests = before  # a list of the manifests that an earlier snapshot had
    history._commit("append", [], 0, {})
    rows = lv.open_table(history.address).lifetimes().select("path", "added", "removed").rows()
    expected = [(path, 1001, 1003), (other, 1002, None), (path, 1004, 1005), (path, 1006, None)]
    assert sorted(rows, key=str) == sorted(expected, key=str)


def test_a_file_bears_the_name_of_the_vector_it_has(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS, version=3)
    by_vectors(history, history.append("a", [{"id": i, "note": "x"} for i in range(5)]))
    table = lv.open_table(history.address)
    live = table.lifetimes().filter(pl.col("removed").is_null()).select("path", "deletion_vector")
    assert sorted(live.rows()) == sorted(table.snapshot().files.select("path", "deletion_vector").rows())


def test_deletes_that_cannot_be_read_leave_every_count_unknown(history: IcebergHistory) -> None:
    history.delete_equal("d", [history.fields["id"]], [{"id": 50}])
    (history.root / "metadata" / "manifest-1005.avro").unlink()
    lives = lv.open_table(history.address).lifetimes()
    assert lives.height == 3
    assert lives["records"].null_count() == 3


def test_a_column_that_is_not_there_is_named(history: IcebergHistory) -> None:
    with pytest.raises(InvalidRequestError, match="there is no column nothing"):
        lv.open_table(history.address).lifetimes(columns=["nothing"])


def lists_of(history: IcebergHistory, *, together: bool) -> list[pl.DataFrame | str]:
    """MANIFESTS of every snapshot, or what is wrong with its list."""
    table = open_iceberg_table(history.address)
    snapshots = list(table.metadata.snapshots.values())
    tree = table.state.tree  # lists are no part of the interface
    if together:
        frames, errors = tree.manifests_of(snapshots)
        return [errors[n].message if n in errors else frames[n] for n in (s.snapshot_id for s in snapshots)]
    lists: list[pl.DataFrame | str] = []
    for snapshot in snapshots:
        try:
            lists.append(tree.manifests(snapshot))
        except CorruptTableError as error:
            lists.append(error.message)
    return lists


def same(a: pl.DataFrame | str, b: pl.DataFrame | str) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and a == b
    return a.equals(b)


@pytest.mark.parametrize("trouble", ["none", "broken", "gone", "of another schema"])
def test_manifest_lists_read_together_are_what_each_is_by_itself(history: IcebergHistory, trouble: str) -> None:
    table = open_iceberg_table(history.address)
    manifest_lists = [s.manifest_list for s in table.metadata.snapshots.values()]
    place = Path(history.address) / "metadata" / str(manifest_lists[1]).rpartition("/")[2]
    match trouble:
        case "broken":
            place.write_bytes(place.read_bytes()[:-20])
        case "gone":
            place.unlink()
        case "of another schema":
            place.write_bytes(place.read_bytes().replace(b"deleted_rows_count", b"deleted_rows_kount"))
    one_by_one, together = (lists_of(history, together=way) for way in (False, True))
    assert len(together) == 4
    assert all(same(a, b) for a, b in zip(one_by_one, together, strict=True))
    assert sum(isinstance(entry, str) for entry in together) == (trouble in ("broken", "gone"))


def test_lives_of_many_manifests_are_told_a_part_at_a_time(
    history: IcebergHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.delete_equal("d", [history.fields["id"]], [{"id": 50}])
    whole = lv.open_table(history.address).lifetimes(["id"])
    monkeypatch.setattr("lakeview.iceberg.manifests.manifest_lists._ENTRIES_AT_ONCE", 1)
    assert lv.open_table(history.address).lifetimes(["id"]).equals(whole)


def test_a_store_that_does_not_answer_once_leaves_no_gap_in_the_lives(
    history: IcebergHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, whole, calls = lv.open_table(history.address), Tree.manifests, []

    def manifests(self: Tree, snapshot: Any) -> pl.DataFrame:
        calls.append(snapshot)
        if len(calls) == 1:
            raise StoreUnavailableError("the store does not answer")
        return whole(self, snapshot)

    monkeypatch.setattr(Tree, "manifests", manifests)
    with pytest.raises(StoreUnavailableError, match="does not answer"):
        table.lifetimes()
    assert table.lifetimes().height == 3
