"""What the log proves of files that were written before a column: they count as null there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from lakeview.model.errors import LakeviewError
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.views.schema import births

if TYPE_CHECKING:
    from lakeview.inspection.frames import TableFrames

MAX_SCHEMAS = 200
_NAME_MAPPING = "schema.name-mapping.default"
_OF_OTHER_TABLES = ("CONVERT", "CLONE")
"""Operations that add files which were written under another schema than the table's."""


def counted(frames: TableFrames, snapshot: Snapshot, statistics: pl.DataFrame) -> pl.DataFrame:
    """STATISTICS of a snapshot, with the rows of files that lack a column among its nulls."""
    late = late_columns(frames, snapshot)
    if late.keys().isdisjoint(statistics.columns):
        return statistics
    rows = snapshot.files.select("path", "deletion_vector", "records").unique(["path", "deletion_vector"])
    keys = statistics.select(path="_path", deletion_vector="_deletion_vector")
    joined = keys.join(rows, on=["path", "deletion_vector"], how="left", nulls_equal=True, maintain_order="left")
    arrived = keys.join(_first_positions(frames), on="path", how="left", maintain_order="left")["position"]
    return births.with_absent_columns(statistics, late, arrived, joined["records"])


def counted_lifetimes(frames: TableFrames, snapshot: Snapshot, lifetimes: pl.DataFrame) -> pl.DataFrame:
    """LIFETIMES with `statistics` in the types of a snapshot, likewise."""
    late = late_columns(frames, snapshot)
    statistics = lifetimes["statistics"].struct.unnest()
    if late.keys().isdisjoint(statistics.columns):
        return lifetimes
    paths = lifetimes.select("path")
    arrived = paths.join(_first_positions(frames), on="path", how="left", maintain_order="left")["position"]
    filled = births.with_absent_columns(statistics, late, arrived, lifetimes["records"])
    return lifetimes.with_columns(filled.to_struct("statistics"))


def late_columns(frames: TableFrames, snapshot: Snapshot) -> Mapping[str, tuple[int, bool]]:
    """The leaf columns of a snapshot that came after the oldest schema of the log (`births.late_columns`).

    None where a name mapping finds columns in files whose writer knew no field ids, and where the log is not in sight.
    """
    if _NAME_MAPPING in (snapshot.properties or {}):
        return {}
    try:
        first, start = frames.cached("births", lambda: _births(frames), frames.latest, frames.ref)
    except LakeviewError:  # the snapshot can be read, but not the log before it
        return {}
    return births.late_columns(snapshot.schema, first, start)


def _births(frames: TableFrames) -> tuple[dict[births.Identity, int], int]:
    schemas = frames.schemas.select("version").tail(MAX_SCHEMAS)
    positions = frames.history.select("version", "position")
    placed = schemas.join(positions, on="version", maintain_order="left")
    if placed.is_empty():
        return {}, births.NEVER
    schema_of = [(position, _schema(frames, version)) for version, position in placed.iter_rows()]
    return births.births(schema_of), schema_of[0][0]


def _schema(frames: TableFrames, version: int) -> Schema | None:
    try:
        return frames.snapshot(version).schema
    except LakeviewError:  # the log of that version is gone
        return None


def _first_positions(frames: TableFrames) -> pl.DataFrame:
    """`path, position` of the version that first added each file: births.BEFORE_ALL where it was there before them all,
    null where files were taken over from elsewhere."""

    def compute() -> pl.DataFrame:
        positions = frames.history.select(
            added="version",
            position=pl.when(~pl.col("operation").is_in(_OF_OTHER_TABLES).fill_null(value=False)).then("position"),
        )
        stays = frames.lifetimes.select("path", "added").join(positions, on="added", how="left")
        known = pl.when(pl.col("added").is_null()).then(births.BEFORE_ALL).otherwise("position")
        unknown = known.is_null().any()
        return stays.group_by("path").agg(position=pl.when(~unknown).then(known.min()))

    return frames.cached("first positions", compute, frames.latest, frames.ref)
