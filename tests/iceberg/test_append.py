"""Rows appended to Iceberg tables: what lakeview, pyiceberg and DuckDB read of them, and what is refused."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal
from pyiceberg.manifest import DataFile as PyicebergFile
from pyiceberg.table import StaticTable, Table

from lakeview.iceberg.metadata.transforms import parse_transform
from lakeview.iceberg.write.partition_tuples import number_buckets
from lakeview.model.data_types import PrimitiveType
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError, LakeviewError, UnsupportedTableError
from lakeview.model.findings import Severity
from tests.builders.catalogs import sqlite_catalog
from tests.builders.iceberg import IcebergHistory
from tests.builders.opening import open_iceberg_table
from tests.differential.iceberg_oracles import duckdb_with_iceberg


def field(number: int, name: str, type_: Any, *, required: bool = False, default: str | None = None) -> dict[str, Any]:
    defaults = {} if default is None else {"initial-default": "old", "write-default": default}
    return {"id": number, "name": name, "required": required, "type": type_, **defaults}


PLAIN = [field(1, "id", "long", required=True), field(2, "name", "string")]
ALL = [
    field(1, "id", "long", required=True), field(2, "name", "string"), field(3, "at", "timestamptz"),
    field(4, "day", "date"), field(5, "x", "double"), field(6, "price", "decimal(9,2)"), field(7, "key", "uuid"),
    field(8, "code", "fixed[4]"), field(9, "local", "timestamp"), field(10, "t", "time"), field(11, "raw", "binary"),
    field(12, "flag", "boolean"), field(13, "n", "int"),
    field(14, "s", {"type": "struct", "fields": [field(15, "a", "long"), field(16, "b", "string")]}),
    field(17, "l", {"type": "list", "element-id": 18, "element": "long", "element-required": False}),
    field(19, "m", {"type": "map", "key-id": 20, "key": "string", "value-id": 21, "value": "double",
        "value-required": False}),
]  # fmt: skip


def rows(first: int, count: int) -> pa.Table:
    """Rows with every column of ALL: nulls, NaN, times before 1970 and long texts among them."""
    ids = range(first, first + count)
    return pa.table({
        "id": pa.array(ids, pa.int64()),
        "name": [None if i == 3 else f"näme{i % 3}" for i in ids],
        "at": pa.array([datetime(2026, 1, 1 + i % 3, i, 5, tzinfo=UTC) for i in ids], pa.timestamp("us", "UTC")),
        "day": [date(1969 + i % 3, 1 + i % 12, 3) for i in ids],
        "x": [float("nan") if i == 5 else i / 2 for i in ids],
        "price": pa.array([Decimal(i - 10) / 4 for i in ids], pa.decimal128(9, 2)),
        "key": pa.array([uuid.UUID(int=i).bytes for i in ids], pa.binary()),
        "code": pa.array([bytes([i % 2] * 4) for i in ids], pa.binary()),
        "local": pa.array([-i * 3_601_000_001 for i in ids], pa.timestamp("us")),
        "t": pa.array([time(i % 4, 1, 2, 3) for i in ids], pa.time64("us")),
        "raw": pa.array([b"\xff" * 30] * count, pa.binary()),
        "flag": [i % 2 == 0 for i in ids],
        "n": pa.array(ids, pa.int32()),
        "s": [None if i == 1 else {"a": i % 3, "b": "x" * 40} for i in ids],
        "l": pa.array([[1, None]] * count, pa.list_(pa.int64())),
        "m": pa.array([[("a", 1.0)]] * count, pa.map_(pa.string(), pa.float64())),
    })  # fmt: skip


def make_table(
    place: Path, fields: list[dict[str, Any]], spec: Sequence[tuple[int, str, str]] = (), **more: Any
) -> Path:
    """A table without rows that is recorded where it lies."""
    history = IcebergHistory(place, fields, spec, location=str(place), **more)
    if history.document["format-version"] == 1:
        document = {**history.document, "schema": history.document["schemas"][0]}
        document["partition-spec"] = document["partition-specs"][0]["fields"]
        (place / "metadata/v1.metadata.json").write_text(json.dumps(document))
    return place


def latest(place: Path) -> str:
    return str(max((place / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].partition(".")[0])))


def entry_of(table: Table) -> PyicebergFile:
    """The data file of a table that has one, as pyiceberg reads it."""
    (task,) = table.scan().plan_files()
    return task.file


def document_of(place: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(latest(place)).read_text())
    return document


def files_below(place: Path) -> set[Path]:
    return {path for path in place.rglob("*") if path.is_file()}


SPECS: dict[str, list[tuple[int, str, str]]] = {
    "no partitions": [],
    "identity of a text": [(2, "identity", "name")],
    "a name of odd letters": [(2, "identity", "na me-é")],
    "bucket, truncate": [(1, "bucket[4]", "id_b"), (2, "truncate[2]", "n_t")],
    "day, hour": [(3, "day", "at_d"), (9, "hour", "h")],
    "month, year": [(4, "month", "m"), (4, "year", "y")],
    "decimals": [(6, "truncate[10]", "p10"), (6, "identity", "price")],
    "buckets of bytes": [(7, "bucket[3]", "key_b"), (11, "bucket[3]", "raw_b"), (6, "bucket[3]", "price_b")],
    "fixed, time": [(8, "identity", "code"), (10, "identity", "t")],
    "a field of a struct": [(15, "identity", "s.a")],
    "void": [(2, "void", "name_null"), (1, "truncate[5]", "five")],
    "NaN": [(5, "identity", "x")],
    "only void": [(2, "void", "name_null")],
}


@pytest.mark.parametrize(("version", "spec"), [
    *((2, name) for name in SPECS), *((v, name) for v in (1, 3) for name in ("no partitions", "bucket, truncate")),
])  # fmt: skip
def test_every_reader_finds_the_rows(tmp_path: Path, version: int, spec: str) -> None:
    table = open_iceberg_table(make_table(tmp_path / "t", ALL, SPECS[spec], version=version))
    first, second = table.append(rows(0, 20)), table.append(pl.from_arrow(rows(20, 3)))
    assert first is not None
    assert second == table.latest_version
    expected = pl.from_arrow(pa.concat_tables([rows(0, 20), rows(20, 3)]))
    assert isinstance(expected, pl.DataFrame)
    rows_read = open_iceberg_table(tmp_path / "t").scan().collect()
    assert_frame_equal(rows_read.sort("id"), expected, check_dtypes=False)
    plain = [c for c in expected.columns if c not in ("key", "m", "at")]
    by_pyiceberg = StaticTable.from_metadata(latest(tmp_path / "t")).scan().to_arrow()
    by_duckdb = (
        duckdb_with_iceberg().cursor().execute("FROM iceberg_scan(?)", [latest(tmp_path / "t")]).to_arrow_table()
    )
    for other in (by_pyiceberg, by_duckdb):
        frame = pl.from_arrow(other.select(plain))
        assert isinstance(frame, pl.DataFrame)
        assert_frame_equal(frame.sort("id"), expected.select(plain), check_dtypes=False)
    assert [f for f in table.check() if f.severity is not Severity.PASS] == []
    assert set(table.audit()["verdict"]) == {"proven"}


@pytest.mark.parametrize("name", [f["name"] for f in ALL])
def test_a_column_of_every_type_is_written_by_itself(tmp_path: Path, name: str) -> None:
    (column,) = [f for f in ALL if f["name"] == name]
    make_table(tmp_path / "t", [column])
    open_iceberg_table(tmp_path / "t").append(rows(0, 20).select([name]))
    expected = pl.from_arrow(rows(0, 20).select([name]))
    assert isinstance(expected, pl.DataFrame)
    assert_frame_equal(open_iceberg_table(tmp_path / "t").scan().collect(), expected, check_dtypes=False)


@pytest.mark.parametrize("count", [1, 7, 2_147_483_647])
def test_buckets_of_columns_are_those_of_single_values(count: int) -> None:
    numbers = [0, 1, -1, 34, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), None, 1_510_871_468_000_000]
    transform = parse_transform(f"bucket[{count}]")
    expected = [transform.apply(number, PrimitiveType("long")) for number in numbers]
    assert number_buckets(pl.Series(numbers, dtype=pl.Int64), count).to_list() == expected


def test_names_that_differ_by_case_alone_are_two_columns(tmp_path: Path) -> None:
    place = make_table(tmp_path / "t", [field(1, "id", "long"), field(2, "ID", "long")])
    open_iceberg_table(place).append(pl.DataFrame({"ID": [1], "id": [2]}))
    assert open_iceberg_table(place).scan().collect().rows(named=True) == [{"id": 2, "ID": 1}]
    with pytest.raises(InvalidRequestError, match="differ only by case"):
        open_iceberg_table(place).append(pl.DataFrame({"ID": [1], "Id": [2]}))


DELETES: dict[str, Callable[[IcebergHistory, str], object]] = {
    "of positions": lambda history, path: history.delete_positions("d", {path: [1]}),
    "of equal values": lambda history, _: history.delete_equal("d", [history.fields["id"]], [{"id": 2}]),
}


@pytest.mark.parametrize("kind", DELETES)
def test_deletes_hold_for_the_rows_before_them_alone(tmp_path: Path, kind: str) -> None:
    history = IcebergHistory(tmp_path / "t", PLAIN, location=str(tmp_path / "t"))
    DELETES[kind](history, history.append("f", [{"id": i, "name": "a"} for i in (1, 2, 3)]))
    table = open_iceberg_table(tmp_path / "t")
    table.append(pl.DataFrame({"id": [2, 4], "name": ["b", "b"]}))
    assert sorted(table.scan().collect()["id"]) == [1, 2, 3, 4]
    by_duckdb = duckdb_with_iceberg().cursor().execute("SELECT id FROM iceberg_scan(?)", [latest(tmp_path / "t")])
    assert sorted(i for (i,) in by_duckdb.fetchall()) == [1, 2, 3, 4]
    assert [f for f in table.check() if f.severity is not Severity.PASS] == []


@pytest.mark.parametrize(("condition", "files"), [
    ("id = 7", 1), ("name = 'x'", 0), ("id < 3", 1), ("id > 8", 2), ("name IS NULL", 1), ("id = 30", 0),
])  # fmt: skip
def test_files_are_pruned_by_their_tuples_and_bounds(tmp_path: Path, condition: str, files: int) -> None:
    table = open_iceberg_table(make_table(tmp_path / "t", PLAIN, [(1, "truncate[5]", "id_5")]))
    table.append(pl.DataFrame({"id": range(15), "name": [None, *["y"] * 14]}))
    assert len(list(StaticTable.from_metadata(latest(tmp_path / "t")).scan(row_filter=condition).plan_files())) == files
    assert table.plan(condition)["kept"].sum() == files


def test_metrics_are_those_that_pyiceberg_records(tmp_path: Path) -> None:
    """Of the same rows, but for NaN counts, which it does not record, and for bounds of uuids, which we leave out."""
    ours, theirs = make_table(tmp_path / "ours", ALL), make_table(tmp_path / "theirs", ALL)
    open_iceberg_table(ours).append(rows(0, 20))
    with sqlite_catalog(tmp_path / "c.db", {("s", "t"): latest(theirs)}) as catalog:
        other = catalog.load_table("s.t")
        other.append(pq.read_table(next((ours / "data").glob("*.parquet"))))
        expected = entry_of(other)
    entry = entry_of(StaticTable.from_metadata(latest(ours)))
    assert entry.record_count == expected.record_count == 20
    for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        mine, others = ({k: v for k, v in getattr(one, name).items() if k < 14} for one in (entry, expected))
        assert mine == {k: v for k, v in others.items() if (k, "bounds" in name) != (7, True)}, name
    assert entry.nan_value_counts == {5: 1}
    assert entry.lower_bounds[15] == bytes(8)  # pyiceberg records none of fields of structs
    assert entry.split_offsets == [4]
    assert set(entry.column_sizes) == set(expected.column_sizes)


def test_pyiceberg_appends_after_us_and_we_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = make_table(tmp_path / "t", PLAIN, [(1, "bucket[3]", "id_b")])
    frame = pl.DataFrame({"id": [3], "name": ["ours"]})
    open_iceberg_table(place).append(frame)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{tmp_path}/c.db")
    with sqlite_catalog(tmp_path / "c.db", {("s", "t"): latest(place)}) as catalog:
        theirs = catalog.load_table("s.t")
        theirs.append(pa.Table.from_pylist([{"id": 2, "name": "theirs"}], theirs.schema().as_arrow()))
        current = Path(catalog.load_table("s.t").metadata_location)
    with pytest.raises(UnsupportedTableError, match="commits to REST catalogs alone"):
        open_iceberg_table("catalog://prod/s.t").append(frame)
    for file in (place / "metadata").glob("v*"):
        file.unlink()  # as pyiceberg's own tables are: by a number and a uuid
    current.rename(place / f"metadata/00007{current.name[5:]}")
    with pytest.raises(UnsupportedTableError, match="named as catalogs name theirs") as caught:
        open_iceberg_table(place).append(frame)
    assert caught.value.kind == "catalog-may-own"
    open_iceberg_table(place).append(frame, without_catalog=True)
    open_iceberg_table(place).append(frame)
    assert sorted(p.name for p in (place / "metadata").glob("v*.json")) == ["v8.metadata.json", "v9.metadata.json"]
    assert sorted(open_iceberg_table(place).scan().collect()["id"]) == [2, 3, 3, 3]
    assert sorted(StaticTable.from_metadata(str(place)).scan().to_arrow()["id"].to_pylist()) == [2, 3, 3, 3]
    summary = document_of(place)["snapshots"][-1]["summary"]
    assert (summary["total-records"], summary["total-data-files"], summary["added-records"]) == ("4", "4", "1")


def test_what_is_not_about_the_snapshot_stays(tmp_path: Path) -> None:
    history = IcebergHistory(
        tmp_path / "t", PLAIN, location=str(tmp_path / "t"), properties={"write.metadata.previous-versions-max": "2"}
    )
    history.document |= {"x-unknown": {"a": [1.5]}, "statistics": [{"snapshot-id": 1, "statistics-path": "p",
        "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": []}]}  # fmt: skip
    history.append("f", [{"id": 1, "name": "a"}])
    before = document_of(tmp_path / "t")
    table = open_iceberg_table(tmp_path / "t")
    ids = [table.append(pl.DataFrame({"id": [i], "name": ["b"]})) for i in range(3)]
    after = document_of(tmp_path / "t")
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"current-snapshot-id", "last-sequence-number", "last-updated-ms", "metadata-log", "refs",
        "snapshot-log", "snapshots"}  # fmt: skip
    assert [s["snapshot-id"] for s in after["snapshots"][1:]] == ids
    assert after["snapshots"][:1] == before["snapshots"]
    assert after["refs"]["main"]["snapshot-id"] == ids[-1]
    assert [Path(e["metadata-file"]).name for e in after["metadata-log"]] == ["v3.metadata.json", "v4.metadata.json"]
    assert [s["timestamp-ms"] for s in after["snapshots"]] == sorted({s["timestamp-ms"] for s in after["snapshots"]})
    assert (tmp_path / "t/metadata/version-hint.text").read_text() == "5"


def test_version_3_gives_rows_their_ids_and_missing_columns_their_default(tmp_path: Path) -> None:
    fields = [*PLAIN, field(3, "kind", "string", default="new")]
    table = open_iceberg_table(make_table(tmp_path / "t", fields, version=3))
    table.append(pl.DataFrame({"id": [1, 2]}))
    table.append(pl.DataFrame({"id": [3], "kind": ["given"]}))
    rows_read = table.scan(metadata_columns=["_row_id", "_last_updated_sequence_number"]).collect().sort("id")
    assert rows_read["kind"].to_list() == ["new", "new", "given"]
    assert rows_read["name"].to_list() == [None, None, None]
    assert rows_read["_row_id"].to_list() == [0, 1, 2]
    assert rows_read["_last_updated_sequence_number"].to_list() == [1, 1, 2]
    assert document_of(tmp_path / "t")["next-row-id"] == 3


def test_metadata_is_compressed_and_files_are_cut_as_the_properties_ask(tmp_path: Path) -> None:
    properties = {
        "write.metadata.compression-codec": "gzip", "write.parquet.compression-codec": "snappy",
        "write.metadata.metrics.default": "counts", "write.metadata.metrics.column.name": "truncate(2)",
        "write.target-file-size-bytes": "20000",
    }  # fmt: skip
    table = open_iceberg_table(make_table(tmp_path / "t", PLAIN, properties=properties))
    table.append(pl.DataFrame({"id": range(30_000), "name": [f"{i:08}" for i in range(30_000)]}))
    assert (tmp_path / "t/metadata/v2.gz.metadata.json").read_bytes()[:2] == b"\x1f\x8b"
    assert open_iceberg_table(tmp_path / "t").scan().collect()["id"].sum() == sum(range(30_000))
    files = StaticTable.from_metadata(str(tmp_path / "t/metadata/v2.gz.metadata.json")).inspect.files().to_pylist()
    assert len(files) > 2
    assert {k for f in files for k, _ in f["lower_bounds"]} == {2}
    assert dict(files[0]["lower_bounds"])[2] == b"00"


BAD: dict[str, tuple[pl.DataFrame, type[LakeviewError], str]] = {
    "a column that the table lacks": (
        pl.DataFrame({"id": [1], "name": ["a"], "more": [1]}), InvalidRequestError, "more"),
    "a required column that is not there": (pl.DataFrame({"name": ["a"]}), ConstraintViolationError, "id"),
    "null in a required column": (
        pl.DataFrame({"id": [1, None], "name": ["a", "b"]}), ConstraintViolationError, "id must not be null"),
    "a type that does not fit": (pl.DataFrame({"id": ["1"], "name": ["a"]}), InvalidRequestError, "id"),
    "a value that does not fit": (
        pl.DataFrame({"id": [1.0, 1.5], "name": ["a", "b"]}), InvalidRequestError, "row 1 .* holds 1.5"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_rows_that_do_not_fit_leave_nothing(tmp_path: Path, case: str) -> None:
    frame, kind, text = BAD[case]
    table = open_iceberg_table(make_table(tmp_path / "t", PLAIN, [(2, "identity", "name")]))
    before = files_below(tmp_path)
    with pytest.raises(kind, match=text):
        table.append(frame)
    assert files_below(tmp_path) == before


def test_no_rows_are_no_snapshot(tmp_path: Path) -> None:
    table = open_iceberg_table(make_table(tmp_path / "t", PLAIN))
    before = files_below(tmp_path)
    assert table.append(pl.DataFrame(schema={"id": pl.Int64, "name": pl.String})) is None
    assert files_below(tmp_path) == before


REFUSED: dict[str, tuple[list[dict[str, Any]], list[tuple[int, str, str]], dict[str, Any], str]] = {
    "an unknown transform": (PLAIN, [(1, "zorder[3]", "z")], {}, "unsupported-transform"),
    "a column without values": ([*PLAIN, field(3, "v", "variant")], [], {"version": 3}, "unsupported-type"),
    "files of another format": (PLAIN, [], {"properties": {"write.format.default": "orc"}}, "unsupported-property"),
    "write, audit, publish": (PLAIN, [], {"properties": {"write.wap.enabled": "true"}}, "unsupported-property"),
    "an unknown codec": (PLAIN, [], {"properties": {"write.parquet.compression-codec": "x"}}, "unsupported-property"),
    "an unknown mode of metrics": (
        PLAIN, [], {"properties": {"write.metadata.metrics.default": "all"}}, "unsupported-property"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_tables_that_ask_for_what_is_not_written_are_refused(tmp_path: Path, case: str) -> None:
    fields, spec, more, kind = REFUSED[case]
    table = open_iceberg_table(make_table(tmp_path / "t", fields, spec, **more))
    with pytest.raises(UnsupportedTableError) as caught:
        table.append(pl.DataFrame({"id": [1]}))
    assert caught.value.kind == kind
    assert not list((tmp_path / "t/data").iterdir())


def test_tables_that_moved_or_never_change_are_refused(tmp_path: Path) -> None:
    place = make_table(tmp_path / "t", PLAIN)
    with pytest.raises(UnsupportedTableError, match="opened by a metadata file") as caught:
        open_iceberg_table(latest(place)).append(pl.DataFrame({"id": [1]}))
    assert caught.value.kind == "metadata-file"
    document = {**document_of(place), "snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "summary": {},
        "manifest-list": "/elsewhere/metadata/snap.avro"}], "current-snapshot-id": 1}  # fmt: skip
    make_table(tmp_path / "guessed", PLAIN)
    (tmp_path / "guessed/metadata/v2.metadata.json").write_text(json.dumps(document))
    with pytest.raises(UnsupportedTableError, match="files below another folder") as caught:
        open_iceberg_table(tmp_path / "guessed").append(pl.DataFrame({"id": [1]}))
    assert caught.value.kind == "moved-table"
    place.rename(tmp_path / "moved")
    with pytest.raises(UnsupportedTableError, match="records its location as") as caught:
        open_iceberg_table(tmp_path / "moved").append(pl.DataFrame({"id": [1]}))
    assert caught.value.kind == "moved-table"
    same_place = {str(place): str(tmp_path / "moved")}
    open_iceberg_table(str(tmp_path / "moved"), relocate=same_place).append(pl.DataFrame({"id": [1]}))
    assert document_of(tmp_path / "moved")["snapshots"][0]["manifest-list"].startswith(f"{place}/metadata/")


def test_transactions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableError, match="no transactions of several changes here"):
        open_iceberg_table(make_table(tmp_path / "t", PLAIN)).transaction("DELETE")


def test_columns_whose_names_are_patterns_to_polars(tmp_path: Path) -> None:
    """As sources of partitions, and as structs."""
    inner = {"type": "struct", "fields": [field(5, "^z$", "date")]}
    fields = [field(1, "id", "long"), field(2, "^x$", "timestamp"), field(3, "^.*$", "string"), field(4, "^y$", inner)]
    table = open_iceberg_table(
        make_table(tmp_path / "t", fields, [(2, "hour", "^x$"), (3, "truncate[1]", "^.*$"), (5, "day", "^z$")])
    )
    moments, structs = pl.Series([7_200_000_000, None]).cast(pl.Datetime()), [{"^z$": date(2026, 1, 1)}, None]
    frame = pl.DataFrame({"id": [1, 2], "^x$": moments, "^.*$": ["ab", "b"], "^y$": structs})
    table.append(frame)
    assert table.scan().collect().sort("id").equals(frame)
    assert table.snapshot().num_files == 2
