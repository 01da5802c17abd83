"""What many charts draw alike: texts for tooltips, selections by click, step lines, and scales from a largest value."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import altair as alt
import polars as pl

from lakeview.charts.theme import SELECTION, AnyChart
from lakeview.model.printable import shorten, shorten_apart
from lakeview.views.units import format_count

SHORT_COUNTS = "datum.value % 1 ? '' : replace(format(datum.value, '~s'), /[kMG]$/, ' $&')"
"""The labels of an axis of counts: `20 k`. With a format of the axis, nothing would be `0k`, and half of one `500m`."""
_LETTER = 6
"""Pixels of a letter of an axis label, of which few are wider."""
exact_count: Callable[[float | None], str] = partial(format_count, exact=True)


def whole_axis(**more: Any) -> alt.Axis:
    """An axis of whole numbers, with no label between two: Vega's `tickMinStep` leaves 0.5 between 0 and 1."""
    return alt.Axis(title=None, format=",d", labelExpr="datum.value % 1 ? '' : datum.label", **more)


def from_zero() -> alt.Scale:
    """A scale from zero to a round number that has a label. With `domainMin` alone it ends at the largest value, and
    the last label is far below it."""
    return alt.Scale(zero=True, nice=3)


def texts(values: Iterable[Any], form: Callable[[Any], str]) -> pl.Series:
    """Each value as text, for a column of a chart's rows."""
    return pl.Series([form(value) for value in values], dtype=pl.String)


def tooltips(fields: Iterable[tuple[str, str]]) -> list[alt.Tooltip]:
    """A tooltip of texts: (column, title) for each line."""
    return [alt.Tooltip(f"{name}:N", title=title) for name, title in fields]


def as_given(*channels: str) -> dict[str, Any]:
    """Encodings by fields of the channels' own names, whose values are colours, shapes or sizes themselves."""
    return {name: getattr(alt, name.capitalize())(_FIELDS[name], scale=None) for name in channels}


_FIELDS = {"color": "color:N", "shape": "shape:N", "size": "size:Q", "opacity": "opacity:Q"}


def picks(*fields: str) -> alt.Parameter:
    """A selection by click of the marks that share the values of these fields."""
    return alt.selection_point(name=SELECTION, fields=list(fields), on="click", empty=False)


def targets(base: alt.Chart, *fields: str, size: int = 220) -> alt.Chart:
    """Invisible marks over small ones, whose encoding `base` has: a pointer hits them, and a click picks `fields`."""
    chart: alt.Chart = base.mark_point(filled=True, size=size, opacity=0)
    return chart.add_params(picks(*fields))


def peak(values: pl.Series) -> float:
    """The max of a column of numbers; 0 without values."""
    top = values.max()
    return float(top) if isinstance(top, int | float) else 0.0


def short_label_axis(names: Sequence[str] = (), **more: Any) -> alt.Axis:
    """An axis of names at the left that is as wide as short ones need. `names`: see `label_axis`."""
    limit = 130
    return alt.Axis(title=None, labelLimit=limit, minExtent=96, maxExtent=136, **_labels_apart(names, limit), **more)


def lanes(field: str, names: Sequence[str], axis: alt.Axis) -> alt.Y:
    """A lane for each of these values of a field, in their order."""
    return alt.Y(field, sort=None, title=None, axis=axis, scale=alt.Scale(domain=list(names)))


def label_axis(width: int, names: Sequence[str] = (), **more: Any) -> alt.Axis:
    """An axis of names at the left that takes this many pixels; longer names are cut. `names`: those of the axis, of
    which several may begin alike."""
    limit = width - 10
    labels = _labels_apart(names, limit)
    return alt.Axis(title=None, labelLimit=limit, minExtent=width, maxExtent=width, **labels, **more)


def _labels_apart(names: Sequence[str], pixels: int) -> dict[str, Any]:
    """The option of an axis by which names that would look alike when they are cut do not; none if no two would."""
    length = pixels // _LETTER
    labels = shorten_apart(names, length)
    if all(label == shorten(name, length) for label, name in zip(labels, names, strict=True)):
        return {}
    return {"labelExpr": f"{json.dumps(labels)}[indexof({json.dumps(list(names))}, datum.value)]"}


def step_line(base: alt.Chart, x: alt.X, y: alt.Y, color: str, *, fill: float = 0.1) -> list[AnyChart]:
    """A value that holds until the next one: a line of steps over a pale area."""
    return [
        base.mark_area(interpolate="step-after", color=color, opacity=fill).encode(x=x, y=y),
        base.mark_line(interpolate="step-after", color=color, strokeWidth=1.6).encode(x=x, y=y),
    ]
