"""Changes of a Delta table's definition, as one call each: a transaction of its own, committed or refused whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from lakeview.delta.log.commits import json_text
from lakeview.delta.write.target import Target
from lakeview.model.arguments import flag_of, mapping_of, names_of, optional_text, text_of
from lakeview.model.clock import Clock, system_clock
from lakeview.model.schema import leaf_name
from lakeview.model.type_input import schema_of, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakeview.delta.write.schema_changes import Column
    from lakeview.delta.write.transaction import Transaction
    from lakeview.model.type_input import SchemaInput, TypeInput


class WritableTable(Target, Protocol):
    """A Delta table that makes transactions of its own."""

    @property
    def transaction(self) -> Callable[..., Transaction]:
        """Begins a transaction on the latest version."""


class DefinitionOperations:
    """Columns, properties, constraints and protocol of a Delta table. What a change needs of the protocol, its commit
    upgrades it to.

    A column may be a field of a struct: `a.b` or `("a", "b")`, `a.element.b` where a list holds the struct.
    """

    def add_column(self: WritableTable, column: Column, type_: TypeInput, *, comment: str | None = None) -> int | None:
        """Add a nullable column, or field of a struct, behind the others; returns the version."""
        data_type = type_of(type_, _text(column))
        about = {"name": _text(column), "type": str(data_type), "nullable": True}
        about["metadata"] = {} if optional_text(comment, "comment") is None else {"comment": comment}
        columns = json_text([{"column": about}])
        return commit_one(
            self, "ADD COLUMNS", lambda txn: txn.add_column(column, data_type, comment=comment), columns=columns
        )

    def evolve(self: WritableTable, schema: SchemaInput) -> int | None:
        """Give the table this schema, which may add nullable columns and fields of structs and change comments; returns
        the version, None if it is that."""
        columns = json_text([{"name": field.name, "type": str(field.type)} for field in schema_of(schema)])
        return commit_one(self, "REPLACE COLUMNS", lambda txn: txn.evolve(schema), columns=columns)

    def replace_table(
        self: WritableTable,
        schema: SchemaInput,
        *,
        partition_by: str | Sequence[str] = (),
        cluster_by: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        description: str | None = None,
        operation: str = "CREATE OR REPLACE TABLE",
        engine: str | None = None,
    ) -> int | None:
        """Remove all rows and give the table the definition of a new one, in one commit; returns the version. Earlier
        versions stay. Properties that are not given go, except those by which columns are mapped and commits are timed;
        the protocol is never downgraded."""
        from lakeview.delta.write.create import creation_parameters
        from lakeview.delta.write.target import until_made

        columns = schema_of(schema)
        partitions, clustering = names_of(partition_by, "partition_by"), names_of(cluster_by, "cluster_by")
        settings = {} if properties is None else mapping_of(properties, "properties")
        parameters = creation_parameters(partitions, clustering, settings, optional_text(description, "description"))

        def replace(txn: Transaction) -> None:
            txn.replace_table(
                columns,
                partition_by=partitions,
                cluster_by=clustering,
                properties=settings,
                description=description,
            )

        return until_made(lambda: commit_one(self, operation, replace, engine=engine, **parameters))

    def rename_column(self: WritableTable, column: Column, name: str) -> int | None:
        """Give a column, or a field of a struct (`a.b`), another name; no file changes. Columns have to be mapped."""
        from lakeview.delta.write.schema_changes import column_path

        new_path = column_path((*column_path(column)[:-1], name))
        old, new = _text(column), leaf_name(new_path)
        return commit_one(
            self, "RENAME COLUMN", lambda txn: txn.rename_column(column, name), oldColumnPath=old, newColumnPath=new
        )

    def drop_column(self: WritableTable, column: Column) -> int | None:
        """Take a column, or a field of a struct, out of the table; no file changes. Columns have to be mapped."""
        columns = json_text([_text(column)])
        return commit_one(self, "DROP COLUMNS", lambda txn: txn.drop_column(column), columns=columns)

    def widen_column(self: WritableTable, column: Column, type_: TypeInput) -> int | None:
        """Give a column a type that holds all of its values; the table needs `delta.enableTypeWidening`."""
        data_type = type_of(type_, _text(column))
        about = json_text({"name": _text(column), "type": str(data_type)})
        return commit_one(self, "CHANGE COLUMN", lambda txn: txn.widen_column(column, data_type), column=about)

    def reorder_columns(self: WritableTable, names: Sequence[str]) -> int | None:
        """Put columns in this order, those that are not named behind."""
        names = names_of(names, "names")
        return commit_one(self, "CHANGE COLUMNS", lambda txn: txn.reorder_columns(names), columns=json_text(names))

    def set_nullable(self: WritableTable, column: Column, *, nullable: bool) -> int | None:
        """Let a column hold null, or no longer, once no row has null in it."""
        about = json_text({"name": _text(column), "nullable": flag_of(nullable, "nullable")})
        return commit_one(self, "CHANGE COLUMN", lambda txn: txn.set_nullable(column, nullable=nullable), column=about)

    def set_comment(self: WritableTable, column: Column, comment: str | None) -> int | None:
        """Say what a column is, or no longer."""
        about = json_text({"name": _text(column), "comment": optional_text(comment, "comment")})
        return commit_one(self, "CHANGE COLUMN", lambda txn: txn.set_comment(column, comment), column=about)

    def upgrade_protocol(self: WritableTable, features: Sequence[str]) -> int | None:
        """Let the protocol name more table features, and those that they need."""
        features = names_of(features, "features")
        return _commit_upgrade(self, lambda txn: txn.upgrade_protocol(features))

    def upgrade_versions(self: WritableTable, reader_version: int, writer_version: int) -> int | None:
        """Let the protocol have higher versions; returns the version, None if it has them. Reader version 3 and writer
        version 7 are those of protocols that name features, which `upgrade_protocol` adds."""
        return _commit_upgrade(self, lambda txn: txn.upgrade_versions(reader_version, writer_version))

    def drop_feature(
        self: WritableTable, feature: str, *, truncate_history: bool = False, clock: Clock | None = None
    ) -> int | None:
        """Take a table feature out of the protocol, which gets as low as the others let it; returns the version.

        What the table itself keeps for the feature goes first, by commits of their own: a checkpoint policy, the times
        in commits, ids of rows, domains; files with deletion vectors, of mapped columns and of older types of widened
        ones are written again. InvalidRequestError for one that properties, columns or constraints use;
        UnsupportedTableError for one that readers need while the log has versions that used it: those older than a day
        go with `truncate_history`.
        """
        from lakeview.delta.write.feature_drop import drop_feature

        name = text_of(feature, "feature")
        truncate = flag_of(truncate_history, "truncate_history")
        return drop_feature(self, self.transaction, name, truncate_history=truncate, clock=clock or system_clock)

    def set_properties(self: WritableTable, properties: Mapping[str, str]) -> int | None:
        """Set table properties; the others stay. The protocol is upgraded to what they need."""
        text = json_text(mapping_of(properties, "properties"))
        return commit_one(self, "SET TBLPROPERTIES", lambda txn: txn.set_properties(properties), properties=text)

    def unset_properties(self: WritableTable, names: Sequence[str]) -> int | None:
        """Remove table properties."""
        names = names_of(names, "names")
        text = json_text(names)
        return commit_one(self, "UNSET TBLPROPERTIES", lambda txn: txn.unset_properties(names), properties=text)

    def add_constraint(self: WritableTable, name: str, expression: str) -> int | None:
        """Add a CHECK constraint, in Spark's SQL, once all rows satisfy it."""
        return commit_one(
            self, "ADD CONSTRAINT", lambda txn: txn.add_constraint(name, expression), name=name, expr=expression
        )

    def drop_constraint(self: WritableTable, name: str) -> int | None:
        """Remove a CHECK constraint."""
        return commit_one(self, "DROP CONSTRAINT", lambda txn: txn.drop_constraint(name), name=name)


def commit_one(
    table: WritableTable,
    operation: str,
    do: Callable[[Transaction], object],
    *,
    user: str | None = None,
    engine: str | None = None,
    **parameters: Any,
) -> int | None:
    """The version of a transaction that does one thing, with these operationParameters; None if nothing changed."""
    with table.transaction(operation, parameters=parameters, user=user, engine=engine) as txn:
        do(txn)
    return txn.version


def _commit_upgrade(table: WritableTable, do: Callable[[Transaction], object]) -> int | None:
    def upgrade(txn: Transaction) -> None:
        do(txn)
        txn.entry.parameters["newProtocol"] = json_text(txn.definition.protocol)

    return commit_one(table, "UPGRADE PROTOCOL", upgrade)


def _text(column: Column) -> str:
    from lakeview.delta.write.schema_changes import column_path

    return text_of(column if isinstance(column, str) else leaf_name(column_path(column)), "column")
