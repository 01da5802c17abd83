"""Statistics of live files as JSON text, wherever a checkpoint keeps them (delta protocol, Per-file Statistics)."""

from __future__ import annotations

import polars as pl

from lakeview.delta.log.file_events import IDENTITY
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.checkpoint.struct_statistics import documents_of


def with_documents(adds: pl.DataFrame, state: Replay) -> pl.DataFrame:
    """FILE_ACTIONS of live files with `stats`, which are made of `stats_parsed` where a checkpoint has that alone: a
    file that is added again keeps its statistics."""
    structs = state.adds(["stats_parsed"]) if adds["stats"].has_nulls() else adds
    if "stats_parsed" not in structs.columns:
        return adds
    structs = structs.select(*IDENTITY, "stats_parsed")
    parsed = adds.join(structs, on=IDENTITY, how="left", nulls_equal=True, maintain_order="left")["stats_parsed"]
    return adds.with_columns(documents_of(adds["stats"], parsed).alias("stats"))
