"""The source of a merge: its rows by number, its columns as the table spells them, its keys in the table's types, and
which of them match the rows of a file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
import pyroaring

from lakeview.delta.write.rewrites import NO_NUMBERS, Numbers
from lakeview.model.data_types import Field
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema, find_field, polars_type
from lakeview.rows.batches import schema_of

SOURCE_ROW = "\0source"
"""The column of a source row's number, from 0: no column of a table can be called so."""

_LISTED_VALUES = 1_000


class MergeSource:
    """The rows of a source, in memory. `schema`: its columns, by the table's names where they differ by case alone.

    InvalidRequestError for two columns of one name, case aside, and for a type without a form in Arrow.
    """

    def __init__(self, rows: pl.DataFrame, table: Schema) -> None:
        schema = Schema.from_arrow(schema_of(rows))
        self.schema = Schema(tuple(_spelt(f, table) for f in schema))
        if len(set(self.schema.names)) < len(self.schema):
            twice = next(n for n in self.schema.names if self.schema.names.count(n) > 1)
            raise InvalidRequestError(
                f"two columns of the source are called {twice}, case aside",
                fix="rename one of them, or drop it",
                place=twice,
                kind="duplicate-column",
            )
        self._table = table
        self.frame = rows.with_row_index(SOURCE_ROW).with_columns(pl.col(SOURCE_ROW).cast(pl.Int64))
        self.frame.columns = [SOURCE_ROW, *self.schema.names]

    @cached_property
    def numbers(self) -> pl.DataFrame:
        """The number of each row, as SOURCE_ROW."""
        return self.frame.select(SOURCE_ROW)

    def at(self, numbers: pl.Series) -> pl.DataFrame:
        """The rows with these numbers, in their order; a null number gives a row of nulls."""
        return with_names(self.frame[numbers], self.schema.names)

    def without(self, numbers: pyroaring.BitMap64) -> pl.DataFrame:
        """The rows with other numbers than these."""
        met = pl.Series(numbers.to_array(), dtype=pl.Int64)
        return with_names(self.frame.filter(~self.frame[SOURCE_ROW].is_in(met.implode())), self.schema.names)

    def keys(self, pairs: Sequence[tuple[str, str]]) -> pl.DataFrame:
        """SOURCE_ROW, then `comparable_keys` as columns "0", "1" and so on."""
        keys = comparable_keys(self.frame, pairs, self._table)
        return self.numbers.with_columns(values.alias(f"{number}") for number, values in enumerate(keys))


def comparable_keys(source: pl.DataFrame, keys: Sequence[tuple[str, str]], schema: Schema) -> list[pl.Series]:
    """Columns of a source in the types of the columns of the table that they have to equal.

    `keys`: pairs of a column of the table, which has this schema, and one of the source. A null matches nothing, and
    stands for every value that the table's type does not hold, such as 1.5 for a whole number. InvalidRequestError for
    types whose values do not compare.
    """
    columns = []
    for column, other in keys:
        values, type_ = source[other], polars_type(schema[column].type)
        if not _comparable(values.dtype, type_):
            raise InvalidRequestError(
                f"source.{other} is {values.dtype}, and target.{column} {type_}: they do not compare",
                fix="cast the column of the source",
                place="on",
                kind="type-mismatch",
            )
        cast = values.cast(type_, strict=False)
        # without the name: `ne_missing` takes one such as ^x$ for a pattern
        misfits = cast.cast(values.dtype, strict=False).alias("").ne_missing(values)
        columns.append(cast.set(misfits, None) if misfits.any() else cast)
    return columns


def _comparable(one: pl.DataType, other: pl.DataType) -> bool:
    """Whether values of two types may be equal: of the same type, or both numbers, or both times."""
    return (
        one == other
        or one == pl.Null()
        or (one.is_numeric() and other.is_numeric())
        or (
            isinstance(one, pl.Datetime)
            and isinstance(other, pl.Datetime)
            and (one.time_zone is None) == (other.time_zone is None)
        )
        or (isinstance(one, pl.Categorical | pl.Enum) and other == pl.String())
    )


def with_names(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Columns by their names alone: polars takes some, such as ^x$, for patterns."""
    return pl.DataFrame({name: frame[name] for name in names})


def key_range(column: str, values: pl.Series) -> pl.Expr:
    """What rows with one of these values satisfy: few of them are listed, of many the ends are taken."""
    values = values.drop_nulls().unique()
    if values.dtype.is_float() and values.is_nan().any():  # it equals itself, and lies in no range
        return pl.col(column).is_nan() | key_range(column, values.drop_nans())
    if values.is_empty():
        return pl.lit(value=False)
    if values.len() <= _LISTED_VALUES and not values.dtype.is_float():
        return pl.col(column).is_in(values.implode())
    return (pl.col(column) >= pl.lit(values.min(), values.dtype)) & (
        pl.col(column) <= pl.lit(values.max(), values.dtype)
    )


def _spelt(field: Field, schema: Schema) -> Field:
    """A column of the source by the table's name for it, where they differ by case alone."""
    own = find_field(schema.fields, field.name)
    return Field(field.name if own is None else own.name, field.type, field.nullable)


@dataclass(slots=True)
class Pairs:
    """Rows of a file and of a source that match. `rows`: positions in the file, ascending, one for each pair; `every`:
    the positions of all live rows, where they are needed."""

    rows: Numbers = field(default_factory=NO_NUMBERS.copy)
    of_source: Numbers = field(default_factory=NO_NUMBERS.copy)
    every: pyroaring.BitMap64 = field(default_factory=pyroaring.BitMap64)

    def add(self, rows: Numbers, of_source: Numbers) -> None:
        """Add pairs of rows behind those that are here."""
        self.rows = np.concatenate([self.rows, rows])
        self.of_source = np.concatenate([self.of_source, of_source])

    @property
    def positions(self) -> pyroaring.BitMap64:
        """The positions that are matched."""
        return pyroaring.BitMap64(self.rows.astype(np.uint64))

    @property
    def matched_source_rows(self) -> pyroaring.BitMap64:
        """The source rows that match any."""
        return pyroaring.BitMap64(self.of_source.astype(np.uint64))

    @property
    def sources(self) -> Numbers:
        """The first source row of each position."""
        return self.of_source[np.diff(self.rows, prepend=-1) > 0]

    def sources_at(self, positions: Numbers) -> Numbers:
        """The first source row of each of some positions that are matched."""
        return self.of_source[np.searchsorted(self.rows, positions)]

    @property
    def is_ambiguous(self) -> bool:
        """Whether several source rows match one position."""
        return bool((np.diff(self.rows) == 0).any())

    def first_ambiguous(self) -> Numbers:
        """The source rows of the first position that several of them match."""
        row = self.rows[np.flatnonzero(np.diff(self.rows) == 0)[0]]
        start, end = np.searchsorted(self.rows, [row, row + 1])
        return self.of_source[start:end]
