"""A timeline and a snapshot's figures to the overview's tiles: sparklines, changes, bounds in words."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from lakeview.views.files.sizes import FileFacts
from lakeview.views.timeline.branches import on_branch
from lakeview.views.timeline.commits import commit_count_text, up_to
from lakeview.views.units import count_text, format_bytes, format_change, format_version

_LONG_NAME = 9
"""Versions without a short name have both ends of their number for one."""

_SAMPLES = 48
"""Points of a sparkline."""

_NUMBERS = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
_DAYS_OF_A_MONTH = 30.4
_FEWEST_DAYS_IN_MONTHS = 50
_FEWEST_HOURS = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class Progress:
    """A version and what it is compared with. `past`: TIMELINE of the branch up to it. `before`: the state that changes
    are counted from, as a row of TIMELINE, and `since`, its name on a tile; both None where there is none."""

    past: pl.DataFrame
    before: dict[str, object] | None
    since: str | None

    def change(self, value: int | None, column: str) -> str | None:
        """The difference of a value of the version shown from the state before, None if either is unknown."""
        earlier = None if self.before is None else self.before[column]
        if value is None or not isinstance(earlier, int):
            return None
        return format_change(value - earlier, bytes_=column == "bytes")


def progress(timeline: pl.DataFrame, version: int, base: int | None) -> Progress:
    """What a version is compared with: its base, or without one the version before it."""
    branch = on_branch(timeline)
    past = up_to(branch, version)
    if base is None:
        states = past.slice(max(past.height - 2, 0), 1 if past.height > 1 else 0)
    else:
        states = branch.filter(pl.col("version") == base)
    if states.is_empty():
        return Progress(past, None, None)
    before = states.row(0, named=True)
    return Progress(past, before, _since(before["version"], base))


def samples(timeline: pl.DataFrame, column: str) -> list[float] | None:
    """A state at _SAMPLES equal times between the first and the last commit; None without two known states at different
    times."""
    states = timeline.select("timestamp", column).drop_nulls().sort("timestamp")
    first, last = states["timestamp"].min(), states["timestamp"].max()
    if states.height < 2 or not isinstance(first, datetime) or not isinstance(last, datetime) or first == last:
        return None
    step = (last - first) / (_SAMPLES - 1)
    times = pl.DataFrame(
        {"timestamp": [first + step * i for i in range(_SAMPLES)]}, schema=states.select("timestamp").schema
    )
    values = times.join_asof(states, on="timestamp", strategy="backward")[column].fill_null(strategy="backward")
    return [float(value) for value in values]


def commit_gaps(timeline: pl.DataFrame) -> list[float] | None:
    """Seconds between the latest commits, oldest first; None with fewer than two gaps."""
    gaps = timeline["timestamp"].drop_nulls().sort().diff().drop_nulls().tail(_SAMPLES // 3).dt.total_seconds()
    return [float(gap) for gap in gaps] if gaps.len() > 1 else None


def log_size(log: pl.DataFrame) -> int | None:
    """The bytes of LOG_FILES, None where no file is listed."""
    return None if log.is_empty() else int(log["size"].sum())


def span_title(timeline: pl.DataFrame) -> str:
    """How much time the commits cover: `Twelve months`."""
    first, last = timeline["timestamp"].min(), timeline["timestamp"].max()
    if not isinstance(first, datetime) or not isinstance(last, datetime):
        return "History"
    days = (last - first).days
    if days >= _FEWEST_DAYS_IN_MONTHS:
        return f"{_number(round(days / _DAYS_OF_A_MONTH))} months"
    if days > 1:
        return f"{_number(days)} days"
    return "The first hours" if last - first >= _FEWEST_HOURS else "The first minutes"


def span_note(timeline: pl.DataFrame) -> str:
    """How many commits, and by how many writers."""
    writers = timeline["writer"].drop_nulls().n_unique()
    commits = commit_count_text(timeline)
    return f"{commits}, {count_text(writers, 'writer')}" if writers else commits


def rows_help(rows: int | None, at_least: int | None) -> str:
    """How exact the number of live rows is."""
    if rows is not None:
        return f"{rows:,} live rows, exact, from the log."
    bound = f"At least {at_least:,}" if at_least else "Unknown"
    return f"{bound}: some files have no row count in the log. An exact count would read the data."


def bytes_help(files: FileFacts) -> str:
    """How exact the number of live bytes is."""
    if not files.files_without_size:
        return "Bytes of the data files of this version, exact, from the log."
    invalid = count_text(files.files_without_size, "file is recorded", "files are recorded")
    return f"{'At least' if files.least_bytes else 'Unknown'}: {invalid} with an invalid size."


def retained_text(size: int, *, no_times: bool, is_bound: bool = False) -> str | None:
    """The bytes that only old versions need, as a tile's change: at least so many where `is_bound`; None where none are
    known."""
    if no_times or (is_bound and not size):
        return None
    if is_bound:
        return f"\N{GREATER-THAN OR EQUAL TO} +{format_bytes(size)}"
    return f"+{format_bytes(size)}" if size else "nothing more"


def _since(version: object, base: int | None) -> str:
    """Short enough for a tile: random 64-bit ids are not shown."""
    label = format_version(int(str(version)))
    if len(label) < _LONG_NAME:
        return f"since {label}"
    return "this commit" if base is None else "since the base"


def _number(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)
