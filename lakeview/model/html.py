"""Snapshots and findings to plain HTML, as notebooks display it."""

from collections.abc import Sequence
from html import escape

from lakeview.model.findings import Finding
from lakeview.model.printable import count_text
from lakeview.model.table_metadata import TableMetadata
from lakeview.model.version_names import name_of

_LEFT = "style='text-align:left'"


def snapshot_html(m: TableMetadata, files: int, size: int | None, rows: int | None, least_rows: int | None) -> str:
    """A table of a snapshot's figures, then its columns, folded up; all texts are escaped.

    `least_rows`: how many there are at least, where `rows` is not known.
    """
    facts = {
        "table": m.name or m.address,
        "version": _version_text(m.version),
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


def inspection_html(
    address: str, table_format: str, version: int, verdict: str, findings: Sequence[Finding], more: int
) -> str:
    """The verdict on a table's version and its worst findings with their evidence, of which `more` are left out; all
    texts are escaped."""
    lines = [f"<li><b>{escape(f.claim)}</b> {escape(f.evidence)}</li>" for f in findings]
    if more:
        lines.append(f"<li>{more:,} more: <code>.health()</code></li>")
    items = f"<ul>{''.join(lines)}</ul>" if lines else ""
    heading = f"<p><b>{escape(address)}</b> · {escape(table_format)} · {escape(_version_text(version))}</p>"
    return f"{heading}<p>{escape(verdict)}</p>{items}"


def _version_text(version: int) -> str:
    """`v63`, of a version with a name `s14 (6291485839860122601)`, of a table without versions `none`."""
    name = name_of(version)
    if name is not None:
        return f"{name} ({version})"
    return "none" if version < 0 else f"v{version}"


def _rows_text(rows: int | None, least: int | None) -> str:
    if rows is not None:
        return f"{rows:,}"
    return f"\N{GREATER-THAN OR EQUAL TO} {least:,}" if least else "unknown"
