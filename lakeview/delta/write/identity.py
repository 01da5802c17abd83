"""Identity columns: the values that a table gives to new rows, and how far they have got (today's protocol, Identity
Columns)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import polars as pl

from lakeview.model.data_types import Field
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.model.schema import Schema

_START, _STEP, _MARK = "delta.identity.start", "delta.identity.step", "delta.identity.highWaterMark"
_EXPLICIT = "delta.identity.allowExplicitInsert"
_LEAST, _MOST = -(2**63), 2**63 - 1

Allocate = Callable[["Identity", int], int]
"""Gives the first of so many values of an identity column, which no other call gets."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A column whose values begin at `start` and go on by `step`; `mark`: the last one given, None before the first."""

    column: str
    start: int
    step: int
    mark: int | None
    explicit: bool

    def next(self) -> int:
        """The value that the next row gets."""
        # "value = start + k * step where k is a non-negative integer", whatever an engine has recorded as the mark
        steps = 0 if self.mark is None else max((self.mark - self.start) // self.step + 1, 0)
        return self.start + steps * self.step

    def values(self, count: int, allocate: Allocate | None) -> pl.Series:
        """The next values. InvalidRequestError without `allocate`, or a value is no long any more."""
        if allocate is None:
            raise InvalidRequestError(
                f"column {self.column} is an identity column, whose values one process gives",
                fix="write the rows in one process: append() of the table",
                place=self.column,
                kind="identity-column",
            )
        first = allocate(self, count)
        last = first + self.step * max(count - 1, 0)
        if not (_LEAST <= first <= _MOST and _LEAST <= last <= _MOST):
            raise InvalidRequestError(
                f"identity column {self.column} has no value left: the next would be {last}",
                fix="make the column a decimal in a new table",
                place=self.column,
                kind="identity-column",
            )
        return pl.Series(self.column, range(first, last + self.step, self.step), dtype=pl.Int64) if count else _NONE

    def check_explicit(self) -> None:
        """ConstraintViolationError unless rows may bring values of their own."""
        if not self.explicit:
            raise ConstraintViolationError(
                f"column {self.column} is generated always as identity, and the rows give it values",
                fix="leave the column out",
                place=self.column,
                kind="identity-column",
            )

    def check_default(self) -> None:
        """ConstraintViolationError: rows that are there keep their values, or are given others."""
        self.check_explicit()
        raise ConstraintViolationError(
            f"column {self.column} is an identity column: DEFAULT has no value for rows that are there",
            fix="leave the column out, or give a number",
            place=self.column,
            kind="identity-column",
        )


_NONE = pl.Series("identity", [], dtype=pl.Int64)


def identities(schema: Schema) -> tuple[Identity, ...]:
    """The identity columns of a schema."""
    return tuple(_identity(f) for f in schema if _START in f.metadata)


def check_identities(names: Collection[str], schema: Schema) -> None:
    """ConstraintViolationError if a column that is set is one whose values the table alone gives."""
    for identity in identities(schema):
        if identity.column in names:
            identity.check_explicit()


def with_marks(schema: Schema, marks: Mapping[str, int]) -> Schema:
    """The schema with the last values that these identity columns have given."""
    return Schema(
        tuple(replace(f, metadata={**f.metadata, _MARK: marks[f.name]}) if f.name in marks else f for f in schema)
    )


def _identity(field: Field) -> Identity:
    metadata = field.metadata
    mark = metadata.get(_MARK)
    return Identity(
        field.name,
        int(metadata[_START]),
        int(metadata.get(_STEP) or 1),
        None if mark is None else int(mark),
        metadata.get(_EXPLICIT) is True,
    )
