"""Versions on the command line: given as a number, a name such as `s14`, a branch or a tag; shown by their names.

Commits to the lines of `lakeview history`, and to fewer columns where a terminal is narrow.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from lakeview.cli.text import full_width, width
from lakeview.model.errors import InvalidRequestError, VersionNotFoundError
from lakeview.model.version_names import name_of

if TYPE_CHECKING:
    import polars as pl

    from lakeview.model.snapshot import Snapshot
    from lakeview.model.table import Table

version_option = click.option(
    "--version", "version", metavar="VERSION", help="A version instead of the latest: its number, or a name as s14."
)
at_option = click.option("--at", help="The moment to show, such as 2026-07-15T03:25+02:00 or 2026-07-15 (UTC).")
ref_option = click.option("--ref", help="The newest version of a branch or tag.")

_NUMBER = re.compile(r"v?(-?\d{1,19})")


def version_number(table: Table, word: str | None) -> int | None:
    """The version that a word stands for: a number, `v75`, or the name that `history` shows of it.

    VersionNotFoundError for a word that is none of them. None stays None.
    """
    if word is None:
        return None
    if number := _NUMBER.fullmatch(word):
        return int(number[1])
    matches = [version for version in table.history()["version"] if name_of(version) == word]
    if len(matches) == 1:
        return int(matches[0])
    raise VersionNotFoundError(
        f"{table.address} has no version {word}", fix="`lakeview history` shows its versions", place="--version"
    )


def snapshot_named(table: Table, version: str | None, at: str | None = None, ref: str | None = None) -> Snapshot:
    """The table at a version (as `version_number`), a moment, or the newest version of a branch or tag."""
    return table.snapshot(version_number(table, version), at=moment(at), ref=ref)


def moment(text: str | None) -> datetime | None:
    """A moment in ISO 8601, in UTC without a zone; InvalidRequestError for another text."""
    if text is None:
        return None
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequestError(
            f"{text} is no moment", fix="give it in ISO 8601, such as 2026-07-15T03:25+02:00"
        ) from error
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)


def version_text(version: int) -> str:
    """A version with its name, if it has one: `s14 (6291485839860122601)`; that a table has no snapshot yet."""
    if version < 0:
        return "none: the table has no snapshot yet"
    name = name_of(version)
    return str(version) if name is None else f"{name} ({version})"


def no_commits_text(version: int) -> str:
    """Why a table at its latest version has no commits to show."""
    return "the table has no commits yet" if version < 0 else "no commits are left in the log, or they are not shared"


def with_names(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame whose `version` is the name of each version that has one, and whose last column then is its `id`, unless
    that would cut texts on a narrow terminal."""
    import polars as pl

    numbers = frame["version"].to_list()
    if not any(name_of(number) for number in numbers):
        return frame
    names = pl.Series("version", [name_of(number) or str(number) for number in numbers], dtype=pl.String)
    rows, limit = frame.with_columns(names, frame["version"].alias("id")), width()
    return rows.drop("id") if limit is not None and full_width(rows) > limit else rows


def with_refs(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """A frame of commits, with a column `refs` for a table that has any: the branches and tags that end at each commit;
    of one that is not on the main branch what it is on."""
    import polars as pl

    from lakeview.inspection import inspect

    refs = table.refs()
    if refs.is_empty():
        return frame
    heads = refs.group_by("version").agg(pl.col("name").str.join(", ").alias("refs"))
    off_branch = inspect(table).off_branch_commits()
    rows = frame.join(heads, on="version", how="left", maintain_order="left")
    rows = rows.join(off_branch, on="version", how="left", maintain_order="left")
    return rows.with_columns(pl.col("refs").fill_null(pl.col("note"))).drop("note")


_HEADS = {
    "version": "version", "timestamp": "timestamp", "operation": "operation", "files_added": "+files",
    "files_removed": "-files", "records_added": "+rows", "records_removed": "-rows", "user": "user", "engine": "engine",
}  # fmt: skip
"""Columns of COMMITS that fit a line, and their heads."""


def with_heads(commits: pl.DataFrame) -> pl.DataFrame:
    """The columns of COMMITS that are printed, under their heads."""
    import polars as pl

    return commits.select(pl.col(column).alias(head) for column, head in _HEADS.items())


def fit_columns(commits: pl.DataFrame, limit: int | None) -> tuple[pl.DataFrame, dict[str, str]]:
    """Commits that fit `limit` columns without a cut text where possible, and the user or engine that all have.

    While they are too wide, they lose in turn the ids of versions that have names and the versions of engines, the user
    or engine that all have, then what came and went stands in one column."""
    import polars as pl

    of_all: dict[str, str] = {}

    def is_too_wide() -> bool:
        return limit is not None and full_width(commits) > limit

    if is_too_wide():
        commits = commits.drop("id", strict=False).with_columns(pl.col("engine").str.extract(r"^([^\s/]+)"))
    for who in ("user", "engine") if is_too_wide() and commits.height > 1 else ():
        if commits[who].n_unique() == 1 and (value := commits[who][0]) is not None:
            of_all[who] = value
            commits = commits.drop(who)
    for what in ("files", "rows") if is_too_wide() else ():
        gain, loss = f"+{what}", f"-{what}"
        texts = [_gain_and_loss(*row) for row in commits.select(gain, loss).iter_rows()]
        both = commits.with_columns(pl.Series(gain, texts, dtype=pl.String)).drop(loss).rename({gain: what})
        commits = both if full_width(both) < full_width(commits) else commits
    return commits, of_all


def _gain_and_loss(gain: int | None, loss: int | None) -> str:
    """What came and what went without a blank, `±8` where both are 8; "?" for one that is unknown, "" for both."""
    from lakeview.views.units import MINUS, gain_and_loss

    if gain is None and loss is None:
        return ""
    if gain is None or loss is None:
        parts = (("+", gain), (MINUS, loss))
        return "".join(f"{sign}{'?' if count is None else f'{count:,}'}" for sign, count in parts if count != 0)
    return f"±{gain:,}" if gain == loss != 0 else (gain_and_loss(gain, loss) or "").replace(" ", "")
