"""Two frames to what differs between them, as multisets of rows.

Nulls equal nulls, NaN equals NaN, instants are compared in UTC and zoneless timestamps as they stand, decimals exactly,
maps without order, nested values all the way down. Types count too: a long is no int, and an instant no zoneless time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.variant_utils import VariantUtils

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # zoneless on purpose: both kinds are counted from here
MOST_MESSAGES = 5  # differences told for one pair of frames


def read_rows(path: Path) -> pa.Table:
    """Expected rows. INT96 becomes microseconds: nanoseconds overflow silently before 1677 and after 2262.

    Variants, stored as their two binaries, become the JSON text that Spark makes of them.
    """
    table = pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read()
    columns = [with_variant_text(table[name].combine_chunks()) for name in table.column_names]
    return pa.table(columns, names=table.column_names)


def with_variant_text(array: pa.Array) -> pa.Array:
    """The array with text where it holds variants, in structs of structs too."""
    if not pa.types.is_struct(array.type):
        return array
    if sorted(field.name for field in array.type) == ["metadata", "value"]:
        texts = [None if v is None else VariantUtils.to_json(v["value"], v["metadata"]) for v in array.to_pylist()]
        return pa.array(texts, pa.string())
    parts = [with_variant_text(part) for part in array.flatten()]
    fields = [field.with_type(part.type) for field, part in zip(array.type, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())


def differences(expected: pa.Table, actual: pl.DataFrame) -> list[str]:
    """What tells `actual` from `expected`, one sentence each; empty when they hold the same rows."""
    rows_read = pa.table({name: actual[name].to_arrow() for name in actual.columns}) if actual.width else pa.table({})
    if sorted(rows_read.column_names) != sorted(expected.column_names):
        return [f"columns {rows_read.column_names}, expected {expected.column_names}"]
    problems = []
    for name in expected.column_names:
        expected_type, actual_type = (
            type_name(expected.schema.field(name).type),
            type_name(rows_read.schema.field(name).type),
        )
        if expected_type != actual_type:
            problems.append(f"column {name!r} is {actual_type}, expected {expected_type}")
    if expected.num_columns and actual.height != expected.num_rows:
        problems.append(f"{actual.height} rows, expected {expected.num_rows}")
    if problems:
        return problems
    wanted_rows, given_rows = Counter(rows(expected)), Counter(rows(rows_read.select(expected.column_names)))
    missing, extra = wanted_rows - given_rows, given_rows - wanted_rows
    messages = [f"row missing ({count} times): {row}" for row, count in list(missing.items())[:MOST_MESSAGES]]
    messages += [f"row not expected ({count} times): {row}" for row, count in list(extra.items())[:MOST_MESSAGES]]
    return messages


def rows(table: pa.Table) -> Iterator[tuple[Hashable, ...]]:
    """Every row as a tuple that equals another one exactly when the rows are the same."""
    columns = []
    for name in table.column_names:
        canonical = canonicaliser(table.schema.field(name).type)
        columns.append([canonical(value) for value in table[name].to_pylist()])
    return zip(*columns, strict=True)


def type_name(kind: pa.DataType) -> str:
    """A type's name, the same for every Arrow encoding of it (large and view types, names of list elements)."""
    if pa.types.is_dictionary(kind):
        return type_name(kind.value_type)
    if is_list(kind):
        element = kind.value_type
        # polars keeps a map as a list of its entries
        return (
            type_name(pa.map_(element[0].type, element[1].type)) if is_entry(element) else f"list<{type_name(element)}>"
        )
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {type_name(field.type)}' for field in kind)}>"
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp without zone"
    if pa.types.is_time(kind):
        return "time"
    return str(kind)


def is_list(kind: pa.DataType) -> bool:
    """Any of Arrow's list types."""
    return isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType)


def is_entry(kind: pa.DataType) -> bool:
    """A struct of `key` and `value`: what a map becomes where there is no map type."""
    return pa.types.is_struct(kind) and [field.name for field in kind] == ["key", "value"]


def canonicaliser(kind: pa.DataType) -> Callable[[Any], Hashable]:
    """The function from a value of this type, as Python holds it, to something hashable that equals its equals."""
    if is_list(kind) and not is_entry(kind.value_type):
        element = canonicaliser(kind.value_type)
        return lambda value: None if value is None else tuple(element(item) for item in value)
    if pa.types.is_map(kind) or is_list(kind):
        entry = kind.value_type if is_list(kind) else None
        key = canonicaliser(entry[0].type if entry is not None else kind.key_type)
        item = canonicaliser(entry[1].type if entry is not None else kind.item_type)

        def canonical_map(value: Any) -> Hashable:
            if value is None:
                return None
            pairs = [(pair["key"], pair["value"]) if isinstance(pair, dict) else pair for pair in value]
            return frozenset(Counter((key(k), item(v)) for k, v in pairs).items())

        return canonical_map
    if pa.types.is_struct(kind):
        fields = [(field.name, canonicaliser(field.type)) for field in kind]
        return lambda value: None if value is None else tuple((name, of(value[name])) for name, of in fields)
    return scalar


def scalar(value: Any) -> Hashable:
    """A single value; floats that are not numbers equal each other, moments become microseconds since 1970."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, datetime):
        zoneless = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return ("instant" if value.tzinfo else "zoneless", (zoneless - EPOCH) // timedelta(microseconds=1))
    if value is None or isinstance(value, str | bytes | bool | int | float | Decimal | date | time):
        return value
    raise TypeError(f"no rule for comparing {type(value).__name__}")


def net(changed: pl.DataFrame, columns: list[str]) -> dict[tuple[Hashable, ...], int]:
    """Each row that came or went, and how often more it came (negative: it went); rows that were only copied cancel.

    `changed`: what `changes` or `difference` of a table gives.
    """
    counts: Counter[tuple[Hashable, ...]] = Counter()
    for kind, sign in (("insert", 1), ("delete", -1)):
        for row in rows(changed.filter(pl.col("_change_type") == kind).select(columns).to_arrow()):
            counts[row] += sign
    return {row: number for row, number in counts.items() if number}
