"""Partition texts to their keys, and to a sequence in time where one key is a year, a month, a day or an hour.

Keys are recognised by their text, as a reader writes it for people (`month=2013-05/id_bucket=bucket 3 of 16`). The
months that a table derives from a timestamp therefore read as months, and not as the numbers that the table stores.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, datetime, timedelta
from typing import Literal

import polars as pl

from lakeview.model.partition_texts import NULL, unescape
from lakeview.model.snapshot import Snapshot

Grain = Literal["year", "month", "day", "hour"]

_KEYED = "key_{}"
"""The columns of `partition_keys`: the user's names may be any."""

_MOST_STEPS = 4_000
"""A sequence of more steps than this is shown as single partitions, without its gaps."""

MOMENT = r"[T ](\d\d:\d\d(?::(?:0[1-9]|[1-5]\d))?)(?::00)?(?:\.0+)?Z?(/|$)"
"""Matches the time of day of a timestamp, `T21:00:00.000000Z`; the first group is what is read of it, the second what
follows."""

_SHORT = 16
"""Characters of a partition's text that fit beside a figure."""

_FORMATS: tuple[tuple[Grain, str, str], ...] = (
    ("year", r"^(19|20)\d\d$", "%Y"),
    ("month", r"^\d{4}-\d\d$", "%Y-%m"),
    ("month", r"^(19|20)\d{4}$", "%Y%m"),
    ("day", r"^\d{4}-\d\d-\d\d$", "%Y-%m-%d"),
    ("day", r"^(19|20)\d{6}$", "%Y%m%d"),
    ("hour", r"^\d{4}-\d\d-\d\d-\d\d$", "%Y-%m-%d-%H"),
)
NO_PARTITION = "no partition"
"""The name of the files of a table that was not partitioned yet when they were written."""
_BUCKET = r"^bucket (\d{1,9}) of (\d{1,10})$"
_STEPS: dict[Grain, str] = {"year": "1y", "month": "1mo", "day": "1d", "hour": "1h"}
_ROUGHLY: dict[Grain, timedelta] = {
    "year": timedelta(days=365),
    "month": timedelta(days=30),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
}


@dataclass(frozen=True, slots=True)
class TimeKey:
    """How a key's texts are moments: one for each `grain`, written as `format` says."""

    grain: Grain
    format: str

    def moments(self, texts: pl.Series) -> pl.Series:
        """The texts as moments without a zone; null where one is none."""
        dates = texts + {"%Y": "-01-01", "%Y-%m": "-01", "%Y%m": "01"}.get(self.format, "")
        shape = {"%Y": "%Y-%m-%d", "%Y-%m": "%Y-%m-%d", "%Y%m": "%Y%m%d"}.get(self.format, self.format)
        if self.grain == "hour":
            return (dates + ":00").str.to_datetime(f"{shape}:%M", strict=False)
        return dates.str.to_date(shape, strict=False).cast(pl.Datetime("us"))

    def dates(self, texts: pl.Series) -> pl.Series:
        """The moments of texts in order; those of the year 9999 mean no date, and are left out."""
        moments = self.moments(texts)
        return moments.filter(moments.dt.year() < MAXYEAR).sort()

    def text(self, moment: datetime) -> str:
        """A moment as the key writes it."""
        return moment.strftime(self.format).zfill(4 if self.grain == "year" else 0)

    def after(self, moment: datetime) -> datetime:
        """The step after one."""
        step = pl.Series([moment]).dt.offset_by(_STEPS[self.grain])[0]
        assert isinstance(step, datetime), "a step from a moment is a moment"
        return step

    def steps(self, first: datetime, last: datetime) -> pl.Series:
        """Every step from one moment to another, both included; none where they would be more than _MOST_STEPS."""
        if (last - first) / _ROUGHLY[self.grain] > _MOST_STEPS:
            return pl.Series([], dtype=pl.Datetime("us"))
        return pl.datetime_range(first, last, _STEPS[self.grain], eager=True, time_unit="us")


