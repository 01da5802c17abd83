"""What pipelines recorded below a root, read once for each version of the tables that hold it."""

from __future__ import annotations

import polars as pl

from lakeview.app import cache
from lakeview.app.memo import cached
from lakeview.inspection import PipelineInspection
from lakeview.inspection.pipelines import read_records, record_address
from lakeview.model.pipelines import TABLES


def records(root: str) -> PipelineInspection:
    """The answers about the pipelines that publish below a root, as of at most 30 s ago."""
    return PipelineInspection(root, lambda name, address: _rows(address, cache.latest(address).version, name))


def forget(root: str) -> None:
    """Forgets what was read below a root: the next page reads it again."""
    for name in TABLES:
        cache.forget(record_address(root, name))


@cached(12)
def _rows(address: str, version: int, name: str) -> pl.DataFrame:
    """The rows of a version; a version that was just written may be read as the one before."""
    _ = version
    return read_records(cache.table(address), name)
