"""The options of an overwrite to what it replaces: all rows, some of them, partitions, or files by their names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from lakeview.delta.data.partition_values import parse_values
from lakeview.delta.log.actions import AddFile
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.partition_conditions import partition_condition, select_rows
from lakeview.delta.write.row_rules import null_for_empty
from lakeview.delta.write.transaction import Transaction
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.predicates import predicate
from lakeview.rows.conform import conform_batch
from lakeview.spark.options import WriteOptions


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
            values = pl.DataFrame(pl.from_arrow(table_rows))
            outside = batch.num_rows - int(select_rows(values, batch.num_rows, condition).sum() or 0)
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
            remove_replaced(transaction, options, of_rows=self.of_rows)
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
            recorded = [(add.partition_values or {}).get(field.stored_name) for add in adds]
            values[name] = parse_values(pl.Series(name, recorded, pl.String()), field.type)
        condition = partition_condition(where, self.context.schema, list(values))
        inside = select_rows(pl.DataFrame(values), len(adds), condition).fill_null(value=False)
        if not inside.all():
            stray = {name: series.filter(~inside)[0] for name, series in values.items()}
            raise _outside(f"rows of partition {stray} are", where)


def remove_replaced(transaction: Transaction, options: WriteOptions, *, of_rows: bool) -> None:
    """What an overwrite replaces: the files that are named, else the rows or partitions that the condition selects,
    else all."""
    if options.replace_files is not None:
        transaction.remove(paths=options.replace_files, data_change=options.data_change)
    elif of_rows:
        transaction.delete(options.replace_where)
    else:
        transaction.remove(where=options.replace_where)


def check_replaceable(transaction: Transaction, options: WriteOptions) -> None:
    """Errors of what an overwrite may not, or cannot, remove, before any row is written; of a transaction that is never
    committed."""
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
