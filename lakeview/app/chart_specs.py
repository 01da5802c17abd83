"""A chart to what Streamlit sends of it: with a description, and what is unseen in its texts as escapes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from lakeview.model.printable import visible, visible_texts

_EXPRESSIONS = frozenset({"labelExpr", "expr", "test", "calculate", "filter"})
"""Members of a specification whose texts are Vega's expressions: in their literals a backslash is written twice."""


@dataclass(frozen=True, slots=True)
class PlainSpecChart:
    """A chart to the specification that Streamlit sends, without Altair's check of it against its schema: it took up to
    a third of the server's time for a page that is drawn again, while the charts of other visitors waited. Tests make
    the check.

    `unseen`: the texts that are shown with escapes, to those of the table, which a click on a mark means.
    """

    chart: Any
    unseen: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The specification, data and all."""
        specification: dict[str, Any] = _visible_spec(self.chart.to_dict(validate=False), "")
        return specification


def plain_spec(chart: Any) -> PlainSpecChart:
    """The chart with a description, by which those who do not see it know what it shows: its title, if it has none."""
    # asked of the chart itself: a specification takes longer than all else that is done for a picture
    text = getattr(chart.title, "text", chart.title)
    if not isinstance(chart.description, str) and isinstance(text, str | list):
        chart.description = " ".join(text) if isinstance(text, list) else text  # a copy would copy every layer
    unseen: dict[str, str] = {}
    return PlainSpecChart(_visible_data(chart, unseen), unseen)


def _visible_data(chart: Any, unseen: dict[str, str]) -> Any:
    """The chart, or a copy whose rows have escapes in their texts, which are added to `unseen`."""
    layers: list[Any] = getattr(chart, "layer", [])
    new_layers = [_visible_data(layer, unseen) for layer in layers]
    rows = _visible_rows(chart.data, unseen)
    if rows is chart.data and all(new is old for new, old in zip(new_layers, layers, strict=True)):
        return chart
    copy = chart.copy(deep=False)
    copy["data"] = rows
    if layers:
        copy["layer"] = new_layers
    return copy


def _visible_rows(rows: Any, unseen: dict[str, str]) -> Any:
    """Rows with escapes in their texts, or what they are where there is nothing to escape."""
    if not isinstance(rows, pl.DataFrame):
        return rows
    columns = []
    for column in rows:
        texts = visible_texts(column) if column.dtype == pl.String else column
        if texts is not column:
            columns.append(texts)
            unseen.update(pair for pair in zip(texts, column, strict=True) if pair[0] != pair[1])
    return rows.with_columns(columns) if columns else rows


def _visible_spec(part: Any, name: str) -> Any:
    """A part of a specification with escapes in its texts: domains, titles, literals of expressions."""
    match part:
        case dict():
            return {key: _visible_spec(value, key) for key, value in part.items()}
        case list():
            return [_visible_spec(value, name) for value in part]
        case str() if not part.isprintable():
            write = visible if name not in _EXPRESSIONS else lambda text: visible(text).replace("\\", r"\\")
            return "".join(c if c.isprintable() else write(c) for c in part)
        case _:
            return part
