"""Every chart, in both themes: it compiles, holds no more marks than a browser likes, and says what it must."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import altair as alt
import polars as pl
import pytest
import vl_convert

from lakeview import charts, views
from lakeview.charts.palette import DARK, LIGHT, palette
from lakeview.charts.theme import AnyChart, byte_unit, count_unit, finish_chart, time_domain
from lakeview.model.column_values import format_expression
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.frames import COMMITS, FILES, VERSIONS
from lakeview.model.schema import Schema
from tests.charts.drawing import check_drawn, drawn, mark_counts, silent_fields
from tests.views.story import START, Story, flights

MOST_MARKS = 5000


@pytest.fixture(scope="module")
def story() -> Story:
    return flights()


@pytest.fixture(scope="module")
def line(story: Story) -> pl.DataFrame:
    return views.timeline.commits.timeline(story.frame(), story.lifetimes())


@pytest.fixture(scope="module")
def ribbon(story: Story) -> pl.DataFrame:
    return views.timeline.readability.readability(
        story.versions({**dict.fromkeys(range(12), "cleaned"), 50: "a file is missing"})
    )


def nulls() -> pl.DataFrame:
    rows = [
        (column, v, START + timedelta(days=v), None if v == 3 else 0.9 if v == 5 else 0.02, True, "", 0.02, v == 5)
        for column in ("dep_delay", "^x$")
        for v in range(12)
    ]
    return pl.DataFrame(rows, schema=views.schema.null_shares.NULL_SHARES_BY_VERSION, orient="row")


def every_chart(story: Story, line: pl.DataFrame, ribbon: pl.DataFrame, dark: bool) -> dict[str, list[AnyChart]]:
    sizes = views.partitions.sizes.partition_sizes(story.snapshot())
    arrivals = views.partitions.writes.partition_arrivals(sizes, story.files(), story.lifetimes(), line)
    writes = views.partitions.writes.partition_writes(story.files(), story.lifetimes(), line)
    before = Schema((Field("carrier", PrimitiveType("string"), id=1),))
    after = Schema((Field("airline", PrimitiveType("string"), id=1), Field("x", PrimitiveType("long"), id=2)))
    return {
        "timeline": charts.timeline.timeline_charts(
            line, views.timeline.events.events(line), ribbon, dark=dark, version=61
        ),
        "small timeline": charts.timeline.timeline_charts(
            line, views.timeline.events.events(line), ribbon, dark=dark, small=True
        ),
        "sizes": charts.files.size_histogram(views.files.sizes.file_sizes(story.files()), dark=dark),
        "partitions": charts.partitions.partition_bars(sizes, arrivals=arrivals, dark=dark),
        "writes": charts.partitions.partition_writes(writes, dark=dark),
        "nulls": charts.columns.null_heatmap(nulls(), dark=dark),
        "schema": [charts.compare.schema_diff_chart(views.schema.diff.diff_schemas(before, after), dark=dark)],
        "same schema": [charts.compare.schema_diff_chart(views.schema.diff.diff_schemas(after, after), dark=dark)],
    }


def parts(spec: Any, key: str) -> Iterator[Any]:
    """Every value under a key, anywhere in a specification."""
    if isinstance(spec, dict):
        if key in spec:
            yield spec[key]
        for value in spec.values():
            yield from parts(value, key)
    elif isinstance(spec, list):
        for value in spec:
            yield from parts(value, key)


def marks_of(chart: AnyChart) -> int:
    """How many marks a browser makes of it: one a row and layer, but one for a whole line or area."""
    spec = chart.to_dict()
    sizes = {name: len(rows) for name, rows in spec["datasets"].items()}
    kinds = [(layer["mark"]["type"], layer["data"]["name"]) for layer in spec.get("layer", [spec])]
    return sum(1 if kind in ("line", "area") else sizes[name] for kind, name in kinds)


def rows_of(chart: AnyChart) -> list[dict[str, Any]]:
    return [row for rows in chart.to_dict().get("datasets", {}).values() for row in rows]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.slow
def test_every_chart_compiles_in_both_themes_and_in_their_own_colours(
    story: Story, line: pl.DataFrame, ribbon: pl.DataFrame, dark: bool
) -> None:
    other = LIGHT if dark else DARK
    strange = {other.blue, other.green, other.orange, other.violet, other.red, other.page, other.text}
    for name, panels in every_chart(story, line, ribbon, dark).items():
        assert panels, name
        for panel in panels:
            spec = panel.to_dict()
            assert spec["config"]["title"]["color"] == palette(dark).text, name
            assert spec["config"]["mark"]["tooltip"] is False, "Streamlit's default names the fields of every mark"
            assert spec["padding"] == {"left": 0, "right": 6, "top": 2, "bottom": 2}, name
            text = json.dumps(spec)
            assert not [colour for colour in strange if colour in text], name
            assert silent_fields(panel) == set(), name
            if not dark:  # the same marks in other colours
                check_drawn(spec)


@pytest.mark.slow
def test_panels_stack_to_one_picture(story: Story, line: pl.DataFrame, ribbon: pl.DataFrame) -> None:
    panels = charts.timeline.timeline_charts(line, views.timeline.events.events(line), ribbon, pick=False, key=True)
    whole = charts.theme.stack_charts(panels, width=700)
    spec = whole.to_dict()
    assert len(spec["vconcat"]) == len(panels)
    assert "Can it still be read?   ▂ gone v0\N{EN DASH}v11" in spec["vconcat"][-1]["title"]
    check_drawn(spec)
    assert "config" in panels[0].to_dict()  # the panels themselves are left as they were


def test_timeline_panels_share_one_time_domain_and_only_the_last_has_an_axis(
    line: pl.DataFrame, ribbon: pl.DataFrame
) -> None:
    panels = charts.timeline.timeline_charts(line, views.timeline.events.events(line), ribbon)
    domains = {str(x["scale"]["domain"]) for p in panels for x in parts(p.to_dict(), "x") if "scale" in x}
    assert len(domains) == 1
    scales = vl_convert.vegalite_to_vega(panels[-1].to_dict())["scales"]
    (of_ribbon,) = (scale["domain"] for scale in scales if scale["name"] == "x")
    assert list(of_ribbon) == ["signal"], "the browser warns of layers with domains of their own"
    axes = [any(x["axis"].get("labels") for x in parts(p.to_dict(), "x") if "axis" in x) for p in panels]
    assert axes == [False] * (len(panels) - 1) + [True]
    without_ribbon = charts.timeline.timeline_charts(line)
    assert any(x["axis"]["labels"] for x in parts(without_ribbon[-1].to_dict(), "x"))


@pytest.mark.parametrize(
    ("options", "titles"),
    [
        pytest.param({}, ["Rows, million", "Live bytes, GiB", "Rows added and removed, million", "Commits"], id="rows"),
        pytest.param(
            {"measure": "bytes"},
            ["Live bytes, GiB", "Rows, million", "Bytes added and removed, MiB", "Commits"],
            id="bytes",
        ),
        pytest.param(
            {"measure": "files"}, ["Files", "Live bytes, GiB", "Files added and removed", "Commits"], id="files"
        ),
        pytest.param({"small": True}, ["Rows, million", "Files"], id="small"),
        pytest.param({"measure": None}, ["Rows, million", "Files", "Commits"], id="without flows"),
    ],
)
def test_the_measure_leads(line: pl.DataFrame, options: dict[str, Any], titles: list[str]) -> None:
    assert [p.to_dict()["title"] for p in charts.timeline.timeline_charts(line, **options)] == titles


def test_a_click_picks_the_version_as_text(line: pl.DataFrame) -> None:
    wide = line.with_columns(version=pl.col("version") + 9_007_199_254_740_993)
    for panel in charts.timeline.timeline_charts(wide):
        (param,) = panel.to_dict()["params"]
        assert (param["name"], param["select"]["fields"]) == ("picked", ["version"])
        versions = [row["version"] for row in rows_of(panel) if "version" in row]
        assert str(9_007_199_254_740_993 + 35) in versions
        texts = [row["version_text"] for row in rows_of(panel) if "version_text" in row]
        assert "90071…41028 · 9007199254741028" in texts
    assert "params" not in charts.timeline.timeline_charts(line, pick=False)[0].to_dict()


def test_marks_of_loads_writers_versions_and_bands_pick_their_commit(
    story: Story, line: pl.DataFrame, ribbon: pl.DataFrame
) -> None:
    cohorts = views.timeline.lifetimes.life_cohorts(views.timeline.lifetimes.file_lives(story.lifetimes(), line))
    panels = [
        *charts.lanes.writer_lanes(views.timeline.writers.writer_marks(line)),
        *charts.lifetimes.life_bands(cohorts, story.now),
        *charts.quality.load_trend_chart(views.quality.trends.rows_trend(line), "x", "count"),
        charts.ribbon.ribbon_chart(ribbon),
    ]
    for panel in panels:
        (param,) = panel.to_dict()["params"]
        (field,) = param["select"]["fields"]
        picks = {row[field] for row in rows_of(panel) if field in row}
        assert picks
        assert picks <= set(line["version"].cast(pl.String)), "ids of 64 bits are text"


def test_tooltips_say_unknown_never_zero() -> None:
    story = Story().append(None, user=None, engine=None).append(10)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    commits = [row for row in rows_of(charts.timeline.timeline_charts(line)[0]) if row.get("version") == "0"]
    assert commits[0]["rows"] == "unknown"
    assert commits[0]["writer"] == "unknown"
    assert commits[0]["value"] is None
    added = [row["change"] for row in rows_of(charts.timeline.timeline_charts(line)[0]) if row.get("version") == "1"]
    assert added[0] == "+10", "nothing was removed"


def test_a_load_that_stands_out_has_its_own_lane_and_shape(line: pl.DataFrame) -> None:
    rows = {row["version"]: row for row in rows_of(charts.timeline.timeline_charts(line)[-1]) if "lane" in row}
    assert (rows["35"]["lane"], rows["35"]["shape"], rows["35"]["color"]) == ("bad load", "cross", LIGHT.orange)
    assert (rows["55"]["lane"], rows["55"]["color"]) == ("bad load", LIGHT.red)
    assert (rows["14"]["lane"], rows["14"]["shape"], rows["14"]["color"]) == ("schema", "triangle-up", LIGHT.violet)
    assert (rows["26"]["lane"], rows["26"]["color"]) == ("maint.", LIGHT.gray)
    events = views.timeline.events.events(line)
    words = dict(zip(events["version"], charts.event_labels.event_colours(events, LIGHT), strict=True))
    assert (words[35], words[55]) == (LIGHT.orange_text, LIGHT.red_text), "repaired, and open"


def without_dimming(panel: AnyChart) -> dict[str, Any]:
    """The rows of a panel but for how pale each is, by what the rows are."""
    rows = [{name: value for name, value in row.items() if name != "opacity"} for row in rows_of(panel)]
    return {"rows": sorted(map(repr, rows)), "axes": [x["scale"] for x in parts(panel.to_dict(), "x") if "scale" in x]}


@pytest.mark.parametrize("measure", ["rows", "bytes", "files"])
def test_filters_make_marks_pale_and_change_nothing_else(line: pl.DataFrame, measure: str) -> None:
    whole = charts.timeline.timeline_charts(line, measure=measure)
    dimmed = charts.timeline.timeline_charts(line, measure=measure, matching=pl.Series([35]))
    assert [without_dimming(panel) for panel in dimmed] == [without_dimming(panel) for panel in whole]
    for panel in dimmed[2:]:  # what was added and removed, and the commits
        bright = {row["version"] for row in rows_of(panel) if row.get("opacity") == 1}
        pale = {row["version"] for row in rows_of(panel) if row.get("opacity", 1) < 1}
        assert bright == {"35"}
        assert pale
    assert all(row.get("opacity", 1) == 1 for panel in whole for row in rows_of(panel))


def test_a_range_of_time_is_a_band_behind_every_panel_which_stays_as_wide(line: pl.DataFrame) -> None:
    first, last = line["timestamp"][10], line["timestamp"][20]
    whole, banded = charts.timeline.timeline_charts(line), charts.timeline.timeline_charts(line, span=(first, last))
    for before, after in zip(whole, banded, strict=True):
        marks_before = rows_of(before)
        added = [row for row in rows_of(after) if row not in marks_before]
        assert [sorted(row) for row in added] == [["timestamp", "until"]]
    assert charts.timeline.timeline_charts(line, span=(START - timedelta(days=9), START - timedelta(days=8)))


def test_commits_at_one_time_are_one_step_of_the_state_which_never_goes_back() -> None:
    story = Story()
    for _ in range(6):
        story.append(10)
    times = [START + timedelta(hours=hours) for hours in (0, 3, 3, 3, 1, 4)]  # a clock that went back
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes()).with_columns(
        timestamp=pl.Series(times, dtype=pl.Datetime("ms", "UTC"))
    )
    panel = charts.timeline.timeline_charts(line, pick=False)[0]
    states = {row["version"]: row for row in rows_of(panel) if "value" in row}
    assert {version: row["value"] for version, row in states.items()} == {"0": 10, "4": 50, "5": 60}
    drawn_at = [row["timestamp"] for row in states.values()]
    assert drawn_at == sorted(set(drawn_at))
    assert states["4"]["committed"] == "2025-12-01 05:00"  # as recorded
    (area,) = [layer for layer in panel.to_dict()["layer"] if layer["mark"]["type"] == "area"]
    assert area["encoding"]["y"]["stack"] is None


def test_no_tooltip_has_a_field_without_words(line: pl.DataFrame, ribbon: pl.DataFrame) -> None:
    panels = charts.timeline.timeline_charts(line, views.timeline.events.events(line), ribbon)
    panels += charts.lanes.writer_lanes(views.timeline.writers.writer_marks(line))
    for panel in panels:
        spec = panel.to_dict()
        for layer in spec["layer"]:
            fields = [tip["field"] for tip in layer["encoding"].get("tooltip", [])]
            rows = spec["datasets"][layer.get("data", spec.get("data"))["name"]]
            assert not [row for row in rows if any(not row[field] for field in fields)]
    notes = {row["version"]: row["operation"] for row in rows_of(panels[1]) if "operation" in row}
    assert notes["35"].startswith("WRITE; ")
    assert notes["34"] == "WRITE"


def test_maintenance_adds_no_rows(line: pl.DataFrame) -> None:
    flows = rows_of(charts.timeline.timeline_charts(line)[2])
    assert "26" not in {row["version"] for row in flows if "value" in row and "version" in row}
    files = rows_of(charts.timeline.timeline_charts(line, measure="files")[2])
    assert {row["color"] for row in files if row.get("version") == "26"} == {LIGHT.gray}


def test_names_of_events_do_not_lie_on_each_other(line: pl.DataFrame) -> None:
    crowded = views.timeline.events.events(line).with_columns(
        timestamp=pl.lit(START + timedelta(days=100), pl.Datetime("ms", "UTC"))
    )
    rows = rows_of(charts.timeline.timeline_charts(line, crowded)[0])
    assert sorted(row["row"] for row in rows) == [0, 1, 2]  # three find room, the rules tell of the others


def test_the_name_of_a_change_of_several_columns_is_whole(line: pl.DataFrame) -> None:
    event = (
        views.timeline.events.events(line).head(1).with_columns(label=pl.lit("flight integer \u2192 long and 3 more"))
    )
    rows = rows_of(charts.timeline.timeline_charts(line, event)[0])
    assert [row["label"] for row in rows] == ["flight integer \u2192 long and 3 more"]


def test_events_outside_the_time_shown_leave_no_strip(line: pl.DataFrame) -> None:
    later = views.timeline.events.events(line).with_columns(pl.col("timestamp") + timedelta(days=4000))
    assert len(charts.timeline.timeline_charts(line, later)) == len(charts.timeline.timeline_charts(line))


@pytest.mark.parametrize("commits", [1, 2])
def test_a_short_history_is_drawn(commits: int) -> None:
    story = Story()
    for _ in range(commits):
        story.append(10)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    panels = charts.timeline.timeline_charts(
        line, views.timeline.events.events(line), views.timeline.readability.readability(story.versions()), pick=False
    )
    assert mark_counts(charts.theme.stack_charts(panels).to_dict())["rect"] == commits  # cells of the ribbon


def test_nothing_gives_nothing_to_draw() -> None:
    empty = views.timeline.commits.timeline(pl.DataFrame(schema=COMMITS))
    assert (
        charts.timeline.timeline_charts(
            empty,
            views.timeline.events.events(empty),
            views.timeline.readability.readability(pl.DataFrame(schema=VERSIONS)),
        )
        == []
    )
    assert charts.files.size_histogram(pl.DataFrame(schema=views.files.sizes.FILE_SIZES)) == []
    assert charts.partitions.partition_bars(pl.DataFrame(schema=views.partitions.sizes.PARTITION_SIZES)) == []
    assert charts.partitions.partition_writes(pl.DataFrame(schema=views.partitions.writes.PARTITION_WRITES)) == []
    assert charts.columns.null_heatmap(pl.DataFrame(schema=views.schema.null_shares.NULL_SHARES_BY_VERSION)) == []
    with pytest.raises(ValueError, match="at least one moment"):
        time_domain(empty["timestamp"])


def test_commits_that_moved_nothing_lie_on_a_scale_that_goes_somewhere() -> None:
    story = Story().append(0)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    flows = charts.timeline.timeline_charts(line)[2]
    assert "0.000000" not in drawn(flows, 400)


@pytest.mark.parametrize("measure", ["rows", "files"])
def test_the_axis_of_one_file_or_row_has_no_half_of_it(measure: str) -> None:
    story = Story().append(1)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    for panel in charts.timeline.timeline_charts(line, measure=measure)[:3]:
        assert ">0.5<" not in drawn(panel, 400)


def test_loads_milliseconds_apart_fill_their_time_axis() -> None:
    moments = pl.Series([START + timedelta(milliseconds=7 * n) for n in range(30)])
    first, last = time_domain(moments)
    assert (last - first) < timedelta(milliseconds=7 * 30)


@pytest.mark.parametrize("apart", [1, 7, 100, 900, 5_000, 3_600_000])
def test_labels_of_the_time_axis_tell_its_moments_apart(apart: int) -> None:
    story = Story()
    for _ in range(8):
        story.append(10)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes()).with_columns(
        timestamp=(pl.lit(START) + pl.duration(milliseconds=pl.int_range(8) * apart)).cast(pl.Datetime("ms", "UTC"))
    )
    svg = drawn(charts.timeline.timeline_charts(line)[-1], 600)
    labels = re.findall(r">([^<>]*(?:\d\d:\d\d|\.\d\d\d)[^<>]*)<", svg)
    assert len(set(labels)) == len(labels) > 1
    assert apart < 900 or not [label for label in labels if "." in label], "no milliseconds where there are none"


def test_an_empty_table_still_shows_its_bins() -> None:
    panels = charts.files.size_histogram(views.files.sizes.file_sizes(pl.DataFrame(schema=FILES)))
    assert [p.to_dict()["title"] for p in panels] == ["Files", "Bytes, B"]


def test_a_histogram_of_few_files_counts_no_half_of_one() -> None:
    files, _ = charts.files.size_histogram(views.files.sizes.file_sizes(Story().append(1, size=1000).files()))
    labels = re.findall(r">([0-9.]+)<", drawn(files, 600))
    assert {"0", "1"} <= set(labels)
    assert not [label for label in labels if "." in label]


def test_a_title_shows_what_cannot_be_seen_in_a_name() -> None:
    chart = finish_chart(
        alt.Chart(pl.DataFrame({"a": [1]})).mark_bar(), LIGHT, height=20, title="\N{RIGHT-TO-LEFT OVERRIDE}gpj"
    )
    assert chart.to_dict()["title"] == "\\u202egpj"


@pytest.mark.parametrize(("is_finding", "colour"), [(True, LIGHT.orange), (False, LIGHT.blue)])
def test_small_files_are_orange_where_they_are_a_finding(is_finding: bool, colour: str) -> None:
    bins = views.files.sizes.file_sizes(Story().append(1, size=1000).files())
    for panel in charts.files.size_histogram(bins, is_finding=is_finding):
        assert {row["color"] for row in rows_of(panel) if row.get("small") and row["value"]} == {colour}


def test_a_long_history_is_thinned_and_keeps_its_envelope() -> None:
    many = 30_000
    n = pl.int_range(many)
    line = (
        pl.DataFrame(schema=views.timeline.commits.TIMELINE)
        .clear(many)
        .with_columns(
            version=n,
            timestamp=(pl.lit(START) + pl.duration(minutes=n * 7)).cast(pl.Datetime("ms", "UTC")),
            operation=pl.lit("WRITE"),
            lane=pl.when(n % 500 == 0).then(pl.lit("maintenance")).otherwise(pl.lit("append")),
            records=pl.when(n == 17_003).then(10**12).otherwise(n),
            bytes=n,
            files=n,
            records_added=pl.lit(1, pl.Int64),
            data_change=pl.lit(value=True),
            suspicious=n == 12_345,
        )
    )
    ribbon = pl.DataFrame(
        {
            "version": line["version"],
            "timestamp": line["timestamp"],
            "until": line["timestamp"].shift(-1),
            "state": pl.select(pl.when(n < 100).then(pl.lit("gone")).otherwise(pl.lit("kept"))).to_series(),
            "reason": pl.Series([None] * many, dtype=pl.String),
        }
    )
    checkpoints = pl.DataFrame({"version": pl.int_range(0, many, 10, eager=True)})
    panels = charts.timeline.timeline_charts(
        line, views.timeline.events.events(line), ribbon, brush=True, checkpoints=checkpoints
    )
    assert sum(marks_of(panel) for panel in panels) <= MOST_MARKS
    dimmed = charts.timeline.timeline_charts(
        line, views.timeline.events.events(line), ribbon, checkpoints=checkpoints, matching=line["version"][::3]
    )
    assert sum(marks_of(panel) for panel in dimmed) <= MOST_MARKS
    (brush,) = [p for panel in panels for p in panel.to_dict().get("params", []) if p["name"] == "brushed"]
    assert brush["select"] == {"type": "interval", "encodings": ["x"]}
    takers = [layer["mark"]["type"] for panel in panels for layer in panel.to_dict()["layer"] if "name" in layer]
    assert "area" not in takers, "a click on the area would pick the first version"
    assert [row for row in rows_of(panels[-2]) if row.get("lane") == "checkpt."]
    assert views.timeline.downsampling.state_points(line, "records")["records"].max() == 10**12
    assert (
        views.timeline.downsampling.flow_sums(line)["records_added"].sum() == many - 60
    )  # maintenance among loads writes rows again
    assert (
        views.timeline.downsampling.flow_sums(line)["files_added"].null_count()
        == views.timeline.downsampling.flow_sums(line).height
    )
    assert views.timeline.downsampling.lane_marks(line).filter("suspicious")["version"].to_list() == [12_345]
    assert views.timeline.downsampling.lane_marks(line)["commits"].sum() == many
    assert [row["versions"] for row in rows_of(panels[-1]) if "versions" in row] == [
        "v0\N{EN DASH}v99",
        "v100\N{EN DASH}v29999",
    ]


def test_many_partitions_are_the_largest_and_the_title_says_so() -> None:
    many = 5000
    sizes = (
        pl.DataFrame(schema=views.partitions.sizes.PARTITION_SIZES)
        .clear(many)
        .with_columns(
            partition_text=format_expression("day={}", pl.int_range(many)),
            files=pl.lit(1, pl.Int64),
            bytes=pl.int_range(many),
            records=pl.int_range(many),
            median_size=pl.lit(1, pl.Int64),
            share=pl.lit(0.0),
        )
    )
    panels = charts.partitions.partition_bars(sizes)
    assert panels[0].to_dict()["title"].endswith("the 200 largest of 5,000")
    assert max(len(rows) for rows in panels[0].to_dict()["datasets"].values()) == 200


def test_a_late_partition_is_named_and_orange(story: Story) -> None:
    sizes = views.partitions.sizes.partition_sizes(story.snapshot())
    arrivals = views.partitions.writes.partition_arrivals(sizes, story.files(), story.lifetimes(), story.frame())
    panels = charts.partitions.partition_bars(sizes, arrivals=arrivals)
    assert [silent_fields(panel) for panel in panels] == [set()] * 3
    rows = {r["partition"]: r for r in rows_of(panels[0]) if "partition" in r}
    assert (rows["month=9"]["words"], rows["month=9"]["color"]) == ("66 days late", LIGHT.orange)
    assert (rows["month=9"]["title"], rows["month=1"]["title"]) == ("month=9; 66 days late", "month=1")
    assert (rows["month=12"]["file_color"], rows["month=1"]["file_color"]) == (LIGHT.orange, LIGHT.blue)


def test_long_names_of_partitions_neither_touch_nor_push_their_panel_aside(story: Story) -> None:
    for panel in charts.partitions.partition_bars(views.partitions.sizes.partition_sizes(story.snapshot())):
        axes = [axis for axis in parts(panel.to_dict(), "axis") if axis and axis.get("labelOverlap") == "greedy"]
        assert axes
        assert all(axis["labelBound"] and axis["labelSeparation"] for axis in axes)


def test_partitions_of_unknown_rows_are_drawn_by_bytes() -> None:
    sizes = views.partitions.sizes.partition_sizes(Story().append(None).append(5, month=2).snapshot())
    assert charts.partitions.partition_bars(sizes)[0].to_dict()["title"].startswith("Bytes, MiB")


def test_histogram_labels_name_each_unit_once(story: Story) -> None:
    axis = next(
        a
        for a in parts(
            charts.files.size_histogram(views.files.sizes.file_sizes(story.files()))[1].to_dict(), "labelExpr"
        )
    )
    assert '"<64 KiB": "<64"' in axis
    assert '"64\N{EN DASH}128 KiB": "64 KiB"' in axis
    assert '"1\N{EN DASH}2 MiB": "1 MiB"' in axis
    assert '"2\N{EN DASH}4 MiB": "2"' in axis


def test_null_shares_far_from_usual_carry_a_cross_and_unknown_ones_a_dot() -> None:
    (chart,) = charts.columns.null_heatmap(nulls())
    assert LIGHT.red in chart.to_json()
    layers = chart.to_dict()["layer"]
    kinds = ["rect", "text", "rect", "text", "point", "rect", "text", "rect"]
    assert [layer["mark"]["type"] for layer in layers] == kinds
    (framed,) = charts.columns.null_heatmap(nulls(), selection=("dep_delay", 4))
    assert [layer["mark"].get("stroke") for layer in framed.to_dict()["layer"]].count(LIGHT.blue) == 1
    shares = {row["share"] for row in rows_of(chart) if "share" in row}
    assert shares == {"2.0 %", "90.0 %", "unknown"}


def test_the_cross_of_a_repaired_load_is_not_red() -> None:
    (chart,) = charts.columns.null_heatmap(nulls(), repaired_loads=[5])
    assert {row["repaired"] for row in rows_of(chart) if row.get("unusual")} == {True}
    colours = [layer["encoding"]["color"] for layer in chart.to_dict()["layer"] if "color" in layer["encoding"]]
    assert colours[-1]["condition"] == [{"test": "datum.repaired", "value": LIGHT.orange}]
    assert colours[-1]["value"] == LIGHT.red


def test_the_versions_before_a_column_are_outlined_and_named() -> None:
    every = pl.DataFrame({"column": "old", "version": range(6), "null_share": 0.0})
    shares = pl.concat([every, every.tail(1).with_columns(column=pl.lit("new"))])
    empty = pl.DataFrame(schema=views.schema.null_shares.NULL_SHARES_BY_VERSION)
    cells = pl.concat([empty, shares], how="diagonal_relaxed").select(empty.columns)
    (chart,) = charts.columns.null_heatmap(cells)
    (heatmap,) = charts.columns.null_heatmap(cells, first={"new": 4})  # a version that is no load
    assert {row["text"] for row in rows_of(heatmap) if row.get("text")} == {"before v4"}
    before = [row for row in rows_of(chart) if "text" in row]
    assert {(row["column"], row["version"]) for row in before} == {("new", f"v{v}") for v in range(5)}
    assert {row["text"] for row in before if row["text"]} == {"before v5"}


def test_every_partition_names_its_bad_loads_and_the_latest_open_ones_first() -> None:
    def cell(partition: str, month: int, *loads: list[str]) -> tuple[Any, ...]:
        day = datetime(2026, month, 1, tzinfo=UTC)
        return (partition, day, day + timedelta(days=14), 1, 1, 1, 1, 2, *loads)

    cells = [
        cell("a", 1, [], ["v2"]),
        cell("b", 8, [], ["v29"]),
        cell("b", 9, ["v73", "v72", "v71"], []),
        cell("b", 11, ["v75"], []),
        cell("c", 11, [], []),
    ]
    writes = pl.DataFrame(cells, schema=views.partitions.writes.PARTITION_WRITES, orient="row")
    (chart,) = charts.partitions.partition_writes(writes)
    labels = {row["partition"]: (row["text"], row["color"]) for row in rows_of(chart) if "text" in row}
    assert labels == {
        "a": ("repaired bad load v2", LIGHT.orange_text),
        "b": ("bad load v75, v73, v72, \N{HORIZONTAL ELLIPSIS}; repaired v29", LIGHT.red_text),
    }


@pytest.mark.parametrize(
    ("largest", "expected"),
    [
        pytest.param(None, (1.0, "Rows"), id="unknown"),
        pytest.param(1999, (1.0, "Rows"), id="few"),
        pytest.param(2000, (1e3, "Rows, thousand"), id="thousands"),
        pytest.param(61_500_000, (1e6, "Rows, million"), id="millions"),
        pytest.param(4e9, (1e9, "Rows, billion"), id="billions"),
    ],
)
def test_units_of_counts_go_to_the_title(largest: float | None, expected: tuple[float, str]) -> None:
    assert count_unit(largest, "Rows") == expected


def test_units_of_bytes_are_binary() -> None:
    assert byte_unit(9_416_691_835, "Live bytes") == (float(1 << 30), "Live bytes, GiB")
    assert byte_unit(100, "Bytes") == (1.0, "Bytes, B")


def test_panels_of_partitions_have_one_scale(story: Story) -> None:
    """Vega-Lite warns of padding between points."""
    sizes = views.partitions.sizes.partition_sizes(story.snapshot())
    panels = [panel.to_dict() for panel in charts.partitions.partition_bars(sizes)]
    scales = [scale for panel in panels for scale in parts(panel, "scale") if scale and "paddingInner" in scale]
    assert {scale["type"] for scale in scales} == {"band"}


@pytest.mark.parametrize("partitions", [2, 60])
def test_a_click_on_any_panel_picks_the_partition(partitions: int) -> None:
    story = Story()
    for month in range(partitions):
        story.append(1, month=month)
    for panel in charts.partitions.partition_bars(views.partitions.sizes.partition_sizes(story.snapshot())):
        assert [param["select"]["fields"] for param in panel.to_dict()["params"]] == [["partition"]]


def test_a_commit_milliseconds_before_another_has_a_cell_of_the_ribbon() -> None:
    moments = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=300 * n, milliseconds=5 * m) for n, m in SCRIPT]
    ribbon = pl.DataFrame(
        {
            "version": range(len(SCRIPT)),
            "timestamp": moments,
            "until": [*moments[1:], None],
            "state": ["kept", "broken", "kept", "kept", "broken"],
            "reason": [None] * len(SCRIPT),
        },
        schema=views.timeline.readability.RIBBON,
    )
    cells = max(charts.ribbon.ribbon_chart(ribbon).to_dict()["datasets"].values(), key=len)
    spans = [datetime.fromisoformat(row["until"]) - datetime.fromisoformat(row["timestamp"]) for row in cells]
    assert min(spans) > timedelta(hours=12)
    versions = [row["versions"] for row in cells]
    assert versions == ["v2", "v4", "v0", "v3", "v1"], "narrow ones lie on top, and broken ones of them on others"


SCRIPT = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1))
"""Commits at the begin of two periods: days and milliseconds after the first."""
