"""Partition tuples as manifests hold them to typed values, to text for people, and to bounds of the source columns."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from lakeview.iceberg.manifests.avro_container import corrupt_manifest
from lakeview.iceberg.metadata.partition_fields import PartitionField
from lakeview.iceberg.metadata.single_values import in_calendar, map_values
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.metadata.types import struct_fields
from lakeview.model.column_values import format_expression
from lakeview.model.data_types import ArrayType, DataType, Field, MapType, StructType
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.partition_texts import escape
from lakeview.model.schema import polars_type

_FARTHEST_HOUR = 719_162 * 24  # as far after 1970 as the calendar begins before it


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One part of the tuples of all specs, by field id. `name`: unique among them; `dtype`: of its values; `source`:
    the source column, None where no schema has it any more; `specs`: the specs that have this part."""

    field: PartitionField
    name: str
    dtype: pl.DataType
    source: Field | None
    specs: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """Its name inside the tuples of ENTRIES."""
        return f"f{self.field.field_id}"

    @property
    def type(self) -> DataType | None:
        """The type of its values; None where only the manifest knows."""
        return self.field.transform.result_type(None if self.source is None else self.source.type)


def partition_columns(metadata: Metadata) -> tuple[PartitionColumn, ...]:
    """The parts of all specs' tuples: a union by field id, in the order the specs brought them in, void ones left out.

    Field ids stay when names change, so that the newest name is the one shown; two ids of one name are told apart.
    """
    sources: dict[int, Field] = {}
    for recorded_schema in metadata.schemas.values():
        sources |= {i: f for i, (_, f) in struct_fields(recorded_schema.schema).items()}
    sources |= {i: f for i, (_, f) in struct_fields(metadata.schema).items()}
    newest, clashing = _newest_fields(metadata)
    columns: list[PartitionColumn] = []
    for field_id, f in sorted(newest.items()):
        single = f.source_ids[0] if len(f.source_ids) == 1 else None
        source = None if single is None else sources.get(single)
        names = {c.name for c in columns}
        name = f.name if f.name not in names else f"{f.name}_{field_id}"
        if field_id in clashing:
            columns.append(PartitionColumn(f, name, pl.String(), source))
            continue
        specs = tuple(s.spec_id for s in metadata.specs.values() if any(_same(f, g) for g in s.fields))
        columns.append(PartitionColumn(f, name, _dtype(f, source), source, specs))
    return tuple(columns)


def _newest_fields(metadata: Metadata) -> tuple[dict[int, PartitionField], set[int]]:
    """The newest field of each id that is not void, and the ids that stand for different fields in different specs."""
    newest: dict[int, PartitionField] = {}
    clashing: set[int] = set()
    for spec in sorted(metadata.specs.values(), key=lambda s: (s.spec_id == metadata.default_spec_id, s.spec_id)):
        for f in spec.fields:
            if f.transform.name == "void":
                continue
            if f.field_id in newest and not _same(f, newest[f.field_id]):
                clashing.add(f.field_id)  # specs of version 1 without ids count theirs from 1000 each
            newest[f.field_id] = f
    return newest, clashing


def _same(a: PartitionField, b: PartitionField) -> bool:
    return (a.field_id, a.transform, a.source_ids) == (b.field_id, b.transform, b.source_ids)


def _dtype(f: PartitionField, source: Field | None) -> pl.DataType:
    type_ = f.transform.result_type(None if source is None else source.type)
    if type_ is None or isinstance(type_, StructType | ArrayType | MapType):
        return pl.String()
    try:
        return polars_type(type_)
    except UnsupportedTableError:  # a type we have no values of: shown as text
        return pl.String()


def typed_partition(entries: pl.DataFrame, columns: tuple[PartitionColumn, ...], path: str) -> pl.DataFrame:
    """Entries with `partition` as a struct of every column, typed; null where this manifest's spec lacks one."""
    if not columns:
        return entries.drop("partition", strict=False)
    by_key: dict[str, pl.Series] = {}
    if "partition" in entries.columns:
        by_key = {s.name: s for s in entries["partition"].struct.unnest()}
    parts = {}
    for c in columns:
        series = by_key.get(c.key)
        if series is None:
            parts[c.key] = pl.Series([None] * entries.height, dtype=c.dtype)
            continue
        try:
            parts[c.key] = _cast(series, c.dtype)
        except pl.exceptions.PolarsError as error:
            problem = f"partition values of {c.name} are {series.dtype}, and the table's spec asks for {c.dtype}"
            raise corrupt_manifest(f"{path}: {problem}", path) from error
    struct = (
        pl.DataFrame(parts).to_struct("partition")
        if entries.height
        else pl.Series("partition", [], pl.Struct({c.key: c.dtype for c in columns}))
    )
    return entries.with_columns(struct)


