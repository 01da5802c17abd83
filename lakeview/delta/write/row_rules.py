"""What a table demands of each row: columns that it computes are filled in, its constraints are checked."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakeview.delta.data.column_rules import Rule, recorded_rules
from lakeview.delta.write.identity import Allocate, Identity, identities
from lakeview.delta.write.stored_columns import readable_rows, with_variant_binaries
from lakeview.model.clock import Clock
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError, UnsupportedTableError
from lakeview.model.printable import example_text, shorten
from lakeview.model.schema import Schema, polars_type
from lakeview.predicates.condition import row_expression
from lakeview.predicates.evaluation import reason
from lakeview.rows.conform import check_nulls, conform_batch

_MOMENTS = ("current_timestamp", "now", "current_date", "curdate")
"""Functions of Spark, without brackets, whose value is the moment of the write."""


_MAY_BE_EMPTY = (PrimitiveType("string"), PrimitiveType("binary"))


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of the table in Spark's SQL. `name`: of the constraint, or of the column that it is about."""

    name: str
    text: str


@dataclass(frozen=True)
class RowRules:
    """The rules of one version of a table, as a value that can travel to another process.

    `checks` have to be true of each row (CHECK constraints of the table and invariants of its columns; null is not
    true); `generated` columns hold what their expression gives; `defaults` stand for columns that the rows lack.
    `partition_columns`: an empty text or sequence of bytes in one is null before any rule sees it, as it is in the log.
    `stored_variants`: rows are made with variants as VARIANT_BINARIES, of bytes and of JSON text.
    """

    schema: Schema
    checks: tuple[Expression, ...] = ()
    generations: tuple[Expression, ...] = ()
    defaults: tuple[Expression, ...] = ()
    identities: tuple[Identity, ...] = ()
    partition_columns: tuple[str, ...] = ()
    stored_variants: bool = False

    def conform(
        self,
        batch: pa.RecordBatch,
        *,
        clock: Clock,
        allocate: Allocate | None = None,
        fill_missing: bool = False,
        first: int = 0,
    ) -> pa.RecordBatch:
        """The batch as `conform_batch` makes it, with the columns that the table computes, every rule kept.

        ConstraintViolationError names the rule, how many rows break it and the first; UnsupportedTableError a rule that
        cannot be evaluated here, and an identity column without `allocate`.
        """
        names = {name.casefold() for name in batch.schema.names}
        computed_names = [e.name for e in (*self.generations, *self.defaults)] + [i.column for i in self.identities]
        absent = {name for name in computed_names if name.casefold() not in names}
        rows = conform_batch(batch, self._target(absent), fill_missing=fill_missing, first=first)
        rows = null_for_empty(rows, self.schema, self.partition_columns)
        if not (self.checks or computed_names):
            return rows
        for identity in self.identities:
            if identity.column not in absent:
                identity.check_explicit()
            else:
                rows = self._with(rows, identity.column, identity.values(rows.num_rows, allocate), first)
        for default in self.defaults:
            if default.name in absent:
                rows = self._with(rows, default.name, self._default(default, rows.num_rows, clock), first)
        return self._check(rows, absent, first)

    def _target(self, absent: set[str]) -> Schema:
        """The schema of rows before the absent columns are computed: these may be null."""
        schema = self.schema
        if absent:
            schema = Schema(tuple(replace(f, nullable=f.nullable or f.name in absent) for f in schema))
        return with_variant_binaries(schema) if self.stored_variants else schema

    def _check(self, rows: pa.RecordBatch, absent: set[str], first: int) -> pa.RecordBatch:
        frame = self._frame(rows)
        for rule in self.generations:
            values = self._generate(rule, frame)
            if rule.name in absent:
                rows = self._with(rows, rule.name, values, first)
                frame = self._frame(rows)
            else:
                what = f"column {rule.name}, which is generated as {rule.text}"
                self._refuse(~values.eq_missing(frame[rule.name]), frame, first, rule, what, "generated-column")
        for rule in self.checks:
            holds = self._condition(rule, frame).fill_null(value=False)
            self._refuse(~holds, frame, first, rule, f"constraint {rule.name} ({rule.text})", "check-constraint")
        return rows

    def _refuse(
        self, is_bad: pl.Series, frame: pl.DataFrame, first: int, rule: Expression, what: str, kind: str
    ) -> None:
        if not is_bad.any():
            return
        place = is_bad.arg_max() or 0
        row = frame.row(place, named=True)
        names = [rule.name, *self._expressions[rule.text].meta.root_names()]
        values = ", ".join(f"{n} = {example_text(row[n])}" for n in dict.fromkeys(names) if n in row)
        raise ConstraintViolationError(
            f"{is_bad.sum():,} of {frame.height:,} rows break {what}; "
            f"the first is row {first + place:,}, from 0: {values}",
            fix="correct the rows, or leave them out",
            place=rule.name,
            kind=kind,
        )

    @cached_property
    def _expressions(self) -> Mapping[str, pl.Expr]:
        """Each text as an expression over the schema's columns."""
        return {e.text: parse_rule(e, self.schema) for e in (*self.checks, *self.generations)}

    def check_evaluates(self) -> None:
        """UnsupportedTableError for a rule that cannot be evaluated, before any row is there."""
        if not (self.checks or self.generations):
            return
        empty = self._frame(pa.RecordBatch.from_pylist([], self.schema.as_nullable().to_arrow()))
        for rule in self.checks:
            self._condition(rule, empty)
        for rule in self.generations:
            self._generate(rule, empty)

    def _condition(self, rule: Expression, frame: pl.DataFrame) -> pl.Series:
        values = _values(frame, self._expressions[rule.text], rule)
        if values.dtype not in (pl.Boolean, pl.Null):
            raise _not_evaluated(rule, f"it is {values.dtype}, not true or false")
        return values.cast(pl.Boolean)

    def _generate(self, rule: Expression, frame: pl.DataFrame) -> pl.Series:
        return self._cast_values(rule, _values(frame, self._expressions[rule.text], rule))

    def _default(self, rule: Expression, count: int, clock: Clock) -> pl.Series:
        values = _values(pl.DataFrame({"": [0]}), _default(rule, clock), rule)
        return self._cast_values(rule, values).new_from_index(0, count)

    def _cast_values(self, rule: Expression, values: pl.Series) -> pl.Series:
        """What a rule gives, as its column holds it."""
        try:
            result = values.cast(polars_type(self.schema[rule.name].type))
        except pl.exceptions.PolarsError as error:
            raise _not_evaluated(rule, reason(error)) from error
        may_be_empty = rule.name in self.partition_columns and _is_null_for_empty(self.schema[rule.name])
        return result.set(result.cast(pl.Binary).bin.size() == 0, None) if may_be_empty else result

    def _frame(self, rows: pa.RecordBatch) -> pl.DataFrame:
        """The columns that some rule names: others may be of types that polars has no form for."""
        names = {n for e in self._expressions.values() for n in e.meta.root_names()} | {
            e.name for e in self.generations
        }
        batch = readable_rows(rows, self.schema, names) if self.stored_variants else rows
        columns = {n: pl.from_arrow(batch.column(i)) for i, n in enumerate(self.schema.names) if n in names}
        return pl.DataFrame(columns) if columns else pl.DataFrame(height=rows.num_rows)

    def _with(self, rows: pa.RecordBatch, name: str, values: pl.Series, first: int) -> pa.RecordBatch:
        index = self.schema.names.index(name)
        target = rows.schema.field(index)
        array = values.to_arrow().cast(target.type)
        check_nulls(array, self.schema.select([name]).to_arrow().field(0), name, first)
        return rows.set_column(index, target, array)


