"""COHORTS to lanes: what was written together lies as a band from its first day to its last, its bytes high."""

from datetime import datetime

import altair as alt
import polars as pl

from lakeview.charts.marks import as_given, peak, picks, texts, tooltips
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, byte_unit, finish_chart, layer_charts, time_axis, time_domain
from lakeview.views.units import format_age, format_bytes, format_moment, format_range, format_version

_HEIGHT = 260
_ENDS = {"maintenance": "replaced by maintenance", "change": "removed by a change", "append": "removed by a load"}


def life_bands(cohorts: pl.DataFrame, until: datetime, *, dark: bool = False) -> list[AnyChart]:
    """One picture: bands stacked in the order in which they were written, so that the right edge is what lives at
    `until` and everything that ends before is what was written in vain. At most MOST_COHORTS bands; [] without any.
    A click picks the first `commit` of a band."""
    visible = cohorts.filter(pl.col("begins").is_not_null() & (pl.col("high") > pl.col("low")))
    if visible.is_empty():
        return []
    p = palette(dark)
    moments = pl.concat(
        [visible["begins"], visible["ends"].drop_nulls(), pl.Series([until], dtype=visible["begins"].dtype)]
    )
    domain = time_domain(moments)
    top = peak(visible["high"])
    divisor, title = byte_unit(top, "All bytes ever written, oldest at the bottom")
    rows = _rows(visible, until, domain[1], divisor, p)
    y = alt.Y("low:Q", title=None, scale=alt.Scale(domain=[0, top / divisor], nice=False), axis=alt.Axis(tickCount=4))
    bands = (
        alt.Chart(rows)
        .mark_rect(opacity=0.85, stroke=p.page, strokeWidth=0.4)
        .encode(
            x=time_axis(domain, labels=True),
            x2="ends:T",
            y=y,
            y2="high:Q",
            tooltip=tooltips(_TOOLTIP),
            **as_given("color"),
        )
        .add_params(picks("commit"))
    )
    return [finish_chart(layer_charts(bands), p, height=_HEIGHT, title=title)]


_TOOLTIP = (
    ("versions", "written by"),
    ("since", "from, UTC"),
    ("until", "until, UTC"),
    ("life", "lived"),
    ("how", "end"),
    ("files", "files"),
    ("size", "bytes"),
)


def _rows(cohorts: pl.DataFrame, until: datetime, last: datetime, divisor: float, p: Palette) -> pl.DataFrame:
    colours = {"maintenance": p.gray, "change": p.orange, "append": p.orange, "schema": p.violet, "other": p.orange}
    ends = cohorts["ends"].fill_null(last)
    spans = cohorts.select("first", "last", "ended_by", "ended_in").rows()
    ages = cohorts["ends"].fill_null(until) - cohorts["begins"]
    return pl.DataFrame(
        {
            "timestamp": cohorts["begins"],
            "ends": ends,
            "low": cohorts["low"] / divisor,
            "high": cohorts["high"] / divisor,
            "color": cohorts["ended_by"].replace_strict(colours, default=p.blue, return_dtype=pl.String),
            "commit": cohorts["first"].cast(pl.String),
            "versions": [_version_range(first, last) for first, last, _, _ in spans],
            "since": texts(cohorts["begins"], format_moment),
            "until": ["now" if m is None else format_moment(m) for m in cohorts["ends"]],
            "life": texts(ages, format_age),
            "how": [_end_text(by, version) for *_, by, version in spans],
            "files": [f"{n:,}" for n in cohorts["files"]],
            "size": texts(cohorts["bytes"], format_bytes),
        }
    )  # fmt: skip


def _version_range(first: int | None, last: int | None) -> str:
    if first is None or last is None:
        return "a version that the log no longer has"
    return format_range(first, last)


def _end_text(lane: str | None, version: int | None) -> str:
    return "live" if version is None else f"{_ENDS.get(lane or '', 'removed')}, {format_version(version)}"
