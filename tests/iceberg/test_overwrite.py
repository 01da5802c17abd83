"""Rows of Iceberg tables that are replaced or deleted: what lakeview, pyiceberg and DuckDB read then, and what is
refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import StaticTable

from lakeview.model.errors import ConstraintViolationError, InvalidRequestError, LakeviewError, UnsupportedTableError
from lakeview.model.findings import Severity
from tests.builders.iceberg import IcebergHistory
from tests.builders.opening import open_iceberg_table
from tests.differential.iceberg_oracles import duckdb_with_iceberg
from tests.iceberg.test_append import (
    ALL,
    PLAIN,
    SPECS,
    document_of,
    field,
    files_below,
    latest,
    make_table,
    rows,
)


def frame_of(*tables: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(pa.concat_tables(tables))
    assert isinstance(frame, pl.DataFrame)
    return frame


def check_readers(place: Path, expected: pl.DataFrame, plain: list[str]) -> None:
    """All readers find these rows, and the table contradicts itself nowhere."""
    table = open_iceberg_table(place)
    assert_frame_equal(table.scan().collect().sort("id"), expected.sort("id"), check_dtypes=False)
    by_pyiceberg = StaticTable.from_metadata(latest(place)).scan().to_arrow()
    by_duckdb = duckdb_with_iceberg().cursor().execute("FROM iceberg_scan(?)", [latest(place)]).to_arrow_table()
    for other in (by_pyiceberg, by_duckdb):
        rows_read = pl.from_arrow(other.select(plain))
        assert isinstance(rows_read, pl.DataFrame)
        assert_frame_equal(rows_read.sort("id"), expected.select(plain).sort("id"), check_dtypes=False)
    assert [f for f in table.check() if f.severity is not Severity.PASS] == []
    assert set(table.audit()["verdict"]) <= {"proven", "unknowable"}  # deletes may not record which files they name


def summary_of(place: Path) -> dict[str, str]:
    summary: dict[str, str] = document_of(place)["snapshots"][-1]["summary"]
    return summary


OTHER_SPECS = ("a name of odd letters", "day, hour", "decimals", "fixed, time", "void", "NaN")


@pytest.mark.parametrize(("version", "spec"), [
    *((2, name) for name in OTHER_SPECS), *((v, "bucket, truncate") for v in (1, 2, 3)), (1, "no partitions"),
])  # fmt: skip
def test_every_reader_finds_the_rows_that_stay_and_the_new_ones(tmp_path: Path, version: int, spec: str) -> None:
    place = make_table(tmp_path / "t", ALL, SPECS[spec], version=version)
    table = open_iceberg_table(place)
    table.append(rows(0, 12))
    table.append(rows(12, 8))
    plain = [c for c in rows(0, 1).column_names if c not in ("key", "m", "at")]
    table.overwrite(rows(8, 2), "id >= 8 AND id < 15")
    expected = frame_of(rows(0, 8), rows(8, 2), rows(15, 5))
    check_readers(place, expected, plain)
    summary = summary_of(place)
    assert (summary["operation"], summary["engine-name"]) == ("overwrite", "lakeview")
    table.overwrite(rows(20, 3))
    check_readers(place, frame_of(rows(20, 3)), plain)
    totals = {k: v for k, v in summary_of(place).items() if k.startswith("total-") and k != "total-files-size"}
    assert totals["total-records"] == "3"
    assert table.delete() == open_iceberg_table(place).latest_version
    assert (summary_of(place)["operation"], summary_of(place)["total-data-files"]) == ("delete", "0")
    assert table.delete() is None


def ids(place: Path) -> list[int]:
    ids_read: list[int] = sorted(open_iceberg_table(place).scan().collect()["id"])
    return ids_read


PARTITIONED: dict[str, tuple[list[tuple[int, str, str]], list[int], list[int]]] = {
    "by name": ([(2, "identity", "name")], [9, 10, 11], [2, 3, 5, 9, 10, 11]),
    "by fives": ([(1, "truncate[5]", "five")], [0, 1, 11], [0, 1, 5, 6, 11]),
    "by a measure": ([(5, "identity", "x"), (2, "void", "v")], [9, 10, 11], [1, 2, 3, 6, 9, 10, 11]),
}


@pytest.mark.parametrize("case", PARTITIONED)
def test_partitions_that_rows_fall_into_are_replaced(tmp_path: Path, case: str) -> None:
    """Null and NaN are partitions like others."""
    spec, rows_given, expected = PARTITIONED[case]
    place = make_table(tmp_path / "t", [*PLAIN, field(5, "x", "double")], spec)
    table = open_iceberg_table(place)
    table.append(pl.DataFrame({
        "id": [1, 2, 3, 5, 6], "name": ["a", "b", "b", "c", None], "x": [1.0, 2.0, 0.0, float("nan"), -0.0],
    }))  # fmt: skip
    table.append(pl.DataFrame({"id": [4], "name": ["a"], "x": [float("nan")]}))
    table.overwrite_partitions(
        pl.DataFrame({"id": rows_given, "name": ["d", None, "a"], "x": [9.0, float("nan"), 7.0]})
    )
    assert ids(place) == expected
    assert sorted(StaticTable.from_metadata(latest(place)).scan().to_arrow()["id"].to_pylist()) == expected
    assert set(table.audit()["verdict"]) == {"proven"}


def test_entries_keep_their_numbers_and_say_which_snapshot_removed_them(tmp_path: Path) -> None:
    place = make_table(tmp_path / "t", PLAIN, [(1, "truncate[10]", "tens")])
    table = open_iceberg_table(place)
    first = table.append(pl.DataFrame({"id": [1, 11], "name": ["a", "b"]}))
    table.append(pl.DataFrame({"id": [21], "name": ["c"]}))
    third = table.delete("id < 10")
    table_found = StaticTable.from_metadata(latest(place))
    snapshot = table_found.current_snapshot()
    assert snapshot is not None
    entries = [
        (ManifestEntryStatus(e.status).name, e.data_file.partition[0], e.snapshot_id, e.sequence_number)
        for manifest in snapshot.manifests(table_found.io)
        for e in manifest.fetch_manifest_entry(table_found.io, discard_deleted=False)
    ]
    assert sorted(entries)[:2] == [("ADDED", 20, snapshot.parent_snapshot_id, 2), ("DELETED", 0, third, 1)]
    assert sorted(entries)[2:] == [("EXISTING", 10, first, 1)]
    manifests = {(m.sequence_number, m.min_sequence_number) for m in snapshot.manifests(table_found.io)}
    assert manifests == {(2, 2), (3, 1)}
    summary = summary_of(place)
    assert {k: v for k, v in summary.items() if k.startswith(("deleted", "changed", "total-data", "total-rec"))} == {
        "deleted-data-files": "1", "deleted-records": "1", "changed-partition-count": "1", "total-data-files": "2",
        "total-records": "2",
    }  # fmt: skip
    table.delete()
    table.append(pl.DataFrame({"id": [1], "name": ["a"]}))
    table.overwrite(pl.DataFrame({"id": [2], "name": ["a"]}))  # manifests of files that are gone are not listed again
    assert open_iceberg_table(place).snapshot().num_files == 1
    assert len(StaticTable.from_metadata(latest(place)).current_snapshot().manifests(table_found.io)) == 2  # type: ignore[union-attr]


def test_files_that_go_whole_are_not_read(tmp_path: Path) -> None:
    """By their partitions, and by their bounds."""
    place = make_table(tmp_path / "t", PLAIN, [(1, "truncate[10]", "tens")])
    open_iceberg_table(place).append(pl.DataFrame({"id": [1, 11, 21], "name": ["a", "b", "x"]}))
    for path in place.rglob("*.parquet"):
        path.unlink()
    open_iceberg_table(place).delete("id < 10 OR name >= 'x'")
    assert open_iceberg_table(place).snapshot().num_files == 1
    assert open_iceberg_table(place).delete("id = 5") is None


DELETES: dict[str, tuple[int, Callable[[IcebergHistory, str], object]]] = {
    "of positions": (2, lambda history, path: history.delete_positions("d", {path: [1]})),
    "of equal values": (2, lambda history, _: history.delete_equal("d", [history.fields["id"]], [{"id": 2}])),
    "vectors": (3, lambda history, path: history.delete_vectors("d", {path: [1]})),
}


@pytest.mark.parametrize("kind", DELETES)
def test_deleted_rows_do_not_come_back_and_their_deletes_go(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "t"
    version, delete = DELETES[kind]
    history = IcebergHistory(place, PLAIN, location=str(place), version=version)
    delete(history, history.append("f", [{"id": i, "name": "a"} for i in (1, 2, 3)]))
    table = open_iceberg_table(place)
    table.append(pl.DataFrame({"id": [7, 8], "name": ["b", "b"]}))
    before = table.scan(row_tracking=version > 2).collect()
    assert sorted(before["id"]) == [1, 3, 7, 8]
    table.overwrite(pl.DataFrame({"id": [2, 3], "name": ["c", "c"]}), "id = 2 OR id = 3")
    check_readers(place, pl.DataFrame({"id": [1, 2, 3, 7, 8], "name": ["a", "c", "c", "b", "b"]}), ["id"])
    assert (summary_of(place)["removed-delete-files"], summary_of(place)["deleted-records"]) == ("1", "3")
    assert open_iceberg_table(place).snapshot().delete_files.is_empty()
    if version > 2:  # a row that only moves stays the row that it was
        after = open_iceberg_table(place).scan(row_tracking=True).collect()
        moved = after.join(before.select("id"), on="id").filter(pl.col("name") != "c")
        assert_frame_equal(moved.sort("id"), before.filter(pl.col("id") != 3).sort("id"))
        assert after["_row_id"].is_unique().all()


def test_deletes_stay_where_they_apply_to_files_that_stay(tmp_path: Path) -> None:
    place = tmp_path / "t"
    history = IcebergHistory(place, PLAIN, location=str(place))
    for name, first in (("e", 1), ("f", 10)):
        history.append(name, [{"id": first + i, "name": name} for i in range(3)])
    history.delete_equal("d", [history.fields["id"]], [{"id": 1}, {"id": 12}])
    table = open_iceberg_table(place)
    table.delete("id >= 11")
    assert (ids(place), table.snapshot().delete_files.height) == ([2, 3, 10], 1)
    table.delete()
    assert table.snapshot().delete_files.is_empty()
    assert set(table.audit()["verdict"]) == {"proven"}


def test_files_of_earlier_partition_specs_are_replaced_by_conditions_alone(tmp_path: Path) -> None:
    place = tmp_path / "t"
    history = IcebergHistory(place, PLAIN, [(2, "identity", "name")], location=str(place))
    history.append("f", [{"id": i, "name": "a"} for i in (1, 2, 3)])
    history.partition_by((1, "truncate[5]", "five"))
    history.append("g", [{"id": 4, "name": "a"}])
    table = open_iceberg_table(place)
    table.append(pl.DataFrame({"id": [7], "name": ["b"]}))
    with pytest.raises(UnsupportedTableError, match="of an earlier partition spec") as caught:
        table.overwrite_partitions(pl.DataFrame({"id": [3], "name": ["a"]}))
    assert caught.value.kind == "several-partition-specs"
    table.overwrite(pl.DataFrame({"id": [3], "name": ["a"]}), "id BETWEEN 2 AND 4")
    check_readers(place, pl.DataFrame({"id": [1, 3, 7], "name": ["a", "a", "b"]}), ["id", "name"])


def test_files_of_an_earlier_spec_whose_column_is_gone_are_refused_by_that_spec(tmp_path: Path) -> None:
    place = tmp_path / "t"
    history = IcebergHistory(place, PLAIN, [(2, "identity", "name")], location=str(place))
    history.append("f", [{"id": 1, "name": "a"}])
    history.partition_by()
    history.evolve(PLAIN[:1])
    table = open_iceberg_table(place)
    table.append(pl.DataFrame({"id": [2]}))
    with pytest.raises(UnsupportedTableError, match="files of the spec 0 are partitioned by name, whose column is not"):
        table.delete("id = 1")


def test_manifests_of_an_earlier_format_version_are_carried_over(tmp_path: Path) -> None:
    place = make_table(tmp_path / "t", PLAIN, [(2, "identity", "name")], version=1)
    open_iceberg_table(place).append(pl.DataFrame({"id": [1, 2, 3], "name": ["a", "b", None]}))
    document = document_of(place)
    for key in ("schema", "partition-spec"):
        del document[key]
    upgraded = {**document, "format-version": 2, "last-sequence-number": 0}
    (place / "metadata/v3.metadata.json").write_text(json.dumps(upgraded))
    open_iceberg_table(place).delete("name = 'a'")
    check_readers(place, pl.DataFrame({"id": [2, 3], "name": ["b", None]}), ["id", "name"])


BAD: dict[str, tuple[pl.DataFrame, str | pl.Expr, type[LakeviewError], str]] = {
    "rows outside the condition": (
        pl.DataFrame({"id": [1, 2, 9], "name": ["a", "b", "c"]}), "id < 5", ConstraintViolationError, "replace-where"),
    "rows of which it is null": (
        pl.DataFrame({"id": [1], "name": [None]}), "name = 'a'", ConstraintViolationError, "replace-where"),
    "no condition": (pl.DataFrame({"id": [1], "name": ["a"]}), "id + 1", InvalidRequestError, "bad-predicate"),
    "an unknown column": (pl.DataFrame({"id": [1], "name": ["a"]}), "more = 1", InvalidRequestError, "unknown-column"),
    "a condition on several rows": (
        pl.DataFrame({"id": [1], "name": ["a"]}), pl.col("id") == pl.col("id").max(), InvalidRequestError,
        "not-row-wise"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused_leaves_nothing(tmp_path: Path, case: str) -> None:
    frame, where, kind, word = BAD[case]
    table = open_iceberg_table(make_table(tmp_path / "t", PLAIN))
    table.append(pl.DataFrame({"id": [1, 7], "name": ["a", "b"]}))
    before = files_below(tmp_path)
    with pytest.raises(kind) as caught:
        table.overwrite(frame, where)
    assert caught.value.kind == word
    assert files_below(tmp_path) == before


def test_nothing_that_comes_or_goes_is_no_snapshot(tmp_path: Path) -> None:
    table = open_iceberg_table(make_table(tmp_path / "t", PLAIN))
    none = pl.DataFrame(schema={"id": pl.Int64, "name": pl.String})
    before = files_below(tmp_path)
    assert (table.overwrite(none), table.delete("id = 1"), table.overwrite(none, "id = 1")) == (None, None, None)
    with pytest.raises(InvalidRequestError, match="has no partitions that rows could replace"):
        table.overwrite_partitions(none)
    assert files_below(tmp_path) == before
    table.overwrite(pl.DataFrame({"id": [1], "name": ["a"]}))
    assert summary_of(tmp_path / "t")["operation"] == "append"  # "Only data files were added"


def test_partitions_of_times_that_python_has_not_are_carried_over(tmp_path: Path) -> None:
    place = make_table(tmp_path / "t", [field(1, "at", "timestamp"), field(2, "id", "long")], [(1, "identity", "at")])
    times = pa.array([2**63 - 1, 1 - 2**63, 0, None], pa.timestamp("us"))
    open_iceberg_table(place).append(pa.table({"at": times, "id": pa.array(range(4), pa.int64())}))
    open_iceberg_table(place).delete("id = 2")
    assert open_iceberg_table(place).scan().select("id").collect()["id"].sort().to_list() == [0, 1, 3]
