"""`lakeview profile`: what the columns of a table hold, by polars in this process or on Spark."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from lakeview.cli.commands import command, open_address
from lakeview.cli.look import columns_option, rows_of, rows_read, where_option
from lakeview.cli.text import as_json, echo_frame
from lakeview.cli.versions import version_number, version_option
from lakeview.jobs import Progress, Request, SparkJobs
from lakeview.model.printable import count_text

if TYPE_CHECKING:
    import polars as pl

    from lakeview.model.table import Table

POLARS, SPARK = "polars", "spark"


@command(
    version_option,
    where_option,
    columns_option,
    click.option(
        "--engine", type=click.Choice([POLARS, SPARK]), default=POLARS, show_default=True,
        help="What reads the rows: polars for one machine's memory, Spark for more.",
    ),
    click.option("--master", help="Spark's master instead of all cores of this machine, such as spark://host:7077."),
)  # fmt: skip
def profile(
    address: str,
    options: dict[str, Any],
    machine: bool,
    version: str | None,
    where: str | None,
    columns: tuple[str, ...],
    engine: str,
    master: str | None,
) -> None:
    """Show nulls, distinct values, min and max of each column; Ctrl-C cancels.

    This reads data files. With --json also how the values are distributed.
    """
    table = open_address(address, options)
    number = version_number(table, version)
    if engine == SPARK:
        request = Request("profile", address, number, where, columns or None, options)
        frame, rows = _on_spark(request, master)
    else:
        frame, rows = _by_polars(table, number, where, columns)
    if machine:
        click.echo(as_json({"rows": rows, "columns": frame.to_dicts()}))
        return
    echo_frame(_in_percent(frame.drop("distribution")), machine, "no columns")
    click.echo(f"\n{count_text(rows, 'row')}")


def _in_percent(frame: pl.DataFrame) -> pl.DataFrame:
    """A profile with its share of nulls in percent, as the app has it."""
    import polars as pl

    from lakeview.views.units import percent_figure

    shares = [None if share is None else percent_figure(share) for share in frame["null_share"]]
    percent = pl.Series("null_share", shares, dtype=pl.Float64)
    return frame.with_columns(percent).rename({"null_share": "null, %"})


def _by_polars(
    table: Table, version: int | None, where: str | None, columns: tuple[str, ...]
) -> tuple[pl.DataFrame, int]:
    from lakeview.views.data.profile import profile as profile_rows

    rows = rows_of(table.snapshot(version), where, columns)
    with rows_read("profiled"):
        return profile_rows(rows)


def _on_spark(request: Request, master: str | None) -> tuple[pl.DataFrame, int]:
    is_terminal = sys.stderr.isatty()
    with SparkJobs(settings={} if master is None else {"spark.master": master}) as jobs:
        try:
            answer = jobs.run(request, on_wait=_show if is_terminal else lambda _: None)
        finally:
            if is_terminal:
                click.echo("\r\x1b[K", err=True, nl=False)
    return answer.rows, answer.counts["rows"]


def _show(progress: Progress) -> None:
    click.echo(f"\r\x1b[K{progress.text}", err=True, nl=False)
