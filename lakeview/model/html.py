"""Snapshots to plain HTML, as notebooks display it."""

from __future__ import annotations

from html import escape

from lakeview.model.printable import count_text
from lakeview.model.table_metadata import TableMetadata
from lakeview.model.version_names import name_of

_LEFT = "style='text-align:left'"


def snapshot_html(m: TableMetadata, files: int, size: int | None, rows: int | None, least_rows: int | None) -> str:
    """A table of a snapshot's figures, then its columns, folded up; all texts are escaped.

    `least_rows`: how many there are at least, where `rows` is not known.
    """
    name = name_of(m.version)
    facts = {
        "table": m.name or m.address,
        "version": str(m.version) if name is None else f"{name} ({m.version})",
        "committed": "unknown" if m.timestamp is None else f"{m.timestamp:%Y-%m-%d %H:%M} UTC",
        "rows": _rows_text(rows, least_rows),
        "files": f"{files:,}",
        "bytes": "unknown" if size is None else f"{size:,}",
        "partitioned by": ", ".join(m.partition_columns) or "nothing",
        "protocol": m.protocol.label,
    }
    lines = "".join(f"<tr><th {_LEFT}>{escape(k)}</th><td {_LEFT}>{escape(v)}</td></tr>" for k, v in facts.items())
    columns = "".join(
        f"<tr><td {_LEFT}>{escape(f.name)}</td><td {_LEFT}>{escape(str(f.type))}</td>"
        f"<td>{'' if f.nullable else 'not null'}</td></tr>"
        for f in m.schema
    )
    summary = f"<summary>{count_text(len(m.schema), 'column')}</summary>"
    return f"<table>{lines}</table><details>{summary}<table>{columns}</table></details>"


def _rows_text(rows: int | None, least: int | None) -> str:
    if rows is not None:
        return f"{rows:,}"
    return f"\N{GREATER-THAN OR EQUAL TO} {least:,}" if least else "unknown"
