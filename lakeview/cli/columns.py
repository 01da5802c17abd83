"""`lakeview schema`, `quality` and `pruning`: columns, whether their data is normal, what a filter on them reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import lakeview as lv
from lakeview.cli.commands import look_command, record, report, table_command
from lakeview.cli.text import as_json, echo_frame, echo_lines, echo_sentence
from lakeview.cli.versions import (
    no_commits_text,
    ref_option,
    snapshot_named,
    version_number,
    version_option,
    with_names,
)

if TYPE_CHECKING:
    import polars as pl

    from lakeview.inspection import Inspection


@table_command(
    version_option,
    ref_option,
    click.option("--changes", is_flag=True, help="What each version changed, oldest first, instead of the columns."),
)
def schema(table: lv.Table, machine: bool, version: str | None, ref: str | None, changes: bool) -> None:
    """Show the columns at a version, or which version changed which column."""
    import polars as pl

    if changes:
        look = lv.inspect(table, version_number(table, version), ref=ref)
        line = lv.views.timeline.commits.up_to(look.timeline(), look.version)["version"]
        history = look.schema_changes().filter(pl.col("version").is_in(line.implode()))
        echo_frame(history if machine else with_names(history.drop("id")), machine, "no change of the schema is known")
        return
    now = snapshot_named(table, version, ref=ref)
    rows = [(f.name, str(f.type), f.nullable, f.name in now.partition_columns, f.comment) for f in now.schema]
    shape = {"column": pl.String, "type": pl.String, "nullable": pl.Boolean, "partition": pl.Boolean}
    if not machine:
        echo_sentence(_last_change(table, now))
    echo_frame(pl.DataFrame(rows, schema={**shape, "comment": pl.String}, orient="row"), machine, "no columns")


def _last_change(table: lv.Table, now: lv.Snapshot) -> str:
    """How many columns a version has, and which change of them was the last."""
    import polars as pl

    from lakeview.inspection.schemas import readable_schemas, schema_changes

    order = table.versions()["version"]
    place = order.index_of(now.version) if now.version in order else None
    schemas = table.schemas()
    if place is not None:
        schemas = schemas.filter(pl.col("version").is_in(order[place:].implode()))
    frames = lv.inspect(table, now.version).frames
    changes = schema_changes(readable_schemas(frames, schemas.tail(2)))
    return lv.views.first_lines.schema_line(changes, len(now.schema), schemas)


@look_command()
def quality(look: Inspection, machine: bool) -> None:
    """Show whether the data is normal, and since when, from the log alone.

    Anomalies first, then each column: its nulls at the version, those of its newest load and the share that was
    expected of it, its range, and how many loads were anomalies of it.
    """
    findings = look.quality_findings()
    timeline = lv.views.timeline.commits.up_to(look.timeline(), look.version)
    columns = lv.views.quality.column_states.column_quality(look.columns().tree, look.quality(), timeline)
    if machine:
        click.echo(as_json({"findings": [record(f) for f in findings], "columns": columns.to_dicts()}))
        return
    if timeline.is_empty():
        click.echo(f"{no_commits_text(look.version)}: no load can be judged")
    elif line := lv.views.first_lines.quality_line(findings, timeline):
        echo_sentence(line)
    if findings:
        echo_lines(report(findings))
    click.echo()
    echo_frame(_in_words(columns), machine, "no columns")


def _in_words(columns: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_QUALITY as a terminal shows it."""
    import polars as pl

    def shares(name: str, mark: str | None = None) -> list[str | None]:
        marks = [""] * columns.height if mark is None else columns[mark].to_list()
        pairs = zip(columns[name].to_list(), marks, strict=True)
        return [None if pair[0] is None else lv.views.units.format_share(*pair) for pair in pairs]

    return pl.DataFrame(
        {
            "column": columns["column"],
            "nulls": pl.Series(shares("null_share", "null_share_mark"), dtype=pl.String),
            "newest load": pl.Series(shares("load_null_share", "load_mark"), dtype=pl.String),
            "expected": pl.Series(shares("usual"), dtype=pl.String),
            "min": columns["min_text"],
            "max": columns["max_text"],
            "anomalies": columns["anomalies"],
        }
    )


@look_command(click.argument("where"))
def pruning(look: Inspection, machine: bool, where: str) -> None:
    """Show which files the filter WHERE (SQL) would read, and why not the others, from the log alone."""
    import polars as pl

    from lakeview.predicates import predicate
    from lakeview.predicates.condition import null_comparison_hint

    lv.views.pruning.plan.check_condition(predicate(where, look.snapshot.schema), look.snapshot.schema)
    plan = look.pruning(where)
    if machine:
        echo_frame(plan, machine, "")
        return
    echo_sentence(lv.views.first_lines.filter_line(lv.views.pruning.plan.read_cost(plan)))
    if hint := null_comparison_hint(where):
        echo_sentence(hint)
    counts = (
        plan.group_by("reason").agg(files=pl.len(), bytes=lv.views.sums.total("size")).sort("files", descending=True)
    )
    echo_frame(counts, machine, "no files")
