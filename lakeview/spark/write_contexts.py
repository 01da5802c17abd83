"""The options of a write to a Delta table to how its files are written: of the table that is there, or of one that the
commit creates."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

import msgspec

from lakeview.delta.data.type_widening import widens_unasked
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.context import MATERIALIZE_PARTITIONS, WriteContext, write_context
from lakeview.delta.write.create import check_creatable
from lakeview.delta.write.evolution import merge_schemas
from lakeview.delta.write.rules import property_features
from lakeview.delta.write.transaction import Transaction
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.model.type_tree import nodes
from lakeview.rows.conform import check_columns_fit
from lakeview.spark.options import WriteOptions
from lakeview.spark.replacement import check_replaceable
from lakeview.storage import open_storage


def context_of_new(options: WriteOptions, rows_schema: Schema) -> WriteContext:
    """How files of a table are written that the commit will create."""
    partition_by = _partition_columns(options, rows_schema)
    if options.properties.get("delta.columnMapping.mode", "none").lower() != "none":
        raise UnsupportedTableError(
            "columns of a table that is not there yet cannot be mapped: files would have names that the table does not",
            fix="create the table first: lakeview.create_table() with the property",
            place="delta.columnMapping.mode",
            kind="unsupported-property",
        )
    check_creatable(rows_schema, partition_by, options.properties, options.path)
    root = open_storage(options.path, options=options.access.options, decode=True).root
    context = write_context(root, rows_schema, partition_by, options.properties)
    by_feature = MATERIALIZE_PARTITIONS in property_features(options.properties)
    return replace(context, materialize_partitions=context.materialize_partitions or by_feature)


def _partition_columns(options: WriteOptions, rows_schema: Schema) -> list[str]:
    """The columns that partitionBy names, in the spelling of the rows, whose case means nothing."""
    spellings = {name.casefold(): name for name in rows_schema.names}
    names = options.partition_by or ()
    unknown = [name for name in names if name.casefold() not in spellings]
    if unknown:
        raise InvalidRequestError(
            f"partitionBy names {unknown[0]}, which is no column of the rows",
            fix=f"choose from {', '.join(rows_schema.names)}",
            place=unknown[0],
        )
    return [spellings[name.casefold()] for name in names]


def context_of(table: DeltaTable, options: WriteOptions, rows_schema: Schema, *, overwrite: bool) -> WriteContext:
    """How files of this table are written, with what `mergeSchema` adds to its schema.

    Asks a transaction that is never committed. Before any row is written it refuses a table we may not write, columns
    or fields that the two do not share and types that never fit; options that contradict what the table is; and what
    an overwrite may not, or cannot, remove.
    """
    transaction = table.transaction(options.operation)
    if options.overwrite_schema:
        transaction.remove()
        partition_by = None if options.partition_by is None else _partition_columns(options, rows_schema)
        transaction.replace_schema(rows_schema, partition_by)
    elif options.merge_schema:
        evolve(transaction, rows_schema)
    context = replace(transaction.context(), fill_missing=options.merge_schema)
    columns = context.partition_columns
    if options.partition_by and [*map(str.casefold, options.partition_by)] != [*map(str.casefold, columns)]:
        raise InvalidRequestError(
            f"{table.address} is partitioned by {', '.join(columns) or 'nothing'}",
            fix="leave partitionBy out: it is for a table that is created, or overwritten with overwriteSchema",
            place="partitionBy",
        )
    current = table.snapshot().properties
    for name, setting in options.properties.items():
        if current.get(name, "").lower() != setting.lower():
            raise InvalidRequestError(
                f"{name} is {setting}, and {table.address} has {current.get(name, 'no such property')}: options set "
                "the properties of a table that is created",
                fix="leave the option out, or set the property with set_properties() of a transaction",
                place=name,
                kind="property-of-existing-table",
            )
    check_columns_fit(rows_schema.to_arrow(), context.schema, fill_missing=options.merge_schema)
    if overwrite:
        check_replaceable(transaction, options)
    return context


def evolve(transaction: Transaction, rows: Schema) -> None:
    """Add what the rows have and the table lacks to its schema, if there is anything; in a table whose types are
    widened, give columns, fields of structs, and parts of lists and maps the wider types that the rows have."""
    if transaction.definition.widens_types:
        types = {_fold_path(node.path): node.type for node in nodes(rows)}
        for node in nodes(transaction.schema):
            type_ = types.get(_fold_path(node.path), node.type)
            if type_ != node.type and widens_unasked(node.type, type_):
                transaction.widen_column(node.path, type_)
    schema = merge_schemas(transaction.schema, rows)
    if schema != transaction.schema:
        transaction.evolve(schema)


def _fold_path(path: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.casefold() for part in path)


def definition(table: DeltaTable) -> str:
    """A digest of what tells how the latest version is written: protocol, columns and properties."""
    state = table.state()
    return blake2b(msgspec.json.encode((state.protocol, state.metadata)), digest_size=16).hexdigest()
