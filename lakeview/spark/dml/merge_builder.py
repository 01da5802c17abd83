"""A merge in the making, and files to rearrange, with the calls of Delta's own builders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from lakeview import delta
from lakeview.delta.write.merge import SOURCE, TARGET, Merge
from lakeview.model.data_types import StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.predicates.joins import qualifiers, with_qualifiers
from lakeview.spark.dml import changes, results
from lakeview.spark.dml.columns import Condition, Values, flat_names, sql_text
from lakeview.spark.dml.merge import merge, new_merge
from lakeview.spark.dml.merge_source import aliases
from lakeview.spark.types import from_spark


class DeltaMergeBuilder:
    """A merge in the making. Of clauses of one kind, the first whose condition holds counts."""

    def __init__(
        self, spark: SparkSession, target: delta.table.DeltaTable, source: DataFrame, condition: str, alias: str
    ) -> None:
        self._spark = spark
        self._table = target
        self._source = source
        self._merges_schema = False
        self._sides = {TARGET: target.snapshot().schema, SOURCE: from_spark(source.schema)}
        fields = [field for schema in self._sides.values() for field in schema]
        # what is no struct has no fields: its name may be an alias
        self._structs = {field.name.casefold() for field in fields if isinstance(field.type, StructType)}
        own = {SOURCE: SOURCE, TARGET: TARGET, alias.casefold(): TARGET}
        self._names = {name.casefold(): SOURCE for name in aliases(source)} | own
        self._source_name: str | None = None
        self._merge = new_merge(source, self._sql(condition))

    def whenMatchedUpdate(self, condition: Condition | None = None, set: Values | None = None) -> DeltaMergeBuilder:  # noqa: A002
        """Set columns of rows that a source row matches."""
        return self._with(lambda m: m.when_matched_update(self._values(set), where=self._where(condition)))

    def whenMatchedUpdateAll(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Set all columns that the source has of rows that a source row matches."""
        return self._with(lambda m: m.when_matched_update(where=self._where(condition)))

    def whenMatchedDelete(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Delete rows that a source row matches."""
        return self._with(lambda m: m.when_matched_delete(where=self._where(condition)))

    def whenNotMatchedInsert(
        self, condition: Condition | None = None, values: Values | None = None
    ) -> DeltaMergeBuilder:
        """Insert source rows that match no row."""
        return self._with(lambda m: m.when_not_matched_insert(self._values(values), where=self._where(condition)))

    def whenNotMatchedInsertAll(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Insert source rows that match no row, with all of their columns."""
        return self._with(lambda m: m.when_not_matched_insert(where=self._where(condition)))

    def whenNotMatchedBySourceUpdate(
        self,
        condition: Condition | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> DeltaMergeBuilder:
        """Set columns of rows that no source row matches."""
        return self._with(
            lambda m: m.when_not_matched_by_source_update(self._values(set), where=self._where(condition))
        )

    def whenNotMatchedBySourceDelete(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Delete rows that no source row matches."""
        return self._with(lambda m: m.when_not_matched_by_source_delete(where=self._where(condition)))

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Add columns, and fields of structs, that the source alone has to the table: all where a clause takes every
        column, else those that clauses assign to. Fields of structs that the source lacks stay as they are in rows of
        which all columns are updated, and are null in new rows and where a clause assigns the whole struct."""
        self._merges_schema = True
        return self

    def execute(self) -> int | None:
        """Do it; returns the version, None if nothing changed."""
        if not self._merge.clauses:
            raise InvalidRequestError("the merge has no clause, and would change nothing", fix="add one")
        return merge(self._spark, self._table, self._source, self._merge, merge_schema=self._merges_schema)

    def _with(self, add: Callable[[Merge], Merge]) -> DeltaMergeBuilder:
        add(self._merge)
        return self

    def _sql(self, value: Condition) -> str:
        text = sql_text(value)
        for name in qualifiers(text, self._structs | self._names.keys()):
            if self._source_name is not None:
                raise InvalidRequestError(
                    f"{name} is neither the table nor the source: they go by {', '.join(self._names)}",
                    fix="use one name for the source",
                    place=name,
                    kind="unknown-qualifier",
                )
            self._source_name = name
            self._names[name] = SOURCE
        return with_qualifiers(text, self._names, self._is_field)

    def _is_field(self, first: str, second: str) -> bool:
        """Whether two parts of a name are a struct column and a field of it. As in Spark a column of the side that goes
        by the first part comes before that."""
        side = self._sides[self._names[first]]
        return first in self._structs and second not in {name.casefold() for name in side.names}

    def _where(self, condition: Condition | None) -> str | None:
        return None if condition is None else self._sql(condition)

    def _values(self, values: Values | None) -> dict[str, str]:
        if not values:
            raise InvalidRequestError(
                "the clause sets no column", fix="name the columns, or use the clause for all of them"
            )
        return {self._column(name): self._sql(value) for name, value in values.items()}

    def _column(self, name: str) -> str:
        """What is set, without the name of the table before it, whose case means nothing."""
        first, point, rest = name.partition(".")
        if point and self._names.get(first.casefold()) == TARGET:
            second = rest.partition(".")[0].casefold()
            return name if self._is_field(first.casefold(), second) else rest
        return name


class DeltaOptimizeBuilder:
    """Files to write again: all, or those of the partitions that a condition selects."""

    def __init__(self, spark: SparkSession, target: delta.table.DeltaTable, where: str | None = None) -> None:
        self._spark = spark
        self._table = target
        self._where = where

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only partitions that a condition on partition columns selects."""
        return DeltaOptimizeBuilder(self._spark, self._table, sql_text(partitionFilter))

    def executeCompaction(self) -> DataFrame:
        """Write small files again as few large ones; returns `results.OPTIMIZE`, the files that came and went."""
        return self._optimize([])

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:
        """Order rows along a curve through columns; returns `results.OPTIMIZE`, the files that came and went."""
        names = flat_names(cols)
        if not names:
            raise InvalidRequestError("no column to order by is named", fix="name one to six", kind="bad-order")
        return self._optimize(names)

    def _optimize(self, columns: Sequence[str]) -> DataFrame:
        version = changes.optimize(self._spark, self._table, self._where, columns)
        return self._spark.createDataFrame([results.optimize_row(self._table, version)], results.OPTIMIZE)
