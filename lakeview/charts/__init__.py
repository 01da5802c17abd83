"""Charts: a view's frame to Altair charts in lakeview's theme, light or dark. One file beside each view."""

from lakeview.charts.column_lives import column_lanes
from lakeview.charts.columns import null_heatmap
from lakeview.charts.compare import (
    partition_diff_chart,
    shift_chart,
)
from lakeview.charts.cost_of_history import history_cost_bars
from lakeview.charts.distributions import distribution_bars
from lakeview.charts.files import size_histogram
from lakeview.charts.lake import lake_bars
from lakeview.charts.lives import life_bands
from lakeview.charts.partition_maps import partition_calendar, partition_course, partition_heatmap, partition_treemap
from lakeview.charts.partitions import partition_bars, partition_writes
from lakeview.charts.physical import column_bars
from lakeview.charts.pruning import clustering_bars, clustering_course_chart, depth_chart, read_bars
from lakeview.charts.quality import TrendKind, load_trend_chart
from lakeview.charts.retention import retention_curves
from lakeview.charts.ribbon import ribbon_chart
from lakeview.charts.schema_diff import schema_diff_chart
from lakeview.charts.sharing import reads_by_day_bars
from lakeview.charts.theme import AnyChart, StackedChart, palette, stacked, words
from lakeview.charts.timeline import timeline_charts
from lakeview.charts.writers import writer_lanes

__all__ = [
    "AnyChart",
    "StackedChart",
    "TrendKind",
    "clustering_bars",
    "clustering_course_chart",
    "column_bars",
    "column_lanes",
    "depth_chart",
    "distribution_bars",
    "history_cost_bars",
    "lake_bars",
    "life_bands",
    "load_trend_chart",
    "null_heatmap",
    "palette",
    "partition_bars",
    "partition_calendar",
    "partition_course",
    "partition_diff_chart",
    "partition_heatmap",
    "partition_treemap",
    "partition_writes",
    "read_bars",
    "reads_by_day_bars",
    "retention_curves",
    "ribbon_chart",
    "schema_diff_chart",
    "shift_chart",
    "size_histogram",
    "stacked",
    "timeline_charts",
    "words",
    "writer_lanes",
]
