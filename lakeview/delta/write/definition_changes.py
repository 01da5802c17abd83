"""Changes of what a table is, without its rows: columns, properties, constraints, protocol."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import polars as pl

from lakeview.delta.data.column_rules import clustering_columns, recorded_rules
from lakeview.delta.features import column_mapping_mode
from lakeview.delta.properties import INDEXED, PROPERTIES, Effect
from lakeview.delta.write.evolution import (
    check_column_metadata,
    check_evolution,
    check_types,
    keep_metadata,
    merge_schemas,
)
from lakeview.delta.write.existing_rows import HasValue, Satisfies, check_rows, condition_of_rule, counterexamples
from lakeview.delta.write.file_changes import LIVE_COLUMNS
from lakeview.delta.write.file_selection import live_files
from lakeview.delta.write.live_statistics import with_documents
from lakeview.delta.write.pending_commit import PendingCommit
from lakeview.delta.write.property_checks import check_reserved_columns, check_settable, check_statistics_columns
from lakeview.delta.write.row_rules import Expression
from lakeview.delta.write.rules import properties_of, property_features, supported_features
from lakeview.delta.write.schema_changes import (
    Column,
    add,
    column_path,
    drop,
    dropped_from,
    edit,
    is_in_structs,
    rename,
    renamed_in,
    reorder,
    widen,
)
from lakeview.model.arguments import text_of
from lakeview.model.data_types import Field
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema, leaf_name
from lakeview.model.type_input import SchemaInput, TypeInput, schema_of, type_of
from lakeview.predicates.condition import row_expression
from lakeview.predicates.tree import IsNull, Node

_CONSTRAINT = "delta.constraints."


class DefinitionChanges(PendingCommit):
    """The part of a transaction that changes the table's definition.

    Whatever a change needs of the protocol, the commit upgrades it to; a change that files or rules of the table do not
    bear is refused before anything is written. Columns go by name, fields of structs by path (`a.b`, `("a", "b")`), in
    lists and maps too (`a.element.b`).
    """

    # -- columns

    def evolve(self, schema: SchemaInput) -> None:
        """Change the schema: nullable columns and fields of structs may be added, comments changed.

        Columns of the table keep their metadata; comments and nullability too, unless the schema is a lakeview Schema.
        InvalidRequestError for anything else, UnsupportedTableError for a type that is not written.
        """
        old, evolved = self.definition.schema, schema_of(schema)
        check_evolution(old, evolved)
        evolved = keep_metadata(old, evolved) if isinstance(schema, Schema) else merge_schemas(old, evolved)
        if evolved != old:
            self._change_schema(evolved)

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
        changed = rename(self.definition.schema, path, _text(name, f"new name of {leaf_name(path)}"))
        partitions = [name if p == path[0] and len(path) == 1 else p for p in self.definition.partition_columns]
        self._change_schema(changed)
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
        clustered = clustering_columns(self.definition.schema, self._base.domain_metadata())
        if any(c == name or c.startswith(f"{name}.") for c in clustered):
            raise _in_use(path, "dropped", "the table is clustered by it")
        rest = drop(self.definition.schema, path)
        if set(rest.names) == set(self.definition.partition_columns):
            raise _in_use(path, "dropped", "beside it there are partition columns alone, and files would hold nothing")
        self._change_schema(rest)
        self._change_indexed(lambda columns: dropped_from(columns, path))

    def widen_column(self, column: Column, type_: TypeInput) -> None:
        """Give a column a type that holds all values of the one it has; no file changes.

        InvalidRequestError for a type that does not, and unless the table has `delta.enableTypeWidening`.
        """
        if not self.definition.widens_types:
            raise InvalidRequestError(
                "types of the table are not widened: delta.enableTypeWidening is not set, or its feature not supported",
                fix="set it: set_properties({'delta.enableTypeWidening': 'true'})",
                place=leaf_name(column_path(column)),
                kind="schema-change",
            )
        path = column_path(column)
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

        def commented(field: Field) -> Field:
            rest = {key: value for key, value in field.metadata.items() if key != "comment"}
            return replace(
                field,
                metadata=rest if comment is None else {**rest, "comment": _text(comment, f"comment of {field.name}")},
            )

        self._change_schema(edit(self.definition.schema, column_path(column), commented))

    def set_nullable(self, column: Column, nullable: bool) -> None:
        """Let a column hold null, or no longer. ConstraintViolationError if a row has null in it already."""
        path = column_path(column)
        name = leaf_name(path)
        if not isinstance(nullable, bool):
            raise InvalidRequestError(
                f"{name} is nullable or not, not {nullable!r}", fix="give True or False", place=name
            )
        changed = edit(self.definition.schema, path, lambda f: replace(f, nullable=nullable))
        if not nullable:
            if not is_in_structs(self.definition.schema, path):
                raise InvalidRequestError(
                    f"{name} lies in a list or map, whose values are not searched for nulls",
                    fix="leave it nullable",
                    place=name,
                    kind="schema-change",
                )
            self._check_existing(HasValue(path, f"column {name}, which must not be null"), IsNull(path))
        self._change_schema(changed)

    # -- properties, constraints, protocol

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set table properties; the others stay. What a property needs of the protocol, the commit upgrades it to.

        InvalidRequestError for an unknown `delta.*` property or a value that cannot be meant, UnsupportedTableError for
        one that would not be honoured.
        """
        check_settable(properties)
        check_statistics_columns(self.definition.schema, properties)
        for name in properties:
            if name.startswith(_CONSTRAINT):
                raise InvalidRequestError(
                    f"{name} is a constraint, which the rows there are have to satisfy first",
                    fix="add it with add_constraint()",
                    place=name,
                    kind="constraint-as-property",
                )
        self._change_properties(dict(properties))

    def unset_properties(self, names: Collection[str]) -> None:
        """Remove table properties. InvalidRequestError for one that is not set."""
        properties = self.definition.properties
        for name in names:
            if name not in properties:
                raise InvalidRequestError(
                    f"the table has no property {name}", fix=f"choose from {', '.join(sorted(properties)[:20])}",
                    place=name, kind="unknown-property",
                )  # fmt: skip
            if name in PROPERTIES and PROPERTIES[name].effect is Effect.ENGINE:
                raise InvalidRequestError(
                    f"{name} is what writers keep for themselves: files could not be read right without it",
                    fix="leave it as it is",
                    place=name,
                    kind="property-of-writers",
                )
        self._change_properties(dict.fromkeys(names))

    def add_constraint(self, name: str, expression: str) -> None:
        """Add a CHECK constraint, in Spark's SQL, once all rows satisfy it: null does not.

        Files are read only where statistics do not prove it. ConstraintViolationError tells how many rows do not, and
        one of them; UnsupportedTableError an expression that cannot be evaluated here.
        """
        if not text_of(name, "name").strip():
            raise InvalidRequestError("a constraint needs a name", fix="give one", kind="constraint-name")
        if any(key.lower() == f"{_CONSTRAINT}{name}".lower() for key in self.definition.properties):
            raise InvalidRequestError(
                f"the table has a constraint {name} already", fix="drop it first, or choose another name", place=name,
                kind="constraint-exists",
            )  # fmt: skip
        self._change_properties({f"{_CONSTRAINT}{name}": text_of(expression, "expression")})

    def drop_constraint(self, name: str) -> None:
        """Remove a CHECK constraint. InvalidRequestError if there is none of that name."""
        name = text_of(name, "name")
        keys = [k for k in self.definition.properties if k.lower() == f"{_CONSTRAINT}{name}".lower()]
        if not keys:
            constraints = [k.removeprefix(_CONSTRAINT) for k in self.definition.properties if k.startswith(_CONSTRAINT)]
            raise InvalidRequestError(
                f"the table has no constraint {name}", fix=f"choose from {', '.join(constraints) or 'none'}",
                place=name, kind="unknown-constraint",
            )  # fmt: skip
        self._change_properties(dict.fromkeys(keys))

    def upgrade_protocol(self, features: Collection[str]) -> None:
        """Let the protocol name more table features. UnsupportedTableError for one that is not written here."""
        if properties := self._properties_without_force(features):
            self._change_properties(properties)
        self.definition.support(features)
        self._touched = self._touched or self.definition.is_changed

    # -- inside

    def _change_schema(self, schema: Schema) -> None:
        check_types(schema)
        check_column_metadata(schema)
        check_reserved_columns(schema, self.definition.properties)
        self.definition.change_schema(schema)
        self._touched = self._touched or self.definition.is_changed

    def _change_indexed(self, change: Callable[[str], str]) -> None:
        """Change the list of columns that get statistics, where the table has one."""
        configuration = dict(self.definition.metadata.configuration or {})
        if (indexed := configuration.get(INDEXED)) is not None:
            configuration[INDEXED] = change(indexed)
            self.definition.change_metadata(configuration=configuration)

    def _change_properties(self, properties: Mapping[str, str | None]) -> None:
        features = set(property_features({name: text for name, text in properties.items() if text is not None}))
        properties = {**self._properties_without_force(features), **properties}
        for name, text in properties.items():
            if name.startswith(_CONSTRAINT) and text is not None:
                self._check_constraint(name.removeprefix(_CONSTRAINT), text)
        self.definition.change_properties(properties)
        self.definition.check_writable()
        self._touched = self._touched or self.definition.is_changed
        if self.definition.starts_row_tracking():
            # "all existing files must be assigned row ids": added again, they get them with the commit
            self.reads(pl.lit(value=True))
            settled = self.files.removed_paths | self.files.live_again
            for row in with_documents(self._base.adds(LIVE_COLUMNS), self._base).iter_rows(named=True):
                has_ids = None not in (row["base_row_id"], row["default_row_commit_version"])
                if not has_ids and row["key"] not in settled:
                    self.files.add_again(row, row["stats"])

    def _properties_without_force(self, features: Collection[str]) -> dict[str, str]:
        """The properties that are there without their feature, and get their force with these features."""
        new_features = set(features) - supported_features(self.definition.protocol)
        return properties_of(new_features, self.definition.properties)

    def _check_constraint(self, name: str, expression: str) -> None:
        condition = condition_of_rule(Expression(name, expression), self.definition.schema)
        rule = Satisfies(condition, f"the constraint {name} ({expression})")
        self._check_existing(rule, counterexamples(condition))

    def _check_existing(self, rule: Satisfies | HasValue, against: Node) -> None:
        if self.files.adds:
            raise InvalidRequestError(
                f"this transaction has written rows already, which were not held against {rule.subject}",
                fix="change the table first, then write, or do it in two transactions",
                kind="rule-after-rows",
            )
        self.reads(pl.lit(value=True))
        files = live_files(self._base, self.definition, self._storage, against)
        check_rows(files, self._storage, rule)

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
