"""The state of a table at a version to a single-file checkpoint (delta protocol, Checkpoints)."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

import msgspec
import polars as pl
import pyarrow.parquet as pq

from lakeview.delta.log.actions import Metadata, Protocol
from lakeview.delta.log.log_segment import checkpoint_hint
from lakeview.delta.log.paths import LAST_CHECKPOINT, LOG_FOLDER, checkpoint_name, encode_path
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.times import CommitTimes, in_commit_start
from lakeview.delta.properties import retention, value
from lakeview.delta.write.target import Target
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.snapshot import milliseconds

_TEXTS = pl.Map(pl.String(), pl.String())
_ADD = pl.Struct(
    {
        "path": pl.String(),
        "partitionValues": _TEXTS,
        "size": pl.Int64(),
        "modificationTime": pl.Int64(),
        "dataChange": pl.Boolean(),
        "stats": pl.String(),
        "tags": _TEXTS,
    }
)
_REMOVE = pl.Struct(
    {"path": pl.String(), "deletionTimestamp": pl.Int64(), "dataChange": pl.Boolean(), "size": pl.Int64()}
)
_TXN = pl.Struct({"appId": pl.String(), "version": pl.Int64(), "lastUpdated": pl.Int64()})
_METADATA = pl.Struct(
    {
        "id": pl.String(),
        "name": pl.String(),
        "description": pl.String(),
        "format": pl.Struct({"provider": pl.String(), "options": _TEXTS}),
        "schemaString": pl.String(),
        "partitionColumns": pl.List(pl.String()),
        "configuration": _TEXTS,
        "createdTime": pl.Int64(),
    }
)
_PROTOCOL = {"minReaderVersion": pl.Int32(), "minWriterVersion": pl.Int32()}


class _Hint(msgspec.Struct, frozen=True, rename="camel"):
    version: int
    size: int
    size_in_bytes: int
    num_of_add_files: int


def write_checkpoint(table: Target, version: int) -> None:
    """Write the checkpoint of a committed version, then point `_last_checkpoint` at it.

    The content depends on the version alone: tombstones expire against the version's own commit time, so two writers
    make the same file and either may win. UnsupportedTableError if the table wants a kind of checkpoint we do not make.
    """
    state = table.state(version)
    properties = state.properties
    if value(properties, "delta.checkpoint.writeStatsAsStruct"):
        raise UnsupportedTableError(
            "the table wants statistics as a struct (delta.checkpoint.writeStatsAsStruct), which is not written",
            fix="let another engine write its checkpoints",
            kind="unsupported-checkpoint",
        )
    adds = _adds(state, json_statistics=value(properties, "delta.checkpoint.writeStatsAsJson") is not False)
    committed = CommitTimes(table.log, in_commit_start(state.table_protocol, properties)).of(version)
    removes = _removes(state, committed, retention(properties))
    txns = [
        {"appId": a, "version": v, "lastUpdated": None if u is None else milliseconds(u)}
        for a, v, u in state.transactions().iter_rows()
    ]
    frame = pl.concat(
        [
            _protocol(state.protocol),
            _metadata(state.metadata),
            pl.DataFrame({"txn": txns}, schema={"txn": _TXN}),
            pl.DataFrame([adds.alias("add")]),
            pl.DataFrame([removes.alias("remove")]),
        ],
        how="diagonal",
    )
    buffer = BytesIO()
    pq.write_table(frame.to_arrow(), buffer, compression="snappy")
    data = buffer.getvalue()
    table.storage.put(f"{LOG_FOLDER}/{checkpoint_name(version)}", data)
    _point(table, _Hint(version, frame.height, len(data), adds.len()))


def _adds(state: Replay, *, json_statistics: bool) -> pl.Series:
    columns = ["partition_values", "size", "modified", "data_change", "stats", "tags"]
    live = state.adds(columns)
    stats = live["stats"] if json_statistics else pl.Series([None] * live.height, dtype=pl.String)
    tags = [None if t is None else msgspec.json.decode(t) for t in live["tags"]]
    return (
        pl.DataFrame(
            [
                _encoded(live["path"]),
                live["partition_values"].alias("partitionValues"),
                live["size"],
                live["modified"].alias("modificationTime"),
                pl.Series("dataChange", [False] * live.height, dtype=pl.Boolean),
                stats.alias("stats"),
                pl.Series("tags", tags, dtype=_TEXTS),
            ]
        )
        .to_struct("add")
        .cast(_ADD)
    )


def _removes(state: Replay, committed: datetime | None, retention: timedelta) -> pl.Series:
    gone = state.removes()
    # "A tombstone expires when the creation timestamp of the delta file exceeds the expiration threshold added to
    # the remove action timestamp"; one without a timestamp has expired
    fresh = gone
    if committed is not None:
        fresh = gone.filter(pl.col("modified") >= milliseconds(committed - retention))
    columns = [
        _encoded(fresh["path"]),
        fresh["modified"].alias("deletionTimestamp"),
        fresh["data_change"].alias("dataChange"),
        fresh["size"],
    ]
    return pl.DataFrame(columns).to_struct("remove").cast(_REMOVE)


def _encoded(paths: pl.Series) -> pl.Series:
    return pl.Series("path", [encode_path(p) for p in paths], dtype=pl.String)


def _protocol(protocol: Protocol) -> pl.DataFrame:
    row: dict[str, Any] = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
    }
    shape: dict[str, pl.DataType] = dict(_PROTOCOL)
    for key, features in (("readerFeatures", protocol.reader_features), ("writerFeatures", protocol.writer_features)):
        if features is not None:
            row[key], shape[key] = features, pl.List(pl.String())
    return pl.DataFrame({"protocol": [row]}, schema={"protocol": pl.Struct(shape)})


def _metadata(metadata: Metadata) -> pl.DataFrame:
    row = {
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": metadata.format.provider, "options": metadata.format.options or {}},
        "schemaString": metadata.schema_string,
        "partitionColumns": metadata.partition_columns or [],
        "configuration": metadata.configuration or {},
        "createdTime": metadata.created_time,
    }
    return pl.DataFrame({"metaData": [row]}, schema={"metaData": _METADATA})


def _point(table: Target, hint: _Hint) -> None:
    try:
        known = checkpoint_hint(table.storage.read(LAST_CHECKPOINT))
    except FileNotFoundError:
        known = None
    if known is None or known < hint.version:
        table.storage.put(LAST_CHECKPOINT, msgspec.json.encode(hint))
