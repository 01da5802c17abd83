"""Changes of the columns of a table, without its rows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from lakeview.delta.data.column_rules import clustering_columns, recorded_rules
from lakeview.delta.features import column_mapping_mode
from lakeview.delta.properties import INDEXED
from lakeview.delta.write.evolution import (
    check_column_metadata,
    check_evolution,
    check_types,
    keep_metadata,
    merge_schemas,
)
from lakeview.delta.write.property_changes import PropertyChanges
from lakeview.delta.write.property_checks import check_reserved_columns
from lakeview.delta.write.row_rules import check_rules
from lakeview.delta.write.schema_changes import (
    Column,
    add,
    column_path,
    drop,
    dropped_from,
    edit,
    is_in_structs,
    is_void,
    rename,
    renamed_in,
    reorder,
    widen,
)
from lakeview.model.data_types import Field
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema, leaf_name
from lakeview.model.type_input import SchemaInput, TypeInput, schema_of, type_of
from lakeview.predicates.condition import row_expression
from lakeview.predicates.tree import IsNull


class ColumnChanges(PropertyChanges):
    """The part of a transaction that changes the table's columns.

    Whatever a change needs of the protocol, the commit upgrades it to; a change that files or rules of the table do not
    bear is refused before anything is written. Columns go by name, fields of structs by path (`a.b`, `("a", "b")`), in
    lists and maps too (`a.element.b`).
    """

    def evolve(self, schema: SchemaInput) -> None:
        """Change the schema: nullable columns and fields of structs may be added, comments changed.

        Columns of the table keep their metadata; comments and nullability too, unless the schema is a lakeview Schema.
        InvalidRequestError for anything else, UnsupportedTableError for a type that is not written.
        """
        old, new_schema = self.definition.schema, schema_of(schema)
        check_evolution(old, new_schema)
        new_schema = keep_metadata(old, new_schema) if isinstance(schema, Schema) else merge_schemas(old, new_schema)
        if new_schema != old:
            self._change_schema(new_schema)

    def add_column(self, column: Column, type_: TypeInput, *, comment: str | None = None) -> None:
        """Add a nullable column, or field of a struct, behind the others; older rows have null in it."""
        *struct, name = column_path(column)
        metadata = {} if comment is None else {"comment": _text(comment, f"comment of {name}")}
        self.evolve(add(self.definition.schema, tuple(struct), Field(name, type_of(type_, name), metadata=metadata)))

    def rename_column(self, column: Column, name: str) -> None:
        """Give a column another name; no file changes. InvalidRequestError unless columns are mapped."""
        self._require_mapping("renamed")
        path = column_path(column)
        self._refuse_used(path, "renamed")
        new_schema = rename(self.definition.schema, path, _text(name, f"new name of {leaf_name(path)}"))
        partitions = [name if p == path[0] and len(path) == 1 else p for p in self.definition.partition_columns]
        self._change_schema(new_schema)
        self.definition.change_metadata(partition_columns=partitions)
        self._change_indexed(lambda columns: renamed_in(columns, path, name))

    def drop_column(self, column: Column) -> None:
        """Take a column out of the table; no file changes. InvalidRequestError unless columns are mapped."""
        self._require_mapping("dropped")
        path = column_path(column)
        self._refuse_used(path, "dropped")
        if path[0] in self.definition.partition_columns:
            raise _in_use(path, "dropped", "the table is partitioned by it")
        name = leaf_name(path)
        cluster_columns = clustering_columns(self.definition.schema, self._base.domain_metadata())
        if any(c == name or c.startswith(f"{name}.") for c in cluster_columns):
            raise _in_use(path, "dropped", "the table is clustered by it")
        rest = drop(self.definition.schema, path)
        if set(rest.names) == set(self.definition.partition_columns):
            raise _in_use(path, "dropped", "beside it there are partition columns alone, and files would hold nothing")
        self._change_schema(rest)
        self._change_indexed(lambda columns: dropped_from(columns, path))

    def widen_column(self, column: Column, type_: TypeInput) -> None:
        """Give a column a type that holds all values of the one it has; no file changes. A void one takes any type.

        InvalidRequestError for a type that does not, and unless the table has `delta.enableTypeWidening` or the column
        is void.
        """
        path = column_path(column)
        if not self.definition.widens_types and not is_void(self.definition.schema, path):
            raise InvalidRequestError(
                "types of the table are not widened: delta.enableTypeWidening is not set, or its feature not supported",
                fix="set it: set_properties({'delta.enableTypeWidening': 'true'})",
                place=leaf_name(path),
                kind="schema-change",
            )
        self._refuse_used(path, "widened")
        # "Writers must reject applying type changes not supported by Iceberg V2 when either [...] is supported"
        iceberg = next(filter(self.definition.supports, ("icebergCompatV1", "icebergCompatV2")), None)
        wider = type_of(type_, leaf_name(path))
        self._change_schema(widen(self.definition.schema, path, wider, iceberg_feature=iceberg))

    def reorder_columns(self, names: Sequence[str]) -> None:
        """Put columns in this order, those that are not named behind."""
        self._change_schema(reorder(self.definition.schema, names))

    def set_comment(self, column: Column, comment: str | None) -> None:
        """Say what a column is, or no longer."""

        def with_comment(field: Field) -> Field:
            rest = {key: value for key, value in field.metadata.items() if key != "comment"}
            return replace(
                field,
                metadata=rest if comment is None else {**rest, "comment": _text(comment, f"comment of {field.name}")},
            )

        self._change_schema(edit(self.definition.schema, column_path(column), with_comment))

    def set_nullable(self, column: Column, nullable: bool) -> None:
        """Let a column hold null, or no longer. ConstraintViolationError if a row has null in it already."""
        path = column_path(column)
        name = leaf_name(path)
        if not isinstance(nullable, bool):
            raise InvalidRequestError(
                f"{name} is nullable or not, not {nullable!r}", fix="give True or False", place=name
            )
        new_schema = edit(self.definition.schema, path, lambda f: replace(f, nullable=nullable))
        if not nullable:
            if not is_in_structs(self.definition.schema, path):
                raise InvalidRequestError(
                    f"{name} lies in a list or map, whose values are not searched for nulls",
                    fix="leave it nullable",
                    place=name,
                    kind="schema-change",
                )
            subject = f"column {name}, which must not be null"
            self._check_existing(subject, path[:1], partial(_has_value, path), IsNull(path))
        self._change_schema(new_schema)

    # -- inside

    def _change_schema(self, schema: Schema) -> None:
        check_types(schema)
        check_column_metadata(schema)
        properties = self.definition.properties
        check_reserved_columns(schema, properties)
        before = {rule[2:] for rule in recorded_rules(self.definition.schema, properties)}
        if any(rule[2:] not in before for rule in recorded_rules(schema, properties)):
            check_rules(schema, properties, self.definition.partition_columns)
        self.definition.change_schema(schema)

    def _change_indexed(self, change: Callable[[str], str]) -> None:
        """Change the list of columns that get statistics, where the table has one."""
        configuration = dict(self.definition.metadata.configuration or {})
        if (columns := configuration.get(INDEXED)) is not None:
            configuration[INDEXED] = change(columns)
            self.definition.change_metadata(configuration=configuration)

    def _require_mapping(self, verb: str) -> None:
        if column_mapping_mode(self.definition.table_protocol, self.definition.properties) == "none":
            raise InvalidRequestError(
                f"columns of {self._storage.root} are found by name, and cannot be {verb} without writing every file",
                fix="map them first: set_properties({'delta.columnMapping.mode': 'name'})",
                place="delta.columnMapping.mode",
                kind="schema-change",
            )

    def _refuse_used(self, path: Sequence[str], verb: str) -> None:
        """InvalidRequestError if a constraint or a generated column names the column. A rule of the column itself goes
        with it, and the expression of a generated one is about others."""
        schema, properties = self.definition.schema, self.definition.properties
        itself = leaf_name(tuple(path))
        for column, kind, name, text in recorded_rules(schema, properties):
            if kind not in ("check", "generated", "invariant"):
                continue
            is_own = column is not None and f"{column}.".startswith(f"{itself}.")
            if is_own and (verb == "dropped" or kind == "generated"):
                continue
            try:
                names = row_expression(text, schema, "spark").meta.root_names()
            except (InvalidRequestError, UnsupportedTableError):
                names = [path[0]] if path[0].casefold() in text.casefold() else []
            if path[0] in names or is_own:
                raise _in_use(path, verb, f"the rule {name or column} ({text}) is about it")


def _has_value(path: Sequence[str], frame: pl.DataFrame) -> pl.Series:
    """Whether a column, or a field of structs, has a value in each row; a field of a null struct is null."""
    values = frame[path[0]].alias("values")  # a series called ^x$ would be a pattern to polars
    has_value = values.is_not_null()
    for part in path[1:]:
        values = values.struct.unnest()[part].alias("values")
        has_value &= values.is_not_null()
    return has_value


def _in_use(path: Sequence[str], verb: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"column {'.'.join(path)} cannot be {verb}: {why}",
        fix="drop the rule first" if "rule" in why else "keep the column",
        place=".".join(path),
        kind="column-in-use",
    )


def _text(value: str, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequestError(f"the {what} is {value!r}, which is no text", fix="give a text", place=what)
    return value
