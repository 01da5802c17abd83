"""What an Iceberg table says of itself beside its versions: refs, specs, orders, manifests, statistics files, log."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.iceberg.manifests.frames import manifest_files
from lakeview.iceberg.manifests.manifest_lists import MANIFESTS as LISTED
from lakeview.iceberg.manifests.partitions import partition_columns
from lakeview.iceberg.metadata.table_metadata import parse_metadata
from lakeview.inspection.absent_columns import complete_statistics
from lakeview.inspection.frames import TableFrames
from lakeview.model.errors import VersionNotFoundError
from lakeview.model.frames import (
    FORMAT_VERSIONS,
    MANIFESTS,
    PARTITION_SPECS,
    REFS,
    SNAPSHOT_LOG,
    SORT_ORDERS,
    STATISTICS_FILES,
)
from lakeview.model.memory import Memory
from tests.builders.iceberg import single
from tests.builders.iceberg_branches import BranchedHistory
from tests.builders.iceberg_metadata import document, snapshot, text
from tests.builders.opening import open_iceberg_table
from tests.pages.tables import good

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
]
ROW = {"id": 1, "day": date(2024, 1, 1)}


@pytest.fixture
def history(tmp_path: Path) -> BranchedHistory:
    return BranchedHistory(tmp_path / "t", FIELDS)


# -- refs


def test_refs_are_told_with_their_retention_main_first(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    history.tag("end-of-year", max_ref_age_ms=86_400_000).branch("audit", min_snapshots_to_keep=3)
    with history.on("audit"):
        history.append("b", [ROW])
    refs = open_iceberg_table(history).refs()
    assert refs.schema == REFS
    assert refs.select("name", "kind", "version", "default").rows() == [
        ("main", "branch", 1001, True),
        ("audit", "branch", 1002, False),
        ("end-of-year", "tag", 1001, False),
    ]
    assert refs["min_versions_kept"].to_list() == [None, 3, None]
    assert refs["max_ref_age_ms"].to_list() == [None, None, 86_400_000]


def test_a_ref_to_a_snapshot_that_is_gone_has_no_time(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    history.record(refs=history.document["refs"] | {"old": {"snapshot-id": 7, "type": "tag"}})
    assert open_iceberg_table(history).refs().row(1, named=True)["timestamp"] is None


def test_history_says_which_snapshots_are_on_main_and_which_refs_point_at_them(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    history.branch("audit")
    with history.on("audit"):
        history.append("b", [ROW])
    history.append("c", [ROW])
    commits = open_iceberg_table(history).history().select("version", "on_main", "refs").rows()
    assert commits == [(1003, True, ["main"]), (1002, False, ["audit"]), (1001, True, [])]


def test_lifetimes_follow_the_branch_asked_for(history: BranchedHistory) -> None:
    path = history.append("a", [ROW])
    history.branch("audit")
    with history.on("audit"):
        audited = history.append("b", [ROW])
        history.remove(path)
    own = history.append("c", [ROW])
    table = open_iceberg_table(history)
    assert set(table.lifetimes()["path"]) == {path, own}
    lives = table.ref_lifetimes("audit").sort("added").select("path", "added", "removed").rows()
    assert lives == [(path, 1001, 1003), (audited, 1002, None)]


def test_schemas_follow_the_branch_asked_for(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    history.branch("audit")
    history.evolve([*FIELDS, {"id": 90, "name": "more", "required": False, "type": "long"}])
    history.append("b", [ROW])
    with history.on("audit"):
        history.append("c", [ROW])
    table = open_iceberg_table(history)
    assert table.schemas()["version"].to_list() == [1001, 1002]
    assert table.ref_schemas("audit")["version"].to_list() == [1001, 1003]
    history.tag("before")
    assert open_iceberg_table(history).ref_schemas("main")["version"].to_list() == [1001, 1002]


def test_a_column_that_files_of_a_branch_lack_is_null_there_whichever_branch_was_asked_before(
    history: BranchedHistory,
) -> None:
    history.append("a", [ROW])
    history.branch("audit")
    with history.on("audit"):
        early = history.append("b", [ROW])
    history.evolve([*FIELDS, {"id": 90, "name": "more", "required": False, "type": "long"}])
    history.append("c", [ROW])
    with history.on("audit"):
        history.append("d", [ROW])
    table, memory = open_iceberg_table(history), Memory()
    nulls = []
    for ref in (None, "audit"):
        statistics = complete_statistics(TableFrames(table, 1004, ref, memory=memory), 1004, ["more"])
        nulls += statistics.filter(pl.col("_path") == early)["more"].struct.field("null_count").to_list()
    assert nulls == [None, 1], "unknown along main, which never had the file"


def test_a_ref_that_is_not_there_is_named_with_those_that_are(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    table = open_iceberg_table(history.tag("v1"))
    for ask in (
        table.ref_lifetimes,
        table.ref_schemas,
        partial(table.snapshot, None, at=None),
        partial(table.scan, None, at=None),
    ):
        with pytest.raises(VersionNotFoundError, match="no branch or tag v2") as error:
            ask(ref="v2")
        assert "main, v1" in str(error.value.fix)


# -- the snapshot log

A, B, C = (snapshot(1), snapshot(2, parent_snapshot_id=1), snapshot(3, parent_snapshot_id=1))
LOGS = {
    "a line of commits": ([1, 2], 2, [("first", True), ("commit", True)]),
    "a rollback, and a new commit after it": (
        [1, 2, 1, 3],
        3,
        [("first", True), ("commit", False), ("rollback", True), ("commit", True)],
    ),
    "main set to another branch": ([1, 2, 3], 3, [("first", True), ("commit", False), ("moved", True)]),
    "the same one recorded twice": ([1, 1], 1, [("first", True), ("again", True)]),
    "a snapshot that has expired": ([9, 1], 1, [("expired", None), ("moved", True)]),
}


@pytest.mark.parametrize(("ids", "current", "expected"), LOGS.values(), ids=LOGS)
def test_the_log_says_why_each_version_became_the_current_one(
    ids: list[int], current: int, expected: list[tuple[str, bool | None]], tmp_path: Path
) -> None:
    log = [{"timestamp-ms": 1_700_000_000_000 - i, "snapshot-id": number} for i, number in enumerate(ids)]
    metadata_text = document(snapshots=[A, B, C], current_snapshot_id=current, snapshot_log=log)
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_bytes(text(metadata_text))
    frame = lv.open_table(tmp_path).snapshot_log()
    assert frame.schema == SNAPSHOT_LOG
    assert frame["version"].to_list() == ids  # in the order recorded, though the clock runs backwards
    assert frame.select("why", "on_current_line").rows() == expected


def test_parents_in_a_circle_end_no_process(tmp_path: Path) -> None:
    circle = [snapshot(1, parent_snapshot_id=2), snapshot(2, parent_snapshot_id=1)]
    log = [{"timestamp-ms": 0, "snapshot-id": n} for n in (1, 2, 1)]
    (tmp_path / "metadata").mkdir()
    metadata_text = document(snapshots=circle, current_snapshot_id=1, snapshot_log=log)
    (tmp_path / "metadata" / "v1.metadata.json").write_bytes(text(metadata_text))
    assert lv.open_table(tmp_path).snapshot_log().height == 3


# -- partition specs and sort orders


def logged(history: BranchedHistory) -> BranchedHistory:
    """The table's earlier metadata files in its log, as every writer but our builder keeps them."""
    files = sorted((history.root / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    entries = [
        {"timestamp-ms": 1_600_000_000_000 + i, "metadata-file": f"{history.location}/metadata/{file.name}"}
        for i, file in enumerate(files)
    ]
    return history.record(metadata_log=entries)


def test_specs_are_told_in_words_with_the_file_that_brought_them(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    history.partition_by((2, "month", "day_month"), (1, "bucket[4]", "id_bucket"))
    history.append("b", [ROW])
    history.append("c", [ROW])
    specs = open_iceberg_table(logged(history)).partition_specs()
    assert specs.schema == PARTITION_SPECS
    assert specs.select("spec_id", "text", "default").rows() == [
        (0, "not partitioned", False),
        (1, "month of day, id into 4 buckets", True),
    ]
    assert specs["recorded_in"].to_list() == ["v1.metadata.json", "v3.metadata.json"]
    assert specs["since"].dt.epoch("ms").to_list() == [1_600_000_000_000, 1_600_000_000_002]
    assert specs["fields"][1].to_list()[1] == {
        "field_id": 1011, "name": "id_bucket", "column": "id", "transform": "bucket[4]",
    }  # fmt: skip


def test_since_when_is_unknown_where_older_files_are_gone(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    history.partition_by((2, "month", "day_month"))
    history.append("b", [ROW])
    logged(history)
    for name in ("v1", "v2"):
        (history.root / "metadata" / f"{name}.metadata.json").unlink()
    assert open_iceberg_table(history).partition_specs()["recorded_in"].to_list() == [None, None]


def test_a_table_with_one_spec_reads_no_earlier_file(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    table = open_iceberg_table(logged(history))
    before = dict(table.storage.requests)
    assert table.partition_specs().height == 1
    assert table.storage.requests == before


# -- format versions


def versions_of(history: BranchedHistory) -> list[tuple[Any, ...]]:
    versions: pl.DataFrame = open_iceberg_table(history).format_versions()
    assert versions.schema == FORMAT_VERSIONS
    return versions.with_columns(pl.col("since").dt.epoch("ms")).rows()


def test_an_upgrade_is_told_with_the_metadata_file_that_made_it(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    history.record(format_version=3, next_row_id=1)
    history.append("b", [ROW])
    assert versions_of(logged(history)) == [
        (2, None, 1_600_000_000_000, "v1.metadata.json"),
        (3, None, 1_600_000_000_002, "v3.metadata.json"),
    ]


def test_an_upgrade_that_came_with_a_snapshot_names_it(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    history.document |= {"format-version": 3, "next-row-id": 1}
    history.append("b", [ROW])
    assert versions_of(logged(history))[1] == (3, 1002, 1_600_000_000_002, "v3.metadata.json")


def test_an_upgrade_in_the_file_in_use_has_its_time(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    logged(history).document |= {"format-version": 3, "next-row-id": 1}
    history.append("b", [ROW])
    assert versions_of(history)[-1][2:] == (1_700_000_120_000, "v4.metadata.json")


def test_who_upgraded_is_unknown_where_older_files_are_gone(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    history.record(format_version=3, next_row_id=1)
    history.append("b", [ROW])
    logged(history)
    for name in ("v1", "v2"):
        (history.root / "metadata" / f"{name}.metadata.json").unlink()
    assert versions_of(history) == [(3, None, None, None)]


def test_a_table_without_a_log_began_with_its_first_file_only(history: BranchedHistory) -> None:
    assert versions_of(history) == [(2, None, 1_700_000_000_000, "v1.metadata.json")]
    history.append("a", [ROW])
    assert versions_of(history) == [(2, None, None, None)]


TRANSFORMS = {
    "identity": "day",
    "void": "day, no longer",
    "truncate[3]": "day cut to 3",
    "hour": "hour of day",
    "zorder[2]": "zorder[2] of day",
}


@pytest.mark.parametrize(("transform", "words"), TRANSFORMS.items(), ids=TRANSFORMS)
def test_every_transform_has_words(transform: str, words: str, tmp_path: Path) -> None:
    spec = {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "d", "transform": transform}]}
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_bytes(text(document(partition_specs=[spec])))
    assert lv.open_table(tmp_path).partition_specs()["text"].to_list() == [words]


def test_sort_orders_are_told_in_words_and_odd_ones_do_no_harm(history: BranchedHistory) -> None:
    part = {"source-id": 2, "transform": "day", "direction": "desc", "null-order": "nulls-last"}
    orders = [
        {"order-id": 0, "fields": []},
        {"order-id": 2, "fields": [part, {"source-id": 77}]},
        {"order-id": 1, "fields": "odd"},
        *({"order-id": i, "fields": [part]} for i in ("x", [1], 2**31)),
        {"order-id": 3, "fields": [{"source-ids": 5, "transform": ["x"], "direction": [], "null-order": {}}]},
    ]
    orders_found = open_iceberg_table(history.record(sort_orders=orders, default_sort_order_id=2)).sort_orders()
    assert orders_found.schema == SORT_ORDERS
    assert orders_found.select("order_id", "text", "default").rows() == [
        (2, "day of day desc nulls last, column 77", True),
        (3, "unknown of column None", False),
    ]


# -- manifests


def test_manifests_are_told_with_counts_ranges_and_overlap(tmp_path: Path) -> None:
    history = BranchedHistory(tmp_path / "t", FIELDS, [(2, "month", "month")])
    first = history.append("a", [ROW])
    history.append("b", [{"id": 2, "day": date(2024, 2, 1)}])
    history.append("c", [{"id": 3, "day": date(2024, 1, 9)}, {"id": 4, "day": date(2024, 1, 9)}])
    history.delete_positions("d", {first: [0]}, partition={"month": 648})
    manifests = open_iceberg_table(history).manifests()
    assert manifests.schema == MANIFESTS
    assert manifests.select("content", "partitions", "overlaps", "files_added", "rows_added").rows() == [
        ("data", "month 2024-01", 1, 1, 1),
        ("data", "month 2024-02", 0, 1, 1),
        ("data", "month 2024-01", 1, 1, 2),
        ("deletes", "month 2024-01", 0, 1, 1),
    ]
    assert manifests["added_version"].to_list() == [1001, 1002, 1003, 1004]
    assert (manifests["size"] > 0).all()
    assert open_iceberg_table(history).manifests(1001).height == 1


def test_an_unpartitioned_table_has_no_ranges_and_no_overlap(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    assert open_iceberg_table(history).manifests().select("partitions", "overlaps").rows() == [(None, None)]


SPEC = {
    "spec-id": 0,
    "fields": [
        {"source-id": 2, "field-id": 1000, "name": "day", "transform": "identity"},
        {"source-id": 1, "field-id": 1001, "name": "id", "transform": "identity"},
    ],
}


def part(low: Any, high: Any, nulls: bool = False) -> dict[str, Any]:
    return {
        "f509": nulls, "f518": False,
        "f510": None if low is None else single(low), "f511": None if high is None else single(high),
    }  # fmt: skip


def test_ranges_overlap_only_where_every_part_meets() -> None:
    days = [date(2024, 1, 1), date(2024, 1, 5), date(2024, 1, 9)]
    summaries = [
        [part(days[0], days[1]), part(1, 5)],
        [part(days[1], days[2]), part(5, 9, nulls=True)],  # meets the first in both, at their ends
        [part(days[0], days[2]), part(10, 12)],  # meets none in id
        [part(None, None, nulls=True), part(1, 1)],  # no day at all: taken to reach everywhere
        None,  # a writer that left summaries out
    ]
    listing = pl.DataFrame(
        {"manifest_path": list("abcde"), "content": [0] * 5, "partition_spec_id": [0] * 5, "partitions": summaries},
        schema={n: LISTED[n] for n in ("manifest_path", "content", "partition_spec_id", "partitions")},
    )
    listing = pl.concat([pl.DataFrame(schema=LISTED), listing], how="diagonal")
    metadata = parse_metadata(text(document(partition_specs=[SPEC])), "v1.metadata.json")
    manifests = manifest_files(listing, metadata, partition_columns(metadata))
    assert manifests["partitions"].to_list() == [
        "day 2024-01-01 to 2024-01-05, id 1 to 5",
        "day 2024-01-05 to 2024-01-09, id 5 to 9 and null",
        "day 2024-01-01 to 2024-01-09, id 10 to 12",
        "day null, id 1",
        None,
    ]
    assert manifests["overlaps"].to_list() == [3, 2, 1, 2, None]


def test_counts_that_were_left_out_are_unknown() -> None:
    listing = pl.concat([pl.DataFrame(schema=LISTED), pl.DataFrame({"manifest_path": ["a"]})], how="diagonal")
    metadata = parse_metadata(text(document()), "v1.metadata.json")
    row = manifest_files(listing, metadata, ()).row(0, named=True)
    assert row["files_added"] is None
    assert row["rows_deleted"] is None


# -- statistics files


def test_statistics_files_are_told_blob_by_blob(history: BranchedHistory) -> None:
    history.append("a", [ROW])
    (history.root / "metadata" / "s.puffin").write_bytes(b"PFA1")
    blobs = [
        {"type": "apache-datasketches-theta-v1", "fields": [1], "properties": {"ndv": "42"}},
        {"type": "made-up", "fields": [2, 77], "properties": {"ndv": "many"}},
    ]
    there = {"snapshot-id": 1001, "statistics-path": f"{history.location}/metadata/s.puffin", "blob-metadata": blobs}
    statistics_file = {
        "snapshot-id": 1001,
        "statistics-path": f"{history.location}/metadata/p.parquet",
        "file-size-in-bytes": 9,
    }
    outside = {"snapshot-id": 2**70, "statistics-path": "s3://elsewhere/p.parquet"}
    history.record(
        statistics=[there | {"file-size-in-bytes": 4}, {"odd": 1}], partition_statistics=[statistics_file, outside]
    )
    files = open_iceberg_table(history).statistics_files()
    assert files.schema == STATISTICS_FILES
    assert files.select("version", "kind", "blob_type", "columns", "ndv", "size", "present").rows() == [
        (1001, "table", "apache-datasketches-theta-v1", ["id"], 42, 4, True),
        (1001, "table", "made-up", ["day", "column 77"], None, 4, True),
        (1001, "partition", None, None, None, 9, False),
        (None, "partition", None, None, None, None, None),
    ]


def test_counts_of_statistics_files_below_zero_are_unknown(history: BranchedHistory) -> None:
    blob = {"type": "made-up", "fields": [True, 1], "properties": {"ndv": -5}}
    entry = {"statistics-path": f"{history.location}/s", "file-size-in-bytes": -1, "blob-metadata": [blob]}
    files = open_iceberg_table(history.record(statistics=[entry])).statistics_files()
    assert files.select("columns", "ndv", "size").rows() == [(["id"], None, None)]


def test_a_statistics_file_of_an_odd_snapshot_is_reported(history: BranchedHistory) -> None:
    findings = open_iceberg_table(history.record(statistics=[{"snapshot-id": [1]}])).check()
    assert [f.evidence for f in findings if f.id == "statistics-file-without-snapshot"] == ["1 of 1"]


# -- tables of other formats


def test_a_table_with_one_line_of_versions_has_the_same_frames_empty(tmp_path: Path) -> None:
    table: Any = lv.open_table(good(tmp_path / "delta"))
    frames = {
        table.refs: REFS, table.snapshot_log: SNAPSHOT_LOG, table.partition_specs: PARTITION_SPECS,
        table.sort_orders: SORT_ORDERS, table.manifests: MANIFESTS, table.statistics_files: STATISTICS_FILES,
        table.format_versions: FORMAT_VERSIONS,
    }  # fmt: skip
    for ask, schema in frames.items():
        assert ask().schema == schema
        assert ask().is_empty()
    with pytest.raises(VersionNotFoundError, match="no branch or tag audit"):
        table.ref_lifetimes("audit")
    with pytest.raises(VersionNotFoundError, match="no branch or tag audit"):
        table.ref_schemas("audit")
