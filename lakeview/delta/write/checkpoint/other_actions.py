"""The actions of a state that are no files, and what a V2 checkpoint says of itself, to columns of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa

from lakeview.delta.log.actions import Metadata, Protocol
from lakeview.delta.log.replay import Replay
from lakeview.delta.properties import value
from lakeview.delta.write.checkpoint.file_rows import TEXTS
from lakeview.model.snapshot import milliseconds

Action = tuple[str, dict[str, Any]]
"""The kind of an action, and its fields."""

_NAMES = pl.List(pl.String())
STATE_TYPES: Mapping[str, pl.Struct] = {
    "txn": pl.Struct({"appId": pl.String(), "version": pl.Int64(), "lastUpdated": pl.Int64()}),
    "metaData": pl.Struct(
        {
            "id": pl.String(),
            "name": pl.String(),
            "description": pl.String(),
            "format": pl.Struct({"provider": pl.String(), "options": TEXTS}),
            "schemaString": pl.String(),
            "partitionColumns": _NAMES,
            "configuration": TEXTS,
            "createdTime": pl.Int64(),
        }
    ),
    "protocol": pl.Struct(
        {
            "minReaderVersion": pl.Int32(),
            "minWriterVersion": pl.Int32(),
            "readerFeatures": _NAMES,
            "writerFeatures": _NAMES,
        }
    ),
    "domainMetadata": pl.Struct({"domain": pl.String(), "configuration": pl.String(), "removed": pl.Boolean()}),
}
V2_TYPES: Mapping[str, pl.Struct] = {
    "checkpointMetadata": pl.Struct({"version": pl.Int64(), "tags": TEXTS}),
    "sidecar": pl.Struct(
        {"path": pl.String(), "sizeInBytes": pl.Int64(), "modificationTime": pl.Int64(), "tags": TEXTS}
    ),
}


STATE_ARROW_TYPES: Mapping[str, pa.DataType] = {
    kind: pl.Series(dtype=type_).to_arrow().type for kind, type_ in STATE_TYPES.items()
}
"""The same as Arrow has them."""

V2_ARROW_TYPES: Mapping[str, pa.DataType] = {
    kind: pl.Series(dtype=type_).to_arrow().type for kind, type_ in V2_TYPES.items()
}


def state_actions(state: Replay, committed: datetime | None) -> list[Action]:
    """protocol, metaData, unexpired txns and domainMetadata of a state; `committed`: when its version was.

    A txn expires `delta.setTransactionRetentionDuration` after its lastUpdated; one without never does.
    """
    keeps: timedelta | None = value(state.properties, "delta.setTransactionRetentionDuration")
    cutoff = None if keeps is None or committed is None else committed - keeps
    txns: list[Action] = [
        ("txn", {"appId": app, "version": version, "lastUpdated": None if at is None else milliseconds(at)})
        for app, version, at in sorted(state.transactions().iter_rows())
        if at is None or cutoff is None or at >= cutoff
    ]
    domains: list[Action] = [
        ("domainMetadata", {"domain": domain, "configuration": configuration, "removed": False})
        for domain, configuration in sorted(state.domain_metadata().iter_rows())
    ]
    return [("protocol", _protocol(state.protocol)), ("metaData", _metadata(state.metadata)), *txns, *domains]


def _protocol(protocol: Protocol) -> dict[str, Any]:
    return {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": protocol.reader_features,
        "writerFeatures": protocol.writer_features,
    }


def _metadata(metadata: Metadata) -> dict[str, Any]:
    return {
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": metadata.format.provider, "options": metadata.format.options or {}},
        "schemaString": metadata.schema_string,
        "partitionColumns": metadata.partition_columns or [],
        "configuration": metadata.configuration or {},
        "createdTime": metadata.created_time,
    }


def action_columns(actions: Sequence[Action]) -> dict[str, pa.Array]:
    """One array for each kind of action, null in the rows of the others."""
    types = {**STATE_TYPES, **V2_TYPES}
    columns = {}
    for kind in dict.fromkeys(kind for kind, _ in actions):
        rows = [fields if action == kind else None for action, fields in actions]
        columns[kind] = pl.Series(kind, rows, dtype=types[kind]).to_arrow()
    return columns
