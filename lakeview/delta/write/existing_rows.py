"""Rows that are in a table already, checked against a rule that it is to have from now on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.row_rules import Expression
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError, UnsupportedTableError
from lakeview.model.printable import example_text, shorten
from lakeview.model.schema import Schema
from lakeview.predicates.condition import row_expression
from lakeview.predicates.expressions import parse
from lakeview.predicates.tree import Node, Path, complement
from lakeview.rows.matching import evaluate, frame_of
from lakeview.storage import Storage


def condition_of_rule(rule: Expression, schema: Schema) -> pl.Expr:
    """A rule's expression. UnsupportedTableError where it cannot be evaluated here: it would stop every write."""
    try:
        return row_expression(rule.text, schema, "spark")
    except InvalidRequestError as error:
        raise UnsupportedTableError(
            f"the constraint {rule.name} ({shorten(rule.text, 200)}) cannot be evaluated here: {error.message}",
            fix="write it with comparisons, arithmetic and functions that lakeview has, or add it with another engine",
            place=rule.name,
            kind="rule-not-evaluated",
        ) from error


def counterexamples(condition: pl.Expr) -> Node:
    """What rows may break a condition, as a tree by which files are skipped whose statistics prove that none does."""
    return complement(parse(condition))


@dataclass(frozen=True, slots=True)
class Satisfies:
    """A condition that each row has to satisfy."""

    condition: pl.Expr
    subject: str

    @property
    def columns(self) -> list[str]:
        """The columns that it names."""
        return list(dict.fromkeys(self.condition.meta.root_names()))

    def __call__(self, frame: pl.DataFrame) -> pl.Series:
        """Whether each row does. InvalidRequestError for what is neither true nor false."""
        holds = evaluate(frame, self.condition, self.subject)
        if holds.dtype not in (pl.Boolean, pl.Null):
            raise InvalidRequestError(
                f"{self.subject} is {holds.dtype}, not true or false", fix="write a comparison", kind="bad-predicate"
            )
        return holds.cast(pl.Boolean).fill_null(value=False)


@dataclass(frozen=True, slots=True)
class HasValue:
    """A column, or a field of structs, that must not be null in any row; a field of a null struct is null."""

    path: Path
    subject: str

    @property
    def columns(self) -> list[str]:
        """The column."""
        return [self.path[0]]

    def __call__(self, frame: pl.DataFrame) -> pl.Series:
        """Whether it has a value in each row."""
        values = frame[self.path[0]].alias("values")  # a series called ^x$ would be a pattern to polars
        has_value = values.is_not_null()
        for part in self.path[1:]:
            values = values.struct.unnest()[part].alias("values")
            has_value &= values.is_not_null()
        return has_value


def check_rows(files: Iterable[LiveFile], storage: Storage, rule: Satisfies | HasValue) -> None:
    """ConstraintViolationError if a row breaks a rule, with the number of such rows and the first.

    `files`: those whose statistics prove nothing; they are read whole, in the rule's columns.
    """
    broken, example = 0, ""
    for file in files:
        for batch in file.batches(storage, file.task.schema.select(rule.columns)):
            frame = frame_of(batch)
            bad = frame.filter(~rule(frame))
            if bad.height and not broken:
                row = bad.row(0, named=True)
                example = ", ".join(f"{n} = {example_text(v)}" for n, v in row.items()) + f" in {file.task.path}"
            broken += bad.height
    if broken:
        rows = "1 row of the table breaks" if broken == 1 else f"{broken:,} rows of the table break"
        raise ConstraintViolationError(
            f"{rows} {rule.subject}{'' if broken == 1 else '; one of them'}: {example}",
            fix="correct or delete these rows first",
            kind="existing-rows",
        )
