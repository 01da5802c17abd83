"""Partitions: how even, how complete, and when each was written."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from lakeview import charts, views
from lakeview.model.frames import FILES
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.table_metadata import TableMetadata
from tests.views.story import MIB, START, Story, flights


def table(values: list[Any], dtype: pl.DataType, name: str = "key", **columns: Any) -> Snapshot:
    """One file a value of the only partition column."""
    frame = pl.DataFrame(
        {
            "path": [f"f{i}" for i in range(len(values))],
            "size": 10,
            "records": 5,
            "deleted_records": 0,
            "partition_text": [f"{name}={'null' if v is None else v}" for v in values],
        },
        schema_overrides=FILES,
    )
    keys = pl.DataFrame({name: pl.Series(values, dtype=dtype)})
    frame = pl.concat([pl.DataFrame(schema=FILES), frame], how="diagonal").with_columns(partition=keys.to_struct())
    metadata = TableMetadata("memory://t", "delta", 0, None, Schema(), (name,))
    return Snapshot(metadata, frames={"files": frame.with_columns(**columns)})


def test_sizes_are_in_the_order_of_typed_values() -> None:
    story = flights()
    sizes = views.partitions.sizes.partition_sizes(story.snapshot())
    assert sizes.schema == views.partitions.sizes.PARTITION_SIZES
    assert sizes["partition_text"].to_list() == [f"month={m}" for m in range(1, 13)]
    assert sizes["files"].sum() == story.files().height
    assert sizes["share"].sum() == pytest.approx(1.0)


def test_rows_of_a_partition_are_unknown_when_one_file_does_not_tell() -> None:
    story = Story().append(10).append(None).append(7, month=2)
    assert views.partitions.sizes.partition_sizes(story.snapshot())["records"].to_list() == [None, 7]


def test_nulls_come_last_and_names_may_be_anything() -> None:
    for name in ("files", "^key$", "partition_text", "size", ""):
        sizes = views.partitions.sizes.partition_sizes(table([None, 2, 10], pl.Int64(), name))
        assert sizes["partition_text"].to_list() == [f"{name}=2", f"{name}=10", f"{name}=null"]


def test_a_partition_of_an_earlier_spec_comes_before_those_that_it_was_split_into() -> None:
    texts = ["m=6/o=EWR", "m=7/o=EWR", "m=6"]
    files = table([6, 7, 6], pl.Int64(), "m").files.with_columns(
        partition=pl.struct(m=pl.Series([6, 7, 6]), o=pl.Series(["EWR", "EWR", None])),
        partition_text=pl.Series(texts),
    )
    snapshot = Snapshot(TableMetadata("memory://t", "iceberg", 0, None, Schema(), ("m", "o")), frames={"files": files})
    assert views.partitions.sizes.partition_sizes(snapshot)["partition_text"].to_list() == ["m=6", *texts[:2]]


def test_files_from_before_a_table_was_partitioned_are_of_no_partition() -> None:
    snapshot = table([1, 2, None], pl.Int64())
    files = snapshot.files.with_columns(partition_text=pl.col("partition_text").replace("key=null", None))
    sizes = views.partitions.sizes.partition_sizes(Snapshot(snapshot.metadata, frames={"files": files}))
    skew = views.partitions.sizes.partition_skew(sizes.with_columns(files=pl.Series([1, 2, 90])))
    assert (skew.partitions, skew.most_files, skew.files_ratio) == (2, "key=2", 1.0)
    assert views.partitions.keys.short_names(sizes["partition_text"], ["key"]).to_list() == [
        "key=1",
        "key=2",
        "no partition",
    ]
    bars = charts.partitions.partition_bars(sizes)[-1].to_dict()
    assert next(iter(bars["datasets"].values()))[-1]["partition"] == "no partition"


def test_a_version_from_before_a_table_was_no_longer_partitioned_has_its_partitions() -> None:
    now = table([1, 2, 4], pl.Int64())
    metadata = TableMetadata("memory://t", "iceberg", 0, None, Schema())
    before = Snapshot(metadata, frames={"files": now.files})
    assert views.partitions.keys.partition_names(before) == ["key"]
    assert views.partitions.sizes.partition_sizes(before).equals(views.partitions.sizes.partition_sizes(now))
    assert views.partitions.sizes.missing_partitions(before) == ["key=3"]
    files = now.files.with_columns(partition_text=pl.lit(None, pl.String))
    assert views.partitions.keys.partition_names(Snapshot(metadata, frames={"files": files})) == []


def test_files_of_no_partition_are_not_counted_as_one() -> None:
    before, after = (
        Snapshot(s.metadata, frames={"files": s.files.with_columns(pl.col("partition_text").replace("key=null", None))})
        for s in (table([None], pl.Int64()), table([None, 1, 3], pl.Int64()))
    )
    difference = views.compare.versions.partition_difference(before, after)
    assert difference["partition_text"].sort().to_list() == ["key=1", "key=3", "no partition"]
    assert views.compare.summary.difference_tiles(before, after, difference)[-1] == ("Partitions", "2", "2 touched")
    (gap,) = views.health.layout.partition_findings(after)
    assert gap.evidence == "key=2, between 2 partitions that are there"


def test_an_unpartitioned_table_has_no_partitions() -> None:
    snapshot = Story(partitioned=False).append(10).snapshot()
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    assert sizes.schema == views.partitions.sizes.PARTITION_SIZES
    assert sizes.is_empty()
    assert views.partitions.sizes.partition_skew(sizes).bytes_ratio is None
    assert views.partitions.sizes.missing_partitions(snapshot) == []


def test_skew_compares_with_the_median() -> None:
    skew = views.partitions.sizes.partition_skew(views.partitions.sizes.partition_sizes(flights().snapshot()))
    assert (skew.partitions, skew.most_files, skew.most_files_count, skew.median_files) == (12, "month=12", 370, 10)
    assert skew.files_ratio == 37.0
    assert skew.largest == "month=12"


@pytest.mark.parametrize(
    ("values", "dtype", "missing"),
    [
        pytest.param([1, 2, 4], pl.Int64(), ["key=3"], id="a whole number"),
        pytest.param([1, 2, 3], pl.Int32(), [], id="no gap"),
        pytest.param([1, 100, 5000], pl.Int64(), [], id="ids are no sequence"),
        pytest.param([date(2026, 1, 30), date(2026, 2, 1)], pl.Date(), ["key=2026-01-31"], id="a day"),
        pytest.param(
            ["2026-01-01", "2026-01-03", "9999-12-31"], pl.String(), ["key=2026-01-02"], id="the year 9999 is no date"
        ),
        pytest.param(["9999-12-30", "9999-12-31"], pl.String(), [], id="no date at all"),
        pytest.param(["2025-12", "2026-02"], pl.String(), ["key=2026-01"], id="a month as text"),
        pytest.param(["2026-01-01", "2026-01-03"], pl.String(), ["key=2026-01-02"], id="a day as text"),
        pytest.param(["202511", "202601"], pl.String(), ["key=202512"], id="a month as six digits"),
        pytest.param(["20260101", "20260103"], pl.String(), ["key=20260102"], id="a day as eight digits"),
        pytest.param(["08", "09", "11"], pl.String(), ["key=10"], id="an hour as two digits"),
        pytest.param(
            ["bucket 0 of 8", "bucket 2 of 8"], pl.String(), ["key=bucket 1 of 8"], id="a bucket, as a reader tells it"
        ),
        pytest.param(["bucket 0 of 8", "bucket 2 of 16"], pl.String(), [], id="buckets of two partitionings"),
        pytest.param(["AA", "UA"], pl.String(), [], id="names are no sequence"),
        pytest.param([None, 1, 2, 4], pl.Int64(), ["key=3"], id="null is no place in it"),
        pytest.param([None], pl.Int64(), [], id="only null"),
    ],
)
def test_missing_partitions(values: list[Any], dtype: pl.DataType, missing: list[str]) -> None:
    assert views.partitions.sizes.missing_partitions(table(values, dtype)) == missing


def test_a_month_that_is_missing_beside_another_key_is_named() -> None:
    texts = ["at=2026-06", "at=2026-07/port=HAM", "at=2026-07/port=a%2Fb", "at=2026-10/port=HAM", "at=null/port=RTM"]
    snapshot = table([*range(5)], pl.Int64())
    metadata = TableMetadata("memory://t", "iceberg", 0, None, Schema(), ("at", "port"))
    parts = pl.DataFrame({"at": range(5), "port": "x"}).to_struct("partition")
    files = snapshot.files.with_columns(parts, partition_text=pl.Series(texts))
    many = Snapshot(metadata, frames={"files": files})
    assert views.partitions.sizes.missing_partitions(many) == ["at=2026-08", "at=2026-09"]
    whole = Snapshot(metadata, frames={"files": files.filter(pl.col("partition_text") != texts[3])})
    assert views.partitions.sizes.missing_partitions(whole) == []


def test_writes_are_bucketed_and_say_which_commits() -> None:
    story = flights()
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    months = [f"month={m}" for m in range(1, 13)]
    writes = views.partitions.writes.partition_writes(story.files(), story.lifetimes(), line, partitions=months)
    assert writes.schema == views.partitions.writes.PARTITION_WRITES
    assert writes["partition_text"].unique(maintain_order=True).to_list() == months
    # compactions wrote nothing new, the bad load did, though it was taken back
    assert writes["records"].sum() == line.filter("data_change")["records_added"].sum()
    is_bad = pl.col("repaired_loads").list.len() > 0
    bad = writes.filter(is_bad, pl.col("partition_text") == "month=7").row(0, named=True)
    assert bad["first_version"] <= 35 <= bad["last_version"]
    assert (bad["open_loads"], bad["repaired_loads"]) == ([], ["v35"])
    spans = (writes["until"] - writes["timestamp"]).unique().to_list()
    assert spans == [timedelta(days=14)]
    last = views.partitions.writes.partition_writes(story.files(), story.lifetimes(), line, partitions=months, limit=5)
    assert last.equals(writes.tail(5)), "of many partitions the last ones are drawn"


def test_partitions_written_within_seconds_are_in_spans_of_a_second() -> None:
    story = Story().append(10).append(20, month=2)
    moments = [START, START + timedelta(seconds=5)]
    commits = story.frame().with_columns(timestamp=pl.Series(moments, dtype=pl.Datetime("ms", "UTC")))
    writes = views.partitions.writes.partition_writes(story.files(), story.lifetimes(), commits)
    assert writes["timestamp"].sort().to_list() == moments
    assert (writes["until"] - writes["timestamp"]).unique().to_list() == [timedelta(seconds=1)]


def test_files_of_unknown_partitions_are_left_out_of_writes() -> None:
    story = Story().append(10).append(20, month=2).delete(0)
    writes = views.partitions.writes.partition_writes(story.files(), story.lifetimes(), story.frame())
    assert writes["partition_text"].to_list() == ["month=2"]


@pytest.mark.parametrize("missing_version", [0, 1], ids=["all live", "another removed"])
def test_live_files_without_a_partition_are_not_placed_by_their_folder(missing_version: int) -> None:
    story = Story().append(10).append(20).append(30, month=2)
    story = story.delete(2) if missing_version else story
    files = story.files().with_columns(
        path=pl.lit("data/") + pl.col("path").str.extract("([^/]*)$"),
        partition_text=pl.when(pl.col("records") != 20).then("partition_text"),  # of an earlier spec without parts
    )
    lives = story.lifetimes().with_columns(path=pl.lit("data/") + pl.col("path").str.extract("([^/]*)$"))
    writes = views.partitions.writes.partition_writes(files, lives, story.frame(), partitions=["month=1"])
    assert writes["records"].sum() == 10 + 30 * missing_version
    rows = views.partitions.history.partition_history(files, lives, story.frame(), "month=1")
    assert rows["records_added"].sum() == 10 + 30 * missing_version


def test_a_deletion_vector_does_not_write_rows_again() -> None:
    story = Story().append(10, size=MIB).append(5)
    before = story.lifetimes()
    stay = before.head(1).with_columns(deletion_vector=pl.lit("dv"), added=pl.lit(1, pl.Int64))
    ended = before.head(1).with_columns(removed=pl.lit(1, pl.Int64))
    lifetimes = pl.concat([ended, before.tail(-1), stay])
    writes = views.partitions.writes.partition_writes(story.files(), lifetimes, story.frame())
    assert writes["records"].sum() == 15


def test_writes_of_nothing() -> None:
    story = Story(partitioned=False).append(10)
    assert (
        views.partitions.writes.partition_writes(story.files(), story.lifetimes(), story.frame()).schema
        == views.partitions.writes.PARTITION_WRITES
    )


def test_a_partition_after_its_successors_is_late() -> None:
    story = flights()
    sizes = views.partitions.sizes.partition_sizes(story.snapshot())
    arrivals = views.partitions.writes.partition_arrivals(sizes, story.files(), story.lifetimes(), story.frame())
    assert arrivals.schema == views.partitions.writes.PARTITION_ARRIVALS
    late = arrivals.filter("late").row(0, named=True)
    assert (late["partition_text"], late["first_version"], late["note"]) == ("month=9", 55, "66 days late")
    assert arrivals["late"].sum() == 1


def test_partitions_in_no_order_of_time_are_not_late() -> None:
    story = Story()
    for month in (7, 2, 9, 1, 4, 3):
        story.after(days=1).append(10, month=month)
    sizes = views.partitions.sizes.partition_sizes(story.snapshot())
    assert not views.partitions.writes.partition_arrivals(sizes, story.files(), story.lifetimes(), story.frame())[
        "late"
    ].any()


def test_partitions_whose_writing_the_log_forgot_have_no_arrival() -> None:
    story = Story().append(10).append(10, month=2)
    sizes = views.partitions.sizes.partition_sizes(story.snapshot())
    forgotten = story.lifetimes().with_columns(added=pl.lit(None, pl.Int64()))
    arrivals = views.partitions.writes.partition_arrivals(sizes, story.files(), forgotten, story.frame())
    assert arrivals["first_written"].to_list() == [None, None]
    assert not arrivals["late"].any()


def test_partitions_written_all_at_once_are_not_late() -> None:
    story = Story().append(10, month=2).append(10, month=1)
    commits = story.frame().with_columns(timestamp=pl.lit(story.now, pl.Datetime("ms", "UTC")))
    sizes = views.partitions.sizes.partition_sizes(story.snapshot())
    assert not views.partitions.writes.partition_arrivals(sizes, story.files(), story.lifetimes(), commits)[
        "late"
    ].any()


def test_labels_leave_out_the_names_of_keys_and_no_part_of_a_value() -> None:
    story = Story().append(10).append(5, month=2)
    sizes = views.partitions.sizes.partition_sizes(story.snapshot()).with_columns(
        partition_text=pl.Series(["path=a/day=1", "path=b"])
    )
    labels = {
        keys: charts.partitions.partition_bars(sizes, keys=keys)[-1].to_dict()["layer"][0]["encoding"]["x"]["axis"][
            "labelExpr"
        ]
        for keys in ((), ("path",))
    }
    assert '"(^)(?:path)="' in labels["path",]
    assert '"^()$^"' in labels[()]
    assert "%2F" not in labels["path",], "no value has a slash"


def test_labels_show_the_slashes_of_values() -> None:
    label = charts.partitions.short_names(pl.Series(["path=a%2Fb", "path=a%252F"]), ["path"])
    assert label.endswith("""regexp("%2F", 'g'), '/'), regexp("%25(2F|25)", 'g'), '%$1')""")
    alike = pl.Series(["path=a%2F1/key=b", "path=a/key=1%2Fb"])
    assert charts.partitions.short_names(alike, ["path", "key"]) == "datum.label"


def test_a_file_that_is_gone_is_of_its_folder_though_a_name_has_a_line_break() -> None:
    live = pl.DataFrame({"path": ["k=a\nb/x", "plain"], "partition_text": ["k=a\nb", "k=c"]})
    gone = pl.DataFrame({"path": ["k=a\nb/y", "other", "k=d/z"]})
    assert views.partitions.writes.in_folders(gone, live)["partition_text"].to_list() == ["k=a\nb", "k=c", None]
