"""Row tracking: ids and commit versions of rows, from their files and from the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.log.actions import AddFile, DomainMetadata
from lakeview.delta.write.row_ids import with_row_ids
from lakeview.model.errors import CorruptTableError, InvalidRequestError, UnsupportedTableError
from tests.builders.actions import add, metadata, protocol
from tests.builders.history import DeltaHistory
from tests.builders.mapped import field, mapped, stored_field
from tests.builders.opening import open_delta_table

ID_COLUMN, VERSION_COLUMN = "_row-id-col-1", "_row-commit-version-col-2"
TRACKED: dict[str, str | None] = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": ID_COLUMN,
    "delta.rowTracking.materializedRowCommitVersionColumnName": VERSION_COLUMN,
}
FEATURES = protocol(1, 7, writerFeatures=["rowTracking", "domainMetadata"])


def tracked(history: DeltaHistory, columns: dict[str, Any] | None = None, **more: Any) -> DeltaHistory:
    """A table that tracks its rows."""
    return history.commit(FEATURES, metadata(columns or {"id": "long"}, properties=TRACKED, **more))


def rows(history: DeltaHistory) -> list[tuple[Any, ...]]:
    return lv.open_table(history.address).scan(row_tracking=True).collect().rows()


def test_rows_of_new_files_count_on_from_their_base(history: DeltaHistory) -> None:
    tracked(history)
    history.commit(history.data("f", {"id": [10, 11]}, baseRowId=0, defaultRowCommitVersion=1))
    history.commit(history.data("g", {"id": [12]}, baseRowId=2, defaultRowCommitVersion=2))
    assert rows(history) == [(10, 0, 1), (11, 1, 1), (12, 2, 2)]
    rows_read = lv.open_table(history.address).scan(row_tracking=True)
    assert rows_read.collect_schema() == pl.Schema(
        {"id": pl.Int64(), "_row_id": pl.Int64(), "_row_commit_version": pl.Int64()}
    )
    assert rows_read.filter(pl.col("_row_id") >= 1).select("id").collect()["id"].to_list() == [11, 12]
    assert rows_read.select("_row_id").collect()["_row_id"].to_list() == [0, 1, 2]
    assert rows_read.filter(id=12).collect().rows() == [(12, 2, 2)]


def test_rows_that_moved_keep_what_their_file_says(history: DeltaHistory) -> None:
    tracked(history)
    columns = {"id": [10, 11, 12], ID_COLUMN: [7, None, 3], VERSION_COLUMN: [1, None, 2]}
    history.commit(history.data("f", columns, baseRowId=100, defaultRowCommitVersion=5))
    assert rows(history) == [(10, 7, 1), (11, 101, 5), (12, 3, 2)]
    assert lv.open_table(history.address).scan().collect().columns == ["id"], "these columns are none of the table's"


def test_positions_count_deleted_rows_and_all_row_groups(history: DeltaHistory) -> None:
    names = ["rowTracking", "deletionVectors"]
    history.commit(
        protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=names),
        metadata({"id": "long"}, properties=TRACKED),
    )
    # the specification's own example: rows 3, 4, 7, 11, 18 and 29 are deleted
    vector = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
              "sizeInBytes": 40, "cardinality": 6}  # fmt: skip
    action = history.data(
        "f", {"id": list(range(30))}, baseRowId=1000, defaultRowCommitVersion=1, deletionVector=vector
    )
    history.commit(action)
    assert rows(history) == [(n, 1000 + n, 1) for n in range(30) if n not in (3, 4, 7, 11, 18, 29)]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_under_column_mapping_they_go_by_their_recorded_names(history: DeltaHistory, mode: str) -> None:
    _, described = mapped(mode, field("id", "long", 1))
    described["metaData"]["configuration"] |= TRACKED
    features = protocol(3, 7, readerFeatures=["columnMapping"], writerFeatures=["columnMapping", "rowTracking"])
    history.commit(features, described)
    schema = pa.schema([stored_field(pa.int64(), 1), pa.field(ID_COLUMN, pa.int64())])
    table = pa.Table.from_arrays([pa.array([5, 6]), pa.array([9, None], pa.int64())], schema=schema)
    history.commit(history.data("f", table, baseRowId=20, defaultRowCommitVersion=1))
    assert rows(history) == [(5, 9, 1), (6, 21, 1)]


def test_what_the_log_does_not_say_is_unknown(history: DeltaHistory) -> None:
    tracked(history)
    history.commit(history.data("f", {"id": [1], ID_COLUMN: pa.array([None], pa.int64())}))
    assert rows(history) == [(1, None, None)]


def test_a_listing_shows_them_when_asked_by_name(history: DeltaHistory) -> None:
    tracked(history).commit(add("f", baseRowId=3, defaultRowCommitVersion=1), add("g"))
    table = lv.open_table(history.address)
    files = table.files(columns=["path", "base_row_id", "default_row_commit_version"])
    assert sorted(files.rows()) == [("f", 3, 1), ("g", None, None)]
    assert "base_row_id" not in table.files().columns
    with pytest.raises(InvalidRequestError, match="a file listing has no column row_id") as caught:
        table.files(columns=["row_id"])
    assert "base_row_id" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("features", "properties"),
    [
        pytest.param(protocol(1, 2), TRACKED, id="the protocol does not know it"),
        pytest.param(FEATURES, TRACKED | {"delta.enableRowTracking": "false"}, id="it is off"),
        pytest.param(FEATURES, {}, id="it is supported only"),
    ],
)
def test_a_table_that_does_not_track_its_rows_says_so(
    history: DeltaHistory, features: dict[str, Any], properties: dict[str, str | None]
) -> None:
    history.commit(features, metadata({"id": "long"}, properties=properties)).commit(history.data("f", {"id": [1]}))
    table = lv.open_table(history.address)
    assert table.scan().collect().rows() == [(1,)]
    with pytest.raises(InvalidRequestError, match="does not track its rows: row tracking is not enabled") as caught:
        table.scan(row_tracking=True)
    assert caught.value.kind == "no-row-tracking"
    assert caught.value.fix is not None


def test_a_column_of_the_same_name_is_not_hidden(history: DeltaHistory) -> None:
    tracked(history, {"_row_id": "string"}).commit(history.data("f", {"_row_id": ["mine"]}, baseRowId=0))
    table = lv.open_table(history.address)
    assert table.scan().collect().rows() == [("mine",)]
    with pytest.raises(InvalidRequestError, match="has a column _row_id of its own"):
        table.scan(row_tracking=True)


def test_a_table_that_hides_where_ids_are_kept_is_corrupt(history: DeltaHistory) -> None:
    history.commit(FEATURES, metadata({"id": "long"}, properties={"delta.enableRowTracking": "true"})).commit(add("f"))
    with pytest.raises(CorruptTableError, match=r"has no property delta\.rowTracking\.materializedRowIdColumnName"):
        lv.open_table(history.address).scan(row_tracking=True)


def test_ids_and_versions_are_not_kept_under_one_name(history: DeltaHistory) -> None:
    one_name = {**TRACKED, "delta.rowTracking.materializedRowIdColumnName": VERSION_COLUMN}
    history.commit(FEATURES, metadata({"id": "long"}, properties=one_name))
    history.commit(history.data("f", {"id": [1, 2]}, records=2, baseRowId=0, defaultRowCommitVersion=1))
    table = open_delta_table(history)
    for operation in (lambda: table.scan(row_tracking=True), lambda: table.update({"id": "7"}, "id = 1")):
        with pytest.raises(CorruptTableError, match="are both"):
            operation()


def test_every_add_has_ids_once_they_are_given_whatever_rows_it_has() -> None:
    empty, full = (AddFile(path, 1, stats=f'{{"numRecords":{n}}}') for path, n in (("e", 0), ("f", 2)))
    tracked, domain = with_row_ids([empty, full, AddFile("g", 1, base_row_id=3)], 7, 9)
    assert [(add.base_row_id, add.default_row_commit_version) for add in tracked] == [(10, 7), (10, 7), (3, 7)]
    assert domain == DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":11}')
    assert with_row_ids(tracked, 8, 11) == (tracked, None), "a file of the table stays what it is"


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("[[", CorruptTableError, "which row ids have been given"),
        ("{}", CorruptTableError, "which row ids have been given"),
        ('{"rowIdHighWaterMark":"7"}', CorruptTableError, "which row ids have been given"),
        (f'{{"rowIdHighWaterMark":{10**30}}}', CorruptTableError, "which row ids have been given"),
        (f'{{"rowIdHighWaterMark":{2**63 - 2}}}', UnsupportedTableError, "2 rows need ids above 9,223"),
    ],
)
def test_ids_are_not_given_where_those_given_are_not_known_or_all(
    history: DeltaHistory, text: str, error: type[Exception], match: str
) -> None:
    domain = {"domainMetadata": {"domain": "delta.rowTracking", "configuration": text, "removed": False}}
    tracked(history).commit(domain)
    table = open_delta_table(history.address)
    with pytest.raises(error, match=match):
        table.append(pl.DataFrame({"id": [1, 2]}))
    assert table.refresh() is False


def test_rows_keep_their_ids_beside_a_column_of_the_same_name(history: DeltaHistory) -> None:
    tracked(history, {"id": "long", "_row_id": "long"})
    history.commit(history.data("f", {"id": [10, 11], "_row_id": [7, 8]}, records=2, baseRowId=40,
                                defaultRowCommitVersion=1))  # fmt: skip
    table = open_delta_table(history.address)
    table.update({"id": "id + 1"}, "id = 10")
    assert table.scan().collect().rows() == [(11, 7), (11, 8)]
    (path,) = table.files()["path"]
    assert pq.read_table(f"{history.address}/{path}").to_pydict() == {
        "id": [11, 11], "_row_id": [7, 8], ID_COLUMN: [40, 41], VERSION_COLUMN: [None, 1],
    }  # fmt: skip


@pytest.mark.parametrize("name", [ID_COLUMN, VERSION_COLUMN.upper()])
def test_no_column_takes_the_name_under_which_files_keep_ids(history: DeltaHistory, name: str) -> None:
    tracked(history)
    table = open_delta_table(history.address)
    with pytest.raises(InvalidRequestError, match="that row tracking uses for itself"):
        table.add_column(f"`{name}`", "long")


def test_row_tracking_is_not_enabled_while_it_is_suspended(history: DeltaHistory) -> None:
    history.commit(FEATURES, metadata(properties={"delta.rowTrackingSuspended": "true"}))
    table = open_delta_table(history.address)
    with pytest.raises(InvalidRequestError, match="is suspended") as caught:
        table.set_properties({"delta.enableRowTracking": "true"})
    assert caught.value.fix == "set delta.rowTrackingSuspended to false with it"
    assert table.set_properties({"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "false"}) == 1


@pytest.mark.parametrize(("properties", "tags"), [(TRACKED, {"delta.rowTracking.preserved": "true"}), ({}, None)])
def test_a_commit_says_that_ids_stay_only_while_row_tracking_is_enabled(
    history: DeltaHistory, properties: dict[str, str | None], tags: dict[str, str] | None
) -> None:
    history.commit(FEATURES, metadata(properties=properties))
    table = open_delta_table(history.address)
    table.set_properties({"delta.checkpointInterval": "5"})
    (info,) = table.commit(1).filter(kind="commitInfo")["action"]
    assert json.loads(info).get("tags") == tags


def test_rows_that_a_restore_brings_back_to_a_file_keep_the_ids_of_that_file(tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true"}
    table = lv.create_table(str(tmp_path / "t"), {"id": "long"}, properties=properties)
    version = table.append(pl.DataFrame({"id": [1, 2]}))
    table.set_properties({"delta.enableRowTracking": "true"})
    before = table.scan(row_tracking=True).collect()
    table.delete("id = 1")
    table.restore(version)
    table.set_properties({"delta.enableRowTracking": "true"})
    assert table.scan(row_tracking=True).collect().equals(before)
