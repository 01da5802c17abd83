"""`lakeview tables`: the tables below a folder or in a catalog, and how each of them is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import click

from lakeview.cli.commands import command, echo_frame, open_address

_AT_ONCE = 4


@command()
def tables(address: str, options: dict[str, Any], machine: bool) -> None:
    """Show the tables below a folder or in a catalog, worst first: what to look at, rows, bytes, last commit.

    Reads the log of each, and no data.
    """
    import polars as pl

    from lakeview import views
    from lakeview.discovery import find_tables
    from lakeview.inspection.lake import read_entry

    now = datetime.now(UTC)
    found = find_tables(address, storage_options=options or None)
    entries = [views.lake.LakeEntry(*row) for row in found.select("name", "address", "format").iter_rows()]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lake") as pool:
        entries = list(pool.map(lambda entry: read_entry(entry, lambda at: open_address(at, options), now), entries))
    lake = views.lake.lake(entries)
    if machine:
        echo_frame(lake, machine, "")
        return
    click.echo(views.lake.lake_sentence(lake))
    if lake.height:
        shown = lake.select(
            "state", pl.col("name").alias("table"), "format",
            rows=pl.Series(map(views.lake.rows_text, lake.iter_rows(named=True)), dtype=pl.String),
            bytes="bytes", files="files", last_commit="last",
            what_to_look_at=pl.when(state="unreadable").then("verdict").otherwise(pl.coalesce("finding", "verdict")),
        )  # fmt: skip
        echo_frame(shown, machine, "")
