"""The source of a merge: rows that are computed once, with ids, and with keys in the types of the table's columns."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from lakeview.delta.properties import column_paths
from lakeview.delta.write.merge import Merge
from lakeview.delta.write.merge_source import comparable_keys
from lakeview.delta.write.schema_changes import Path
from lakeview.model import data_types
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import printable
from lakeview.model.schema import Schema
from lakeview.spark.arrow_functions import map_batches
from lakeview.spark.failures import lakeview_errors
from lakeview.spark.types import arrow_schema, to_spark

OWN = "\1"
"""What the names of a merge's own columns begin with."""

ROW = f"{OWN}row"
"""The column of a source row's id."""

BROADCAST_BYTES = 10 << 20
"""A source of at most so many bytes (Arrow) is sent to all tasks: as much as Spark's autoBroadcastJoinThreshold."""

_SIZE = "rows long, bytes long"


class SourceRows:
    """The rows of a source, computed once for all attempts of a merge: after another writer's commit they are the same
    rows with the same ids, whether or not the source would give them again.

    InvalidRequestError (kind reserved-column) for a column that is called as one of the merge's own.
    """

    def __init__(self, source: DataFrame) -> None:
        own = next((name for name in source.columns if name.startswith(OWN)), None)
        if own is not None:
            raise InvalidRequestError(
                f"a column of the source is called {printable(own)}: a merge by Spark needs such names for its own",
                fix="rename or drop the column; lakeview.open_table(...).merge(...) takes any name",
                place="source",
                kind="reserved-column",
            )
        self.schema = source.schema
        self._source = source
        self._rows: DataFrame | None = None
        self._size: tuple[int, int] | None = None

    def frame(self) -> DataFrame:
        """The columns of the source, and the id of each row. The first call runs the source, and keeps what it gives
        on the executors: one that is lost with its rows fails the merge, which changes nothing."""
        if self._rows is None:
            with lakeview_errors():
                self._rows = self._source.withColumn(ROW, f.monotonically_increasing_id()).localCheckpoint()
        return self._rows

    def size(self) -> tuple[int, int]:
        """How many rows there are, and their bytes as Arrow."""
        if self._size is None:
            sizes = map_batches(self.frame(), _sizes, _SIZE)
            rows, size = sizes.agg(f.sum("rows"), f.sum("bytes")).collect()[0]
            self._size = (rows or 0, size or 0)
        return self._size

    def with_keys(self, keys: Sequence[tuple[str, str]], schema: Schema, names: Sequence[str]) -> DataFrame:
        """The rows, with the keys in the types of the table's columns under other names.

        The library casts them, as it does when it matches the rows of a file: Spark's cast may give another value (of
        a large double to a decimal, say), and a file whose rows match would be missed.
        """
        rows = self.frame()
        columns = [(column, _spelling(other, self.schema.names)) for column, other in keys]
        fields = key_fields(keys, schema, names)
        wider = StructType([*rows.schema.fields, *fields])
        return map_batches(rows, partial(_keyed_rows, columns, schema, arrow_schema(StructType(fields))), wider)


def aliases(source: DataFrame) -> set[str]:
    """The names that columns of a source go by: of `alias`, of a table or of a view. Of a Spark Connect session that of
    a last `alias`; the server has the others."""
    if (frame := getattr(source, "_jdf", None)) is None:
        name = getattr(getattr(source, "_plan", None), "_alias", None)
        return set() if name is None else {name}
    output = frame.queryExecution().analyzed().output()
    qualifiers = [output.apply(number).qualifier() for number in range(output.size())]
    return {str(names.last()) for names in qualifiers if names.nonEmpty()}


def assigned_columns(plan: Merge, source: Schema) -> Schema:
    """The columns of a source, and fields of its structs, that clauses of a merge write: all where one takes every
    column, else those that are assigned to by name."""
    paths: set[Path] = set()
    for clause in plan.clauses:
        if clause.does != "delete" and clause.assignments is None:
            return source
        for name in clause.assignments or ():
            paths.update([(name,)] if name in source else column_paths(name) or ())
    return Schema(_at(source.fields, {tuple(map(str.casefold, path)) for path in paths}))


def key_fields(keys: Sequence[tuple[str, str]], schema: Schema, names: Sequence[str]) -> list[StructField]:
    """Fields of these names, in the types of the table's columns."""
    kinds = [to_spark(schema.select([column]))[0].dataType for column, _ in keys]
    return [StructField(name, kind) for name, kind in zip(names, kinds, strict=True)]


def _at(fields: Sequence[data_types.Field], paths: Collection[Path]) -> tuple[data_types.Field, ...]:
    """The fields at these paths, whose names are case-folded."""
    own = []
    for field in fields:
        below = {path[1:] for path in paths if path[0] == field.name.casefold()}
        if () in below:
            own.append(field)
        elif isinstance(field.type, data_types.StructType) and (inner := _at(field.type.fields, below)):
            own.append(replace(field, type=data_types.StructType(inner)))
    return tuple(own)


def _spelling(name: str, names: Sequence[str]) -> str:
    """A column of the source as it is written there; the condition has it as the table writes it."""
    return name if name in names else next(n for n in names if n.casefold() == name.casefold())


def _sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "bytes": [batch.nbytes]})


def _keyed_rows(
    keys: Sequence[tuple[str, str]], schema: Schema, fields: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The source rows of a task, with their keys as the library casts them."""
    for batch in batches:
        source = pl.DataFrame({other: pl.from_arrow(batch.column(other)) for _, other in keys})
        wider = batch
        for values, field in zip(comparable_keys(source, keys, schema), fields, strict=True):
            wider = wider.append_column(field, values.to_arrow().cast(field.type))
        yield wider
