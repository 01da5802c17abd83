"""Partitions by their keys: sequences in time with gaps, grids of two keys, rectangles for more, one's own life."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from lakeview import views
from lakeview.model.frames import FILES
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.table_metadata import TableMetadata
from tests.views.story import MIB, Story


def table(names: tuple[str, ...], *texts: str | None, sizes: list[int] | None = None) -> Snapshot:
    """A file a partition, whose text a reader made."""
    rows = [
        {
            "path": f"f{i}",
            "size": (sizes or [10] * len(texts))[i],
            "records": 5,
            "deleted_records": 0,
            "partition_text": t,
        }
        for i, t in enumerate(texts)
    ]
    metadata = TableMetadata("memory://t", "any", 0, None, Schema(), names)
    return Snapshot(metadata, frames={"files": pl.DataFrame(rows, schema=FILES)})


@pytest.mark.parametrize(
    ("names", "text", "keys"),
    [
        pytest.param(("month",), "month=3", ("3",), id="one"),
        pytest.param(
            ("day", "id_bucket"), "day=2024-01-05/id_bucket=bucket 3 of 16", ("2024-01-05", "bucket 3 of 16"), id="two"
        ),
        pytest.param(("a", "b"), "a=x%2Fb=y/b=z", ("x/b=y", "z"), id="a slash in a value"),
        pytest.param(("a", "b"), "a=%252F/b=%2525%", ("%2F", "%25%"), id="an escaped slash in a value"),
        pytest.param(("a.b", "^x$"), "a.b=1/^x$=2", ("1", "2"), id="names like patterns"),
        pytest.param(("a",), "a=two\nlines", ("two\nlines",), id="a line break"),
        pytest.param(("a", "b"), "a=1", (None, None), id="another partitioning"),
        pytest.param(("a",), None, (None,), id="none"),
    ],
)
def test_keys_are_told_from_the_text(names: tuple[str, ...], text: str | None, keys: tuple[str | None, ...]) -> None:
    assert views.partitions.keys.partition_keys(pl.Series([text], dtype=pl.String), names).row(0) == keys


@pytest.mark.parametrize(
    ("texts", "grain"),
    [
        pytest.param(["2013", "2014"], "year", id="years"),
        pytest.param(["2013-05", "2013-07"], "month", id="months"),
        pytest.param(["201305", "201307"], "month", id="months without a dash"),
        pytest.param(["2013-05-01", "null"], "day", id="days, and no day"),
        pytest.param(["20130501"], "day", id="days without dashes"),
        pytest.param(["2013-05-01-13"], "hour", id="hours"),
        pytest.param(["2013-05-40"], None, id="no such day"),
        pytest.param(["1", "2"], None, id="numbers"),
        pytest.param(["null"], None, id="nothing"),
    ],
)
def test_a_key_of_time_is_told_by_how_it_is_written(texts: list[str], grain: str | None) -> None:
    key = views.partitions.keys.time_key(pl.Series(texts))
    assert (None if key is None else key.grain) == grain
    if key is not None:  # a moment is written as it was read
        keys = [t for t in texts if t != "null"]
        assert [key.text(m) for m in key.moments(pl.Series(keys))] == keys


@pytest.mark.parametrize(
    ("snapshot", "kind"),
    [
        pytest.param(table((), None), "bars", id="no key"),
        pytest.param(table(("d",), "d=2024-01-01", "d=2024-02-14"), "bars", id="45 days"),
        pytest.param(table(("d",), "d=2024-01-01", "d=2024-02-15"), "calendar", id="46 days"),
        pytest.param(table(("m",), "m=2020-01", "m=2024-01"), "bars", id="49 months"),
        pytest.param(table(("c",), "c=AA"), "bars", id="a name"),
        pytest.param(table(("a", "b"), "a=1/b=2"), "heatmap", id="two"),
        pytest.param(table(("a", "b", "c"), "a=1/b=2/c=3"), "treemap", id="three"),
    ],
)
def test_the_picture_goes_by_the_number_of_keys(snapshot: Snapshot, kind: str) -> None:
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    assert views.partitions.layout.picture_kind(snapshot.partition_columns, sizes) == kind


def test_a_text_null_is_no_step_in_time() -> None:
    key = views.partitions.keys.time_key
    assert key(pl.Series(["2023-11", "2024-02", "null"])) is not None
    assert key(pl.Series(["2023-11", "2024-02", '"null"'])) is None


def test_steps_in_time_show_what_is_missing() -> None:
    snapshot = table(("ts_month",), "ts_month=2023-11", "ts_month=2024-02", "ts_month=null")
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    layout = views.partitions.layout.time_partitions(snapshot.partition_columns, sizes)
    assert layout is not None
    grain, steps = layout
    assert grain == "month"
    assert steps.schema == views.partitions.layout.TIME_PARTITIONS
    assert steps["label"].to_list() == ["2023-11", "2023-12", "2024-01", "2024-02"]
    assert steps["missing"].to_list() == [False, True, True, False]
    assert steps["partition_text"].to_list()[1] == "ts_month=2023-12"
    assert views.partitions.sizes.missing_partitions(snapshot) == ["ts_month=2023-12", "ts_month=2024-01"]
    rows = views.partitions.layout.with_gaps(sizes, steps)
    assert rows.schema == views.partitions.sizes.PARTITION_SIZES
    assert rows["files"].to_list() == [1, 0, 0, 1, 1]  # what has no moment comes last


def test_steps_in_number_show_what_is_missing() -> None:
    snapshot = table(("hour",), "hour=9", "hour=12", "hour=10", "hour=null")
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    steps = views.partitions.layout.number_steps(snapshot.partition_columns, sizes)
    assert steps is not None
    rows = views.partitions.layout.with_gaps(sizes, steps)
    assert rows["partition_text"].to_list() == ["hour=9", "hour=10", "hour=11", "hour=12", "hour=null"]
    assert rows["files"].to_list() == [1, 1, 0, 1, 1]


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("c=x", "c=y"), id="names"),
        pytest.param(("c=1", "c=500"), id="ids"),
        pytest.param(("c=1", "c=200000000000000000"), id="ids far apart"),
        pytest.param((), id="no partition"),
    ],
)
def test_what_is_no_sequence_of_numbers_has_no_steps(texts: tuple[str, ...]) -> None:
    snapshot = table(("c",), *texts)
    assert (
        views.partitions.layout.number_steps(
            snapshot.partition_columns, views.partitions.sizes.partition_sizes(snapshot)
        )
        is None
    )


def test_a_sequence_without_end_has_no_steps() -> None:
    snapshot = table(("h",), "h=1900-01-01-00", "h=2024-01-01-00")
    assert (
        views.partitions.layout.time_partitions(
            snapshot.partition_columns, views.partitions.sizes.partition_sizes(snapshot)
        )
        is None
    )
    assert views.partitions.sizes.missing_partitions(snapshot) == []
    assert (
        views.partitions.layout.time_partitions(["c"], views.partitions.sizes.partition_sizes(table(("c",), "c=x")))
        is None
    )


def arrived(days: list[datetime | None]) -> pl.DataFrame:
    return pl.DataFrame({"first_written": days}, schema={"first_written": pl.Datetime("ms", "UTC")})


def test_the_next_partition_is_due_after_the_usual_step_and_overdue_half_a_step_later() -> None:
    texts = [f"d={date(2024, 1, 29) + timedelta(days=i)}" for i in range(4)]
    snapshot = table(("d",), *texts)
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    arrivals = arrived([datetime(2024, 2, i + 1, 3, tzinfo=UTC) for i in range(4)])
    arrival = views.partitions.layout.expected_partition(snapshot, sizes, arrivals, datetime(2024, 2, 5, 9, tzinfo=UTC))
    assert arrival == views.partitions.layout.ExpectedPartition(
        "d=2024-02-02", datetime(2024, 2, 5, 3, tzinfo=UTC), None
    )
    late = views.partitions.layout.expected_partition(snapshot, sizes, arrivals, datetime(2024, 2, 7, 3, tzinfo=UTC))
    assert late is not None
    assert late.overdue == timedelta(days=2)
    without_date = table(("d",), *texts, "d=9999-12-31")
    sizes = views.partitions.sizes.partition_sizes(without_date)
    assert (
        views.partitions.layout.expected_partition(without_date, sizes, arrivals, datetime(2024, 2, 7, 3, tzinfo=UTC))
        == late
    )


def test_without_a_cadence_nothing_is_expected() -> None:
    snapshot = table(("d",), "d=2024-01-01", "d=2024-01-02", "d=2024-01-03")
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    at_once = arrived([datetime(2024, 1, 1, tzinfo=UTC)] * 3)
    now = datetime(2024, 2, 1, tzinfo=UTC)
    assert views.partitions.layout.expected_partition(snapshot, sizes, at_once, now) is None
    backfill = arrived([datetime(2024, 1, 1, 3, minute, tzinfo=UTC) for minute in range(3)])
    assert views.partitions.layout.expected_partition(snapshot, sizes, backfill, now) is None
    assert views.partitions.layout.expected_partition(snapshot, sizes, arrived([None] * 3), now) is None
    names = table(("c",), "c=x", "c=y", "c=z")
    steps = arrived([datetime(2024, 1, i, tzinfo=UTC) for i in (1, 2, 3)])
    assert (
        views.partitions.layout.expected_partition(names, views.partitions.sizes.partition_sizes(names), steps, now)
        is None
    )


@pytest.mark.parametrize(("sizes", "half"), [([1, 1, 1, 1], 2), ([10, 1, 1], 1), ([5], 1), ([], 0), ([0, 0], 0)])
def test_how_many_partitions_hold_half_of_the_bytes(sizes: list[int], half: int) -> None:
    assert (
        views.partitions.layout.half_of_the_bytes(pl.DataFrame({"bytes": sizes}, schema={"bytes": pl.Int64()})) == half
    )


def test_two_keys_make_a_grid_with_the_longer_one_across() -> None:
    snapshot = table(("c", "d"), "c=A/d=1", "c=A/d=2", "c=A/d=3", "c=B/d=1", "other=1")
    cells = views.partitions.layout.partition_cells(
        snapshot.partition_columns, views.partitions.sizes.partition_sizes(snapshot)
    )
    assert cells.schema == views.partitions.layout.PARTITION_CELLS
    assert sorted(cells.select("x", "y").rows()) == [("1", "A"), ("1", "B"), ("2", "A"), ("3", "A")]
    evolved = table(("c", "d"), "c=A", "c=B/d=1", "d=2")  # partitioned by c, by both, and by d
    cells = views.partitions.layout.partition_cells(
        evolved.partition_columns, views.partitions.sizes.partition_sizes(evolved)
    )
    assert sorted(cells.select("x", "y").rows()) == [("A", "no d"), ("B", "1"), ("no c", "2")]
    one = table(("c",), "c=A")
    assert views.partitions.layout.partition_cells(
        one.partition_columns, views.partitions.sizes.partition_sizes(one)
    ).is_empty()


def test_an_axis_of_a_grid_has_the_steps_that_no_partition_has() -> None:
    days = ("2026-01-02", "2026-01-01", "2026-01-04")
    texts = [f"h={h}/d={day}" for h in "ab" for day in days if (h, day) != ("a", "2026-01-01")]
    sizes = views.partitions.sizes.partition_sizes(table(("h", "d"), *texts, "h=c/d=2026-01-03", "h=b"))
    cells = views.partitions.layout.partition_cells(
        ["h", "d"], sizes.filter(pl.col("partition_text") != "h=c/d=2026-01-03")
    )
    axis = views.partitions.layout.axis_texts
    assert axis(cells["y"], "h", sizes) == ["a", "b"]
    every = ["2026-01-01", "2026-01-02", "2026-01-04", "no d"]
    assert axis(cells["x"], "d", sizes) == every  # the third is of a partition that the grid leaves out
    gone = sizes.filter(pl.col("partition_text") != "h=c/d=2026-01-03")
    assert axis(cells["x"], "d", gone) == [*every[:2], "2026-01-03", *every[2:]]


def test_partitions_of_specs_without_a_key_in_common_are_apart() -> None:
    texts = ("m=2026-01", "m=2026-02", "h=2026-03-01-05", "h=2026-03-01-07", None, "m=2026-02/o=EWR")
    sizes = views.partitions.sizes.partition_sizes(table(("h",), *texts))
    (months, part), (hours, rest) = views.partitions.layout.by_keys(["m", "o", "h"], sizes)
    assert (months, hours) == (["m", "o"], ["h"])
    assert part["partition_text"].to_list() == ["m=2026-01", "m=2026-02", "m=2026-02/o=EWR"]
    assert rest["partition_text"].to_list() == ["h=2026-03-01-05", "h=2026-03-01-07", None]
    steps = views.partitions.layout.time_partitions(hours, rest)
    assert steps is not None
    assert steps[1]["label"].to_list() == ["2026-03-01-05", "2026-03-01-06", "2026-03-01-07"]
    ((keys, whole),) = views.partitions.layout.by_keys(["h"], sizes)
    assert (keys, whole.height) == (["h"], 6)


def test_a_grid_keeps_the_largest_values_of_each_key() -> None:
    texts = [f"c={c}/d={d}" for c in range(80) for d in range(70)]
    snapshot = table(("c", "d"), *texts, sizes=[i + 1 for i in range(len(texts))])
    cells = views.partitions.layout.partition_cells(
        snapshot.partition_columns, views.partitions.sizes.partition_sizes(snapshot)
    )
    assert (cells["x"].n_unique(), cells["y"].n_unique()) == (60, 60)
    assert "79" in cells["x"].to_list()


def test_rectangles_fill_the_square_by_their_bytes_and_do_not_overlap() -> None:
    texts = [f"r={r}/c={c}/z={z}" for r in "nse" for c in "AB" for z in range(4)]
    snapshot = table(("r", "c", "z"), *texts, sizes=[(i * 37) % 91 + 1 for i in range(len(texts))])
    rects = views.partitions.rectangles.partition_rects(
        snapshot.partition_columns, views.partitions.sizes.partition_sizes(snapshot)
    )
    assert rects.schema == views.partitions.rectangles.PARTITION_RECTS
    area = (rects["x1"] - rects["x0"]) * (rects["y1"] - rects["y0"])
    assert area.sum() == pytest.approx(1)
    assert (area - rects["bytes"] / rects["bytes"].sum()).abs().max() == pytest.approx(0, abs=1e-9)
    rows = rects.select("x0", "y0", "x1", "y1").rows()
    for i, (ax0, ay0, ax1, ay1) in enumerate(rows):
        for bx0, by0, bx1, by1 in rows[:i]:
            assert min(ax1, bx1) - max(ax0, bx0) < 1e-9 or min(ay1, by1) - max(ay0, by0) < 1e-9
    assert set(rects["group"]) == {"n", "s", "e"}
    assert rects["label"].to_list()[0].startswith(("A / ", "B / "))


def test_very_many_partitions_are_a_bounded_number_of_rectangles() -> None:
    texts = [f"r={i % 3000}/c={i}/z=1" for i in range(9000)]
    snapshot = table(("r", "c", "z"), *texts, sizes=[i + 1 for i in range(9000)])
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    rects = views.partitions.rectangles.partition_rects(snapshot.partition_columns, sizes)
    assert rects.height <= 2 * 1200 + 1
    assert (rects["partitions"].sum(), rects["bytes"].sum()) == (9000, sizes["bytes"].sum())


def test_one_partition_has_a_life_of_its_own() -> None:
    story = Story().append(10, size=MIB).append(20, month=2).append(30, files=3, size=2 * MIB).optimize(1).delete(1)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    first_rows = views.partitions.history.partition_history(story.files(), story.lifetimes(), line, "month=1")
    assert first_rows.schema == views.partitions.history.PARTITION_HISTORY
    assert first_rows["version"].to_list() == [0, 2, 3]
    assert first_rows["files"].to_list() == [1, 4, 1]
    assert first_rows["bytes"].to_list() == [MIB, 7 * MIB, 7 * MIB]
    assert first_rows["records"].to_list() == [10, 40, 40]
    assert first_rows.select("files_added", "files_removed", "records_removed").rows()[2] == (1, 4, 40)
    second_rows = views.partitions.history.partition_history(story.files(), story.lifetimes(), line, "month=2")
    assert second_rows.is_empty()  # nothing that is live tells which partition its files were in


@pytest.mark.parametrize(
    ("live_rows", "changed", "rows"),
    [
        pytest.param(7, (5, 3), [10, 12], id="deleted"),
        pytest.param(None, (5, None), [10, None], id="unknown how many"),
        pytest.param(12, (7, 0), [10, 17], id="back again"),
    ],
)
def test_a_file_that_stays_with_other_deleted_rows_neither_comes_nor_goes(
    live_rows: int | None, changed: tuple[int, int | None], rows: list[int | None]
) -> None:
    story = Story().append(10, size=MIB).append(5)
    before = story.lifetimes()
    ended = before.head(1).with_columns(removed=pl.lit(1, pl.Int64))
    stay = before.head(1).with_columns(added=pl.lit(1, pl.Int64), records=pl.lit(live_rows, pl.Int64))
    lives = pl.concat([ended, before.tail(-1), stay])
    rows_read = views.partitions.history.partition_history(story.files(), lives, story.frame(), "month=1")
    assert rows_read.select("files_added", "files_removed", "files").rows() == [(1, 0, 1), (1, 0, 2)]
    assert rows_read.select("records_added", "records_removed").rows() == [(10, 0), changed]
    assert rows_read["records"].to_list() == rows


def test_rows_are_unknown_from_where_a_file_does_not_tell() -> None:
    story = Story().append(10).append(None).append(5)
    rows = views.partitions.history.partition_history(story.files(), story.lifetimes(), story.frame(), "month=1")
    assert rows["records"].to_list() == [10, None, None]
    assert rows["records_added"].to_list() == [10, None, 5]


def test_what_was_there_before_the_log_begins_counts_from_the_start() -> None:
    story = Story().append(10, size=MIB).append(5, size=MIB)
    lives = story.lifetimes().with_columns(added=pl.when(pl.col("added") == 0).then(None).otherwise("added"))
    rows = views.partitions.history.partition_history(
        story.files(), lives, story.frame().filter(pl.col("version") > 0), "month=1"
    )
    assert rows.select("version", "files", "bytes", "records").rows() == [(1, 2, 2 * MIB, 15)]
