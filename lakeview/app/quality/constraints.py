"""The table's own constraints on the quality page: satisfied, violated by which files and commits, or unknown."""

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import columns, selection
from lakeview.app.components import escape, frame, link, more_rows
from lakeview.app.row_links import row_link
from lakeview.app.session import OpenTable

BROKEN_NOTE = "newest commit first; a null violates a constraint, as engines check it on write"
MOST_LINKS = 6
LONGEST_FILTER = 1_000
_WORDS = {
    views.quality.verdicts.Verdict.VIOLATED.value: "\N{MULTIPLICATION X} violated",
    views.quality.verdicts.Verdict.UNKNOWN.value: "? unknown",
    views.quality.verdicts.Verdict.SATISFIED.value: "\N{CHECK MARK} satisfied",
}


def note(now: OpenTable, rules: views.quality.verdicts.ConstraintVerdicts) -> str:
    """Where the verdicts come from; "" without a constraint."""
    if rules.rules.is_empty():
        return ""
    more = f" of {rules.rules.height + rules.left_out:,}" if rules.left_out else ""
    constraints = views.units.count_text(rules.rules.height, "constraint")
    version = views.units.format_version(now.version)
    return f"{constraints}{more}, {version}: proved by the statistics of its files or left open; no data is read"


def table(rules: pl.DataFrame) -> None:
    """One row a constraint, violated ones first."""
    frame(
        rules,
        {
            "verdict": columns.text("verdict", words=_WORDS),
            "kind": columns.text("kind"),
            "name": columns.text("constraint"),
            "rule": columns.text("true of every row"),
            "files_mark": columns.mark(
                {"bound": "≥"}, of="certainty", help="≥: other files may violate it too; empty: exact"
            ),
            "files_violating": columns.number("files violate it"),
            "records_violating": columns.number("rows violate it, at least"),
            "certainty": columns.text("figures are"),
            "why": columns.text("why it is unknown", null=""),
        },
        key="kept-rules",
        unknown="",
    )


def find_links(rules: pl.DataFrame) -> None:
    """Links to the rows that violate a rule, for those not proved; the data page states the cost."""
    with st.container(horizontal=True, gap="small"):
        for name, where in views.quality.verdicts.open_rules(rules)[:MOST_LINKS]:
            if len(where) <= LONGEST_FILTER:
                link("data", f"Rows that violate {escape(name)}", selection.link(where=where))


def violations(now: OpenTable, rules: views.quality.verdicts.ConstraintVerdicts) -> pl.DataFrame:
    """VIOLATIONS: the files that violate a constraint, and the commits that wrote them."""
    return views.quality.verdicts.violations(rules, now.frames.lifetimes, now.look.timeline())


def violations_table(now: OpenTable, rows: pl.DataFrame) -> None:
    """One row a constraint and file, with the commit and the writer to blame."""
    more_rows(rows.height, "files")
    frame(
        rows,
        {
            "name": columns.text("constraint"),
            "version": columns.version("written in"),
            "committed": columns.timestamp(),
            "writer": columns.text("writer"),
            "operation": columns.text("operation"),
            "partition_text": columns.partition(views.partitions.keys.partition_names(now.snapshot)),
            "records_violating": columns.number("rows violate it, at least"),
            "path": columns.path("file", views.files.sizes.common_folder(rows["path"])),
        },
        key="broken-files",
        **row_link("broken-files", rows, "files", lambda row: selection.link(file=row["path"])),
        unknown="unknown",
    )
