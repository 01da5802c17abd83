"""Tables and snapshots to pictures in a notebook: `import lakeview.notebook as nb`, and they draw themselves.

    import lakeview as lv
    import lakeview.notebook as nb

    table = lv.open_table("demo-lake/flights")
    table                          # facts and the timeline
    nb.timeline(table, measure="files")
    nb.schema_diff(table, 3, 41)

Every function returns one Altair chart; nothing reads a data file. Needs the extra `notebook` for the rich displays.
"""

from __future__ import annotations

import sys
from typing import Any

import polars as pl

from lakeview import charts, views
from lakeview.charts.theme import AnyChart, StackedChart
from lakeview.inspection.absent_columns import complete_statistics
from lakeview.inspection.frames import TableFrames
from lakeview.model.errors import LakeviewError
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.table import Table
from lakeview.views.schema.column_history import SchemaVersion

WIDTH = 780
"""How wide pictures are, in pixels, without the labels at their left."""

TABLES = {
    "lakeview.delta.table": "DeltaTable",
    "lakeview.iceberg.table": "IcebergTable",
    "lakeview.sharing.client.table": "SharedTable",
}
"""Where the classes of tables are, so that none is imported before it is used."""

SCHEMAS_READ = 50
"""Of a table with more schema changes the latest so many are named in the timeline."""


def timeline(
    table: Table, *, measure: str = "rows", small: bool = False, dark: bool = False, width: int = WIDTH
) -> StackedChart:
    """State, changes, commits and readability over the table's versions; `measure`: rows, bytes or files."""
    line = views.timeline.commits.timeline(table.history(), table.lifetimes(), arrivals=_arrivals(table))
    ribbon = views.timeline.readability.readability(table.versions())
    events = views.timeline.events.events(line, _schemas(table))
    panels = charts.timeline.timeline_charts(
        line, events, ribbon, dark=dark, measure=measure, small=small, key=True, pick=False
    )
    return _stack(panels, "The log tells about no commits", dark, width)


def files(snapshot: Snapshot | Table, *, dark: bool = False, width: int = WIDTH) -> StackedChart:
    """Sizes of the live files in doubling bins: how many, and how many bytes."""
    bins = views.files.sizes.file_sizes(_snapshot(snapshot).files)
    return _stack(charts.files.size_histogram(bins, dark=dark), "No files", dark, width)


def partitions(snapshot: Snapshot | Table, *, dark: bool = False, width: int = WIDTH) -> StackedChart:
    """What each partition holds: rows, its median file, its number of files; of a table also which came late."""
    now = _snapshot(snapshot)
    sizes, keys = views.partitions.sizes.partition_sizes(now), views.partitions.keys.partition_names(now)
    arrivals = None if isinstance(snapshot, Snapshot) else _arrivals(snapshot)
    panels = charts.partitions.partition_bars(sizes, keys=keys, arrivals=arrivals, dark=dark)
    return _stack(panels, "This table has no partitions", dark, width)


def partition_writes(table: Table, *, dark: bool = False, width: int = WIDTH) -> StackedChart:
    """When each partition was written."""
    snapshot, commits, lifetimes = table.snapshot(), table.history(), table.lifetimes()
    order = views.partitions.sizes.partition_sizes(snapshot)["partition_text"].drop_nulls().to_list()
    line = views.timeline.commits.timeline(commits, lifetimes)
    writes = views.partitions.writes.partition_writes(snapshot.files, lifetimes, line, partitions=order)
    keys = views.partitions.keys.partition_names(snapshot)
    panels = charts.partitions.partition_writes(writes, keys=keys, dark=dark)
    return _stack(panels, "The log does not tell when partitions were written", dark, width)


def nulls(table: Table, *, versions: int = 24, dark: bool = False, width: int = WIDTH) -> StackedChart:
    """Null shares by column over at most so many readable versions, from statistics alone."""
    readable = table.versions().filter("readable").reverse()
    moments = dict(readable.select("version", "timestamp").iter_rows())
    frames = TableFrames(table)  # whose statistics include files that were written before a column
    columns = ["path", "deletion_vector", "records", "deleted_records"]
    shares = [
        (v, moments[v], complete_statistics(frames, v), table.files(v, columns))
        for v in views.schema.columns.spread_evenly(list(moments), versions)
    ]
    panels = charts.columns.null_heatmap(views.schema.null_shares.null_shares_by_version(shares), dark=dark)
    return _stack(panels, "No statistics", dark, width)


def schema_diff(
    table: Table, before: int, after: int | None = None, *, dark: bool = False, width: int = WIDTH
) -> AnyChart:
    """What changed in the schema from one version to another (the latest)."""
    a, b = table.snapshot(before), table.snapshot(after)
    diff = views.schema.diff.diff_schemas(a.schema, b.schema)
    title = f"Schema, {views.units.format_version(a.version)} to {views.units.format_version(b.version)}"
    return charts.compare.schema_diff_chart(diff, title=title, dark=dark, width=width)


def register() -> bool:
    """Let tables and snapshots draw themselves in the running notebook; False outside of one."""
    # IPython is there if this runs in it: it is not imported for those who run plain Python
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    if ipython is None or shell is None:
        return False
    displays = shell.display_formatter.ipython_display_formatter
    displays.for_type(Snapshot, _display_snapshot)
    for module, name in TABLES.items():
        displays.for_type_by_name(module, name, _display_table)
    return True


def _display_table(table: Table) -> None:
    _display(table, timeline(table, small=True))


def _display_snapshot(snapshot: Snapshot) -> None:
    _display(snapshot, files(snapshot))


def _display(value: Any, chart: AnyChart | StackedChart) -> None:
    """The value's plain HTML, and under it the chart as the notebook's renderer draws it."""
    ipython: Any = sys.modules["IPython.display"]
    ipython.display(ipython.HTML(value._repr_html_()), chart)


def _snapshot(value: Snapshot | Table) -> Snapshot:
    return value if isinstance(value, Snapshot) else value.snapshot()


def _arrivals(table: Table) -> pl.DataFrame | None:
    """PARTITION_ARRIVALS where partitions can be a sequence in time: those of one key."""
    snapshot = table.snapshot()
    if views.partitions.keys.sequence_key(snapshot) is None:
        return None
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    return views.partitions.writes.partition_arrivals(sizes, snapshot.files, table.lifetimes(), table.history())


def _schemas(table: Table) -> list[SchemaVersion]:
    """The schemas the table had; those of versions that cannot be read any more are left out."""
    schemas: list[tuple[int, Any, Schema]] = []
    for version, timestamp in table.schemas().tail(SCHEMAS_READ).select("version", "timestamp").iter_rows():
        try:
            schemas.append((version, timestamp, table.snapshot(version).schema))
        except LakeviewError:
            continue
    return schemas


def _stack(panels: list[AnyChart], nothing: str, dark: bool, width: int) -> StackedChart:
    return charts.theme.stack_charts(panels or [charts.theme.words(nothing, dark=dark)], dark=dark, width=width)


register()
