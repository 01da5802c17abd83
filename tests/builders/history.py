"""A Delta table's history told in words, commit by commit, to the files of a table on disk or in memory.

Nothing of lakeview makes these files: JSON by the standard library, Parquet by pyarrow, bytes through fsspec.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, Self

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from tests.builders.actions import Action, add, metadata, protocol

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
STEP = timedelta(minutes=10)

_TEXTS = pa.map_(pa.string(), pa.string())
_ADD = {
    "path": pa.string(),
    "partitionValues": _TEXTS,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "tags": _TEXTS,
    "stats": pa.string(),
}
_REMOVE = {"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_(), "size": pa.int64()}
_METADATA = {
    "id": pa.string(),
    "name": pa.string(),
    "description": pa.string(),
    "format": pa.struct({"provider": pa.string(), "options": _TEXTS}.items()),
    "schemaString": pa.string(),
    "partitionColumns": pa.list_(pa.string()),
    "configuration": _TEXTS,
    "createdTime": pa.int64(),
}
_PROTOCOL = {
    "minReaderVersion": pa.int32(),
    "minWriterVersion": pa.int32(),
    "readerFeatures": pa.list_(pa.string()),
    "writerFeatures": pa.list_(pa.string()),
}
_TXN = {"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}

CHECKPOINT_SHAPE: dict[str, dict[str, pa.DataType]] = {
    "txn": _TXN,
    "add": _ADD,
    "remove": _REMOVE,
    "metaData": _METADATA,
    "protocol": _PROTOCOL,
}
"""The columns of a checkpoint (delta protocol, Checkpoint Schema), in the order Spark writes them."""


def log_name(version: int, suffix: str = "json") -> str:
    """`_delta_log/00000000000000000007.json`."""
    return f"_delta_log/{version:020d}.{suffix}"


class DeltaHistory:
    """Tell what happened; the table lies at `address`.

    Commits are `STEP` apart from `START` on, by their files' times (where the store keeps them).
    """

    def __init__(self, address: object) -> None:
        self.address = str(address)
        self._fs, self._root = fsspec.core.url_to_fs(self.address)
        self._local = "://" not in self.address
        self.version = -1
        self.actions: dict[int, list[Action]] = {}

    # -- the log

    def commit(self, *actions: Action, version: int | None = None, at: datetime | None = None) -> Self:
        """Write the next commit, or the one of that number, as JSON lines."""
        self.version = self.version + 1 if version is None else version
        self.actions[self.version] = list(actions)
        lines = "".join(json.dumps(action) + "\n" for action in actions)
        self.write(log_name(self.version), lines.encode())
        self.dated(self.version, START + STEP * min(self.version, 10**6) if at is None else at)
        return self

    def create(self, columns: dict[str, Any] | None = None, **more: Any) -> Self:
        """The first commit: protocol and metaData."""
        return self.commit(protocol(), metadata(columns, **more))

    def raw_commit(self, data: bytes, version: int | None = None) -> Self:
        """A commit file with these bytes."""
        self.version = self.version + 1 if version is None else version
        self.write(log_name(self.version), data)
        return self

    def without(self, *versions: int) -> Self:
        """Clean up the commits of these versions."""
        for version in versions:
            self.remove(log_name(version))
        return self

    def checkpoint(
        self,
        version: int | None = None,
        *,
        parts: int | None = None,
        write_parts: tuple[int, ...] | None = None,
        actions: list[Action] | None = None,
        shape: dict[str, dict[str, pa.DataType]] | None = None,
    ) -> Self:
        """A checkpoint of a version: one file, or `parts` files of which only `write_parts` (from 1) are written.

        `actions`: what it holds instead of what the commits so far add up to; `shape`: other columns.
        """
        version = self.version if version is None else version
        rows = self.reconciled(version) if actions is None else actions
        if parts is None:
            self.write(log_name(version, "checkpoint.parquet"), parquet_actions(rows, shape))
            return self
        for part in write_parts or range(1, parts + 1):
            name = log_name(version, f"checkpoint.{part:010d}.{parts:010d}.parquet")
            self.write(name, parquet_actions(rows[part - 1 :: parts], shape))
        return self

    def hint(self, content: object) -> Self:
        """`_last_checkpoint`: bytes as they are, anything else as JSON."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.write("_delta_log/_last_checkpoint", data)

    def reconciled(self, version: int) -> list[Action]:
        """What the commits up to a version add up to, paths compared as recorded."""
        latest: dict[tuple[str, str], Action] = {}
        for number in sorted(v for v in self.actions if v <= version):
            for action in self.actions[number]:
                kind, body = next(iter(action.items()))
                if kind in ("protocol", "metaData"):
                    latest[kind, ""] = action
                elif kind == "txn":
                    latest[kind, body["appId"]] = action
                elif kind in ("add", "remove"):
                    latest["file", body["path"]] = action
        return list(latest.values())

    # -- files

    def write(self, path: str, data: bytes) -> Self:
        """Any file below the table."""
        full = f"{self._root}/{path}"
        self._fs.makedirs(full.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(full, data)
        return self

    def remove(self, path: str) -> Self:
        """Delete a file below the table."""
        self._fs.rm_file(f"{self._root}/{path}")
        return self

    def dated(self, version: int, at: datetime) -> Self:
        """Give a commit's file another time."""
        if self._local:
            os.utime(f"{self._root}/{log_name(version)}", (at.timestamp(), at.timestamp()))
        else:
            self._fs.store[f"{self._root}/{log_name(version)}"].modified = at
        return self

    def data(self, path: str, columns: dict[str, Any] | pa.Table, *, stats: Any = None, **more: Any) -> Action:
        """Write a Parquet file with these columns; returns the add action for it."""
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        buffer = BytesIO()
        pq.write_table(table, buffer, use_deprecated_int96_timestamps=more.pop("int96", False))
        self.write(path, buffer.getvalue())
        return add(path, size=buffer.tell(), stats=stats, **more)


def parquet_actions(rows: list[Action], shape: dict[str, dict[str, pa.DataType]] | None = None) -> bytes:
    """Actions as the bytes of a checkpoint file."""
    schema = pa.schema(
        [(kind, pa.struct(list(fields.items()))) for kind, fields in (shape or CHECKPOINT_SHAPE).items()]
    )
    buffer = BytesIO()
    pq.write_table(pa.Table.from_pylist([_with_maps(row, schema) for row in rows], schema), buffer)
    return buffer.getvalue()


def _with_maps(value: Any, type_: Any) -> Any:
    """Dicts where the type is a map become pairs, which is how pyarrow takes maps."""
    if isinstance(type_, pa.Schema):
        return {f.name: _with_maps(value[f.name], f.type) for f in type_ if f.name in value}
    if value is None:
        return None
    if pa.types.is_struct(type_):
        return {f.name: _with_maps(value[f.name], f.type) for f in type_ if f.name in value}
    if pa.types.is_map(type_):
        return list(value.items())
    return value
