"""What a bench asks for to a table on disk: logs of many files, logs of many commits, made by pyarrow and json alone.

Usage: python benches/make_tables.py [--files 10000 ...] [--commits 1000 ...]

The tables have a log and no data files: what is measured never opens one. They are kept in build/bench-tables, told
apart by name, and rebuilt when this file's FORMAT rises.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from benches import trips

FORMAT = 2
HOME = Path(__file__).resolve().parents[1] / "build" / "bench-tables"
LAYOUTS = ("v1", "parsed", "parts", "v2")
"""One checkpoint file; the same with stats_parsed; ten parts; V2 with ten sidecars."""

FIRST_VERSION = 1_000
TAIL_COMMITS, TAIL_FILES = 10, 20
PIECES = 10
ROW_GROUP = 100_000
COMPACTED_EVERY = 50
CHECKPOINT_EVERY = 1_000
_MAP = pa.map_(pa.string(), pa.string())
_BEGUN = datetime(2026, 1, 1, tzinfo=UTC)

_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _MAP),
        ("size", pa.int64()),
    ]
)
_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _MAP),
        ("createdTime", pa.int64()),
    ]
)
_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
_SIDECAR = pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])


@dataclass(frozen=True)
class Described:
    """What is known of a table by construction."""

    path: Path
    version: int
    num_files: int


# -- many files


def files_table(count: int, layout: str = "v1") -> Described:
    """A table of `count` live files: a checkpoint at version 1000 without the commits before it, and a tail of ten.

    Each tail commit adds twenty files and removes twenty that the checkpoint holds.
    """
    table = Described(_home(f"files-{layout}-{count}"), FIRST_VERSION + TAIL_COMMITS, count)
    if not table.path.exists():
        with Making(table.path) as log:
            _checkpoint(log, count, layout)
            _tail(log, count)
    return table


def _checkpoint(log: Path, count: int, layout: str) -> None:
    stem = f"{FIRST_VERSION:020d}.checkpoint"
    hint: dict[str, Any] = {"version": FIRST_VERSION, "size": count + count // 100 + 2}
    if layout == "parts":
        hint["parts"] = PIECES
        for part in range(1, PIECES + 1):
            piece = _batches(count // PIECES, first=count // PIECES * (part - 1))
            rows = _with_actions(piece, layout) if part == PIECES else piece
            _write(log / f"{stem}.{part:010d}.{PIECES:010d}.parquet", rows)
    elif layout == "v2":
        _v2(log, stem, count)
    else:
        _write(log / f"{stem}.parquet", _with_actions(_batches(count, parsed=layout == "parsed"), layout))
    (log / "_last_checkpoint").write_text(json.dumps(hint))


def _v2(log: Path, stem: str, count: int) -> None:
    (log / "_sidecars").mkdir()
    sidecars = []
    for piece in range(PIECES):
        name = f"{piece:08d}-1d2c-4e5f-8a9b-0c1d2e3f4a5b.parquet"
        path = log / "_sidecars" / name
        _write(path, _batches(count // PIECES, first=count // PIECES * piece, vectors=True))
        sidecars.append({"path": name, "sizeInBytes": path.stat().st_size, "modificationTime": 1_767_225_600_000})
    rows: list[dict[str, Any]] = [{"checkpointMetadata": {"version": FIRST_VERSION}}, {"protocol": _protocol("v2")}]
    rows += [{"metaData": _metadata()}, *({"sidecar": sidecar} for sidecar in sidecars)]
    shape = pa.schema(
        [
            ("checkpointMetadata", pa.struct([("version", pa.int64())])),
            ("protocol", _PROTOCOL),
            ("metaData", _METADATA),
            ("sidecar", _SIDECAR),
        ]
    )
    table = pa.Table.from_pylist([{n: row.get(n) for n in shape.names} for row in rows], shape)
    pq.write_table(table, log / f"{stem}.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet")


def _batches(count: int, *, first: int = 0, parsed: bool = False, vectors: bool = False) -> Iterator[pa.Table]:
    """Adds of the files from a number on, a row group each, and tombstones: one for each hundred files."""
    for start in range(first, first + count, ROW_GROUP):
        yield _adds(trips.files(start, min(ROW_GROUP, first + count - start), parsed=parsed), vectors)
    if tombstones := count // 100:
        yield _removes(trips.files(10**7 + first, tombstones))


def _adds(frame: pl.DataFrame, vectors: bool) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "path": _texts(frame["path"]),
        "partitionValues": _partition_values(frame["day"]),
        "size": frame["size"].to_arrow(),
        "modificationTime": frame["modificationTime"].to_arrow(),
        "dataChange": pa.repeat(False, frame.height),
        "tags": pa.nulls(frame.height, _MAP),
        "stats": _texts(frame["stats"]),
    }
    if "stats_parsed" in frame.columns:
        columns["stats_parsed"] = trips.arrow_struct(frame, "stats_parsed")
        columns["partitionValues_parsed"] = pa.StructArray.from_arrays([frame["date"].to_arrow()], [trips.PARTITION])
    if vectors:
        columns["deletionVector"] = pa.nulls(frame.height, _VECTOR)
    return pa.table({"add": pa.StructArray.from_arrays(list(columns.values()), list(columns))})


def _removes(frame: pl.DataFrame) -> pa.Table:
    columns = {
        "path": _texts(frame["path"]),
        "deletionTimestamp": frame["modificationTime"].to_arrow(),
        "dataChange": pa.repeat(True, frame.height),
        "extendedFileMetadata": pa.repeat(True, frame.height),
        "partitionValues": _partition_values(frame["day"]),
        "size": frame["size"].to_arrow(),
    }
    return pa.table({"remove": pa.StructArray.from_arrays(list(columns.values()), list(columns))})


def _actions(protocol: dict[str, Any], metadata: dict[str, Any]) -> pa.Table:
    shape = pa.schema([("protocol", _PROTOCOL), ("metaData", _METADATA)])
    return pa.Table.from_pylist([{"protocol": protocol}, {"metaData": metadata}], shape)


def _with_actions(batches: Iterator[pa.Table], layout: str) -> Iterator[pa.Table]:
    """Protocol and metadata after the first adds: Spark leaves them wherever its shuffle put them."""
    yield next(batches)
    yield _actions(_protocol(layout), _metadata())
    yield from batches


def _write(path: Path, batches: Iterable[pa.Table]) -> None:
    """Tables with some of a checkpoint's columns each, the first with adds, as one file: a row group a table."""
    tables = iter(batches)
    first = next(tables)
    shape = pa.schema(
        [first.schema.field("add"), ("metaData", _METADATA), ("protocol", _PROTOCOL), ("remove", _REMOVE)]
    )
    with pq.ParquetWriter(path, shape, compression="snappy") as writer:
        for table in chain([first], tables):
            names = table.schema.names
            arrays = [table[f.name] if f.name in names else pa.nulls(table.num_rows, f.type) for f in shape]
            writer.write_table(pa.Table.from_arrays(arrays, schema=shape), row_group_size=ROW_GROUP)


def _texts(series: pl.Series) -> pa.Array:
    return series.to_arrow().cast(pa.string())


def _partition_values(days: pl.Series) -> pa.Array:
    keys = pa.repeat(trips.PARTITION, len(days))
    return pa.MapArray.from_arrays(
        pl.int_range(len(days) + 1, eager=True, dtype=pl.Int32).to_arrow(), keys, _texts(days)
    )


def _tail(log: Path, count: int) -> None:
    new = trips.files(count, TAIL_COMMITS * TAIL_FILES)
    old = trips.files(0, TAIL_COMMITS * TAIL_FILES)
    for number in range(TAIL_COMMITS):
        rows = slice(number * TAIL_FILES, (number + 1) * TAIL_FILES)
        actions = [*_add_actions(new[rows]), *_remove_actions(old[rows], number)]
        _commit(log, FIRST_VERSION + 1 + number, number, "MERGE", actions)


# -- many commits


def commits_table(count: int, *, checkpoints: bool) -> Described:
    """A table of versions 0 to `count`: each commit adds two files, each fiftieth puts those of the last 49 together.

    `checkpoints`: one for each thousand versions, without the commits before them being cleaned up.
    """
    name = f"commits-{'checkpointed-' if checkpoints else ''}{count}"
    live_after = count // COMPACTED_EVERY * 2 + count % COMPACTED_EVERY * 2
    table = Described(_home(name), count, live_after)
    if not table.path.exists():
        with Making(table.path) as log:
            _commits(log, count, checkpoints)
    return table


def _commits(log: Path, count: int, checkpoints: bool) -> None:
    begin = [{"protocol": _protocol("v1")}, {"metaData": _metadata()}]
    _commit(log, 0, 0, "CREATE TABLE", begin)
    adds = _add_actions(trips.files(0, count * 2))
    live: list[tuple[int, dict[str, Any]]] = []
    compacted = 0
    for version in range(1, count + 1):
        mine = list(enumerate(adds[version * 2 - 2 : version * 2], start=version * 2 - 2))
        if version % COMPACTED_EVERY:
            _commit(log, version, version, "WRITE", [action for _, action in mine])
        else:
            removes = [{"remove": _removed(action["add"], version)} for _, action in live[compacted:]]
            del live[compacted:]
            _commit(log, version, version, "OPTIMIZE", [*(action for _, action in mine), *removes])
        live += mine
        compacted = compacted if version % COMPACTED_EVERY else len(live)
        if checkpoints and version % CHECKPOINT_EVERY == 0:
            frame = pl.concat([trips.files(number, 1) for number, _ in live])
            _write(
                log / f"{version:020d}.checkpoint.parquet",
                [_adds(frame, vectors=False), _actions(_protocol("v1"), _metadata())],
            )
            (log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": len(live) + 2}))


# -- actions


def _commit(log: Path, version: int, minute: int, operation: str, actions: list[dict[str, Any]]) -> None:
    at = _BEGUN + timedelta(minutes=minute)
    adds, removes = (sum(kind in action for action in actions) for kind in ("add", "remove"))
    info = {
        "timestamp": int(at.timestamp() * 1000),
        "operation": operation,
        "operationParameters": {"mode": "Append", "partitionBy": '["day"]'},
        **({"readVersion": version - 1} if version else {}),
        "isolationLevel": "Serializable",
        "isBlindAppend": removes == 0,
        "operationMetrics": {
            "numFiles": str(adds),
            "numRemovedFiles": str(removes),
            "numOutputRows": str(adds * trips.ROWS_PER_FILE),
            "numOutputBytes": str(sum(action["add"]["size"] for action in actions if "add" in action)),
        },
        "engineInfo": "Apache-Spark/4.0.1 Delta-Lake/4.0.0",
        "txnId": f"{version:08d}-77aa-4d0e-9f53-2f3b1a4c5d6e",
    }
    path = log / f"{version:020d}.json"
    path.write_text("".join(json.dumps(a, separators=(",", ":")) + "\n" for a in [{"commitInfo": info}, *actions]))
    os.utime(path, (at.timestamp(), at.timestamp()))


def _add_actions(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            "add": {
                "path": row["path"],
                "partitionValues": {trips.PARTITION: row["day"]},
                "size": row["size"],
                "modificationTime": row["modificationTime"],
                "dataChange": True,
                "stats": row["stats"],
            }
        }
        for row in frame.iter_rows(named=True)
    ]


def _remove_actions(frame: pl.DataFrame, minute: int) -> list[dict[str, Any]]:
    return [{"remove": _removed(action["add"], minute)} for action in _add_actions(frame)]


def _removed(add: dict[str, Any], minute: int) -> dict[str, Any]:
    fields = {name: add[name] for name in ("path", "dataChange", "partitionValues", "size")}
    at = _BEGUN + timedelta(minutes=minute)
    return {**fields, "deletionTimestamp": int(at.timestamp() * 1000), "extendedFileMetadata": True}


def _protocol(layout: str) -> dict[str, Any]:
    if layout != "v2":
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["v2Checkpoint"],
        "writerFeatures": ["v2Checkpoint", "appendOnly", "invariants"],
    }


def _metadata() -> dict[str, Any]:
    return {
        "id": "5b1a3e0c-8d7f-4a52-b0a6-6f2d9c4e1b37",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": trips.schema_string(),
        "partitionColumns": [trips.PARTITION],
        "configuration": {},
        "createdTime": int(_BEGUN.timestamp() * 1000),
    }


class Making:
    """A table made beside its place and moved there when it is whole. `folder`: of its log or metadata."""

    def __init__(self, path: Path, folder: str = "_delta_log") -> None:
        self._path = path
        self._folder = folder
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}")

    def __enter__(self) -> Path:
        log = self._temporary / self._folder
        log.mkdir(parents=True)
        return log

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._temporary.rename(self._path)
        else:
            shutil.rmtree(self._temporary)


def _home(name: str) -> Path:
    return HOME / f"format-{FORMAT}" / name


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the bench tables.")
    parser.add_argument("--files", type=int, nargs="*", default=[10_000])
    parser.add_argument("--layouts", nargs="*", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--commits", type=int, nargs="*", default=[1_000])
    options = parser.parse_args()
    for count in options.files:
        for layout in options.layouts:
            print(files_table(count, layout).path)
    for count in options.commits:
        print(commits_table(count, checkpoints=False).path)
        print(commits_table(count, checkpoints=True).path)


if __name__ == "__main__":
    main()