def partition_keys(texts: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    """One column of text a key (`key_0`, `key_1`, ...) from partition texts; null where a text has not these keys."""
    columns = [_KEYED.format(i) for i in range(len(names))]
    if not names:
        return pl.DataFrame(height=texts.len())
    parts = [f"{pl.escape_regex(name)}=(?P<{column}>[^/]*)" for name, column in zip(names, columns, strict=True)]
    keys = texts.str.extract_groups(f"^{'/'.join(parts)}$").struct.unnest()
    return keys.select(unescape(pl.col(column)) for column in columns)


def key_values(texts: pl.Series, name: str) -> pl.Series:
    """The distinct values of one key in partition texts, which may have others beside it."""
    values = texts.str.extract(f"(?:^|/){pl.escape_regex(name)}=([^/]*)").drop_nulls().unique()
    return pl.select(unescape(pl.lit(values))).to_series()


def partition_names(snapshot: Snapshot) -> list[str]:
    """The keys of the partitions that its files are in, which of files of an earlier Iceberg spec are others than new
    files have; those of new files where none is in a partition."""
    parts = snapshot.files.schema.get("partition")
    if not isinstance(parts, pl.Struct):
        return snapshot.partition_columns
    texts = snapshot.files["partition_text"].drop_nulls().unique()
    names = [f.name for f in parts.fields]
    names = [name for name in names if texts.str.contains(f"(^|/){pl.escape_regex(name)}=").any()]
    return names or snapshot.partition_columns


def sequence_key(snapshot: Snapshot) -> str | None:
    """The only key of the partitions that its files are in, or of those that new files are in; None where these have
    several or none."""
    keys = (partition_names(snapshot), snapshot.partition_columns)
    return next((names[0] for names in keys if len(names) == 1), None)


def key_pattern(names: Sequence[str]) -> str:
    """A regular expression, of polars and of a browser, of each key of a partition's text and its `=`; the first group
    is what stays before the value."""
    if not names:
        return "^()$^"  # matches no text that a partition has
    longest_first = "|".join(pl.escape_regex(name) for name in sorted(names, key=len, reverse=True))
    return f"(^{'|/' if len(names) > 1 else ''})(?:{longest_first})="


def time_key(texts: pl.Series) -> TimeKey | None:
    """How these texts of one key are moments; None where one of them is none. Nulls are left out."""
    distinct = texts.drop_nulls().unique()
    distinct = distinct.filter(distinct != NULL)
    if not distinct.len():
        return None
    for grain, pattern, template in _FORMATS:
        if distinct.str.contains(pattern).all():
            key = TimeKey(grain, template)
            return None if key.moments(distinct).null_count() else key
    return None


def sequence(texts: pl.Series) -> tuple[list[int], Callable[[int], str]] | None:
    """Texts of one key as consecutive whole numbers, and back to text; None where they are no sequence."""
    distinct = texts.drop_nulls().unique()
    distinct = distinct.filter(distinct != NULL)
    if not distinct.len():
        return None
    key = time_key(distinct)
    if key is not None:
        moments = key.dates(distinct)
        steps = key.steps(moments[0], moments[-1]) if moments.len() else moments
        if not steps.len():
            return None
        places = {moment: place for place, moment in enumerate(steps.to_list())}
        names = [key.text(moment) for moment in steps.to_list()]
        return [places[moment] for moment in moments.to_list()], names.__getitem__
    if distinct.str.contains(r"^(0|-?[1-9]\d{0,17})$").all():
        return distinct.cast(pl.Int64).sort().to_list(), str
    widths = distinct.str.len_chars().unique()
    if widths.len() == 1 and distinct.str.contains(r"^\d{2,18}$").all():
        width = int(widths[0])
        return distinct.cast(pl.Int64).sort().to_list(), lambda number: f"{number:0{width}}"  # 00 to 23
    buckets = distinct.str.extract_groups(_BUCKET).struct.unnest()
    if not buckets["1"].has_nulls() and buckets["2"].n_unique() == 1:
        of = buckets["2"][0]
        return buckets["1"].cast(pl.Int64).sort().to_list(), lambda number: f"bucket {number} of {of}"
    return None


def whole_sequence(texts: pl.Series) -> list[str]:
    """Every text from the first to the last of a sequence, missing ones included, in order; none where the texts are no
    sequence, where more than half of it is missing (then it is none), and where it has more than _MOST_STEPS."""
    pair = sequence(texts)
    if pair is None:
        return []
    numbers, text = pair
    first, last = numbers[0], numbers[-1]
    if last - first + 1 > min(2 * len(numbers), _MOST_STEPS):
        return []
    return [text(number) for number in range(first, last + 1)]


def short_names(partitions: pl.Series, names: Sequence[str], among: Sequence[str] = ()) -> pl.Series:
    """Partitions' texts for a narrow column: where there are several keys (`names`) their values alone (`2026-09/EWR`),
    as the table has them, and moments without what is zero (`2026-01-01 21:00`); NO_PARTITION where there is none.
    Those that a filter left of the table's (`among`) are named as without it."""
    partitions = partitions.fill_null(NO_PARTITION)
    texts = (
        partitions.str.replace_all(key_pattern(names), "$1")
        if len(names) > 1 and (partitions.str.contains("/").any() or any("/" in text for text in among))
        else partitions
    )
    short = with_slashes(texts.str.replace_all(MOMENT, " $1$2"))
    return short if short.n_unique() == partitions.n_unique() else texts


def short_name(partition: str, names: Sequence[str]) -> str:
    """A partition's text for a narrow place: where it is long, its values alone (`2026-09/EWR`, `2026-01-01 21:00`)."""
    values = re.sub(MOMENT, r" \1\2", re.sub(key_pattern(names), r"\1", partition))
    text = values if len(partition) > _SHORT and values.strip("/") else partition
    return str(with_slashes(pl.Series([text]))[0])


def with_slashes(texts: pl.Series) -> pl.Series:
    """Partitions' texts with the slashes of their values as the table has them, by which they may look alike."""
    return pl.select(unescape(pl.lit(texts)).alias(texts.name)).to_series()
