"""Assignments to columns and to fields of structs: the columns that their values make, and the rows of an update."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.identity import check_identities
from lakeview.delta.write.rewrites import Change, Numbers
from lakeview.delta.write.row_changes import RowChanges
from lakeview.delta.write.row_rules import RowRules, default_of, row_rules
from lakeview.delta.write.schema_changes import Path, column_path
from lakeview.delta.write.stored_columns import holds_variants, readable_rows
from lakeview.model.arguments import mapping_of
from lakeview.model.clock import Clock, system_clock
from lakeview.model.data_types import DataType, Field, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import choices
from lakeview.model.schema import Schema, find_field, polars_type
from lakeview.predicates.row_wise import row_wise
from lakeview.rows.matching import evaluate, frame_of

_GENERATED = "delta.generationExpression"

Assignments: TypeAlias = Mapping[str, str | pl.Expr]
"""Column, or field of a struct as `a.b` -> what it is set to: an expression in SQL over the columns of the row, the
word DEFAULT, or one of polars. A column whose own name has a dot goes before a field; back-quotes around each name
(`a`.`b`) say which."""


class Assignment(NamedTuple):
    """A value that is assigned. `is_variant`: to a variant, or to what holds one."""

    value: pl.Expr
    is_variant: bool


def check_assignments(
    assignments: Assignments, table: Schema, columns: Schema, *, is_new: bool = False, clock: Clock = system_clock
) -> dict[Path, Assignment]:
    """Assignments to columns of a table, their values over `columns`, by their paths in the table's spelling.
    `is_new`: they make new rows; `clock`: gives the time that a default may be.

    InvalidRequestError for a column that is not there, for two assignments to one place (kind twice-assigned), for a
    field of a new row's struct, and for what is no expression over the columns of one row; ConstraintViolationError for
    an identity column of a row that is there, whose values the table alone gives.
    """
    by_path: dict[Path, Assignment] = {}
    for column, value in mapping_of(assignments, "assignments").items():
        path = (column,) if column in table else column_path(column)
        path, field = _field(table, path)
        if is_new and path[1:]:
            raise InvalidRequestError(
                f"{'.'.join(path)} is a field of a struct, and a new row has none to set it in",
                fix=f"give {path[0]} a whole struct",
                place="assignments",
                kind="field-of-new-row",
            )
        for other in by_path:
            if path[: len(other)] == other[: len(path)]:  # one is the other, or a part of it
                raise InvalidRequestError(
                    f"{'.'.join(other)} and {column} are assigned to at once",
                    fix="leave one of them out",
                    place="assignments",
                    kind="twice-assigned",
                )
        if not _asks_for_default(value, columns):
            expression = row_wise(value, columns, "assignments")
        elif is_new or _GENERATED in field.metadata:  # what is not assigned has its default, or is computed
            continue
        else:
            expression = default_of(field, clock)
        if isinstance(value, str):
            expression = _constant(expression, field)
        by_path[path] = Assignment(expression, holds_variants(field))
    if not is_new:
        check_identities({path[0] for path in by_path}, table)
    return by_path


def _asks_for_default(value: str | pl.Expr, columns: Schema) -> bool:
    """Whether a value is the keyword DEFAULT, and no column of that name (delta protocol, Default Columns)."""
    is_keyword = isinstance(value, str) and value.strip().upper() == "DEFAULT"
    return is_keyword and find_field(columns.fields, "DEFAULT") is None


def _constant(value: pl.Expr, field: Field) -> pl.Expr:
    """A constant of SQL as a value of the field: 1.5 is a decimal to polars, and any number with a point to users."""
    if field.type not in (PrimitiveType("float"), PrimitiveType("double")) or value.meta.root_names():
        return value
    try:
        (dtype,) = pl.LazyFrame().select(value).collect_schema().dtypes()
    except pl.exceptions.PolarsError:  # the error of evaluating it names the column
        return value
    return value.cast(polars_type(field.type)) if isinstance(dtype, pl.Decimal) else value


def _field(table: Schema, path: Path) -> tuple[Path, Field]:
    """The field at a path, and the path as the table spells it."""
    field = find_field(table.fields, path[0])
    if field is None:
        table.require(path[:1], place="assignments")
    assert field is not None
    names_so_far = [field.name]
    for name in path[1:]:
        fields = field.type.fields if isinstance(field.type, StructType) else ()
        inner = find_field(fields, name)
        if inner is None:
            above, names = ".".join(names_so_far), [f.name for f in fields]
            raise InvalidRequestError(
                f"there is no field {name} in {above}" if names else f"{above} is {field.type}, which is no struct",
                fix=choices(name, names) if names else "set the whole of it",
                place="assignments",
                kind="unknown-column",
            )
        field = inner
        names_so_far.append(field.name)
    return tuple(names_so_far), field


def with_values(rows: pa.RecordBatch, names: Sequence[str], values: Mapping[Path, pa.Array]) -> pa.RecordBatch:
    """The columns of these names, with the values at their paths in place of what is there."""
    columns = []
    for name in names:
        own = {path[1:]: array for path, array in values.items() if path[0] == name}
        columns.append(own[()] if () in own else _with_fields(rows.column(name), own))
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def with_other_fields(values: pa.Array, rows: pa.Array, type_: DataType) -> pa.Array:
    """Values for a column of this type, with the fields of its structs that they lack as the rows have them. A struct
    that lacks some is null where both are.

    Of an update that sets all columns: delta-spark "preserve[s] target-only struct fields" there (PR 5481), and not in
    lists and maps.
    """
    if not _lacks_fields(values.type, type_):
        return values
    assert isinstance(type_, StructType)
    names = [field.name for field in values.type]
    parts = dict(zip(names, values.flatten(), strict=True))
    arrays = {}
    for field, part in zip(type_.fields, rows.flatten(), strict=True):  # with the nulls of the struct in each field
        same_names = (other for other in names if other.casefold() == field.name.casefold())
        name = field.name if field.name in parts else next(same_names, None)
        arrays[field.name] = part if name is None else with_other_fields(parts.pop(name), part, field.type)
    both_null = pc.and_(values.is_null(), rows.is_null())
    return pa.StructArray.from_arrays([*arrays.values(), *parts.values()], [*arrays, *parts], mask=both_null)


def _lacks_fields(type_: pa.DataType, table_type: DataType) -> bool:
    """Whether a type has a struct, outside of lists and maps, that lacks a field of the table's type."""
    if not (isinstance(table_type, StructType) and pa.types.is_struct(type_)):
        return False
    types = {field.name.casefold(): field.type for field in type_}
    names = [field.name.casefold() for field in table_type.fields]
    return any(
        name not in types or _lacks_fields(types[name], field.type)
        for name, field in zip(names, table_type.fields, strict=True)
    )


