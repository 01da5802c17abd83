"""The actions of a state that are no files, and what a V2 checkpoint says of itself, to columns of a checkpoint; and
rows of actions to the bytes of one Parquet file of it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from io import BytesIO
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.delta.log.replay import Replay
from lakeview.delta.properties import value
from lakeview.delta.write.checkpoint.file_rows import TEXTS
from lakeview.delta.write.property_checks import checkpoint_codec, checkpoint_page_version
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


def state_actions(state: Replay, timestamp: datetime | None) -> list[Action]:
    """protocol, metaData, unexpired txns and domainMetadata of a state; `timestamp`: that of its version.

    A txn expires `delta.setTransactionRetentionDuration` after its lastUpdated; one without never does.
    """
    keeps: timedelta | None = value(state.properties, "delta.setTransactionRetentionDuration")
    cutoff = None if keeps is None or timestamp is None else timestamp - keeps
    txns: list[Action] = [
        ("txn", {"appId": app, "version": version, "lastUpdated": None if at is None else milliseconds(at)})
        for app, version, at in sorted(state.transactions().iter_rows())
        if at is None or cutoff is None or at >= cutoff
    ]
    domains: list[Action] = [
        ("domainMetadata", {"domain": domain, "configuration": configuration, "removed": False})
        for domain, configuration in sorted(state.domain_metadata().iter_rows())
    ]
    metadata = msgspec.to_builtins(state.metadata)
    metadata |= {name: metadata[name] or empty for name, empty in (("partitionColumns", []), ("configuration", {}))}
    metadata["format"]["options"] = metadata["format"]["options"] or {}
    return [("protocol", msgspec.to_builtins(state.protocol)), ("metaData", metadata), *txns, *domains]


def action_columns(actions: Sequence[Action]) -> dict[str, pa.Array]:
    """One array for each kind of action, null in the rows of the others."""
    types = {**STATE_TYPES, **V2_TYPES}
    columns = {}
    for kind in dict.fromkeys(kind for kind, _ in actions):
        rows = [fields if action == kind else None for action, fields in actions]
        columns[kind] = pl.Series(kind, rows, dtype=types[kind]).to_arrow()
    return columns


_DICTIONARIES = ("partitionValues", "partitionValues_parsed", "tags", "storageType", "clusteringProvider")

_SNAPPY_ROWS = 256
"""A file of at most so many rows is compressed with snappy: zstd begins a stream for each of its fifty leaves, which
takes twice the time of all else. A million adds with statistics of 18 columns are 114 MB with zstd, 274 MB with snappy,
which takes as long."""

FEW_ROWS = 1024
"""Fewer rows of one call share a row group with others."""


class ActionFile:
    """One file of actions in the making: a column for each kind, a row group for each call of `write` with many rows;
    few rows share one, since each has forty columns.

    The same actions give the same bytes. `properties`: the table's, which say how its files are compressed, else the
    size of the file decides, and of which version its pages are.
    """

    def __init__(self, types: Mapping[str, pa.DataType], properties: Mapping[str, str]) -> None:
        self.rows = 0
        self._compression = checkpoint_codec(properties)
        self._page_version = checkpoint_page_version(properties)
        self._few: list[pa.Table] = []
        self._schema = pa.schema(list(types.items()))
        self._sink = BytesIO()
        self._writer: pq.ParquetWriter | None = None

    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Write rows; a kind that is not among the columns is null in them."""
        count = len(next(iter(columns.values())))
        arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in self._schema]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        self.rows += count
        if count < FEW_ROWS:
            self._few.append(table)
            return
        self._write_few()
        self._write_group(table)

    def _write_few(self) -> None:
        if self._few:
            self._write_group(pa.concat_tables(self._few))
            self._few.clear()

    def _write_group(self, table: pa.Table) -> None:
        self._begin().write_table(table, row_group_size=table.num_rows)

    def _begin(self) -> pq.ParquetWriter:
        if self._writer is None:
            compression = self._compression or ("snappy" if self.rows <= _SNAPPY_ROWS else "zstd")
            self._writer = pq.ParquetWriter(
                self._sink,
                self._schema,
                compression=compression,
                use_dictionary=_repeating_leaves(self._schema) or False,
                store_schema=False,
                data_page_version=self._page_version,
            )
        return self._writer

    def close(self) -> bytes:
        """The whole file."""
        self._write_few()
        self._begin().close()
        return self._sink.getvalue()


@lru_cache
def _repeating_leaves(schema: pa.Schema) -> list[str]:
    """The leaves that are worth a dictionary: values of others hardly repeat, and one of them is only tried and given
    up. A schema is that of all tables without structs of statistics."""
    sink = BytesIO()
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    leaves = pq.ParquetFile(sink).schema
    paths = [leaves.column(number).path for number in range(len(leaves))]
    return [path for path in paths if any(part in _DICTIONARIES for part in path.split("."))]
