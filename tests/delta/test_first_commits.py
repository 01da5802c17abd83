"""Tables made of files that are there: clones of others, and folders of Parquet files."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.deep_clone import FileCopy, copy_files
from lakeview.delta.write.first_commit import clone
from lakeview.model.clock import system_clock
from lakeview.model.config import settings
from lakeview.model.errors import (
    CommitConflictError,
    CorruptTableError,
    DataFileMissingError,
    InvalidRequestError,
    LakeviewError,
    UnsupportedTableError,
)
from lakeview.model.type_tree import nodes
from lakeview.storage import Storage, open_storage
from tests.builders.actions import metadata, protocol
from tests.builders.findings import GRAVE
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table
from tests.builders.stores import FarStorage

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(first: int, count: int = 5) -> pa.Table:
    return pa.table({"id": range(first, first + count), "name": [f"n{i}" for i in range(count)]}, SCHEMA)


def by_deltalake(address: Path) -> pl.DataFrame:
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(address))).execute("select * from t")
    return pl.DataFrame(query.read_all())


# -- clones


@pytest.mark.parametrize("properties", [{}, {"delta.enableDeletionVectors": "true"}], ids=["plain", "with vectors"])
def test_a_clone_has_the_rows_and_goes_its_own_way(tmp_path: Path, properties: dict[str, str]) -> None:
    source = lv.create_table(str(tmp_path / "a b"), SCHEMA, properties=properties)
    source.append(rows(0))
    source.delete("id = 2")
    source.clone(f"{tmp_path.as_uri()}/the%20clone")
    config = replace(settings(), roots=(str(tmp_path),))
    table = open_delta_table(str(tmp_path / "the clone"), config=config)
    assert sorted(table.scan().collect()["id"]) == [0, 1, 3, 4]
    table.append(rows(10))
    table.delete("id = 0")
    assert sorted(table.scan().collect()["id"]) == [1, 3, 4, *range(10, 15)]
    assert sorted(lv.open_table(source.address).scan().collect()["id"]) == [0, 1, 3, 4]
    assert table.snapshot().id != source.snapshot().id
    assert table.history()["operation"].to_list()[-1] == "CLONE"
    with pytest.raises(CommitConflictError, match="holds a table already"):
        source.clone(str(tmp_path / "the clone"))


def test_a_deep_clone_needs_its_source_no_more(tmp_path: Path) -> None:
    """Also one of a shallow clone, whose files and deletion vectors have absolute paths."""
    properties = {"delta.enableDeletionVectors": "true"}
    source = lv.create_table(str(tmp_path / "source"), SCHEMA, partition_by=["name"], properties=properties)
    source.append(pa.table({"id": range(40), "name": ["a b"] * 20 + [None] * 20}, SCHEMA))
    source.delete("id = 2 OR id = 30")
    source.clone(str(tmp_path / "shallow"))
    shallow = open_delta_table(str(tmp_path / "shallow"), config=replace(settings(), roots=(str(tmp_path),)))
    source.clone(str(tmp_path / "deep"), deep=True)
    shallow.clone(str(tmp_path / "of shallow"), deep=True)
    (tmp_path / "source").rename(tmp_path / "moved")
    for name in ("deep", "of shallow"):
        table = lv.open_table(str(tmp_path / name))
        assert sorted(table.scan().collect()["id"]) == [i for i in range(40) if i not in (2, 30)]
        assert by_deltalake(tmp_path / name).height == 38
        commit = table.history().row(-1, named=True)
        assert json.loads(commit["parameters"])["isShallow"] is False
        assert not [finding for finding in table.check() if finding.severity in GRAVE]
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataFileMissingError, match=r"in the log of .*source but not in the store"):
        source.clone(str(tmp_path / "late"), deep=True)
    assert [path for path in tmp_path.rglob("*") if path not in before and path.is_file()] == []


def test_what_a_killed_deep_clone_left_does_not_stand_in_its_way_and_is_vacuumed(tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true"}
    source = lv.create_table(str(tmp_path / "source"), SCHEMA, partition_by=["name"], properties=properties)
    source.append(pa.table({"id": range(40), "name": ["a b"] * 20 + [None] * 20}, SCHEMA))
    source.delete("id = 2 OR id = 30")

    def copy_some(copies: Sequence[FileCopy], files: Storage, target: Storage) -> None:
        copy_files(copies[:2], files, target)
        shutil.copytree(target.root, tmp_path / "killed")
        raise InvalidRequestError("stopped")

    with pytest.raises(InvalidRequestError, match="stopped"):
        clone(source, open_storage(str(tmp_path / "target")), system_clock, copy=copy_some)
    assert [path for path in (tmp_path / "target").rglob("*") if path.is_file()] == []
    left = {path for path in (tmp_path / "killed").rglob("*") if path.is_file()}
    assert len(left) == 3, "the marker and two copies"
    (tmp_path / "killed/other.parquet").touch()
    with pytest.raises(InvalidRequestError, match="has files and no table"):
        source.clone(str(tmp_path / "killed"), deep=True)
    (tmp_path / "killed/other.parquet").unlink()
    source.clone(str(tmp_path / "killed"), deep=True)
    table = lv.open_table(str(tmp_path / "killed"))
    assert isinstance(table, DeltaTable)
    table.vacuum(timedelta(0), dry_run=False, allow_short_retention=True)
    assert [path for path in left if path.exists()] == []
    assert sorted(table.scan().collect()["id"]) == sorted(source.scan().collect()["id"])
    assert by_deltalake(tmp_path / "killed").height == 38


def test_a_log_without_its_first_commits_is_a_table(tmp_path: Path) -> None:
    """A cleanup of the log deletes commits before a checkpoint."""
    old = lv.create_table(str(tmp_path / "old"), SCHEMA)
    old.append(rows(0))
    old.checkpoint()
    first = tmp_path / "old/_delta_log/00000000000000000000.json"
    first.unlink()
    source = lv.create_table(str(tmp_path / "source"), SCHEMA)
    for make in (lambda: lv.create_table(old.address, SCHEMA), lambda: source.clone(old.address)):
        with pytest.raises(CommitConflictError, match="holds a table already"):
            make()
        assert not first.exists()


def test_a_clone_tracks_its_rows_by_its_own_log(tmp_path: Path) -> None:
    source = lv.create_table(str(tmp_path / "a"), SCHEMA, properties={"delta.enableRowTracking": "true"})
    source.append(rows(0, 2))
    source.update({"id": "id + 1"}, "id = 0")
    source.clone(str(tmp_path / "b"))
    clone = lv.open_table(str(tmp_path / "b"), config=replace(settings(), roots=(str(tmp_path),)))
    assert sorted(clone.scan(row_tracking=True).collect().rows()) == [(1, "n0", 0, 0), (1, "n1", 1, 0)]
    assert clone.snapshot().domain_metadata.rows() == [("delta.rowTracking", '{"rowIdHighWaterMark":1}')]


def test_a_clone_of_a_table_whose_row_tracking_is_suspended_gives_no_id_twice(
    tmp_path: Path, history: DeltaHistory
) -> None:
    suspended: dict[str, str | None] = {"delta.rowTrackingSuspended": "true"}
    data = history.data("f", {"id": [1, 2]}, stats={"numRecords": 2}, baseRowId=0, defaultRowCommitVersion=0)
    history.commit(
        protocol(1, 7, writerFeatures=["rowTracking", "domainMetadata"]), metadata({"id": "long"}, properties=suspended)
    )
    history.commit(data)
    source = open_delta_table(history.address)
    source.clone(str(tmp_path / "clone"))
    clone = open_delta_table(
        str(tmp_path / "clone"), config=replace(settings(), roots=(str(tmp_path), history.address))
    )
    clone.set_properties({"delta.rowTrackingSuspended": "false"})
    clone.append(pl.DataFrame({"id": [3]}))
    clone.set_properties({"delta.enableRowTracking": "true"})
    clone.refresh()
    assert clone.scan(row_tracking=True).collect()["_row_id"].n_unique() == 3


def test_a_clone_times_its_own_commits_and_a_table_that_is_not_written_has_none(
    tmp_path: Path, history: DeltaHistory
) -> None:
    source = lv.create_table(str(tmp_path / "source"), SCHEMA)
    source.append(rows(0))
    source.set_properties({"delta.enableInCommitTimestamps": "true"})
    source.clone(str(tmp_path / "clone"))
    table = lv.open_table(str(tmp_path / "clone"), config=replace(settings(), roots=(str(tmp_path),)))
    assert table.history()["timestamp_source"].to_list() == ["in-commit"]
    history.commit(protocol(1, 7, writerFeatures=["timeMachine"]), metadata())
    other = open_delta_table(history.address)
    with pytest.raises(UnsupportedTableError, match="timeMachine"):
        other.clone(str(tmp_path / "other"))


def test_a_clone_has_properties_from_its_first_commit_on(tmp_path: Path) -> None:
    source = lv.create_table(str(tmp_path / "source"), SCHEMA)
    source.append(rows(0, 2))
    address = tmp_path / "clone"
    for properties, refusal in (
        ({"delta.bogus": "x"}, "delta.bogus is no property"),
        ({"delta.constraints.c": "id > 5"}, "which the rows there are have to satisfy first"),
        ({"delta.dataSkippingStatsColumns": "nowhere"}, "nowhere"),
        ({"delta.columnMapping.mode": "id"}, "cannot become id"),
    ):
        with pytest.raises(InvalidRequestError, match=refusal):
            source.clone(str(address), properties=properties)
        assert not address.exists(), "nothing is there that a second attempt would find"
    features = {"delta.enableRowTracking", "delta.enableInCommitTimestamps", "delta.enableDeletionVectors"}
    source.clone(str(address), properties=dict.fromkeys(features, "true") | {"delta.columnMapping.mode": "name"})
    clone = open_delta_table(str(address), config=replace(settings(), roots=(str(tmp_path),)))
    assert features | {"delta.columnMapping.mode"} <= clone.snapshot().properties.keys()
    assert clone.history()["timestamp_source"].to_list() == ["in-commit"]
    clone.rename_column("name", "label")
    clone.append(pl.DataFrame({"id": [2], "label": ["n2"]}))
    clone.delete("id = 0")
    tracked = clone.scan(row_tracking=True).collect().sort("id")
    assert tracked.rows() == [(1, "n1", 1, 0), (2, "n2", 2, 2)]
    assert by_deltalake(tmp_path / "source").height == 2


# -- folders


def folder(root: Path, **tables: pa.Table) -> Path:
    for name, table in tables.items():
        path = root / name.replace("__", "/").replace("_is_", "=")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, f"{path}.parquet")
    return root


def test_a_folder_of_files_becomes_a_table_and_they_stay(tmp_path: Path) -> None:
    folder(tmp_path, a=rows(0), b=rows(5), _hidden=rows(50), part__c=rows(10))
    (tmp_path / "readme.txt").write_text("no data")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.parquet")}
    table = lv.convert_to_delta(tmp_path)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.parquet")} == before
    assert sorted(table.scan().collect()["id"]) == list(range(15))
    assert table.snapshot().num_records == 15
    assert table.plan("id > 11")["kept"].sum() == 1
    assert sorted(by_deltalake(tmp_path)["id"]) == list(range(15))
    assert [f for f in table.check() if f.severity in GRAVE] == []
    table.append(rows(20))
    assert lv.open_table(str(tmp_path)).snapshot().num_records == 20


def test_progress_is_told_of_footers_copies_and_statistics(tmp_path: Path) -> None:
    source = folder(tmp_path / "source", a=rows(0), b=rows(5))
    total = sum(path.stat().st_size for path in source.rglob("*.parquet"))
    reports: list[tuple[int, int]] = []

    def report(done: int, every: int) -> None:
        reports.append((done, every))

    table = lv.convert_to_delta(source, progress=report)
    table.clone(str(tmp_path / "clone"), deep=True, progress=report)
    table.recompute_statistics(progress=report)
    assert len(reports) == 6
    for first, last in (reports[:2], reports[2:4], reports[4:]):
        assert 0 < first[0] < last[0] == first[1] == last[1] == total


def test_nothing_is_copied_any_more_once_the_progress_of_copies_fails(tmp_path: Path) -> None:
    source, target = FarStorage(tmp_path / "source"), FarStorage(tmp_path / "target")
    copies = [FileCopy(name, name, 1) for name in ("a", "b", "c")]
    for copy in copies:
        source.put(copy.source, b"1")

    def stop(done: int, every: int) -> None:
        raise InvalidRequestError(f"stopped at {done} of {every}")

    with pytest.raises(InvalidRequestError) as failure:  # which retains what is not closed
        copy_files(copies, source, target, stop)
    assert failure.match("stopped at 1 of 3")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lakeview-ahead")]


def test_a_file_with_a_colon_in_its_name_is_recorded_as_the_relative_uri_that_it_is(tmp_path: Path) -> None:
    (tmp_path / "t" / "a:b").mkdir(parents=True)
    pq.write_table(rows(0), tmp_path / "t" / "load-10:30.parquet")
    pq.write_table(rows(5), tmp_path / "t" / "a:b" / "load-11:30.parquet")
    table = lv.convert_to_delta(str(tmp_path / "t"))
    recorded = [json.loads(a)["path"] for a in table.commit(0).filter(kind="add")["action"]]
    assert sorted(recorded) == ["a%3Ab/load-11:30.parquet", "load-10%3A30.parquet"]
    assert open_delta_table(table).scan().collect().height == by_deltalake(tmp_path / "t").height == 10


def test_numbers_of_files_may_differ_in_width(tmp_path: Path) -> None:
    def part(whole: pa.DataType, real: pa.DataType, number: int) -> pa.Table:
        types = {"id": whole, "price": real, "s": pa.struct([("l", pa.list_(whole))])}
        row = {"id": number, "price": 1.25, "s": {"l": [number]}}
        return pa.Table.from_pylist([row], schema=pa.schema(list(types.items())))

    folder(
        tmp_path,
        a=part(pa.int32(), pa.float64(), 2**31 - 1),
        b=part(pa.int64(), pa.float32(), 2**40),
        c=part(pa.int8(), pa.float64(), -128),
    )
    table = lv.convert_to_delta(tmp_path)
    assert table.scan().sort("id").collect().rows() == [
        (number, 1.25, {"l": [number]}) for number in (-128, 2**31 - 1, 2**40)
    ]
    assert table.scan().filter(pl.col("id") > 2**31).collect()["id"].to_list() == [2**40]
    assert table.snapshot().schema["id"].metadata["delta.typeChanges"] == [
        {"fromType": "byte", "toType": "integer"}, {"fromType": "integer", "toType": "long"}
    ]  # fmt: skip
    ((_, nested),) = table.snapshot().schema.select(["s"]).leaves()
    assert [change["fieldPath"] for change in nested.metadata["delta.typeChanges"]] == ["element"] * 2
    assert "typeWidening" in (table.snapshot().protocol.reader_features or ())
    assert [f for f in table.check() if f.severity in GRAVE] == []


def test_times_in_int96_are_moments_wherever_they_are(tmp_path: Path) -> None:
    moment = pa.timestamp("us")
    types = {
        "id": pa.int64(), "at": moment, "parts": pa.struct([("n", pa.int32()), ("at", pa.list_(moment))]),
        "of": pa.map_(moment, pa.struct([("n", pa.string()), ("at", moment)])), "text": pa.string(),
    }  # fmt: skip
    at = datetime(2026, 1, 2, 3)  # noqa: DTZ001  # INT96 carries no zone
    row = {"id": 1, "at": at, "parts": {"n": 1, "at": [at]}, "of": [(at, {"n": "x", "at": at})], "text": "t"}
    int96 = pa.Table.from_pylist([row], schema=pa.schema(list(types.items())))
    pq.write_table(int96, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    table = lv.convert_to_delta(tmp_path)
    names = [str(node.type) for node in nodes(table.snapshot().schema)]
    assert (names.count("timestamp"), names.count("timestamp_ntz")) == (4, 0)
    in_utc = at.replace(tzinfo=UTC)
    assert table.scan().collect().rows(named=True)[0]["parts"] == {"n": 1, "at": [in_utc]}
    assert by_deltalake(tmp_path)["at"].to_list() == [in_utc]
    assert table.snapshot().protocol.min_reader_version == 1


def test_a_column_called_as_the_path_of_a_field_has_no_statistics_of_it(tmp_path: Path) -> None:
    folder(tmp_path, a=pa.table({"a.b": [1, 2], "a": pa.array([{"b": 100}, {"b": 200}])}))
    table = lv.convert_to_delta(tmp_path)
    assert table.scan().filter(pl.col("a.b") == 2).collect().height == 1


def test_days_beyond_the_calendar_have_no_bounds(tmp_path: Path) -> None:
    """Python has no date for them, and the conversion ended in OverflowError."""
    far = pa.array([-800_000, 3_000_000], pa.int32()).cast(pa.date32())
    folder(tmp_path, a=pa.table({"far": far, "day": [date(1, 1, 1), date(9999, 12, 31)]}))
    statistics = lv.convert_to_delta(tmp_path).statistics()
    bounds = {name: (statistics[name].struct["min"][0], statistics[name].struct["max"][0]) for name in ("far", "day")}
    assert bounds == {"far": (None, None), "day": (date(1, 1, 1), date(9999, 12, 31))}


def test_folders_tell_partitions_in_the_types_that_are_given(tmp_path: Path) -> None:
    for day, first in (("2026-01-01", 0), ("__HIVE_DEFAULT_PARTITION__", 5)):
        (tmp_path / f"day={day}" / "_n=7").mkdir(parents=True)
        pq.write_table(rows(first), tmp_path / f"day={day}/_n=7/f.parquet")
    table = lv.convert_to_delta(tmp_path, partition_by=pa.schema([("day", pa.date32()), ("_n", pa.int32())]))
    rows_read = table.scan().collect().sort("id")
    assert rows_read["day"].to_list() == [date(2026, 1, 1)] * 5 + [None] * 5
    assert rows_read["_n"].unique().to_list() == [7]
    assert table.snapshot().partition_columns == ["day", "_n"]


def test_partition_values_are_recorded_as_every_reader_takes_them(tmp_path: Path) -> None:
    folder = tmp_path / "at=2024-01-01 00:00:00+02:00/n=007/day=2024-1-2"
    folder.mkdir(parents=True)
    pq.write_table(rows(0), folder / "f.parquet")
    types = {"at": pl.Datetime("us", "UTC"), "n": pl.Int64, "day": pl.Date}
    table = lv.convert_to_delta(tmp_path, partition_by=types)
    actions = [json.loads(text) for text in table.commit(0).filter(pl.col("kind") == "add")["action"]]
    values = {"at": "2023-12-31T22:00:00.000000Z", "n": "7", "day": "2024-01-02"}
    assert [action["partitionValues"] for action in actions] == [values]


def test_statistics_are_counted_again_where_they_are_missing_or_wrong(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), SCHEMA, properties={"delta.enableDeletionVectors": "true"})
    with table.transaction() as txn:
        txn.append(rows(0), statistics=False)
    table.append(rows(10))
    table.delete("id = 12")
    assert table.snapshot().num_records is None
    assert table.recompute_statistics() == 4
    table_again = open_delta_table(str(tmp_path))
    assert table_again.snapshot().num_records == 9
    assert table_again.plan("id = 3")["kept"].sum() == 1
    assert sorted(table_again.scan().collect()["id"]) == [0, 1, 2, 3, 4, 10, 11, 13, 14]
    assert table_again.recompute_statistics() is None
    assert table_again.history(1)["data_change"].to_list() == [False]
    assert [f for f in table_again.check() if f.severity in GRAVE] == []


REFUSED: list[tuple[str, dict[str, pa.Table], dict[str, Any], type[LakeviewError], str]] = [
    ("no files", {}, {}, InvalidRequestError, "holds no Parquet file"),
    ("files of other columns", {"a": rows(0), "b": rows(0).drop_columns("name")}, {}, InvalidRequestError,
     "column name is string in a.parquet and not there in b.parquet"),
    ("numbers none of which holds the others", {"a": rows(0), "b": rows(0).set_column(0, "id", pa.array([1.5] * 5))},
     {}, InvalidRequestError, "column id is long in a.parquet and double in b.parquet"),
    ("a list and a number", {"a": rows(0), "b": rows(0).set_column(0, "id", pa.array([[1]] * 5))}, {},
     InvalidRequestError, "column id is long in a.parquet and array in b.parquet"),
    ("folders that tell too much", {"day_is_1__a": rows(0)}, {}, InvalidRequestError, "name day, and partitions are"),
    ("a value of another type", {"day_is_x__a": rows(0)}, {"partition_by": pa.schema([("day", pa.date32())])},
     InvalidRequestError, "partition value 'x' of column day is no date"),
    ("two folders of one column", {"day_is_1__day_is_2__a": rows(0)}, {"partition_by": {"day": pl.Int32}},
     InvalidRequestError, "name day, day, and partitions are by day"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "arguments", "error", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_a_folder_that_is_no_table_is_refused_and_stays(
    tmp_path: Path, files: dict[str, pa.Table], arguments: dict[str, Any], error: type[LakeviewError], words: str
) -> None:
    folder(tmp_path, **files)
    with pytest.raises(error, match=words):
        lv.convert_to_delta(tmp_path, **arguments)
    assert not (tmp_path / "_delta_log").exists()


def test_what_is_no_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no")
    with pytest.raises(CorruptTableError, match=r"a\.parquet is no Parquet file"):
        lv.convert_to_delta(tmp_path)


def test_what_pyarrow_cannot_look_into_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    nested: pa.DataType = pa.int32()
    for _ in range(120):
        nested = pa.struct([("a", nested)])
    pq.write_table(pa.table({"deep": pa.nulls(1, nested)}), file)
    with pytest.raises(CorruptTableError, match=r"a\.parquet is no Parquet file .*too deeply nested"):
        lv.convert_to_delta(tmp_path)
    pl.DataFrame({"name_of_it": [1]}).write_parquet(file)
    file.write_bytes(file.read_bytes().replace(b"name_of_it", b"name_of_i\xff"))
    with pytest.raises(CorruptTableError, match=r"a\.parquet is no Parquet file .*utf-8"):
        lv.convert_to_delta(tmp_path)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(CorruptTableError, match=r"a\.parquet is no Parquet file .*no regular file"):
        lv.convert_to_delta(tmp_path)


def test_a_last_day_before_the_calendar_is_no_bound(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    last, hostile = (number.to_bytes(4, "little", signed=True) for number in (20_001, -(2**31)))
    days = pa.array([20_000, 20_001], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"day": days}), file, use_dictionary=False, compression="none")
    file.write_bytes(file.read_bytes().replace(last, hostile))
    assert lv.convert_to_delta(tmp_path).statistics()["day"].struct["max"].to_list() == [None]