def null_for_empty(rows: pa.RecordBatch, schema: Schema, partition_columns: Sequence[str]) -> pa.RecordBatch:
    """Rows of these columns with null for an empty text or sequence of bytes in partition columns that are nullable."""
    # "An empty string for any type translates to a null partition value"  delta protocol, Partition Value
    # Serialization
    for name in partition_columns:
        if name in schema and _is_null_for_empty(schema[name]):
            index = schema.names.index(name)
            values = rows.column(index)
            has_length = pc.binary_length(values).cast(pa.bool_())
            column = pc.if_else(has_length, values, pa.nulls(1, values.type)[0])
            rows = rows.set_column(index, rows.schema.field(index), column)
    return rows


def _is_null_for_empty(field: Field) -> bool:
    return field.nullable and field.type in _MAY_BE_EMPTY


def row_rules(schema: Schema, properties: Mapping[str, str], partition_columns: Sequence[str] = ()) -> RowRules:
    """The rules of a table with this schema, these properties and partition columns.

    UnsupportedTableError for one that cannot be evaluated here: rows that break it would be in the table unseen.
    """
    entries = recorded_rules(schema, properties)
    rules_by_kind = {kind: tuple(_of(entries, kind)) for kind in ("generated", "default")}
    for rule in (*rules_by_kind["generated"], *rules_by_kind["default"]):
        if rule.name not in schema:
            raise _not_evaluated(rule, "it is of a field within a column")
    rules = RowRules(
        schema,
        checks=(*_of(entries, "check"), *_of(entries, "invariant")),
        generations=rules_by_kind["generated"],
        defaults=rules_by_kind["default"],
        identities=identities(schema),
        partition_columns=tuple(partition_columns),
    )
    rules.check_evaluates()
    return rules


