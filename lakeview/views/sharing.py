"""The audit log of a sharing server to what was read: by whom, of which table, how much, and what was refused."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import polars as pl

from lakeview.model.printable import shorten, visible
from lakeview.views.units import count_text

_MOMENT = pl.Datetime("us", "UTC")

REQUESTS = pl.Schema(
    {
        "time": _MOMENT,
        "recipient": pl.String(),
        "action": pl.String(),
        "share": pl.String(),
        "schema": pl.String(),
        "table": pl.String(),
        "version": pl.Int64(),
        "requests": pl.Int64(),
        "bytes": pl.Int64(),
        "status": pl.Int64(),
    }
)
"""What the views here need of an audit log: rows of `requests` requests each. `action` is `file` where a file was
read and not only described; `bytes` of the answers; `status` as HTTP has them, from 400 on refused."""

READS = pl.Schema(
    {
        "recipient": pl.String(),
        "table": pl.String(),
        "last": _MOMENT,
        "version": pl.Int64(),
        "requests": pl.Int64(),
        "file_requests": pl.Int64(),
        "bytes": pl.Int64(),
        "refused": pl.Int64(),
    }
)
"""One row a recipient and table, the latest first. `recipient` null: not recognised; `table`: share.schema.table, null
for requests of none; `version`: the newest that was asked for; `bytes` of files and answers; `refused` requests."""

READS_BY_DAY = pl.Schema(
    {"day": pl.Date(), "requests": pl.Int64(), "refused": pl.Int64(), "bytes": pl.Int64(), "recipients": pl.Int64()}
)
"""One row a day, oldest first, days without a request as zeros; `recipients` who were recognised."""

_REFUSED = 400


_DISPLAY_NAME = 255
"""Characters of a share's display name: the protocol allows clients to truncate longer ones."""

NO_PROFILE = "No profile is open: name the one that you were sent, or share tables of your own"


def share_name(share: Mapping[str, str | None]) -> str:
    """A row of SHARES as people read it: the display name that its server gives, and the name that addresses take."""
    name, display = str(share["share"]), share["display_name"]
    return name if not display or display == name else f"{shorten(visible(display), _DISPLAY_NAME)} ({name})"


def received_line(server: str, shares: Sequence[str], share: str, tables: int) -> str:
    """What the server of a profile shares: its shares, and how many tables one of them has."""
    if not shares:
        return f"{server} shares nothing with this profile"
    if len(shares) == 1:
        return f"{server} shares {count_text(tables, 'table')} with you, in share {share}"
    return f"{server} shares {len(shares):,} shares with you; {share} has {count_text(tables, 'table')}"


def shared_line(tables: pl.DataFrame, recipients: pl.DataFrame) -> str:
    """What a server shares, and with whom: from a row a table with its `share`, and a row a recipient with `state`."""
    if tables.is_empty():
        return "Nothing is shared: the configuration names no table"
    place = count_text(tables["share"].n_unique(), "share")
    able = recipients.filter(state="reads").height
    whom = f"{count_text(recipients.height, 'recipient')}, {able:,} of them with a valid token"
    verb = "is" if tables.height == 1 else "are"
    whom = whom if recipients.height else "no recipient yet"
    return f"{count_text(tables.height, 'table')} in {place} {verb} shared with {whom}"


def reads_line(requests: pl.DataFrame, days: str) -> str:
    """Who asked for what in a span of time, from REQUESTS."""
    if requests.is_empty():
        return f"No recipient asked for anything in {days}"
    answers = requests.filter(pl.col("status") < _REFUSED)
    tables = answers.drop_nulls("table").select("share", "schema", "table").n_unique()
    whom = count_text(answers["recipient"].drop_nulls().n_unique(), "recipient")
    refusals = int(requests.select(_refusal_count()).item())
    return f"{whom} read {count_text(tables, 'table')} in {days}; {count_text(refusals, 'request')} refused"


def recent_requests(audit: pl.LazyFrame, *, now: datetime, days: int) -> pl.DataFrame:
    """REQUESTS of the last so many days up to an aware moment; other columns of the log are not read."""
    since = pl.lit(now - timedelta(days=days), _MOMENT)
    return audit.select(list(REQUESTS)).filter(pl.col("time") >= since).collect()


def reads(requests: pl.DataFrame) -> pl.DataFrame:
    """READS of REQUESTS."""
    table = pl.concat_str("share", "schema", "table", separator=".")  # null where one of them is
    return (
        requests.group_by("recipient", table.alias("table"))
        .agg(
            pl.col("time").max().alias("last"),
            pl.col("version").max(),
            pl.col("requests").sum(),
            pl.col("requests").filter(action="file").sum().alias("file_requests"),
            pl.col("bytes").sum(),
            _refusal_count(),
        )
        .sort("last", "table", descending=[True, False], nulls_last=True)
        .select(READS.names())
    )


def reads_by_day(requests: pl.DataFrame) -> pl.DataFrame:
    """READS_BY_DAY of REQUESTS, from their first day to their last."""
    if requests.is_empty():
        return pl.DataFrame(schema=READS_BY_DAY)
    days = requests.group_by(pl.col("time").dt.date().alias("day")).agg(
        pl.col("requests").sum(), _refusal_count(), pl.col("bytes").sum(), pl.col("recipient").drop_nulls().n_unique()
    )
    every = days.select(pl.date_range(pl.col("day").min(), pl.col("day").max()).alias("day"))
    by_day = every.join(days.rename({"recipient": "recipients"}), on="day", how="left", maintain_order="left")
    return by_day.select("day", pl.col(READS_BY_DAY.names()[1:]).fill_null(0).cast(pl.Int64))


def _refusal_count() -> pl.Expr:
    return pl.col("requests").filter(pl.col("status") >= _REFUSED).sum().alias("refused")
