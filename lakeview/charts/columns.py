"""NULL_SHARES_BY_VERSION to a heatmap: a row a column, a cell a version, stronger is a larger share of nulls."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

import altair as alt
import polars as pl

from lakeview.charts.marks import picks, short_label_axis, texts, tooltips
from lakeview.charts.palette import palette
from lakeview.charts.theme import AnyChart, finish_chart, layer_charts
from lakeview.views.units import format_moment, format_percent, format_share, format_version

_MOST_COLUMNS = 40
_NAMED_VERSIONS = 6
_NAMED_SPAN = 4
"""A span of so many versions before a column existed has room for its name."""


def null_heatmap(
    shares: pl.DataFrame,
    *,
    selection: tuple[str, int] | None = None,
    first: Mapping[str, int | None] = MappingProxyType({}),
    repaired_loads: Collection[int] = (),
    dark: bool = False,
) -> list[AnyChart]:
    """One chart to be stacked: outlined where a column did not exist yet, a cross where its share is far from usual,
    red unless it is one of the `repaired_loads`; its sign where it is a bound or of some files only, a dot where it is
    unknown.

    The first _MOST_COLUMNS columns, those with a cross before the others; [] without rows. A click picks `column` and
    `commit`, a version as text; the cell `selection` has a frame. `first`: the version that first had a column, where
    older files lack it.
    """
    if shares.is_empty():
        return []
    p = palette(dark)
    by_column = shares.group_by("column", maintain_order=True).agg(pl.col("unusual").any())
    top = by_column.with_row_index("place").sort("unusual", descending=True, maintain_order=True).head(_MOST_COLUMNS)
    columns = top.sort("place")["column"].to_list()
    rows = shares.filter(pl.col("column").is_in(columns))
    versions = rows.unique("version", maintain_order=True).sort("timestamp", nulls_last=True, maintain_order=True)
    labels = texts(versions["version"], format_version).to_list()
    cells = pl.DataFrame(
        {
            "column": rows["column"],
            "version": texts(rows["version"], format_version),
            "commit": rows["version"].cast(pl.String),
            "committed": texts(rows["timestamp"], format_moment),
            "value": rows["null_share"],
            "share": [format_share(*pair) for pair in rows.select("null_share", "mark").iter_rows()],
            "usual": texts(rows["usual"], format_percent),
            "unusual": rows["unusual"],
            "repaired": rows["version"].is_in(list(repaired_loads)),
            "mark": rows["mark"].fill_null(""),
        }
    )
    every = max(1, -(-len(labels) // _NAMED_VERSIONS))
    ticks = [v for i, v in enumerate(labels) if i % every == 0]
    x = alt.X(
        "version:N",
        sort=None,
        axis=alt.Axis(title=None, values=ticks, labelAngle=0, domain=False, labelOverlap="greedy"),
        scale=alt.Scale(domain=labels, paddingInner=0, paddingOuter=0),
    )
    y = alt.Y(
        "column:N",
        sort=None,
        axis=short_label_axis(columns),
        scale=alt.Scale(domain=columns, paddingInner=0, paddingOuter=0),
    )
    fields = (("column", "column"), ("version", "version"), ("committed", "committed, UTC"), ("share", "null"))
    tooltip = tooltips((*fields, ("usual", "expected")))
    non_nulls = cells.drop_nulls("value")
    absent = _before_columns(cells, labels, first)
    scale = alt.Scale(domain=[0, 1], range=[p.zero, *p.sequential[2:]], type="sqrt")
    layers: list[AnyChart] = [
        alt.Chart(non_nulls)
        .mark_rect(stroke=p.page, strokeWidth=1)
        .encode(x=x, y=y, color=alt.Color("value:Q", scale=scale)),
        alt.Chart(non_nulls.filter(pl.col("mark") != ""))
        .mark_text(fontSize=9, color=p.muted)
        .encode(x=x, y=y, text="mark:N"),
        alt.Chart(non_nulls.filter("unusual"))
        .mark_rect(stroke=p.page, strokeWidth=1)
        .encode(x=x, y=y, color=alt.when(alt.datum.repaired).then(alt.value(p.orange)).otherwise(alt.value(p.red))),
        alt.Chart(non_nulls.filter("unusual"))
        .mark_text(text="\N{MULTIPLICATION X}", color=p.page, fontSize=10)
        .encode(x=x, y=y),
        alt.Chart(cells.filter(pl.col("value").is_null()))
        .mark_point(filled=True, size=8, color=p.gray)
        .encode(x=x, y=y),
        alt.Chart(absent).mark_rect(stroke=p.grid, strokeWidth=1, filled=False).encode(x=x, y=y),
        alt.Chart(absent.drop_nulls("text")).mark_text(fontSize=9, color=p.muted).encode(x=x, y=y, text="text:N"),
        # above the marks in a cell: the tooltip and the click are those of the whole cell
        alt.Chart(cells).mark_rect(opacity=0).encode(x=x, y=y, tooltip=tooltip).add_params(picks("column", "commit")),
    ]
    if selection is not None:
        cell = cells.filter(pl.col("column") == selection[0], pl.col("commit") == str(selection[1]))
        layers.insert(-1, alt.Chart(cell).mark_rect(filled=False, stroke=p.blue, strokeWidth=2).encode(x=x, y=y))
    return [finish_chart(layer_charts(*layers), p, height=18 * len(columns))]


def _before_columns(cells: pl.DataFrame, labels: list[str], since: Mapping[str, int | None]) -> pl.DataFrame:
    """`column, version, text`: the versions before the first that has a column; `text` names them, in the middle."""
    order = pl.DataFrame({"version": labels}).with_row_index("place")
    first = cells.join(order, on="version").group_by("column", maintain_order=True).agg(pl.col("place").min())
    first = first.filter(pl.col("place") > 0).join(order, on="place").rename({"version": "since", "place": "first"})
    before = first.join(order, how="cross").filter(pl.col("place") < pl.col("first"))
    middle = (pl.col("place") == (pl.col("first") - 1) // 2) & (pl.col("first") >= _NAMED_SPAN)
    names = {column: format_version(version) for column, version in since.items() if version is not None}
    name = pl.col("column").replace_strict(names, default=pl.col("since"), return_dtype=pl.String)
    text = pl.when(middle).then(pl.concat_str(pl.lit("before "), name))
    return before.select("column", "version", text=text)
