"""File numbers to what a log says of those files: 18 columns of statistics as text and as structs, paths, partitions.

The columns are those of a taxi ride table: what rises with time (ids, timestamps), what does not, long texts, decimals,
booleans and arrays that have null counts only. Every value is arithmetic on the file's number: no seed, no clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

import polars as pl
import pyarrow as pa

ROWS_PER_FILE = 10_000
FILES_PER_DAY = 1_000
FIRST_DAY = date(2020, 1, 1)
PARTITION = "day"

_START = datetime(2020, 1, 1, tzinfo=UTC)
_NUMBER = pl.col("file")


def scattered(multiplier: int, below: int) -> pl.Expr:
    """A number from 0 to `below`, the same for the same file, without order."""
    return (_NUMBER * multiplier + 12_345) % 1_000_003 * 7_919 % below


def _moment(offset: pl.Expr) -> pl.Expr:
    """Milliseconds after the start as a timestamp."""
    return (pl.lit(int(_START.timestamp()) * 1000) + offset).cast(pl.Datetime("ms")).dt.replace_time_zone("UTC")


def _money(cents: pl.Expr) -> pl.Expr:
    return cents.cast(pl.Float64) / 100


@dataclass(frozen=True)
class Column:
    """One column: its Delta type, its least and greatest value in a file (None: null counts only), how many nulls."""

    name: str
    type: str
    low: pl.Expr | None
    high: pl.Expr | None
    nulls: pl.Expr


_SECONDS = _NUMBER * 86_400 // FILES_PER_DAY * 1000
_NONE = pl.lit(0, pl.Int64)
_LOW_WORDS = ("airport queue longer than usual", "meter was tested today")
_HIGH_WORDS = ("no remark", "rain in the afternoon, slow traffic")


def _word(multiplier: int, words: tuple[str, ...]) -> pl.Expr:
    """The first 32 characters of a remark."""
    texts = pl.Series([word[:32] for word in words])
    return scattered(multiplier, len(words)).replace_strict(range(len(words)), texts, return_dtype=pl.String)


COLUMNS: tuple[Column, ...] = (
    Column("trip_id", "long", _NUMBER * ROWS_PER_FILE, _NUMBER * ROWS_PER_FILE + ROWS_PER_FILE - 1, _NONE),
    Column("vendor", "integer", pl.lit(1, pl.Int64), scattered(31, 3) + 1, _NONE),
    Column("pickup_at", "timestamp", _moment(_SECONDS), _moment(_SECONDS + 86_399_123), _NONE),
    Column("dropoff_at", "timestamp", _moment(_SECONDS + 240_000), _moment(_SECONDS + 90_000_777), scattered(37, 40)),
    Column("passengers", "integer", pl.lit(0, pl.Int64), scattered(41, 6) + 1, scattered(43, 900)),
    Column("distance", "double", _money(scattered(47, 90)), _money(scattered(53, 9_000) + 100), _NONE),
    Column("rate_code", "integer", pl.lit(1, pl.Int64), scattered(59, 5) + 1, scattered(61, 900)),
    Column("stored", "boolean", None, None, scattered(67, 5)),
    Column("pickup_zone", "integer", scattered(71, 30) + 1, scattered(73, 60) + 200, _NONE),
    Column("dropoff_zone", "integer", scattered(79, 30) + 1, scattered(83, 60) + 200, _NONE),
    Column("payment", "string", pl.lit("card"), pl.lit("unknown"), scattered(89, 20)),
    Column("fare", "double", _money(scattered(97, 500) - 300), _money(scattered(101, 90_000) + 500), _NONE),
    Column("extra", "double", pl.lit(0.0), _money(scattered(103, 800)), scattered(107, 300)),
    Column("tip", "double", pl.lit(0.0), _money(scattered(109, 20_000)), scattered(113, 4_000)),
    Column("tolls", "double", pl.lit(0.0), _money(scattered(127, 5_000)), scattered(131, 100)),
    Column("total", "double", _money(scattered(137, 600) - 300), _money(scattered(139, 99_000) + 800), _NONE),
    Column("remark", "string", _word(149, _LOW_WORDS), _word(151, _HIGH_WORDS), scattered(157, 9_000)),
    Column("stops", "array", None, None, scattered(163, 2_000)),
)

_TYPES: dict[str, tuple[object, pl.DataType]] = {
    "long": ("long", pl.Int64()),
    "integer": ("integer", pl.Int32()),
    "timestamp": ("timestamp", pl.Datetime("us", "UTC")),
    "double": ("double", pl.Float64()),
    "boolean": ("boolean", pl.Boolean()),
    "string": ("string", pl.String()),
    "array": ({"type": "array", "elementType": "integer", "containsNull": True}, pl.List(pl.Int32())),
}
_TEXT: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "timestamp": lambda value: pl.concat_str(pl.lit('"'), value.dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"), pl.lit('"')),
    "string": lambda value: pl.concat_str(pl.lit('"'), value, pl.lit('"')),
}


def schema_string() -> str:
    """The table's schema, its partition column last."""
    fields = [(c.name, _TYPES[c.type][0]) for c in COLUMNS] + [(PARTITION, "date")]
    return json.dumps(
        {"type": "struct", "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields]}
    )


def _day() -> pl.Expr:
    since_1970 = (FIRST_DAY - date(1970, 1, 1)).days
    return (_NUMBER // FILES_PER_DAY + since_1970).cast(pl.Int32).cast(pl.Date)


def _text(column: Column, value: pl.Expr) -> pl.Expr:
    return _TEXT[column.type](value) if column.type in _TEXT else value.cast(pl.String)


def statistics_text() -> pl.Expr:
    """The JSON document of a file, its keys in the schema's order."""
    bounded = [(c, c.low, c.high) for c in COLUMNS if c.low is not None and c.high is not None]
    parts: list[pl.Expr] = [pl.lit(f'{{"numRecords":{ROWS_PER_FILE},"minValues":{{')]
    for which, name in ((1, "maxValues"), (2, "nullCount")):
        for i, (column, low, high) in enumerate(bounded):
            parts += [pl.lit(f'{"," if i else ""}"{column.name}":'), _text(column, low if which == 1 else high)]
        parts.append(pl.lit(f'}},"{name}":{{'))
    for i, column in enumerate(COLUMNS):
        parts += [pl.lit(f'{"," if i else ""}"{column.name}":'), column.nulls.cast(pl.String)]
    return pl.concat_str([*parts, pl.lit("}}")]).alias("stats")


def statistics_struct() -> pl.Expr:
    """The same as `stats_parsed`, every bound in its column's type."""
    bounded = [(c, c.low, c.high) for c in COLUMNS if c.low is not None and c.high is not None]
    return pl.struct(
        pl.lit(ROWS_PER_FILE, pl.Int64).alias("numRecords"),
        pl.struct([low.cast(_TYPES[c.type][1]).alias(c.name) for c, low, _ in bounded]).alias("minValues"),
        pl.struct([high.cast(_TYPES[c.type][1]).alias(c.name) for c, _, high in bounded]).alias("maxValues"),
        pl.struct([c.nulls.cast(pl.Int64).alias(c.name) for c in COLUMNS]).alias("nullCount"),
    ).alias("stats_parsed")


def files(first: int, count: int, *, parsed: bool = False) -> pl.DataFrame:
    """path, day (text), size, modificationTime, stats[, stats_parsed, date] of the files from a number on."""
    frame = pl.DataFrame({"file": pl.int_range(first, first + count, eager=True)})
    day = _day().cast(pl.String)
    name = pl.concat_str(
        pl.lit("day="), day, pl.lit("/part-"), _NUMBER.cast(pl.String).str.zfill(8), pl.lit("-5f0c9d1e-"),
        scattered(167, 9_000).cast(pl.String).str.zfill(4), pl.lit("-4b1a-9c3d-"),
        scattered(173, 900_000).cast(pl.String).str.zfill(12), pl.lit(".c000.snappy.parquet"),
    )  # fmt: skip
    columns = [
        name.alias("path"),
        day.alias("day"),
        (scattered(179, 40_000_000) + 90_000_000).alias("size"),
        (pl.lit(int(_START.timestamp()) * 1000) + _SECONDS + 100_000_000).alias("modificationTime"),
        statistics_text(),
    ]
    if parsed:
        columns += [statistics_struct(), _day().alias("date")]
    return frame.select(columns)


def arrow_struct(frame: pl.DataFrame, column: str) -> pa.Array:
    """A struct column as Arrow, its texts as plain strings."""
    array = frame.select(column).to_arrow().column(0).combine_chunks()
    return array.cast(_plain(array.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _plain(f.type)) for f in kind])
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind
