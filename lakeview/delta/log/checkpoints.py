"""Checkpoint files: Parquet to the actions they hold, reading only the columns asked for; and actions to Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol, Txn
from lakeview.delta.log.commits import FILE_ACTIONS, PARTITION_VALUES, VECTOR, with_keys
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.paths import LOG_FOLDER
from lakeview.errors import CorruptTableError, LakeviewError, UnsupportedTableError
from lakeview.storage import Storage

# column of FILE_ACTIONS -> leaf of the add (or remove) struct
_ADD_LEAVES = {
    "path": "path",
    "size": "size",
    "modified": "modificationTime",
    "data_change": "dataChange",
    "partition_values": "partitionValues",
    "stats": "stats",
    "tags": "tags",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
}
_REMOVE_LEAVES = {
    "path": "path",
    "size": "size",
    "modified": "deletionTimestamp",
    "data_change": "dataChange",
    "partition_values": "partitionValues",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
}
_VECTOR_LEAVES = {
    "storage_type": "storageType",
    "path_or_inline_dv": "pathOrInlineDv",
    "offset": "offset",
    "size_in_bytes": "sizeInBytes",
    "cardinality": "cardinality",
}


class Checkpoint:
    """One complete checkpoint, read by column. Nothing is read before it is asked for."""

    def __init__(self, storage: Storage, files: CheckpointFiles) -> None:
        self._storage = storage
        self.files = files
        self.version = files.version

    def protocol_and_metadata(self) -> tuple[Protocol | None, Metadata | None]:
        """The protocol and metaData actions; None for one that is not there."""
        protocol: Protocol | None = None
        metadata: Metadata | None = None
        for name, rows in self._rows(["protocol", "metaData"]):
            with _readable(name):
                protocol = protocol or _protocol(rows)
                metadata = metadata or _metadata(rows)
        return protocol, metadata

    def txns(self) -> list[Txn]:
        """Every txn action."""
        found: list[Txn] = []
        for name, rows in self._rows(["txn"]):
            with _readable(name):
                found += [msgspec.convert(row, Txn) for row in _structs(rows, "txn", "appId")]
        return found

    def domains(self) -> list[DomainMetadata]:
        """Every domainMetadata action."""
        found: list[DomainMetadata] = []
        for name, rows in self._rows(["domainMetadata"]):
            with _readable(name):
                found += [msgspec.convert(row, DomainMetadata) for row in _structs(rows, "domainMetadata", "domain")]
        return found

    def adds(self, columns: Sequence[str]) -> pl.DataFrame:
        """FILE_ACTIONS of the live files: `key`, `path`, `deletion_vector` and these columns, only they are read.

        Beside FILE_ACTIONS' own, `stats_parsed` (the struct as it is, absent if the checkpoint has none) and
        `parsed_records` (its numRecords) may be asked for.
        """
        return self._files("add", _ADD_LEAVES, columns)

    def removes(self, columns: Sequence[str] = ("size", "modified", "data_change")) -> pl.DataFrame:
        """FILE_ACTIONS of the tombstones: `key`, `path`, `deletion_vector` and these columns."""
        return self._files("remove", _REMOVE_LEAVES, columns)

    def _files(self, kind: str, leaves: dict[str, str], columns: Sequence[str]) -> pl.DataFrame:
        wanted = {c: leaves[c] for c in ("path", *columns) if c in leaves}
        paths = [f"{kind}.{leaf}" for leaf in wanted.values()]
        paths += [f"{kind}.deletionVector"]
        extra = {"stats_parsed": f"{kind}.stats_parsed", "parsed_records": f"{kind}.stats_parsed.numRecords"}
        paths += [extra[c] for c in columns if c in extra]
        frames = []
        for name, rows in self._rows(paths):
            with _readable(name):
                if kind in rows.columns:
                    frames.append(_flatten(rows, kind, wanted, columns))
        if not frames:
            always = {"key", "deletion_vector", "deleted_records"}
            schema = {c: t for c, t in FILE_ACTIONS.items() if c in {*always, *wanted, *columns}}
            return pl.DataFrame(schema=schema)
        return with_keys(pl.concat(frames, how="diagonal_relaxed"), self._storage.root)

    def _rows(self, columns: Sequence[str]) -> Iterator[tuple[str, pl.DataFrame]]:
        """Each file with the columns of it that exist, nested ones named `struct.field`."""
        if self.files.is_v2:
            raise UnsupportedTableError(
                f"checkpoint {self.files.names[0]} is a V2 checkpoint, which this reader does not implement",
                fix="read the table with an engine that implements v2Checkpoint",
                place=self.files.names[0],
                kind="unsupported-reader-feature",
            )
        for name in self.files.names:
            with _readable(name):
                path = f"{LOG_FOLDER}/{name}"
                with self._storage.open(path) as handle, pq.ParquetFile(handle) as file:
                    # wrong limits in a hostile footer would allocate without bound: pyarrow caps thrift sizes itself
                    present = _existing(file.schema_arrow, columns)
                    table = file.read(columns=present) if present else pa.table({})
                    table.validate(full=True)  # text that is no UTF-8 would bring polars down
                    frame = pl.from_arrow(table)
            yield name, frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def _existing(schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    top = {c.split(".")[0] for c in columns}
    if twice := next((n for n in schema.names if n in top and schema.names.count(n) > 1), None):
        raise TypeError(f"it has two columns called {twice}")
    return [c for c in columns if _find(schema, c.split("."))]


def _find(schema: pa.Schema, parts: list[str]) -> bool:
    fields: pa.Schema | pa.StructType = schema
    for i, part in enumerate(parts):
        index = fields.get_field_index(part)
        if index < 0:
            return False
        type_ = fields.field(index).type
        if i + 1 < len(parts):
            if not pa.types.is_struct(type_):
                return False
            fields = type_
    return True


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Errors of the Parquet and frame libraries over one checkpoint file become ours."""
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptTableError(
            f"checkpoint {name} was listed and is gone", fix="refresh: a clean-up may be running", place=name,
            kind="corrupt-checkpoint",
        ) from error  # fmt: skip
    except (
        pa.ArrowException,
        pl.exceptions.PolarsError,
        msgspec.ValidationError,
        OSError,
        TypeError,
        KeyError,
        OverflowError,
        UnicodeDecodeError,
    ) as error:
        if isinstance(error, LakeviewError):  # access denied, or a store that does not answer: not the file's fault
            raise
        raise CorruptTableError(
            f"checkpoint {name} cannot be read: {_first_line(error)}",
            fix="restore the file from a backup; if every commit is still there, deleting the checkpoint is enough",
            place=name,
            kind="corrupt-checkpoint",
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _structs(rows: pl.DataFrame, column: str, key: str) -> Iterator[dict[str, Any]]:
    """The rows where this action is: nulls left out, so that absent and null are the same."""
    if column not in rows.columns:
        return
    if not isinstance(rows[column].dtype, pl.Struct):
        raise TypeError(f"{column} is {rows[column].dtype}, a struct was expected")
    for row in rows[column].drop_nulls():
        if row.get(key) is not None:
            yield {name: value for name, value in row.items() if value is not None}


def _protocol(rows: pl.DataFrame) -> Protocol | None:
    found = next(_structs(rows, "protocol", "minReaderVersion"), None)
    return None if found is None else msgspec.convert(found, Protocol)


def _metadata(rows: pl.DataFrame) -> Metadata | None:
    found = next(_structs(rows, "metaData", "id"), None) or next(_structs(rows, "metaData", "schemaString"), None)
    if found is None:
        return None
    if "format" in found:
        shape = {name: value for name, value in found["format"].items() if value is not None}
        found["format"] = {**shape, "options": as_dict(shape.get("options"))}
    found["configuration"] = as_dict(found.get("configuration"))
    return msgspec.convert(found, Metadata)


def as_dict(value: object) -> dict[str, str | None]:
    """A Parquet map in any of its encodings as a dict: polars gives a dict, or a list of key-value structs."""
    if not value:
        return {}
    if isinstance(value, dict):
        return {str(k): v for k, v in value.items()}
    if isinstance(value, list):
        return {str(entry["key"]): entry["value"] for entry in value}
    raise TypeError(f"a map was expected, found {type(value).__name__}")


def _flatten(rows: pl.DataFrame, kind: str, wanted: dict[str, str], columns: Sequence[str]) -> pl.DataFrame:
    struct = rows[kind].struct
    fields = set(struct.fields)
    series = [_conformed(struct.field(leaf), column) for column, leaf in wanted.items() if leaf in fields]
    frame = pl.DataFrame(series)
    if "deletionVector" in fields:
        vector = struct.field("deletionVector").struct
        offset = vector.field("offset")
        identity = pl.DataFrame(
            [vector.field("storageType").alias("t"), vector.field("pathOrInlineDv").alias("p"), offset.alias("o")]
        ).select(
            pl.concat_str("t", "p", pl.when(pl.col("o").is_null()).then(pl.lit("")).otherwise(pl.format("@{}", "o")))
        )
        frame = frame.with_columns(
            identity.to_series().alias("deletion_vector"),
            vector.field("cardinality").cast(pl.Int64).fill_null(0).alias("deleted_records"),
        )
        if "vector" in columns:
            frame = frame.with_columns(_vectors(struct.field("deletionVector")))
    else:
        frame = frame.with_columns(
            pl.lit(None, pl.String).alias("deletion_vector"), pl.lit(0, pl.Int64).alias("deleted_records")
        )
    if "stats_parsed" in fields and "stats_parsed" in columns:
        frame = frame.with_columns(struct.field("stats_parsed"))
    if "stats_parsed" in fields and "parsed_records" in columns:
        parsed = struct.field("stats_parsed").struct
        if "numRecords" in parsed.fields:
            frame = frame.with_columns(parsed.field("numRecords").cast(pl.Int64).alias("parsed_records"))
    for column in {**wanted, **({"vector": ""} if "vector" in columns else {})}:
        if column not in frame.columns:
            frame = frame.with_columns(pl.lit(None, FILE_ACTIONS[column]).alias(column))
    return frame.filter(frame["path"].is_not_null())


def _vectors(descriptors: pl.Series) -> pl.Series:
    """Descriptors as VECTOR, under the name `vector`."""
    leaves = descriptors.struct
    parts = [
        leaves.field(leaf).cast(VECTOR.to_schema()[name]).alias(name)
        if leaf in leaves.fields
        else pl.Series(name, [None] * descriptors.len(), dtype=VECTOR.to_schema()[name])
        for name, leaf in _VECTOR_LEAVES.items()
    ]
    whole = pl.select(*parts).to_struct("vector")
    return whole.set(leaves.field("storageType").is_null(), None)


def _conformed(series: pl.Series, column: str) -> pl.Series:
    series = series.alias(column)
    if column == "partition_values":
        return _as_map(series)
    if column == "tags":
        maps = _as_map(series).to_list()
        return pl.Series(column, [None if m is None else json.dumps(as_dict(m)) for m in maps], pl.String)
    return series.cast(FILE_ACTIONS[column])


def _as_map(series: pl.Series) -> pl.Series:
    if isinstance(series.dtype, pl.Map):
        return series.cast(PARTITION_VALUES)
    if isinstance(series.dtype, pl.List):  # a two-level or renamed encoding of a map
        return series.cast(pl.List(pl.Struct({"key": pl.String(), "value": pl.String()}))).cast(PARTITION_VALUES)
    if series.dtype == pl.Null:
        return series.cast(PARTITION_VALUES)
    raise TypeError(f"{series.name} is {series.dtype}, a map was expected")