def _cast(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A value in the type its column has now: numbers may have been narrower, days plain numbers, times plain longs."""
    own = series.dtype
    if own == dtype:
        return series
    if isinstance(dtype, pl.Datetime) and isinstance(own, pl.Datetime):
        return (
            series.dt.replace_time_zone(None).cast(pl.Datetime(dtype.time_unit)).dt.replace_time_zone(dtype.time_zone)
        )
    if isinstance(dtype, pl.Datetime) and isinstance(own, pl.Date):
        return series.cast(pl.Datetime(dtype.time_unit)).dt.replace_time_zone(dtype.time_zone)
    if dtype.is_integer() and own.is_temporal():
        return series.to_physical().cast(dtype)
    if isinstance(dtype, pl.Time) and own.is_integer():
        return (series.cast(pl.Int64) * 1000).cast(dtype)
    if isinstance(dtype, pl.String) and isinstance(own, pl.Binary):  # one text for one value, whatever is beside it
        return map_values(series, lambda b: base64.b64encode(b).decode(), pl.String())
    return series.cast(dtype)


def display_partition(entries: pl.DataFrame, columns: tuple[PartitionColumn, ...]) -> pl.Series:
    """The tuples under the columns' names; a date or time beyond the calendar is null there."""
    parts = entries["partition"].struct.unnest()
    return pl.DataFrame({c.name: in_calendar(parts[c.key]) for c in columns}).to_struct("partition")


def partition_text(
    entries: pl.DataFrame, columns: tuple[PartitionColumn, ...], specs: Mapping[int, tuple[int, ...]]
) -> pl.Series:
    """Tuples for people: `month=2013-05/id_bucket=bucket 3 of 16`, `path=a%2Fb`; null where a file's spec has no parts.

    `specs`: the field ids of each spec, by its id: a part that a file's spec has not is left out.
    """
    if not columns or not entries.height:
        return pl.Series("partition_text", [None] * entries.height, dtype=pl.String)
    tuples = entries["partition"].struct.unnest()
    texts = pl.DataFrame([entries["spec_id"], *(readable(c, tuples[c.key]).alias(c.key) for c in columns)])
    out = pl.lit(None, dtype=pl.String)
    for spec_id, ids in specs.items():
        mine = [c for c in columns if c.field.field_id in ids]
        if mine:
            parts = [pl.concat_str([pl.lit(c.name + "="), escape(pl.col(c.key))]) for c in mine]
            text = pl.concat_str(parts, separator="/")
            out = pl.when(pl.col("spec_id") == spec_id).then(text).otherwise(out)
    return texts.select(out.alias("partition_text")).to_series()


def readable(column: PartitionColumn, values: pl.Series) -> pl.Series:
    """Values of one part as text: 2013-05 for a month, `bucket 3 of 16`, ISO dates and times, base64 for bytes.

    What lies beyond the calendar is named by its number: `day 3000000`.
    """
    v, number = pl.col("v"), pl.col("number")
    there = in_calendar(values)
    frame = pl.DataFrame([there.alias("v"), values.to_physical().alias("number")])
    transform = column.field.transform
    match transform.name:
        case "year":
            text = (1970 + number.cast(pl.Int64)).cast(pl.String).str.zfill(4)
        case "month":
            year, month = 1970 + number.cast(pl.Int64) // 12, number % 12 + 1
            text = year.cast(pl.String).str.zfill(4) + "-" + month.cast(pl.String).str.zfill(2)
        case "hour":
            moment = pl.when(v.abs() < _FARTHEST_HOUR).then(v.cast(pl.Int64) * 3_600_000).cast(pl.Datetime("ms"))
            text = pl.coalesce(moment.dt.strftime("%Y-%m-%d-%H"), format_expression("hour {}", v))
        case "bucket":
            text = pl.lit("bucket ") + v.cast(pl.String) + pl.lit(f" of {transform.width}")
        case _ if isinstance(values.dtype, pl.Binary):
            return map_values(values, lambda b: base64.b64encode(b).decode(), pl.String())
        case _ if isinstance(values.dtype, pl.Datetime):
            texts = v.dt.strftime("%Y-%m-%dT%H:%M:%S%.f" + ("+00:00" if values.dtype.time_zone else ""))
            text = pl.coalesce(texts, format_expression("microsecond {}", number))
        case _ if isinstance(values.dtype, pl.Date):
            text = pl.coalesce(v.cast(pl.String), format_expression("day {}", number))
        case _:
            text = v.cast(pl.String)
    return frame.select(text.alias(values.name)).to_series()
