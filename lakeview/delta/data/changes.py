"""A range of versions to the rows they inserted, updated and deleted: first a plan, the files that hold what commits
changed (today's protocol, Reader Requirements for AddCDCFile), then these files, batch by batch."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.delta.data.partition_values import partition_columns, partition_fields
from lakeview.delta.log.actions import AddCDCFile
from lakeview.delta.log.change_actions import recorded_files
from lakeview.delta.log.commit_rows import read_commits
from lakeview.delta.log.commits import Commit
from lakeview.delta.log.file_actions import PARTITION_VALUES, VECTOR, text_maps
from lakeview.delta.log.paths import decode_path
from lakeview.model.change_columns import CHANGE_FIELDS, CHANGE_TYPE, TIMESTAMP, VERSION, change_schema
from lakeview.model.column_values import sizes
from lakeview.model.data_types import Field
from lakeview.model.errors import CorruptTableError, DataFileMissingError
from lakeview.model.frames import CHANGES_PLAN
from lakeview.model.range_read import RangeTasks
from lakeview.model.schema import Schema
from lakeview.predicates.bounds import Bounds, may_match
from lakeview.predicates.expressions import parse
from lakeview.predicates.tree import Path
from lakeview.rows.difference import Without
from lakeview.rows.field_places import Match
from lakeview.rows.lazy import lazy_rows
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask, RowPositions
from lakeview.storage import Storage

CHANGE_FILES = pl.Schema(
    {
        "version": pl.Int64(),
        "change_type": pl.String(),
        "path": pl.String(),
        "rows": pl.Int64(),
        "size": pl.Int64(),
        "partition_values": PARTITION_VALUES,
        "deleted": VECTOR,
        "selected": VECTOR,
        "without": VECTOR,
    }
)
"""One row a file to read, by version. `change_type` insert or delete; null for a change data file, which has a column
that says it. `path` decoded once. `rows` it gives and `size` of the file in bytes are null where unknown. Of the file
are read: the rows that `selected` names and `without` does not, if it is there; else those `deleted` does not name."""


_NEEDED = ("version", "size", "data_change", "partition_values", "records", "vector")


def change_files(commits: Iterable[Commit], root: str) -> pl.DataFrame:
    """CHANGE_FILES of these commits of the table at `root`. CorruptTableError for a cdc action that cannot be read."""
    pairs, actions = read_commits(commits, root, _NEEDED, lambda commit: (commit.version, recorded_files(commit)))
    with_change_data = [version for version, files in pairs if files is not None]
    cdc_files = [(version, file) for version, files in pairs for file in files or ()]
    rest = _inferred_changes(actions.filter(~pl.col("version").is_in(with_change_data)))
    return pl.concat([_recorded_changes(cdc_files), rest]).sort("version", maintain_order=True).with_columns(sizes())


def _recorded_changes(actions: Sequence[tuple[int, AddCDCFile]]) -> pl.DataFrame:
    """ "If there are cdc actions in this version, then read only those"."""
    frame = pl.DataFrame(
        {
            "version": [version for version, _ in actions],
            "path": [decode_path(a.path) for _, a in actions],
            "size": [a.size for _, a in actions],
        },
        schema={"version": pl.Int64(), "path": pl.String(), "size": pl.Int64()},
    ).with_columns(text_maps([a.partition_values for _, a in actions]).alias("partition_values"))
    return _whole(frame)


def _inferred_changes(actions: pl.DataFrame) -> pl.DataFrame:
    """ "If there are no cdc actions in this version, read and treat all the rows in the add and remove actions as
    inserted and deleted rows". Of a file that is removed and added again only the difference of its deletion vectors
    has changed. Actions with dataChange false move rows about and change none.
    """
    one = actions.with_columns((pl.col("records") - pl.col("deleted_records")).alias("rows"))
    key = ["version", "key"]
    adds = one.filter("added").unique(key, keep="last", maintain_order=True)
    removes = one.filter(~pl.col("added")).unique(key, keep="last", maintain_order=True)
    inserts = _with_change(adds.join(removes, on=key, how="anti"), "insert")
    deletes = _with_change(removes.join(adds, on=key, how="anti"), "delete")
    pairs = adds.join(removes, on=key, suffix="_before").filter(
        pl.col("data_change") | pl.col("data_change_before"),
        pl.col("deletion_vector").ne_missing(pl.col("deletion_vector_before")),
    )
    new_deletes = _difference(pairs, "delete", "vector", "vector_before")
    restores = _difference(pairs, "insert", "vector_before", "vector")
    return pl.concat([deletes, new_deletes, restores, inserts])


def _with_change(files: pl.DataFrame, change: str) -> pl.DataFrame:
    files = files.filter("data_change")
    return _whole(files.with_columns(pl.lit(change).alias("change_type"), pl.col("vector").alias("deleted")))


def _difference(pairs: pl.DataFrame, change: str, vector: str, without: str) -> pl.DataFrame:
    """Rows that the vector `vector` names and the vector `without` does not."""
    count = pl.col(vector).struct.field("cardinality")
    changes = pairs.filter(pl.col(vector).is_not_null()).with_columns(
        pl.lit(change).alias("change_type"),
        pl.when(pl.col(without).is_null()).then(count).alias("rows"),  # two vectors may share rows
        pl.coalesce("size", "size_before").alias("size"),
        pl.coalesce("partition_values", "partition_values_before").alias("partition_values"),
        pl.col(vector).alias("selected"),
        pl.col(without).alias("without"),
    )
    return _whole(changes)


def _whole(files: pl.DataFrame) -> pl.DataFrame:
    """With the columns of CHANGE_FILES that it does not have as nulls."""
    missing = [pl.lit(None, type_).alias(name) for name, type_ in CHANGE_FILES.items() if name not in files.columns]
    return files.with_columns(missing).select(CHANGE_FILES.names())


_SLICE = 1024
_KINDS = ("insert", "update_preimage", "update_postimage", "delete")
"""What `_change_type` may be (today's protocol, Change Data Files)."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The table's columns at the end of a range as files have them: those that are older than the version `until`, or
    that it removes."""

    schema: Schema
    match: Match
    until: int | None


class ChangeScan:
    """The files that hold the changes of a range of versions, ready to be pruned and read.

    `files`: CHANGE_FILES with `timestamp`, `feed`, whether writers had to record changes at the version, and `era`,
    which of `columns` the file has; the last of these are the table's at the end of the range, which rows are read as;
    `root`: the table's address.
    """

    def __init__(self, files: pl.DataFrame, columns: Sequence[Columns], root: str) -> None:
        self._files = files
        self._columns = [replace(c, schema=change_schema(c.schema)) for c in columns]
        self._schema = self._columns[-1].schema
        self._root = root
        # partitioning may have changed: what a file's own map of values names is what it was partitioned by
        names = files.select(pl.col("partition_values").map.keys().explode().unique()).to_series()
        keys = set(names.drop_nulls())
        partition_schema = Schema(tuple(f for f in self._schema if f.stored_name in keys and f not in CHANGE_FIELDS))
        self._partitions = partition_fields(partition_schema, partition_schema.names)

    def plan(self) -> pl.DataFrame:
        """CHANGES_PLAN."""
        is_recorded = pl.col("change_type").is_null()
        source = pl.when(is_recorded | pl.col("feed")).then(pl.lit("feed")).otherwise(pl.lit("derived"))
        return self._files.with_columns(source.alias("source")).select(CHANGES_PLAN.names())

    def rows(self, storage: Storage) -> pl.LazyFrame:
        """The changed rows; filters on versions, times, kinds of change and partition columns skip files."""
        return lazy_rows(self.tasks, self._schema, storage, _read)

    def all_tasks(self) -> RangeTasks:
        """The schema of changes, and every file; rows say themselves what became of them."""
        return self._schema, [(task, None) for task in self.tasks(None)]

    def tasks(self, where: pl.Expr | None) -> Iterator[FileTask]:
        """The files a filter needs, by version; each yields the whole schema of changes."""
        files = self._files
        if where is not None:
            bounds_of = partial(_plan_bounds, files, self._partitions)
            files = files.filter(may_match(parse(where), bounds_of, files.height))
        for part in files.iter_slices(_SLICE):
            yield from self._tasks(part)

    def _tasks(self, files: pl.DataFrame) -> Iterator[FileTask]:
        values = partition_columns(files["partition_values"], self._partitions)
        rows = pl.DataFrame({s.name: s for s in values}).to_dicts() if values else [{}] * files.height
        has_values = [_is_partitioned_by(files, field) for field in self._partitions]
        for i, file in enumerate(files.iter_rows(named=True)):
            values_of_file = {
                f.name: rows[i][f.name]
                for f, has_value in zip(self._partitions, has_values, strict=True)
                if has_value[i]
            }
            own: dict[str, Any] = {VERSION: file["version"], TIMESTAMP: file["timestamp"]}
            if file["change_type"] is not None:
                own[CHANGE_TYPE] = file["change_type"]
            columns = self._columns[file["era"]]
            yield FileTask(
                self._root,
                file["path"],
                columns.schema,
                {**values_of_file, **own},
                file["size"] or 0,
                deleted_rows=DeletionVector.of(file["deleted"]),
                selected_rows=_selected_positions(file),
                match=columns.match,
            )


def _selected_positions(file: Mapping[str, Any]) -> RowPositions | None:
    vector, without = DeletionVector.of(file["selected"]), DeletionVector.of(file["without"])
    return vector if vector is None or without is None else Without(vector, without)


def _is_partitioned_by(files: pl.DataFrame, field: Field) -> pl.Series:
    """Whether each file was partitioned by a column, so that the log and not the file has its value."""
    key = field.stored_name
    return files.select(pl.col("partition_values").map.contains_key(key).fill_null(value=False)).to_series()


def _plan_bounds(files: pl.DataFrame, partitions: Iterable[Field], path: Path) -> Bounds | None:
    """What the log says of a column of changes before a file is read, None where nothing is known of it."""
    by_name = {f.name: f for f in partitions}
    match path:
        case (name,) if name in by_name:
            values = partition_columns(files["partition_values"], [by_name[name]])[0]
            return Bounds.of_values(values, _is_partitioned_by(files, by_name[name]))
        case ("_commit_version",):
            return Bounds.of_values(files["version"])
        case ("_commit_timestamp",):
            return Bounds.of_values(files["timestamp"].cast(pl.Datetime("us", "UTC")))
        case ("_change_type",):  # a change data file says it row by row
            return Bounds.of_values(files["change_type"], files["change_type"].is_not_null())
    return None


def _has_kinds(column: pa.Array) -> bool:
    return bool(pc.all(pc.is_in(column, value_set=pa.array(_KINDS)), min_count=0).as_py())


def _read(task: FileTask, storage: Storage) -> Iterator[pa.RecordBatch]:
    """The batches of one file of changes. Errors as `read_task`; they name the version."""
    version = task.constants[VERSION]
    has_kinds = CHANGE_TYPE in task.schema and CHANGE_TYPE not in task.constants
    try:
        for batch in read_task(task, storage):
            if has_kinds and not _has_kinds(batch.column(task.schema.names.index(CHANGE_TYPE))):
                raise CorruptTableError(
                    f"change data file {task.path} of version {version} has rows without {CHANGE_TYPE}, "
                    f"or with one that is none of {', '.join(_KINDS)}",
                    fix="leave the version out, or read what it added and removed as two versions of the table",
                    place=task.path,
                    kind="corrupt-data-file",
                )
            yield batch
    except DataFileMissingError as error:
        raise DataFileMissingError(
            f"the changes of version {version} need {error.place}, which is not in the store: perhaps it was vacuumed",
            fix="restore it, or ask for changes of later versions",
            place=error.place,
        ) from error
