"""The entries of manifests to ACTIONS."""

from __future__ import annotations

import msgspec
import polars as pl

from lakeview.iceberg.manifests.entries import METRICS
from lakeview.model.column_values import formatted
from lakeview.model.frames import ACTIONS

_KINDS = {
    (1, 0): "add data file", (1, 1): "add position deletes", (1, 2): "add equality deletes",
    (2, 0): "remove data file", (2, 1): "remove position deletes", (2, 2): "remove equality deletes",
}  # fmt: skip

# metrics are there or not, as they happen to be held
_LEFT_OUT = {"status", "content", "path", *METRICS, "key_metadata", "snapshot_id"}


def entry_actions(entries: pl.DataFrame) -> pl.DataFrame:
    """ACTIONS of ENTRIES."""
    # most columns say nothing in most tables: of a million files they would take most of the time
    names = [c for c in entries.columns if c not in _LEFT_OUT and entries[c].null_count() < entries.height]
    encode = msgspec.json.Encoder(enc_hook=str).encode
    texts = [
        encode({name: value for name, value in zip(names, row, strict=True) if value is not None}).decode()
        for row in (entries.select(names).iter_rows() if names else [()] * entries.height)
    ]
    kinds = {f"{status} {content}": kind for (status, content), kind in _KINDS.items()}
    kind = (
        formatted("{} {}", "status", "content")
        .replace_strict(kinds, default="entry", return_dtype=pl.String)
        .fill_null("entry")
    )
    return entries.select(kind.alias("kind"), "path", pl.Series("action", texts, dtype=pl.String)).select(
        ACTIONS.names()
    )
