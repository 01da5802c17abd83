"""Snapshots to plain HTML, as notebooks display it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from lakeview.model.column_values import least_records
from lakeview.model.printable import count_text
from lakeview.model.version_names import name_of

if TYPE_CHECKING:
    from lakeview.model.snapshot import Snapshot

_LEFT = "style='text-align:left'"


def snapshot_html(snapshot: Snapshot) -> str:
    """A table of a snapshot's figures, then its columns, folded up; all texts are escaped."""
    m, name = snapshot.metadata, name_of(snapshot.version)
    facts = {
        "table": m.name or m.address,
        "version": str(m.version) if name is None else f"{name} ({m.version})",
        "committed": "unknown" if m.timestamp is None else f"{m.timestamp:%Y-%m-%d %H:%M} UTC",
        "rows": _rows(snapshot),
        "files": f"{snapshot.num_files:,}",
        "bytes": "unknown" if snapshot.size_bytes is None else f"{snapshot.size_bytes:,}",
        "partitioned by": ", ".join(m.partition_columns) or "nothing",
        "protocol": m.protocol.label,
    }
    rows = "".join(f"<tr><th {_LEFT}>{escape(k)}</th><td {_LEFT}>{escape(v)}</td></tr>" for k, v in facts.items())
    columns = "".join(
        f"<tr><td {_LEFT}>{escape(f.name)}</td><td {_LEFT}>{escape(str(f.type))}</td>"
        f"<td>{'' if f.nullable else 'not null'}</td></tr>"
        for f in m.schema
    )
    summary = f"<summary>{count_text(len(m.schema), 'column')}</summary>"
    return f"<table>{rows}</table><details>{summary}<table>{columns}</table></details>"


def _rows(snapshot: Snapshot) -> str:
    if snapshot.num_records is not None:
        return f"{snapshot.num_records:,}"
    least = least_records(snapshot.files, snapshot.delete_files)
    return f"\N{GREATER-THAN OR EQUAL TO} {least:,}" if least else "unknown"
