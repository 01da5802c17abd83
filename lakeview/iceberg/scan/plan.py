"""A filter and a snapshot to the files that have to be read, each with the deletes that apply to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl

from lakeview.iceberg.deletes.equality_index import EqualityIndex
from lakeview.iceberg.deletes.index import aimless
from lakeview.iceberg.deletes.positions import EqualityDeletes, IcebergDeletes, VectorPlace, position_task
from lakeview.iceberg.manifests.avro_container import corrupt_manifest
from lakeview.iceberg.manifests.files import IcebergFiles
from lakeview.iceberg.manifests.partitions import PartitionColumn, display_partition
from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.single_values import python_values
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.metadata.types import struct_fields
from lakeview.iceberg.scan.data_files import LINEAGE, NAME_MAPPING, IcebergSource
from lakeview.iceberg.scan.metadata_columns import asks_for_place, with_place
from lakeview.iceberg.scan.pruning import Pruning
from lakeview.model.column_values import filter_plan
from lakeview.model.data_types import Field, StructType
from lakeview.model.schema import Schema
from lakeview.predicates.expressions import parse
from lakeview.rows.tasks import FileTask

_INHERITED = ("first_row_id", "sequence_number")


class Scan:
    """The live files of one snapshot, ready to be pruned. `schema`: what rows are read as; `root` and `roots`: of the
    tasks."""

    def __init__(
        self,
        files: IcebergFiles,
        metadata: Metadata,
        schema: Schema,
        columns: tuple[PartitionColumn, ...],
        locations: Locations,
        root: str,
        roots: tuple[str, ...] = (),
    ) -> None:
        self._files = files
        self._metadata = metadata
        self._schema = schema
        self._columns = columns
        self._locations = locations
        self._root = root
        self._roots = roots
        self._mapping = metadata.properties.get(NAME_MAPPING)

    def plan(self, where: pl.Expr) -> pl.DataFrame:
        """PLAN: for each live data file whether the filter reads it, and why not."""
        pruning = self._pruning(where)
        manifests = self._files.manifests()
        manifests = manifests.filter(manifests["content"] == 0)
        hopeful = pruning.manifests(manifests)
        entries = self._files.data_entries(manifests, pruning.columns)
        of_hopeful = self._files.data_entries(manifests.filter(hopeful), pruning.columns).select(
            "path", pl.lit(True).alias("hopeful")
        )
        is_hopeful = entries.join(of_hopeful, on="path", how="left", maintain_order="left")["hopeful"].fill_null(False)
        partition = pruning.by_partition(entries) & is_hopeful
        mask = pruning.by_all(entries) & partition
        return filter_plan(entries, mask, partition)

    def manifests(self) -> pl.DataFrame:
        """MANIFESTS of the snapshot."""
        return self._files.manifests()

    def tasks(self, where: pl.Expr | None, paths_to_skip: pl.Series | None = None) -> list[FileTask]:
        """The files a filter needs, as tasks that yield the whole schema. Only manifests that can matter are read;
        `paths_to_skip`: of others that are not.

        CorruptTableError for a path that no file has.
        """
        manifests = self._files.manifests()
        manifests = manifests.filter(manifests["content"] == 0)
        if paths_to_skip is not None:
            manifests = manifests.filter(~manifests["manifest_path"].is_in(paths_to_skip.implode()))
        pruning = None if where is None else self._pruning(where)
        if pruning is not None:
            manifests = manifests.filter(pruning.manifests(manifests))
        # deletes first: they tell which columns' bounds are to be read of the data files
        deletes = self._files.delete_entries() if manifests.height else self._files.data_entries(manifests)
        equality = self._files.equality(deletes)
        metrics = equality.columns | (frozenset() if pruning is None else pruning.columns)
        entries = self._files.data_entries(manifests, metrics)
        if pruning is not None:
            entries = entries.filter(pruning.by_all(entries))
        delete_tasks = _DeleteTasks(deletes, self._metadata, self._locations, self._root, self._mapping)
        sizes, records = entries["size"].fill_null(0).to_list(), entries["records"].to_list()
        columns = (self._locations.resolve_all(entries["path"]).to_list(), sizes, records, self._sources(entries))
        none: dict[
            str, Any
        ] = {}  # one for all of them: half of a plan's time went into objects, and into counting them
        tasks = [
            FileTask(
                self._root, place, self._schema, none, size, rows, fallbacks=none, source=source, roots=self._roots
            )
            for place, size, rows, source in zip(*columns, strict=True)
        ]
        for number, fields in self._deletes(entries, deletes, equality, delete_tasks).items():
            deletes_of_file = IcebergDeletes(entries["path"][number], tasks[number], **fields)
            tasks[number] = replace(tasks[number], deleted_rows=deletes_of_file)
        return self._with_places(tasks, entries) if asks_for_place(self._schema) else tasks

    def _with_places(self, tasks: Sequence[FileTask], entries: pl.DataFrame) -> list[FileTask]:
        """The tasks of these entries with what fills the metadata columns."""
        facts = entries.select("path", "spec_id").rows()
        tuples: list[Any] = [None] * entries.height
        if self._columns:
            tuples = display_partition(entries, self._columns).to_list()
        return [
            with_place(t, path, spec_id, part) for t, (path, spec_id), part in zip(tasks, facts, tuples, strict=True)
        ]

    def _pruning(self, where: pl.Expr) -> Pruning:
        return Pruning(self._metadata, self._schema, self._columns, parse(where))

    def _deletes(
        self, entries: pl.DataFrame, deletes: pl.DataFrame, equality: EqualityIndex, delete_tasks: _DeleteTasks
    ) -> dict[int, dict[str, Any]]:
        """What applies to each entry that deletes apply to, by row number: the fields of IcebergDeletes."""
        for path in deletes.filter(aimless(deletes))["path"] if deletes.height else ():
            raise corrupt_manifest(f"the deletion vector in {path} does not say which data file it deletes from", path)
        by_file: dict[int, dict[str, Any]] = {}
        pairs = self._files.pairs(entries, deletes).filter(pl.col("kind") != "equality")
        by_kind = pairs.group_by("data", "kind", maintain_order=True).agg("delete")
        for data, kind, numbers in by_kind.iter_rows():
            fields = by_file.setdefault(data, {})
            if kind == "vector":
                fields["vector"] = delete_tasks.vector(numbers[0])
            else:
                fields["positions"] = tuple(map(delete_tasks.positions, numbers))
        sets, of_files = equality.reaching(entries)
        groups = list(map(delete_tasks.equality, sets))
        for data, number in enumerate(of_files):
            if sets[number]:
                by_file.setdefault(data, {})["equality"] = groups[number]
        return by_file

    def _sources(self, entries: pl.DataFrame) -> list[IcebergSource]:
        """How each file is read, with what its columns are where it lacks them: identity partition values, by source
        field id; and with its lineage where that is asked for."""
        parts = [
            c for c in self._columns
            if c.specs and c.field.transform.name == "identity" and len(c.field.source_ids) == 1
        ]  # fmt: skip
        columns = [entries[name].to_list() for name in ("format", "spec_id")]
        columns += self._lineage_columns(entries)
        if parts and entries.height:
            values_by_key = entries["partition"].struct.unnest()
            columns += [python_values(values_by_key[c.key]) for c in parts]

        def source_of(row: tuple[Any, ...]) -> IcebergSource:
            format_, spec_id, first, sequence, *values = row
            constants = {
                c.field.source_ids[0]: v for c, v in zip(parts, values, strict=True) if spec_id in c.specs
            }  # fmt: skip
            return IcebergSource(format_, self._mapping, constants, first, sequence)

        rows = zip(*columns, strict=True)
        if any(c.dtype.is_float() for c in parts):  # 0.0 and -0.0 are one key, and two values
            return [source_of(row) for row in rows]
        cached_source = cache(source_of)  # files of one partition share theirs
        return [cached_source(row) for row in rows]

    def _lineage_columns(self, entries: pl.DataFrame) -> list[list[int | None]]:
        """The columns of a file's lineage; null where it is not asked for."""
        if any(field in LINEAGE for field in self._schema):
            return [entries[name].to_list() for name in _INHERITED]
        return [[None] * entries.height for _ in _INHERITED]


