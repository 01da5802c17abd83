"""`lakeview tables`: the tables below a folder, in a catalog or of a share, and how each of them is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import lakeview as lv
from lakeview.cli.commands import command, open_address
from lakeview.cli.text import echo_frame, echo_lines, echo_sentence, hanging, table, width
from lakeview.model.addresses import is_local, normalise
from lakeview.model.errors import NotATableError
from lakeview.model.printable import printable

if TYPE_CHECKING:
    import polars as pl

_AT_ONCE = 4
_INDENT = " " * 4


@command()
def tables(address: str, options: dict[str, Any], machine: bool) -> None:
    """Show the tables below a folder or in a catalog, worst first: what to look at, rows, bytes, last commit.

    Reads the log of each, and no data. Of the profile of a share, all tables that its server shares.
    """
    import polars as pl

    from lakeview.inspection.inspection import read_entry

    now = datetime.now(UTC)
    listing = lv.find_tables(address, storage_options=options or None)
    if listing.is_empty() and is_local(root := normalise(address)) and not os.path.exists(root):
        raise NotATableError(f"there is no folder {root}", fix="check the path", place=root)
    entries = [lv.views.lake.LakeEntry(*row) for row in listing.select("name", "address", "format").iter_rows()]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lake") as pool:
        entries = list(pool.map(lambda entry: read_entry(entry, lambda at: open_address(at, options), now), entries))
    lake = lv.views.lake.lake(entries)
    if machine:
        echo_frame(lake, machine, "")
        return
    echo_sentence(lv.views.lake.lake_sentence(lake))
    if lake.height:
        rows = lake.select(
            "state", pl.col("name").alias("table"), "format",
            rows=pl.Series(map(lv.views.lake.rows_text, lake.iter_rows(named=True)), dtype=pl.String),
            bytes="bytes", files="files", last_commit="last",
            what_to_look_at=pl.when(state="unreadable").then("verdict").otherwise(pl.coalesce("finding", "verdict")),
        )  # fmt: skip
        echo_lines(_lines(rows, width()))


def _lines(answers: pl.DataFrame, limit: int | None) -> Iterable[str]:
    """A line each, and where that does not fit what to look at below it: it is the answer, and is not cut."""
    whole = list(table(answers))
    if limit is None or max(map(len, whole)) <= limit:
        yield from whole
        return
    facts = answers.drop("what_to_look_at").with_columns(answers["last_commit"].dt.truncate("1m"))
    head, *rows = table(facts, limit=limit)
    yield head
    for row, text in zip(rows, answers["what_to_look_at"], strict=True):
        yield row
        yield from hanging(_INDENT, printable(text or ""), limit)