def _with_fields(array: pa.Array, values: Mapping[Path, pa.Array]) -> pa.Array:
    """A column with the values at paths below it. A null struct becomes one whose other fields are null, as in Spark:
    `generateUpdateExpressions` of delta-spark makes a named struct of the values and of the fields that are left."""
    if not values:
        return array
    if () in values:
        return values[()]
    names = [field.name for field in array.type]
    parts = zip(names, array.flatten(), strict=True)  # with the nulls of the struct in each field
    fields = [_with_fields(part, {p[1:]: v for p, v in values.items() if p[0] == name}) for name, part in parts]
    return pa.StructArray.from_arrays(fields, names)


def changed_rows(assignments: Assignments, work: RowChanges) -> Change:
    """What assignments make of rows of the table; errors as `check_assignments`, and for none."""
    if not mapping_of(assignments, "assignments"):
        raise InvalidRequestError("an update without assignments changes nothing", fix="say which columns to set")
    schema = work.context.schema
    by_path = check_assignments(assignments, schema, schema, clock=work.writer.clock)
    # what is assigned to a variant sees other variants as their bytes, which it keeps
    others = [assignment.value for assignment in by_path.values() if not assignment.is_variant]
    text_names = {name for e in others for name in e.meta.root_names()}
    rules = rules_of_changes(work.context)

    def change(rows: pa.RecordBatch, _: Numbers) -> pa.RecordBatch:
        stored_frame = frame_of(rows)
        as_text = readable_rows(rows, schema, text_names)
        frame = stored_frame if as_text is rows else frame_of(as_text)
        values = {
            path: evaluate(stored_frame if is_variant else frame, value, f"the value of column {'.'.join(path)}")
            for path, (value, is_variant) in by_path.items()
        }
        return updated_rows(rows, {path: series.to_arrow() for path, series in values.items()}, rules, work)

    return change


def updated_rows(
    rows: pa.RecordBatch, values: Mapping[Path, pa.Array], rules: RowRules, work: RowChanges
) -> pa.RecordBatch:
    """Rows of the table with these values, before and after as change data. Columns that the table generates follow
    their columns; the version of a row's last change is that of this commit."""
    computed_names = {rule.name for rule in rules.generations} - {path[0] for path in values}
    names = [name for name in rules.schema.names if name not in computed_names]
    fill_missing = work.context.fill_missing
    after = rules.conform(with_values(rows, names, values), clock=work.writer.clock, fill_missing=fill_missing)
    if work.context.feed:
        work.record("update_preimage", [rows])
        work.record("update_postimage", [after])
    if not work.context.tracked_fields:
        return after
    row_id, version = (field.name for field in work.context.tracked_fields)
    after = after.append_column(pa.field(row_id, pa.int64()), rows.column(row_id))
    return after.append_column(pa.field(version, pa.int64()), pa.nulls(rows.num_rows, pa.int64()))


def rules_of_changes(context: WriteContext) -> RowRules:
    """The rules for rows that were in the table before: their identities and defaults are what they hold."""
    rules = context.rules or row_rules(context.schema, {})
    return replace(rules, identities=(), defaults=(), stored_variants=True)
