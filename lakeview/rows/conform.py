"""Batches of rows to the columns of a table: every field has its place and every value is kept, or they are refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.model.data_types import VARIANT_BINARIES, DataType, Field
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.rows.arrays import whole
from lakeview.rows.casts import ValueMisfitError, conform
from lakeview.rows.exact_casts import exact, misfit_of_types
from lakeview.rows.variant import is_variant, stored_variants, variant_binaries, variant_text


def conform_batch(
    batch: pa.RecordBatch, schema: Schema, *, fill_missing: bool = False, first: int = 0
) -> pa.RecordBatch:
    """The batch in the table's columns, types and order, everything nullable; no value is altered.

    Columns and fields are matched by name: exactly, else ignoring case. One that the table lacks is refused at every
    depth, and so is one that the rows lack, by its path (`s.b`, `items.element.b`, `m.value.x`). Null stands for a
    nullable column that the rows lack and, with `fill_missing`, for fields of structs too. `first`: the number of the
    batch's first row, for messages. InvalidRequestError (kinds unknown-column, missing-field, duplicate-column,
    ambiguous-column, type-mismatch), ConstraintViolationError (kind not-null).
    """
    target = schema.as_nullable().to_arrow()
    rules = _Strict(fill_missing)
    places = rules.fields(list(batch.schema), schema.fields, "")
    arrays = []
    for column, index, type_, strict in zip(schema, places, target.types, schema.to_arrow(), strict=True):
        if index is None:
            arrays.append(pa.nulls(batch.num_rows, type_))
            continue
        array = _column(batch.column(index), column, type_, rules, first)
        check_nulls(array, strict, column.name, first)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=target) if arrays else batch


def check_columns_fit(source: pa.Schema, schema: Schema, *, fill_missing: bool = False) -> None:
    """Refuses rows of a schema whose columns or types can never fit, as `conform_batch` does, before there is a row."""
    conform_batch(pa.RecordBatch.from_pylist([], source), schema, fill_missing=fill_missing)


def _column(array: pa.Array, column: Field, target: pa.DataType, rules: _Strict, first: int) -> pa.Array:
    if array.type == target:
        return array
    try:
        return conform(array, column.type, target, column.name, rules)
    except ValueMisfitError as misfit:
        raise InvalidRequestError(
            f"column {rules.failed_column} is {rules.source_type} and does not fit {rules.target}: "
            f"row {first + misfit.position:,} (counted from 0) holds {misfit.value}, which would be altered",
            fix="cast or round the column before writing, or leave the row out",
            place=rules.failed_column,
            kind="type-mismatch",
        ) from misfit


@dataclass(slots=True)
class _Strict:
    """Writing: every field of the rows has its place, every field of the table is given, every value stays.

    After a ValueMisfitError `failed_column` is the path of the column, `source_type` and `target` its types.
    """

    fill_missing: bool
    failed_column: str = ""
    source_type: pa.DataType | None = None
    target: pa.DataType | None = None

    def fields(self, source_fields: Sequence[pa.Field], table_fields: Sequence[Field], path: str) -> list[int | None]:
        exactly = {field.name: i for i, field in enumerate(source_fields)}
        by_folded_name = {name.casefold(): i for name, i in exactly.items()}
        names = {field.name for field in table_fields}
        if len(by_folded_name) < len(source_fields):
            _check_distinct([field.name for field in source_fields], names, path)
        # a name that differs by case alone is the same, unless the table has that one too
        other = {name: i for name, i in by_folded_name.items() if source_fields[i].name not in names}
        for name, i in other.items():
            _check_one_place(name, table_fields, path_below(path, source_fields[i].name))
        places = [exactly.get(field.name, other.get(field.name.casefold())) for field in table_fields]
        self._check_missing([f for f, place in zip(table_fields, places, strict=True) if place is None], path)
        if unknown := [field.name for i, field in enumerate(source_fields) if i not in places]:
            raise _unknown_column(path_below(path, unknown[0]), is_field=bool(path))
        return places

    def _check_missing(self, fields: Iterable[Field], path: str) -> None:
        for field in fields:
            if not field.nullable or (path and not self.fill_missing):
                raise _missing(path_below(path, field.name), is_field=bool(path), nullable=field.nullable)

    def leaf(self, array: pa.Array, column_type: DataType, target: pa.DataType, path: str) -> pa.Array:
        try:
            if column_type == VARIANT_BINARIES:
                return self._variants(array, path)
            if pa.types.is_nested(array.type) or pa.types.is_nested(target):
                raise misfit_of_types(path, array.type, target)
            return exact(array, target, path)
        except ValueMisfitError:
            self.failed_column, self.source_type, self.target = path, array.type, target
            raise

    def _variants(self, array: pa.Array, path: str) -> pa.Array:
        """Variants that were computed: JSON text, or those of another column."""
        if not is_variant(array.type):
            return variant_binaries(exact(array, pa.string(), path), path)
        variants = stored_variants(array, path)
        variant_text(variants, path)  # an expression can make a struct of any bytes
        return variants


def path_below(path: str, name: str) -> str:
    """The path of a field in errors: `a.b`, `b` of a column."""
    return f"{path}.{name}" if path else name


def _check_one_place(key: str, table_fields: Sequence[Field], path: str) -> None:
    """Tables of other formats may have names that differ by case alone."""
    same = [field.name for field in table_fields if field.name.casefold() == key]
    if len(same) > 1:
        raise InvalidRequestError(
            f"{path} of the rows may be {' or '.join(same)}: these names of the table differ only by case",
            fix="spell it as the table does",
            place=path,
            kind="ambiguous-column",
        )


def _check_distinct(names: Sequence[str], table_names: set[str], path: str) -> None:
    """Names may differ by case alone if the table has each of them."""
    if len(set(names)) < len(names) or not set(names) <= table_names:
        raise _twice(names, path)


def _twice(names: Sequence[str], path: str) -> InvalidRequestError:
    keys = [name.casefold() for name in names]
    first, second = [name for name in names if keys.count(name.casefold()) > 1][:2]
    same = (
        f"are both called {path_below(path, first)}" if first == second else f"{path_below(path, first)} and {second}"
    )
    differ = "" if first == second else " differ only by case"
    return InvalidRequestError(
        f"two {'fields' if path else 'columns'} of the rows {same}{differ}, and the table can hold one of them",
        fix="rename one of them, or drop it",
        place=path_below(path, second),
        kind="duplicate-column",
    )


def _unknown_column(path: str, *, is_field: bool) -> InvalidRequestError:
    return InvalidRequestError(
        f"the rows have a {'field' if is_field else 'column'} {path} that the table has not",
        fix="drop it, or add it to the table in the same transaction: evolve(); with Spark the option mergeSchema "
        "of a write, withSchemaEvolution() of a merge",
        place=path,
        kind="unknown-column",
    )


def _missing(path: str, *, is_field: bool, nullable: bool) -> InvalidRequestError | ConstraintViolationError:
    if not nullable:
        return ConstraintViolationError(
            f"column {path} must not be null, and the rows have no such {'field' if is_field else 'column'}",
            fix="add it to the rows",
            place=path,
            kind="not-null",
        )
    return InvalidRequestError(
        f"the rows have no field {path}, and the table has one",
        fix="add it to the rows, as null if need be; append(fill_missing=True) writes null for fields that "
        "the rows lack, with Spark the option mergeSchema of a write, and withSchemaEvolution() of a merge",
        place=path,
        kind="missing-field",
    )


def check_nulls(array: pa.Array, field: pa.Field, path: str, first: int | None = None) -> None:
    """ConstraintViolationError if a column, or a part of one, is null where the schema allows none."""
    if not field.nullable and array.null_count:
        row = "" if first is None else f"; the first is row {first + pc.index(array.is_null(), True).as_py():,}, from 0"
        raise ConstraintViolationError(
            f"column {path} must not be null, and {array.null_count:,} of the rows have none{row}",
            fix="fill the values, or make the column nullable",
            place=path,
            kind="not-null",
        )
    kind = field.type
    if pa.types.is_struct(kind):
        there = array.filter(array.is_valid()) if array.null_count else array
        for i, inner in enumerate(kind):
            check_nulls(there.field(i), inner, f"{path}.{inner.name}")
    elif pa.types.is_list(kind) and _demanding(kind.value_field):
        check_nulls(array.flatten(), kind.value_field, f"{path}.element")
    elif pa.types.is_map(kind):
        entries = whole(array)
        check_nulls(entries.keys, kind.key_field, f"{path}.key")
        if _demanding(kind.item_field):
            check_nulls(entries.items, kind.item_field, f"{path}.value")


def _demanding(field: pa.Field) -> bool:
    """Whether a null may be wrong in it, or below it."""
    kind = field.type
    parts = [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return not field.nullable or pa.types.is_map(kind) or any(_demanding(part) for part in parts)
