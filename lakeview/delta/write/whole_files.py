"""Changes of a transaction by whole files, as the log lists them: added, removed, replaced by partition, or all of them
with the schema or the definition of the table; and the conditions by which they go."""

from collections.abc import Mapping, Sequence

import polars as pl

from lakeview.delta.data.partition_values import partition_columns
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.file_actions import PARTITION_VALUES
from lakeview.delta.log.paths import canonical
from lakeview.delta.log.record_counts import records_of
from lakeview.delta.properties import value
from lakeview.delta.write.column_changes import ColumnChanges
from lakeview.delta.write.create import check_definition, check_schema
from lakeview.delta.write.file_changes import REMOVAL_COLUMNS
from lakeview.delta.write.rules import FEATURE, changed_domain
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.predicates.query import is_nameable
from lakeview.predicates.row_wise import row_wise
from lakeview.rows.matching import check_condition, matching_rows

EVERY = pl.lit(value=True)
"""The condition that is true of every row."""


class WholeFiles(ColumnChanges):
    """The files that a commit adds and removes; no data file is read."""

    def replace_partitions(self, adds: Sequence[AddFile]) -> int:
        """As `overwrite_partitions`, with files that are written already."""
        self.check_has_partitions()
        self.add(adds)
        return self._take_out_partitions(adds)

    def check_has_partitions(self) -> None:
        """InvalidRequestError for a table without partitions; ConstraintViolationError for one whose rows have to
        stay."""
        if not self.definition.partition_columns:
            raise InvalidRequestError(
                f"{self._storage.root} has no partitions that rows could fall into",
                fix="overwrite() replaces all rows, or those that a condition selects",
                kind="not-partitioned",
            )
        self.check_may_remove()

    def _take_out_partitions(self, adds: Sequence[AddFile]) -> int:
        """Remove what was in the partitions of these files before them; returns how many files went."""
        values = pl.Series([dict(a.partition_values or {}) for a in adds], dtype=PARTITION_VALUES)
        partitions = pl.DataFrame(partition_columns(values, self.definition.partitions)).unique()
        live = self._base.adds([*REMOVAL_COLUMNS, "records"])
        of_file = pl.DataFrame(partition_columns(live["partition_values"], self.definition.partitions))
        # by place: a join takes a name like ^x$ for a pattern
        ours, theirs = (pl.DataFrame({f"{i}": s for i, s in enumerate(frame)}) for frame in (partitions, of_file))
        there = theirs.with_row_index("\0row").join(ours, on=ours.columns, how="semi", nulls_equal=True)
        self.reads(one_of(partitions))
        files = live[there["\0row"]]
        self._take_out(files, data_change=True)
        self.entry.count_removed(_live_rows(files))
        return there.height

    def add(self, adds: Sequence[AddFile]) -> None:
        """Add files that are written already, by this process or another; the log entry is what makes them live."""
        self._add_files(adds)
        self.entry.count_appended([records_of(add.stats) for add in adds if add.data_change])

    def _add_files(self, adds: Sequence[AddFile]) -> None:
        self._commits_always = True
        self.files.adds += adds
        self._whole_adds += [a for a in adds if a.data_change]

    def remove(
        self,
        where: str | pl.Expr | None = None,
        *,
        paths: Sequence[str] | None = None,
        data_change: bool = True,
    ) -> int:
        """Remove live files: those of the partitions `where` selects, those of `paths` (decoded), or all.

        Returns how many. InvalidRequestError for a condition on other than partition columns, or a path not live.
        """
        files = self._remove(where, paths, data_change=data_change)
        if data_change:
            self.entry.count_removed(_live_rows(files))
        return files.height

    def _remove(self, where: str | pl.Expr | None, paths: Sequence[str] | None, *, data_change: bool) -> pl.DataFrame:
        if data_change:
            self.check_may_remove()
        live = self._base.adds([*REMOVAL_COLUMNS, "records"])
        if paths is not None:
            live = self._files_at(live, paths)
        else:
            expression = EVERY if where is None else self._on_partitions(where)
            live = live.filter(self._select(live, expression))
            self.reads(expression)
        self._take_out(live, data_change=data_change)
        return live

    def _take_out(self, live: pl.DataFrame, *, data_change: bool) -> None:
        rows = live.to_dicts()
        with self.files.operation():
            for row in rows:
                self.files.remove(row, data_change=data_change)
        self._whole_removes += rows if data_change else []

    def _delete_files(self, where: str | pl.Expr | None) -> int | None:
        files = self._remove(where, None, data_change=True)
        self.entry.count({"numRemovedFiles": files.height, "numRemovedBytes": int(files["size"].sum())})
        rows = _live_rows(files)
        self.entry.count_rows("numDeletedRows", rows)
        return rows

    def check_may_remove(self) -> None:
        """ConstraintViolationError for a table whose rows have to stay."""
        if value(self.definition.properties, "delta.appendOnly"):
            raise ConstraintViolationError(
                "the table is append-only (delta.appendOnly): data may be rearranged, not removed",
                fix="unset delta.appendOnly if the data may go",
                kind="append-only",
            )

    def on_partitions(self, where: str | pl.Expr | None) -> pl.Expr | None:
        """A condition on partition columns, None without one. InvalidRequestError for one on another column."""
        return None if where is None else self._on_partitions(where)

    def _on_partitions(self, where: str | pl.Expr) -> pl.Expr:
        return partition_condition(where, self.schema, self.definition.partition_columns)

    def _select(self, live: pl.DataFrame, expression: pl.Expr) -> pl.Series:
        columns = partition_columns(live["partition_values"], self.definition.partitions)
        return matching_rows(pl.DataFrame(height=live.height).with_columns(columns), expression)

    def _files_at(self, live: pl.DataFrame, paths: Sequence[str]) -> pl.DataFrame:
        keys = canonical(pl.Series("key", list(paths), dtype=pl.String), self._storage.root)
        files = live.filter(live["key"].is_in(keys.implode()))
        if files.height < keys.n_unique():
            missing = next(k for k in keys if k not in set(live["key"]))
            raise InvalidRequestError(f"{missing} is no live file of the table", place=missing, kind="file-not-live")
        return files

    def replace_schema(self, schema: Schema, partition_by: Sequence[str] | None = None) -> None:
        """Give the table another schema altogether, for the rows that come next. `partition_by`: its partition columns
        from now on; without, those that it has, in the spelling of the schema.

        InvalidRequestError unless this commit has removed every file, whose columns the schema would have to keep, and
        for partition columns that the schema lacks.
        """
        self._check_no_files()
        spellings = {name.casefold(): name for name in schema.names}
        own = [spellings.get(name.casefold(), name) for name in self.definition.partition_columns]
        partitions = own if partition_by is None else list(partition_by)
        check_schema(schema, partitions)
        self._change_schema(schema)
        self.definition.change_partitions(partitions)

    def replace_table(
        self,
        schema: Schema,
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        description: str | None = None,
    ) -> None:
        """Remove all rows and give the table the definition of a new one. Of the properties stay those by which columns
        are mapped and commits are timed; of the protocol everything: it is never downgraded.

        InvalidRequestError and UnsupportedTableError as for a new table, ConstraintViolationError for one whose rows
        have to stay.
        """
        check_definition(schema, partition_by, cluster_by, properties or {})
        with self.files.operation():
            self.remove()
        self._check_no_files()
        features = (FEATURE,) if cluster_by else ()
        self.definition.replace(schema, partition_by, properties or {}, description, features)
        domain = changed_domain(self.schema, cluster_by, self._base.domain_metadata())
        self.domains += [] if domain is None else [domain]
        self._clustering = list(cluster_by)
        self.definition.check_writable()
        self._commits_always = True

    def _check_no_files(self) -> None:
        rest = set(self._base.adds([])["key"]) - self.files.removed_paths
        if rest or self.files.adds:
            raise InvalidRequestError(
                "the schema of a table can be replaced only by a commit that replaces all of its files first",
                fix="remove all files before, or evolve the schema",
                kind="schema-change",
            )


def _live_rows(files: pl.DataFrame) -> int | None:
    """The rows of files that no deletion vector names; None where the log does not tell those of all."""
    rows = files["records"] - files["deleted_records"]
    return None if rows.has_nulls() else int(rows.sum())


_MOST_PARTITIONS = 100


def partition_condition(where: str | pl.Expr, schema: Schema, partitions: Sequence[str]) -> pl.Expr:
    """The condition, if it is one on partition columns alone, and true or false for every value they can have.

    InvalidRequestError (kinds unknown-column, not-a-partition-column, bad-predicate) otherwise: a file may hold rows
    that a condition on another column selects beside others that it does not.
    """
    expression = row_wise(where, schema)
    other = [name for name in expression.meta.root_names() if name not in partitions]
    if other:
        raise InvalidRequestError(
            f"{other[0]} is no partition column: whole files can be replaced by partition only",
            fix=f"use conditions on {', '.join(partitions)}"
            if partitions
            else "leave the condition out: the table is not partitioned",
            place="where",
            kind="not-a-partition-column",
        )
    check_condition(expression, schema, str(where))
    return expression


def one_of(partitions: pl.DataFrame) -> pl.Expr:
    """The condition that a row lies in one of these partitions, a row each; of many, and of columns that no condition
    can name, that it may."""
    if partitions.height > _MOST_PARTITIONS or not all(map(is_nameable, partitions.columns)):
        return pl.lit(value=True)
    condition = pl.lit(value=False)
    for row in partitions.iter_rows(named=True):
        same = pl.lit(value=True)
        for name, part in row.items():
            column = pl.col(name)
            same &= column.is_null() if part is None else column == pl.lit(part, partitions[name].dtype)
        condition |= same
    return condition
