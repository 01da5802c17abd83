"""A filter and a version to the files that have to be read, and to rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from lakeview.delta.data.column_rules import collation
from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.delta.data.partition_values import partition_columns
from lakeview.delta.data.row_tracking import tracking_fallbacks
from lakeview.delta.data.statistics import Leaf, LeafStatistics, physical_leaves, string_prefix
from lakeview.delta.features import column_mapping_mode
from lakeview.delta.log.file_actions import VECTOR, rows_where
from lakeview.delta.log.state import TableState
from lakeview.model.column_values import filter_plan, sizes
from lakeview.model.data_types import Field
from lakeview.model.schema import Schema
from lakeview.predicates.bounds import Bounds, may_match
from lakeview.predicates.expressions import parse
from lakeview.predicates.tree import Node, Path, paths
from lakeview.rows.field_places import Match
from lakeview.rows.tasks import FileTask

_FEW_FILES = 10_000


class Scan:
    """The live files of one version, ready to be pruned. Statistics are parsed for the columns of a filter only.

    `state`: the table at that version.
    """

    def __init__(
        self,
        state: TableState,
        schema: Schema,
        partitions: Sequence[Field],
        root: str,
        *,
        tracked_schema: Schema | None = None,
    ) -> None:
        """`tracked_schema`: the one with the columns of row tracking, if rows are wanted with them."""
        self.state = state
        self._schema = schema
        self._tracked_schema = tracked_schema
        self.schema = schema if tracked_schema is None else tracked_schema
        """The columns of its rows."""
        self._partitions = partitions
        self._root = root
        self._adds_with_statistics: dict[tuple[object, ...], pl.DataFrame] = {}

    def plan(self, where: pl.Expr) -> pl.DataFrame:
        """PLAN: for each live file whether the filter reads it, and what skips it."""
        node = parse(where)
        adds = self._adds(node)
        by_partition = may_match(node, _Columns(adds, self._partitions, ()).bounds, adds.height)
        mask = may_match(node, _Columns(adds, self._partitions, self._leaves(node)).bounds, adds.height) & by_partition
        return filter_plan(adds, mask, by_partition)

    def tasks(self, where: pl.Expr | None) -> list[FileTask]:
        """The files a filter needs, as tasks that yield the whole schema."""
        return self.files(where)[1]

    def files(self, where: pl.Expr | Node | None, columns: Sequence[str] = ()) -> tuple[pl.DataFrame, list[FileTask]]:
        """The files a filter needs: FILE_ACTIONS with these columns beside those of a task, and their tasks."""
        node = parse(where) if isinstance(where, pl.Expr) else where
        adds = self._adds(node, columns)
        if node is not None:
            bounds = _Columns(adds, self._partitions, self._leaves(node)).bounds
            adds = rows_where(adds, may_match(node, bounds, adds.height))
        tasks = self.tasks_of(adds)
        if self._tracked_schema is None:
            return adds, tasks
        numbers = adds.select("base_row_id", "default_row_commit_version").rows()
        own = self._tracked_schema.fields[-2:]
        return adds, [
            replace(task, schema=self._tracked_schema, fallbacks=tracking_fallbacks(own, base, version))
            for task, (base, version) in zip(tasks, numbers, strict=True)
        ]

    def tasks_of(self, adds: pl.DataFrame) -> list[FileTask]:
        """Tasks of some of the live files: FILE_ACTIONS with `size`, `vector`, and `partition_values` of a partitioned
        table."""
        match: Match = "id" if column_mapping_mode(self.state.table_protocol, self.state.properties) == "id" else "name"
        return tasks_of(adds, self._schema, self._partitions, self._root, match)

    def _leaves(self, node: Node | None) -> list[Leaf]:
        """The columns whose statistics a filter asks for."""
        return [] if node is None else _leaves(node, self._schema, self._partitions)

    def _adds(self, node: Node | None, more: Sequence[str] = ()) -> pl.DataFrame:
        """The live files, with statistics of the columns of a filter; of few files the last ones are cached."""
        leaves = self._leaves(node)
        columns = ["size", *(["partition_values"] if self._partitions else [])]
        columns += [name for name in more if name not in columns]
        if self._tracked_schema is not None:
            columns += [name for name in ("base_row_id", "default_row_commit_version") if name not in columns]
        if leaves:
            key = (*columns, *(path for path, _, _ in leaves))
            if (last := self._adds_with_statistics.get(key)) is not None:
                return last
            reader = LeafStatistics(leaves, string_prefix(self.state.properties))
            adds = self.state.adds_with_statistics([*columns, "vector"], reader).with_columns(sizes())
            if adds.height <= _FEW_FILES:
                self._adds_with_statistics = {**dict([*self._adds_with_statistics.items()][-3:]), key: adds}
            return adds
        adds = self.state.adds(columns)  # a listing without descriptors is cached, and few tables have any
        if adds["deletion_vector"].null_count() == adds.height:
            return adds.with_columns(sizes(), pl.lit(None, VECTOR).alias("vector"))
        return self.state.adds([*columns, "vector"]).with_columns(sizes())


def tasks_of(
    adds: pl.DataFrame, schema: Schema, partitions: Sequence[Field], root: str, match: Match
) -> list[FileTask]:
    """Tasks of files of a table with these columns; `adds` as of `Scan.tasks_of`."""
    rows: list[dict[str, Any]] = [{}] * adds.height
    if partitions:
        values = partition_columns(adds["partition_values"], partitions)
        rows = pl.DataFrame({s.name: s for s in values}).to_dicts()  # a list would rename a column without a name
    return [
        FileTask(root, path, schema, values, size or 0, deleted_rows=DeletionVector.of(vector), match=match)
        for path, size, values, vector in zip(adds["path"], adds["size"], rows, adds["vector"], strict=True)
    ]


def may_hold(actions: pl.DataFrame, where: pl.Expr, schema: Schema, partitions: Sequence[Field]) -> pl.Series:
    """Which files may hold rows that a condition selects; `actions`: FILE_ACTIONS with partition_values and stats."""
    node = parse(where)
    leaves = _leaves(node, schema, partitions)
    reader = LeafStatistics(leaves)
    actions = actions.with_columns(reader.read(actions["stats"], None, actions.height).alias("statistics"))
    return may_match(node, _Columns(actions, partitions, leaves).bounds, actions.height)


def _leaves(node: Node, schema: Schema, partitions: Sequence[Field]) -> list[Leaf]:
    columns = set(paths(node))
    tops = [path[0] for path in columns if path[0] in schema]
    leaves = physical_leaves(schema, tops, {f.name for f in partitions}) if tops else []
    # bounds of texts that are compared by a collation are not in the order our comparisons have
    return [leaf for leaf in leaves if leaf[0] in columns and collation(leaf[2]) is None]


class _Columns:
    """Bounds of columns from partition values, and from the statistics of some leaves where adds have them."""

    def __init__(self, adds: pl.DataFrame, partitions: Sequence[Field], leaves: Sequence[Leaf]) -> None:
        self._adds = adds
        self._partitions = {f.name: f for f in partitions}
        self._leaves = {leaf[0]: i for i, leaf in enumerate(leaves)}
        self._bounds: dict[Path, Bounds | None] = {}

    def bounds(self, path: Path) -> Bounds | None:
        """Bounds of one column, None when nothing is known of it."""
        if path not in self._bounds:  # a filter may name a column twice
            self._bounds[path] = self._read_bounds(path)
        return self._bounds[path]

    def _read_bounds(self, path: Path) -> Bounds | None:
        if len(path) == 1 and path[0] in self._partitions:
            return Bounds.of_values(partition_columns(self._adds["partition_values"], [self._partitions[path[0]]])[0])
        if path not in self._leaves:
            return None
        records, *columns = self._adds["statistics"].struct.unnest().get_columns()
        return Bounds.of_statistics(columns[self._leaves[path]], records)
