"""The schemas and protocols a table had, as far as they can be read, what changed between them, and which commit turned
each feature on."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import polars as pl

from lakeview import views
from lakeview.inspection.absent_columns import MAX_SCHEMAS
from lakeview.inspection.frames import SchemaVersion, TableFrames
from lakeview.model.errors import LakeviewError
from lakeview.model.table_metadata import TableProtocol
from lakeview.views.engines import requirements

SCHEMA_CHANGES = pl.Schema(
    {"version": pl.Int64(), "timestamp": pl.Datetime("ms", "UTC"), **views.schema.diff.SCHEMA_DIFF}
)
"""One row a change of a column: the version that made it, its timestamp, and SCHEMA_DIFF to the schema before."""

MAX_PROTOCOLS = 100


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


def feature_origins(frames: TableFrames, version: int, table_format: str) -> dict[str, requirements.Origin]:
    """The commit, timestamp and writer that turned each feature of a version on, as far as the log shows it."""
    history = frames.history
    writers = history.select("version", "timestamp", writer=pl.coalesce("user", "engine"), at="position")
    until = history.filter(pl.col("version") == version)["position"]
    commits = history if not until.len() else history.filter(pl.col("position") <= until[0])
    schemas = frames.of_log("schemas").join(commits.select("version"), on="version", how="semi").head(MAX_SCHEMAS)
    origins = requirements.usage_origins(commits, readable_schemas(frames, schemas), table_format)
    origins |= requirements.format_origins(frames.of_log("format versions"), commits)
    protocols, complete = _protocols(frames, commits, writers)
    return origins | requirements.protocol_origins(protocols, table_format, whole=complete)


def _protocols(
    frames: TableFrames, commits: pl.DataFrame, writers: pl.DataFrame
) -> tuple[list[tuple[int, datetime | None, str | None, TableProtocol]], bool]:
    """The protocols that commits declared, oldest first, and whether the first of them is the table's first."""
    changes = commits.filter("protocol_changed").sort("position").tail(MAX_PROTOCOLS)
    protocols: list[tuple[int, datetime | None, str | None, TableProtocol]] = []
    rows = changes.select("version").join(writers, on="version", how="left", maintain_order="left")
    for version, timestamp, writer in rows.select("version", "timestamp", "writer").iter_rows():
        try:
            protocols.append((version, timestamp, writer, frames.snapshot(version).protocol))
        except LakeviewError:  # that version cannot be rebuilt, so the features it turned on have no origin
            return [], False
    complete = bool(protocols) and changes.height < MAX_PROTOCOLS and _is_first(commits, protocols[0][0])
    return protocols, complete


def _is_first(commits: pl.DataFrame, version: int) -> bool:
    return version == 0 or commits.filter((pl.col("version") == version) & pl.col("parent").is_null()).height == 1
