"""`lakeview vacuum`, `clean-log`, `checkpoint` and `compact-log`: maintenance of a Delta table, from a terminal.

What deletes says first what it would delete: nothing goes without `--delete`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from lakeview.cli.commands import table_command
from lakeview.cli.text import as_json, duration, echo_frame
from lakeview.model.errors import InvalidRequestError

if TYPE_CHECKING:
    import polars as pl

    from lakeview.delta.table import DeltaTable
    from lakeview.model.table import Table


def _duration(_: click.Context, __: click.Parameter, text: str | None) -> timedelta | None:
    """`7d` or `12h`; None without one."""
    return None if text is None else duration(text, "hd", "7d or 12h")


_retention = click.option(
    "--retain", "retention", metavar="7d", callback=_duration,
    help="How long what is no longer needed is retained, instead of what the table says.",
)  # fmt: skip
_short = click.option(
    "--allow-short-retention", is_flag=True, help="Retain for less than the table says, at your own risk."
)
_versions = click.option(
    "--keep-version", "keep_versions", type=int, multiple=True, help="A version that has to stay readable."
)
_delete = click.option("--delete", is_flag=True, help="Delete the files; without it they are only named.")


def _delta(table: Table) -> DeltaTable:
    from lakeview.delta.table import DeltaTable

    if not isinstance(table, DeltaTable):
        raise InvalidRequestError(
            f"{table.address} is a table of format {table.format}: only Delta tables are maintained",
            fix="maintain it where it lies, with an engine of its format",
            kind="unsupported-format",
        )
    return table


def _report(frame: pl.DataFrame, machine: bool, delete: bool) -> None:
    if not machine and frame.height:
        count = int(frame["deleted"].sum()) if delete else frame.height
        size = f"{count:,} {'file' if count == 1 else 'files'}, {int(frame['size'].sum()):,} bytes"
        click.echo(f"{size}: deleted\n" if delete else f"{size}: nothing is deleted without --delete\n")
    echo_frame(frame if machine else frame.drop("deleted"), machine, "nothing to delete")


@table_command(_retention, _versions, _short, click.option("--lite", is_flag=True, help="Ask the log alone."), _delete)
def vacuum(table: Table, machine: bool, delete: bool, **choices: Any) -> None:
    """Name the data files that no version within the retention needs, or delete them."""
    _report(_delta(table).vacuum(dry_run=not delete, **choices), machine, delete)


@table_command(_retention, _versions, _short, _delete)
def clean_log(table: Table, machine: bool, delete: bool, **choices: Any) -> None:
    """Name the files of the log that no version within its retention needs, or delete them."""
    _report(_delta(table).clean_log(dry_run=not delete, **choices), machine, delete)


@table_command(
    click.option("--version", "version", type=int, help="The version instead of the latest."),
    click.option("--parts", type=int, help="In so many files instead of one."),
)
def checkpoint(table: Table, machine: bool, version: int | None, parts: int | None) -> None:
    """Write the checkpoint of a version, from which readers start."""
    number = _delta(table).checkpoint(version, parts=parts)
    click.echo(as_json({"version": number}) if machine else f"version {number:,} has a checkpoint")


@table_command(click.argument("start", type=int), click.argument("end", type=int))
def compact_log(table: Table, machine: bool, start: int, end: int) -> None:
    """Write one file that holds what the commits START to END add up to; the commits stay."""
    name = _delta(table).compact_log(start, end)
    click.echo(as_json({"name": name}) if machine else f"{name} holds what they add up to")
