"""The schemas a table had, as far as they can be read, and what changed between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from lakeview import views
from lakeview.inspection.frames import SchemaVersion, TableFrames
from lakeview.model.errors import LakeviewError

MAX_SCHEMAS = 200
SCHEMA_CHANGES = pl.Schema(
    {"version": pl.Int64(), "timestamp": pl.Datetime("ms", "UTC"), **views.schema.diff.SCHEMA_DIFF}
)
"""One row a change of a column: the version that made it, its timestamp, and SCHEMA_DIFF to the schema before."""


def readable_schemas(frames: TableFrames, schemas: pl.DataFrame) -> list[SchemaVersion]:
    """The schemas of SCHEMAS rows whose versions can still be read, in the same order."""
    readable: list[SchemaVersion] = []
    for version, timestamp in schemas.select("version", "timestamp").iter_rows():
        try:
            readable.append((version, timestamp, frames.snapshot(version).schema))
        except LakeviewError:  # the log of that version is gone
            continue
    return readable


def schema_changes(schemas: Sequence[SchemaVersion]) -> pl.DataFrame:
    """SCHEMA_CHANGES from one schema to the next."""
    rows = [
        views.diff_schemas(before[2], after[2]).select(
            pl.lit(after[0], dtype=pl.Int64).alias("version"),
            pl.lit(after[1], dtype=pl.Datetime("ms", "UTC")).alias("timestamp"),
            pl.all(),
        )
        for before, after in pairwise(schemas)
    ]
    return pl.concat([pl.DataFrame(schema=SCHEMA_CHANGES), *rows])
