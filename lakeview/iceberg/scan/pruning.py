"""A filter to the manifests and files it can match: partition summaries, partition values and bounds.

Partition values become bounds of the columns they come from, so that one evaluation serves them and statistics alike.
Buckets say nothing by bounds: an equality is joined by one of bucket numbers.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import polars as pl

from lakeview.iceberg.manifests.partition_bounds import source_bounds
from lakeview.iceberg.manifests.partitions import PartitionColumn
from lakeview.iceberg.manifests.statistics import Metrics, file_bounds, file_counts
from lakeview.iceberg.metadata.single_values import decoded_bounds, sound_bounds
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.metadata.type_changes import hashes_alike
from lakeview.iceberg.metadata.types import struct_fields
from lakeview.model.data_types import DataType, DecimalType, PrimitiveType
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.schema import Schema, polars_type
from lakeview.predicates import limits
from lakeview.predicates.bounds import Bounds, may_match, narrowest, repeat
from lakeview.predicates.proofs import Evidence, proofs
from lakeview.predicates.tree import And, Comparison, IsIn, Leaf, Node, Path, map_leaves, paths

_BUCKET = "\0bucket"

_BoundsOfPart = Callable[[PartitionColumn], Bounds | None]
"""From a part of partitions to its bounds in some files or manifests."""


class Pruning:
    """Which files a filter on one schema skips. `columns`: the parts of all partition specs."""

    def __init__(self, metadata: Metadata, schema: Schema, columns: tuple[PartitionColumn, ...], node: Node) -> None:
        self._metadata = metadata
        self._fields = dict(struct_fields(schema).values())
        unreadable = metadata.unreadable_bounds
        self._by_source: dict[int, list[PartitionColumn]] = {}
        for c in columns:
            # one id for fields of several columns, as specs of version 1 may have it, says nothing of any of them
            if c.specs and c.source is not None and c.source.id is not None and c.source.id not in unreadable:
                self._by_source.setdefault(c.source.id, []).append(c)
        self._columns = {c.key: c for c in columns}
        self._condition = node
        self._node = map_leaves(node, self._with_bucket)
        self.columns = frozenset(f.id for p in paths(node) if (f := self._fields.get(p)) and f.id is not None)
        """The ids of the columns the filter speaks of: those whose metrics it asks for."""

    def manifests(self, manifests: pl.DataFrame) -> pl.Series:
        """Whether each of these MANIFESTS can hold a file that matches, by its partition summaries."""
        mask = pl.Series([True] * manifests.height, dtype=pl.Boolean)
        for spec_id in manifests["partition_spec_id"].drop_nulls().unique():
            spec = self._metadata.specs.get(spec_id)
            mine = (manifests["partition_spec_id"] == spec_id).fill_null(False)
            if spec is None or not spec.fields:
                continue
            places = {f"f{f.field_id}": i for i, f in enumerate(spec.fields) if f.transform.name != "void"}
            of_spec = manifests.filter(mine)
            bounds_of = partial(self._bounds_from, source=partial(_summary_bounds, of_spec["partitions"], places))
            verdict = may_match(self._node, bounds_of, of_spec.height)
            mask = mask.scatter(mine.arg_true(), verdict)
        return mask

    def by_partition(self, entries: pl.DataFrame) -> pl.Series:
        """Whether each of these ENTRIES can match by its partition values."""
        bounds_of = partial(self._bounds_from, source=_partition_bounds(entries))
        return may_match(self._node, bounds_of, entries.height)

    def by_all(self, entries: pl.DataFrame) -> pl.Series:
        """Whether each of these ENTRIES can match by its partition values and its statistics."""
        return may_match(self._node, self._bounds_of(entries), entries.height)

    def proves_matches(self, entries: pl.DataFrame) -> pl.Series:
        """Whether partition values and statistics prove that each row of each of these ENTRIES matches."""
        bounds_of, none = self._bounds_of(entries), repeat(False, entries.height)
        bounds_by_path = {path: bounds_of(path) for path in paths(self._condition)}
        evidence = {path: Evidence(bounds, none) for path, bounds in bounds_by_path.items() if bounds is not None}
        return proofs(self._condition, evidence, entries["records"])["satisfied"]

    def _bounds_of(self, entries: pl.DataFrame) -> Callable[[Path], Bounds | None]:
        source, metrics = _partition_bounds(entries), Metrics(entries)

        def bounds_of(path: Path) -> Bounds | None:
            statistics = self._statistics(path, metrics, entries["records"])
            return narrowest([b for b in (self._bounds_from(path, source), statistics) if b])

        return bounds_of

    def _bounds_from(self, path: Path, source: _BoundsOfPart) -> Bounds | None:
        if path[0] == _BUCKET:
            return source(self._columns[path[1]])
        field = self._fields.get(path)
        if field is None or field.id is None:
            return None
        candidates = []
        for column in self._by_source.get(field.id, []):
            bounds = source(column)
            own_bounds = None if bounds is None else _of_source(column, bounds, field.type)
            if own_bounds is not None:
                candidates.append(own_bounds)
        return narrowest(candidates)

    def _statistics(self, path: Path, metrics: Metrics, records: pl.Series) -> Bounds | None:
        field = self._fields.get(path)
        bounds = None if field is None else file_bounds(metrics, field)
        if field is None or bounds is None:
            return None
        exact = pl.Series([False] * metrics.height, dtype=pl.Boolean)
        nulls, nans = (file_counts(metrics, name, field) for name in ("null_value_counts", "nan_value_counts"))
        return Bounds(*sound_bounds(*bounds, field.type), exact, nulls, records, nans)

    def _with_bucket(self, leaf: Leaf) -> Node:
        """An equality joined by one of bucket numbers."""
        match leaf:
            case Comparison(path, "=", values) | IsIn(path, values, False):
                field = self._fields.get(path)
            case _:
                return leaf
        if field is None or field.id is None or values.len() > limits.COMPARED_VALUES:
            return leaf
        every = [struct_fields(each.schema).get(field.id) for each in self._metadata.schemas.values()]
        node: Node = leaf
        for column in self._by_source.get(field.id, []):
            if column.field.transform.name == "bucket" and hashes_alike(pair[1].type for pair in every if pair):
                numbers = list(_bucket_numbers(column, field.type, values))
                if None not in numbers:
                    node = And(node, IsIn((_BUCKET, column.key), pl.Series(numbers, dtype=pl.Int32)))
        return node


def _bucket_numbers(column: PartitionColumn, type_: DataType, values: pl.Series) -> Iterator[int | None]:
    """The buckets of constants; None where a constant is of another kind than the column, and nothing is known."""
    for value in values.drop_nulls():
        fitting = _fitting(value, type_, values.dtype)
        try:
            yield None if fitting is None else column.field.transform.apply(fitting, type_)
        except (ValueError, OverflowError):
            yield None


def _fitting(value: Any, type_: DataType, dtype: pl.DataType) -> Any:
    """A constant as a value of the column's type, None if it is of another kind."""
    name = type_.name if isinstance(type_, PrimitiveType) else ""
    match value:
        case bool() | float():
            return None
        case int() if name in ("integer", "long"):
            return value
        case Decimal() if isinstance(type_, DecimalType):
            return value if -int(value.as_tuple().exponent) <= type_.scale else None
        case str() if name == "string":
            return value
        case bytes() if name in ("binary", "fixed", "uuid"):
            return value
        case datetime() if name in ("timestamp", "timestamp_ntz") and dtype != pl.Datetime("ns"):
            return value.astimezone(UTC) if value.tzinfo else value
        case date() if name == "date" and not isinstance(value, datetime):
            return value
    return None


