"""What the log proves of files that were written before a column: all their rows are null there."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from lakeview.inspection.frames import TableFrames, cache_answer
from lakeview.model.column_values import least_records
from lakeview.model.errors import LakeviewError
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.snapshot_sources import as_declared
from lakeview.views.engines.rules import all_words
from lakeview.views.schema import births
from lakeview.views.schema.null_shares import counts_of

MAX_SCHEMAS = 200
"""The newest schemas of a table, more of which are not read."""


@cache_answer("latest", "ref", entries=64)
def complete_statistics(frames: TableFrames, version: int, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """STATISTICS at a version, of these columns or all; files that were written before a column are null there."""
    return _with_absent_columns(frames, frames.snapshot(version), frames.recorded_statistics(version, columns))


def sampled_statistics(frames: TableFrames, version: int, share: float) -> pl.DataFrame:
    """`complete_statistics` of about this share of the files; of all where the table would read them anyway."""
    table = frames.table
    sample = table.sampled_statistics(as_declared(table, version), share) if share < 1.0 else None
    if sample is None:
        return complete_statistics(frames, version)
    return _with_absent_columns(frames, frames.snapshot(version), sample)


def _with_absent_columns(frames: TableFrames, snapshot: Snapshot, statistics: pl.DataFrame) -> pl.DataFrame:
    """STATISTICS of a snapshot, with the rows of files that lack a column among its nulls."""
    statistics = without_unmapped_counts(snapshot, statistics)
    absent = absences(frames, snapshot)
    if absent.keys().isdisjoint(statistics.columns):
        return statistics
    rows = counts_of(statistics, snapshot.files)["records"]
    return births.with_absent_columns(statistics, absent, _arrivals(frames, statistics["_path"]), rows)


def lifetimes_with_absent_columns(frames: TableFrames, snapshot: Snapshot, lifetimes: pl.DataFrame) -> pl.DataFrame:
    """LIFETIMES with `statistics` in the types of a snapshot, likewise."""
    if "statistics" not in lifetimes.columns:  # of no column
        return lifetimes
    absent = absences(frames, snapshot)
    statistics = without_unmapped_counts(snapshot, lifetimes["statistics"].struct.unnest())
    if absent.keys().isdisjoint(statistics.columns):
        return lifetimes.with_columns(statistics.to_struct("statistics"))
    arrivals = _arrivals(frames, lifetimes["path"])
    complete = births.with_absent_columns(statistics, absent, arrivals, lifetimes["records"])
    return lifetimes.with_columns(complete.to_struct("statistics"))


def absences(frames: TableFrames, snapshot: Snapshot) -> Mapping[str, births.Absence]:
    """The leaf columns of a snapshot that files of certain versions lack (`births.absences`).

    Empty where a name mapping finds columns in files whose writer knew no field ids, and where the log is not readable.
    """
    words = all_words().get(snapshot.format)
    if words is None or words.name_mapping in snapshot.properties:
        return {}
    try:
        first, start = _births(frames)
    except LakeviewError:  # the snapshot can be read, but not the log before it
        return {}
    return births.absences(snapshot.schema, first, start, words.defaults)


def first_versions(frames: TableFrames, snapshot: Snapshot) -> dict[str, int | None]:
    """The version whose schema first had each leaf column that files lack; None for one that is in no version's yet."""
    absent = absences(frames, snapshot)
    versions = dict(frames.history.select("position", "version").iter_rows()) if absent else {}
    return {name: versions.get(until) for name, (_, until) in absent.items()}


def absent_shares(frames: TableFrames, snapshot: Snapshot, statistics: pl.DataFrame) -> pl.DataFrame:
    """ABSENT_SHARES of a version, from its STATISTICS of all columns, with absent columns."""
    first = first_versions(frames, snapshot)
    if first.keys().isdisjoint(statistics.columns):
        return pl.DataFrame(schema=births.ABSENT_SHARES)
    recorded_statistics = frames.recorded_statistics(snapshot.version)
    least = least_records(snapshot.files, snapshot.delete_files)
    return births.absent_shares(first, recorded_statistics, statistics, snapshot.files, snapshot.num_records, least)


def without_unmapped_counts(snapshot: Snapshot, statistics: pl.DataFrame) -> pl.DataFrame:
    """STATISTICS without the null counts of columns for which a name mapping has no name.

    A file without field ids gives null there, whatever its writer counted, and the log does not tell such files from
    others (Iceberg, "Column Projection").
    """
    words = all_words().get(snapshot.format)
    text = None if words is None or words.name_mapping is None else snapshot.properties.get(words.name_mapping)
    if text is None:
        return statistics
    ids = _mapped_ids(text)
    if ids is None:
        return statistics
    names = [f.name for f in snapshot.schema.fields if f.id not in ids and f.name in statistics.columns]
    return statistics.with_columns(
        statistics[name].struct.unnest().with_columns(null_count=pl.lit(None, pl.Int64)).to_struct(name)
        for name in names
        if isinstance(statistics.schema[name], pl.Struct)
    )


def _mapped_ids(text: str) -> list[Any] | None:
    """The ids of the columns for which a name mapping has names; None for a text that is none."""
    try:
        mapping = json.loads(text)
    except ValueError:
        return None
    if isinstance(mapping, dict):  # as the reader of rows takes it
        mapping = mapping.get("fields")
    if not isinstance(mapping, list):
        return None
    return [each.get("field-id") for each in mapping if isinstance(each, dict) and each.get("names")]


@cache_answer("latest", "ref")
def _births(frames: TableFrames) -> tuple[dict[births.Identity, int], int]:
    """The position of each column's first schema, and of the oldest schema."""
    changes = frames.schemas.select("version").tail(MAX_SCHEMAS)
    positions = changes.join(frames.history.select("version", "position"), on="version", maintain_order="left")
    if positions.is_empty():
        return {}, births.NEVER
    schemas = [(position, _schema(frames, version)) for version, position in positions.iter_rows()]
    return births.births(schemas), schemas[0][0]


def _schema(frames: TableFrames, version: int) -> Schema | None:
    try:
        return frames.snapshot(version).schema
    except LakeviewError:  # the log of that version is gone
        return None


def _arrivals(frames: TableFrames, paths: pl.Series) -> pl.Series:
    """For each path the position of the version that first added the file: births.BEFORE_ALL where it was there before
    them all, null where it is unknown, or the file was written for another table."""
    first = _first_positions(frames)
    return paths.rename("path").to_frame().join(first, on="path", how="left", maintain_order="left")["position"]


@cache_answer("latest", "ref")
def _first_positions(frames: TableFrames) -> pl.DataFrame:
    words = all_words().get(frames.table.format)
    elsewhere = pl.col("operation").is_in(() if words is None else words.foreign_files).fill_null(value=False)
    positions = frames.history.select(added="version", position=pl.when(~elsewhere).then("position"))
    stays = frames.lifetimes.select("path", "added").join(positions, on="added", how="left")
    position = pl.when(pl.col("added").is_null()).then(births.BEFORE_ALL).otherwise("position")
    return stays.group_by("path").agg(position=pl.when(~position.is_null().any()).then(position.min()))
