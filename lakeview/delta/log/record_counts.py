"""`numRecords` of per-file statistics to a column of row counts."""

import re
from typing import Any

import msgspec
import polars as pl

from lakeview.model import limits

_SPACE = r"[ \t\r\n]*"  # of JSON: to polars \s is that of Unicode
_FIRST_KEY = re.compile(rf'^{_SPACE}\{{{_SPACE}"numRecords"{_SPACE}:{_SPACE}(0|[1-9][0-9]{{0,18}}){_SPACE}[,}}]')
_BEGINNING = '{"numRecords":'
_FROM_ONE, _PAST_NINE = (pl.lit(_BEGINNING + digit) for digit in "1:")  # of documents whose count begins with 1 to 9
_LONGEST = len(_BEGINNING) + len("9223372036854775807,")


class _Records(msgspec.Struct, frozen=True):
    num_records: Any = msgspec.field(name="numRecords", default=None)


def records(stats: pl.Series, struct_counts: pl.Series | None) -> pl.Series:
    """Physical rows of each file; null where statistics do not say.

    `numRecords` is nearly always the first key: it is cut out there, by a pattern where spaces stand around it, and a
    JSON decoder reads what is left.
    """
    counts = stats.to_frame("stats").select(_first_count(pl.col("stats"))).to_series()
    for read in (
        lambda texts: texts.str.extract(_FIRST_KEY.pattern, 1).cast(pl.Int64, strict=False),
        lambda texts: pl.Series(map(_num_records, texts), dtype=pl.Int64),
    ):
        if counts.null_count() == stats.null_count():  # without a document there is no count
            break
        rest = (counts.is_null() & stats.is_not_null()).arg_true()
        counts = counts.scatter(rest, read(stats.gather(rest)))
    if struct_counts is not None:
        counts = pl.select(pl.coalesce(counts, struct_counts)).to_series()
    return counts.set(~counts.is_between(0, limits.FILE_ROWS), None).alias("records")


def row_counts(statistics: pl.Series, stats: pl.Series) -> pl.Series:
    """`records` of documents whose statistics were just read, as structs that have `records`."""
    counts = statistics.struct.unnest()["records"]
    bounds = counts.min(), counts.max()
    if not counts.null_count() and all(isinstance(b, int) and 0 <= b <= limits.FILE_ROWS for b in bounds):
        return counts
    counts = counts.set(counts > limits.FILE_ROWS, None)
    rest = (counts.is_null() & stats.is_not_null()).arg_true()
    return (counts.scatter(rest, records(stats.gather(rest), None)) if rest.len() else counts).alias("records")


def _first_count(stats: pl.Expr) -> pl.Expr:
    """The number between the first key, as writers write it, and a comma; null where there is none, or none that JSON
    has: a cast takes `+5` and `05` as well. A count of 0 is left to the pattern.

    A pattern takes three times as long (`benches/bench_logs.py`, list with records).
    """
    parts = stats.str.head(_LONGEST).str.strip_prefix(_BEGINNING).str.split_exact(",", 1).struct
    is_first = stats.is_between(_FROM_ONE, _PAST_NINE, closed="left") & parts.field("field_1").is_not_null()
    return pl.when(is_first).then(parts.field("field_0").cast(pl.Int64, strict=False))


def records_of(stats: str | None) -> int | None:
    """`records` of one file, without structs."""
    if stats is None:
        return None
    first = _FIRST_KEY.match(stats)
    return _num_records(stats) if first is None else rows(int(first[1]))


def _num_records(text: str) -> int | None:
    try:
        count = msgspec.json.decode(text, type=_Records).num_records
    except (msgspec.DecodeError, RecursionError):
        return None
    return rows(count)


def rows(value: Any) -> int | None:
    """A JSON value as a count of rows of one file: a whole number from 0 to MOST_ROWS, else None."""
    count = whole(value)
    return count if count is None or count <= limits.FILE_ROWS else None


def whole(value: Any) -> int | None:
    """A JSON value as a count: a whole number of 64 bits from 0 on, else None."""
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if fits else None