def _partition_bounds(entries: pl.DataFrame) -> _BoundsOfPart:
    """Partition values of ENTRIES as bounds: one value, for every row of a file."""
    parts = {s.name: s for s in entries["partition"].struct.unnest()} if "partition" in entries.columns else {}
    specs = entries["spec_id"]

    def bounds_of(column: PartitionColumn) -> Bounds | None:
        values = parts.get(column.key)
        # a null says that the column is null in the whole file, but only where the file's spec has this part
        return None if values is None else Bounds.of_values(values, specs.is_in(column.specs))

    return bounds_of


def _summary_bounds(partitions: pl.Series, places: Mapping[str, int], column: PartitionColumn) -> Bounds | None:
    """Bounds of one part by the summaries of manifests of one spec; None where they have none. `places`: where each
    part stands in the spec."""
    place, type_ = places.get(column.key), column.type
    if place is None or type_ is None:
        return None
    one = partitions.list.get(place, null_on_oob=True).struct.unnest()
    low, high = decoded_bounds(one["f510"], type_), decoded_bounds(one["f511"], type_)
    if low is None or high is None:
        return None
    low, high = sound_bounds(low, high, type_)
    some, nan = one["f509"].fill_null(True), one["f518"].fill_null(True)
    frame = pl.DataFrame([low.alias("low"), some.alias("some"), nan.alias("nan"), one["f510"].alias("bytes")])
    floating = low.dtype.is_float()
    only_null = pl.col("some") & pl.col("bytes").is_null() & ~(pl.col("nan") if floating else pl.lit(False))
    nulls = pl.when(~pl.col("some")).then(0).when(only_null).then(1).otherwise(None).cast(pl.Int64)
    # without a summary at all nothing is known
    known_nulls = pl.when(one["f509"].is_not_null()).then(nulls)
    exact = pl.Series([False] * low.len(), dtype=pl.Boolean)
    return Bounds(low, high, exact, frame.select(known_nulls).to_series(), pl.Series([1] * low.len(), dtype=pl.Int64))


def _of_source(column: PartitionColumn, bounds: Bounds, type_: DataType) -> Bounds | None:
    source = source_bounds(column, bounds.low, bounds.high)
    if source is None:
        return None
    low, high, occur = source
    try:
        dtype = polars_type(type_)
        low, high = low.cast(dtype), high.cast(dtype)
    except (UnsupportedTableError, pl.exceptions.PolarsError):
        return None
    exact = bounds.exact if occur else repeat(False, low.len())
    return Bounds(low, high, exact, bounds.nulls, bounds.records)