def check_rules(schema: Schema, properties: Mapping[str, str], partition_columns: Sequence[str] = ()) -> None:
    """UnsupportedTableError for a rule that a table is to have and that cannot be evaluated here: it would have every
    write refused. A default of a column has only those refused whose rows lack the column."""
    with new_rules():
        row_rules(schema, properties, partition_columns)


@contextmanager
def new_rules() -> Iterator[None]:
    """Around rules that a table is to have: what cannot be evaluated can still be written otherwise."""
    try:
        yield
    except UnsupportedTableError as error:
        fix = "write the rule otherwise: with comparisons, arithmetic and functions that lakeview has"
        raise UnsupportedTableError(error.message, fix=fix, place=error.place, kind=error.kind) from error


def _of(every: Sequence[Rule], kind: str) -> Iterator[Expression]:
    return (Expression(rule.name or _name(rule.column or ""), rule.rule) for rule in every if rule.kind == kind)


def _name(column: str) -> str:
    """A column of the table by its own name, which RULES back-quotes where it holds a dot."""
    return column[1:-1].replace("``", "`") if column.startswith("`") and column.endswith("`") else column


def default_of(field: Field, clock: Clock) -> pl.Expr:
    """What DEFAULT stands for in an assignment to a field, in its type: the default that it has, else null.

    UnsupportedTableError for one that cannot be evaluated here, ConstraintViolationError for an identity column.
    """
    for identity in identities(Schema((field,))):
        identity.check_default()
    text = field.metadata.get("CURRENT_DEFAULT")
    if text is None:
        return pl.lit(None)
    return _default(Expression(field.name, str(text)), clock).cast(polars_type(field.type))


def _default(rule: Expression, clock: Clock) -> pl.Expr:
    if rule.text.strip().lower().removesuffix("()") in _MOMENTS:
        return pl.lit(clock(), pl.Datetime("us", "UTC"))
    return parse_rule(rule, Schema())


def parse_rule(rule: Expression, schema: Schema) -> pl.Expr:
    """A rule as an expression. UnsupportedTableError where it cannot be evaluated here: it would stop every write."""
    try:
        return row_expression(rule.text, schema, "spark")
    except InvalidRequestError as error:
        raise _not_evaluated(rule, error.message) from error


def _values(frame: pl.DataFrame, expression: pl.Expr, rule: Expression) -> pl.Series:
    try:
        values = frame.select(expression.alias("value")).to_series()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _not_evaluated(rule, reason(error)) from error
    return values if values.len() == frame.height else values.new_from_index(0, frame.height)


def _not_evaluated(rule: Expression, why: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"the table's rule {rule.name} ({shorten(rule.text, 200)}) cannot be evaluated here: {why}",
        fix="write the table with the engine that made the rule, or drop the rule there",
        place=rule.name,
        kind="rule-not-evaluated",
    )
