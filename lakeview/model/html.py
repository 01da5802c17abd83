"""Facts and columns to plain HTML, as notebooks display it."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from lakeview.model.schema import Schema

_LEFT = "style='text-align:left'"


def summary_html(facts: Mapping[str, str], schema: Schema) -> str:
    """A table of facts by their names, then the columns, folded up; all texts are escaped."""
    rows = "".join(f"<tr><th {_LEFT}>{escape(k)}</th><td {_LEFT}>{escape(v)}</td></tr>" for k, v in facts.items())
    columns = "".join(
        f"<tr><td {_LEFT}>{escape(f.name)}</td><td {_LEFT}>{escape(str(f.type))}</td>"
        f"<td>{'' if f.nullable else 'not null'}</td></tr>"
        for f in schema
    )
    summary = f"<summary>{len(schema)} columns</summary>"
    return f"<table>{rows}</table><details>{summary}<table>{columns}</table></details>"