class _DeleteTasks:
    """Delete files, by their row numbers, as tasks carry them: made once, however many files they apply to."""

    def __init__(
        self, deletes: pl.DataFrame, metadata: Metadata, locations: Locations, root: str, mapping: str | None
    ) -> None:
        self._rows = deletes.select(
            "path", "format", "size", "records", "equality_ids", "content_offset", "content_size"
        )
        self._metadata = metadata
        self._locations = locations
        self._root = root
        self._mapping = mapping
        self.vector = cache(self._vector)
        self.positions = cache(self._positions)
        self._by_value = cache(self._equality_task)
        self._schemas: dict[tuple[int, ...], Schema] = {}

    def _row(self, number: int) -> tuple[Mapping[str, Any], str]:
        row = self._rows.row(number, named=True)
        return row, self._locations.resolve(row["path"])

    def _vector(self, number: int) -> VectorPlace:
        row, where = self._row(number)
        offset, size, count = row["content_offset"], row["content_size"], row["records"]
        if offset is None or size is None or count is None or offset < 0 or size < 0:
            path = row["path"]
            raise corrupt_manifest(f"the deletion vector in {path} has no place in its file, or no count", path)
        return VectorPlace(where, offset, size, count)

    def _positions(self, number: int) -> FileTask:
        row, where = self._row(number)
        return position_task(self._root, where, row["format"], row["size"] or 0)

    def equality(self, numbers: tuple[int, ...]) -> tuple[EqualityDeletes, ...]:
        """Equality delete files, those of the same columns together."""
        by_ids: dict[tuple[int, ...], list[FileTask]] = {}
        for number in numbers:
            ids, task = self._by_value(number)
            by_ids.setdefault(ids, []).append(task)
        return tuple(EqualityDeletes(files[0].schema, tuple(files)) for files in by_ids.values())

    def _equality_task(self, number: int) -> tuple[tuple[int, ...], FileTask]:
        """The ids of the columns that a delete file compares, and the task that reads it."""
        row, where = self._row(number)
        ids = tuple(row["equality_ids"] or ())
        source = IcebergSource(row["format"], self._mapping, is_delete=True)
        if ids not in self._schemas:
            self._schemas[ids] = self._equality_schema(ids, row["path"])
        schema = self._schemas[ids]
        return ids, FileTask(self._root, where, schema, size=row["size"] or 0, source=source)

    def _equality_schema(self, ids: tuple[int, ...], path: str) -> Schema:
        """The columns an equality delete names, of the types they have now, or had when they were dropped."""
        fields = []
        for i, field_id in enumerate(ids):
            field = self._newest(field_id)
            if field is None:
                problem = f"names the column {field_id}, which no schema of the table has"
                raise corrupt_manifest(f"the equality delete file {path} {problem}", path, _REMOVE_DELETES)
            fields.append(replace(field, name=f"c{i}"))
        if not fields:
            raise corrupt_manifest(f"the equality delete file {path} names no columns", path, _REMOVE_DELETES)
        return Schema(tuple(fields))

    def _newest(self, field_id: int) -> Field | None:
        """A column by id, alone inside its structs, from the newest schema that has it."""
        for recorded_schema in reversed(self._metadata.schemas_by_age):
            fields = struct_fields(recorded_schema.schema)
            if field_id in fields:
                return _alone(recorded_schema.schema.fields, fields[field_id][0])
        return None


_REMOVE_DELETES = "have the delete file removed by the engine that owns the table"


def _alone(fields: Sequence[Field], path: tuple[str, ...]) -> Field:
    field = next(f for f in fields if f.name == path[0])
    if len(path) == 1:
        return field
    assert isinstance(field.type, StructType), "a path leads through structs only"
    return replace(field, type=StructType((_alone(field.type.fields, path[1:]),)))
