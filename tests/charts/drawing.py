"""A chart as the browser draws it: every layer that has rows makes marks, and none of them lies nowhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import altair as alt
import jsonschema_rs
import polars as pl
import vl_convert

from lakeview.charts.palette import DARK, LIGHT
from lakeview.charts.theme import AnyChart

KINDS = {"bar": "rect", "tick": "rect", "point": "symbol", "circle": "symbol", "square": "symbol", "image": "image"}
"""Vega-Lite's marks that Vega draws as another kind."""


@cache
def _validator() -> jsonschema_rs.Validator:
    """Of the schema that Altair holds specifications against: in Rust a fiftieth of the time."""
    text = files(alt).joinpath("vegalite", "v6", "schema", "vega-lite-schema.json").read_text("utf-8")

    def encoded(node: dict[str, Any]) -> dict[str, Any]:
        """References as URIs: names of the schema hold angle brackets and quotes."""
        reference = node.get("$ref")
        return {**node, "$ref": quote(reference, safe="#/")} if isinstance(reference, str) else node

    return jsonschema_rs.validator_for(json.loads(text, object_hook=encoded))


def check_specification(spec: dict[str, Any]) -> None:
    """jsonschema_rs.ValidationError unless it is Vega-Lite."""
    _validator().validate(spec)


def layers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The layers of a specification, those of its panels included."""
    for key in ("layer", "vconcat", "hconcat"):
        for part in spec.get(key, ()):
            yield from layers(part)
    if "mark" in spec:
        yield spec


def expected_kinds(spec: dict[str, Any]) -> set[str]:
    """The kinds of marks of the layers that have rows."""
    datasets = spec.get("datasets", {})
    names = [(layer["mark"]["type"], layer.get("data", spec.get("data", {})).get("name")) for layer in layers(spec)]
    return {KINDS.get(kind, kind) for kind, name in names if datasets.get(name)}


def drawn(chart: AnyChart, width: int) -> str:
    """The chart as SVG, its plot so many pixels wide."""
    svg: str = vl_convert.vegalite_to_svg({**chart.to_dict(), "width": width, "autosize": "pad"})
    return svg


def mark_counts(spec: dict[str, Any], width: int = 700) -> dict[str, int]:
    """How many marks of each kind a browser draws; AssertionError for one that lies at no number."""
    svg = vl_convert.vegalite_to_svg(spec if "vconcat" in spec else {**spec, "width": width})
    assert "NaN" not in svg
    assert "Infinity" not in svg
    counts: dict[str, int] = {}
    for kind, marks in re.findall(r'<g class="mark-(\w+) role-mark[^"]*"[^>]*>(.*?)</g>', svg, re.DOTALL):
        counts[kind] = counts.get(kind, 0) + len(re.findall(r"<(?:path|text|line|image|rect)\b", marks))
    return counts


def check_drawn(spec: dict[str, Any], width: int = 700) -> None:
    """AssertionError unless each kind of mark that has rows is drawn."""
    kinds = expected_kinds(spec)
    counts = mark_counts(spec, width)
    assert kinds
    assert {kind for kind in kinds if not counts.get(kind)} == set()


def check_theme(chart: AnyChart, *, dark: bool) -> None:
    """AssertionError unless the chart is drawn, and in the colours of its theme alone."""
    check_drawn(chart.to_dict())
    other, text = LIGHT if dark else DARK, chart.to_json()
    assert [colour for colour in (other.blue, other.orange, other.page, other.text) if colour in text] == []


def silent_fields(chart: AnyChart, rows: Any = None) -> set[str]:
    """The fields of tooltips that are empty for some mark: a reader of the tooltip sees a name without a value."""
    rows = chart.data if isinstance(chart.data, pl.DataFrame) else rows
    fields: set[str] = set()
    for layer in getattr(chart, "layer", ()):
        fields |= silent_fields(layer, rows)
    tips = getattr(getattr(chart, "encoding", None), "tooltip", ())
    for tip in tips if isinstance(tips, list | tuple) else ():
        values = rows[str(tip.shorthand).rpartition(":")[0]]
        if values.has_nulls() or values.cast(pl.String).is_in(_SILENT).any():
            fields.add(values.name)
    return fields


_SILENT = ["", "None", "NaN", "undefined"]
"""`null` has a name: that of the bar of a column's nulls."""
