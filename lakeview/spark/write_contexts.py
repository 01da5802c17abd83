"""The options of a write to a Delta table to how its files are written, of the table that is there or of one that the
commit creates; and to what an overwrite replaces: all rows, some of them, partitions, or files by their names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import msgspec
import polars as pl
import pyarrow as pa

from lakeview.delta.data.partition_values import parse_values
from lakeview.delta.data.type_widening import widens_unasked
from lakeview.delta.log.actions import AddFile
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.context import MATERIALIZE_PARTITIONS, WriteContext, write_context
from lakeview.delta.write.create import check_creatable
from lakeview.delta.write.evolution import merge_schemas
from lakeview.delta.write.row_rules import null_for_empty
from lakeview.delta.write.rules import property_features
from lakeview.delta.write.transaction import Transaction
from lakeview.delta.write.whole_files import partition_condition
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.model.type_tree import nodes
from lakeview.predicates import predicate
from lakeview.rows.conform import check_columns_fit, conform_batch
from lakeview.rows.matching import frame_of, matching_rows
from lakeview.spark.options import WriteOptions
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
        _check_replaceable(transaction, options)
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


@dataclass(frozen=True)
class Replacement:
    """What the rows of one write take the place of, in a table whose files are written as `context` says.

    Raises InvalidRequestError for a replaceWhere that is no condition on the table's columns, before any row is
    written.
    """

    options: WriteOptions
    context: WriteContext
    overwrite: bool

    def __post_init__(self) -> None:
        where = self.options.replace_where
        if where is not None and self.of_rows:
            predicate(where, self.context.schema)
        elif where is not None:
            partition_condition(where, self.context.schema, self.context.partition_columns)

    @property
    def of_rows(self) -> bool:
        """Whether single rows go: where the condition is not on partition columns alone."""
        where = self.options.replace_where
        if where is None:
            return False
        return not set(predicate(where, self.context.schema).meta.root_names()) <= set(self.context.partition_columns)

    def check_rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, on an executor. ConstraintViolationError for rows that the condition does not select: they would
        be there twice after the next write."""
        where = self.options.replace_where
        if where is None or not self.of_rows:
            yield from batches
            return
        condition = predicate(where, self.context.schema)
        schema = self.context.schema.select(list(dict.fromkeys(condition.meta.root_names())))
        first = 0
        for batch in batches:
            spellings = {name.casefold(): name for name in batch.schema.names}
            missing = [name for name in schema.names if name.casefold() not in spellings]
            if missing:
                raise InvalidRequestError(
                    f"replaceWhere is a condition on {missing[0]}, which the rows do not have",
                    fix="give the rows the column",
                    place="replaceWhere",
                )
            rows = batch.select([spellings[name.casefold()] for name in schema.names])
            # in the names and types that they are written in, which the condition is about
            table_rows = conform_batch(rows, schema, fill_missing=self.context.fill_missing, first=first)
            first += batch.num_rows
            table_rows = null_for_empty(table_rows, schema, self.context.partition_columns)
            outside = batch.num_rows - int(matching_rows(frame_of(table_rows), condition).sum())
            if outside:
                raise _outside(f"{outside:,} rows are", where)
            yield batch

    def apply(self, transaction: Transaction, adds: Sequence[AddFile]) -> None:
        """Take what is replaced out of the table, and the files into it; with `overwriteSchema` the table's columns
        become those of the files."""
        options = self.options
        if not self.overwrite:
            transaction.add(adds)
        elif options.dynamic:
            transaction.replace_partitions(adds)
        else:
            self._check_partitions(adds)
            if options.replace_files is not None:
                transaction.remove(paths=options.replace_files, data_change=options.data_change)
            elif self.of_rows:
                transaction.delete(options.replace_where)
            else:
                transaction.remove(where=options.replace_where)
            if options.overwrite_schema:
                transaction.replace_schema(self.context.schema, self.context.partition_columns)
            transaction.add(adds)

    def _check_partitions(self, adds: Sequence[AddFile]) -> None:
        where = self.options.replace_where
        if where is None or self.of_rows or not adds:
            return
        values = {}
        for name in self.context.partition_columns:
            field = self.context.schema[name]
            texts = [(add.partition_values or {}).get(field.stored_name) for add in adds]
            values[name] = parse_values(pl.Series(name, texts, pl.String()), field.type)
        condition = partition_condition(where, self.context.schema, list(values))
        columns = [series.alias(name) for name, series in values.items()]
        inside = matching_rows(pl.DataFrame(height=len(adds)).with_columns(columns), condition)
        if not inside.all():
            stray = {name: series.filter(~inside)[0] for name, series in values.items()}
            raise _outside(f"rows of partition {stray} are", where)


def _check_replaceable(transaction: Transaction, options: WriteOptions) -> None:
    if options.data_change:
        transaction.check_may_remove()
    if options.dynamic:
        transaction.check_has_partitions()
    elif options.replace_files is not None:
        transaction.remove(paths=options.replace_files, data_change=options.data_change)


def _outside(rows: str, where: str) -> ConstraintViolationError:
    return ConstraintViolationError(
        f"{rows} not in {where}, which they are to replace",
        fix="filter the rows, or widen replaceWhere",
        place="replaceWhere",
        kind="replace-where",
    )
