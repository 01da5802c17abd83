"""What a bench asks for to an Iceberg table on disk: many files, many small manifests, many snapshots.

Usage: python benches/make_iceberg.py [--files 100000 ...] [--manifests 1000 ...] [--snapshots 5000 ...]

Metadata, manifest lists and manifests as Java writes them (deflate, blocks of some 64,000 bytes), metrics of 18 columns
on every entry, and no data files: what is measured never opens one. Manifests are encoded a column at a time by Arrow.
Kept in build/bench-tables like the others, and rebuilt when this file's FORMAT rises.
"""

from __future__ import annotations

import argparse
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from benches import make_tables, trips
from benches.make_tables import Making

FORMAT = 1
PER_MANIFEST = 10_000
"""Entries of a manifest, as Java writes them by default (8 MB)."""
SMALL = 20
"""Entries of a small manifest: a table of frequent appends that is never compacted."""
DELETED_EVERY = 10
"""Every tenth file of a table with deletes has a position delete file of its own."""

SYNC = bytes(range(16))
_BLOCK_BYTES = 64_000
_SNAPSHOT = 4_611_686_018_427_387_905
_BEGUN = 1_767_225_600_000
_DAY_ID = len(trips.COLUMNS) + 1
_ELEMENT_ID = _DAY_ID + 1
_PART_ID = 1000
_TYPES = {"long": "long", "integer": "int", "timestamp": "timestamptz", "double": "double", "boolean": "boolean"}
_UUID = "5b1a3e0c-8d7f-4a52-b0a6-6f2d9c4e1b37"


@dataclass(frozen=True)
class IcebergDescribed:
    """What is known of a table by construction. `path`: its folder; `metadata`: the file to open."""

    path: Path
    num_files: int
    snapshots: int

    @property
    def metadata(self) -> Path:
        """The current metadata file."""
        return self.path / "metadata" / "v1.metadata.json"


def iceberg_files(count: int, per_manifest: int = PER_MANIFEST, deletes: bool = False) -> IcebergDescribed:
    """A table of `count` live data files in manifests of so many entries; `deletes`: with position deletes."""
    kind = f"{'deletes' if deletes else 'files'}-{count}-{per_manifest}"
    table = IcebergDescribed(_home(kind), count, 1)
    if not table.path.exists():
        with Making(table.path, "metadata") as folder:
            manifests = [
                _manifest(folder, table.path, first, min(per_manifest, count - first))
                for first in range(0, count, per_manifest)
            ]
            if deletes:
                step = per_manifest * DELETED_EVERY
                manifests += [
                    _manifest(folder, table.path, first, min(step, count - first), deletes=True)
                    for first in range(0, count, step)
                ]
            _write_list(folder / "snap.avro", manifests)
            total = {"total-data-files": count, "total-records": count * trips.ROWS_PER_FILE}
            summary = {"operation": "append", **{k: str(v) for k, v in total.items()}}
            _write_metadata(folder, table.path, [_snapshot(table.path, 0, _SNAPSHOT, summary)])
    return table


def iceberg_snapshots(count: int) -> IcebergDescribed:
    """A table of `count` snapshots and a metadata file of many megabytes, as frequent commits leave it."""
    table = IcebergDescribed(_home(f"snapshots-{count}"), SMALL, count)
    if not table.path.exists():
        with Making(table.path, "metadata") as folder:
            _write_list(folder / "snap.avro", [_manifest(folder, table.path, 0, SMALL)])
            _write_metadata(folder, table.path, [_committed(table.path, i) for i in range(count)])
    return table


def _home(name: str) -> Path:
    return make_tables.HOME / f"iceberg-{FORMAT}" / name


# -- metadata


def _schema() -> dict[str, Any]:
    fields: list[dict[str, Any]] = [
        {"id": i, "name": c.name, "required": False, "type": _TYPES.get(c.type, "string")}
        for i, c in enumerate(trips.COLUMNS, 1)
    ]
    for field, column in zip(fields, trips.COLUMNS, strict=True):
        if column.type == "array":
            field["type"] = {"type": "list", "element-id": _ELEMENT_ID, "element": "int", "element-required": False}
    day = {"id": _DAY_ID, "name": trips.PARTITION, "required": False, "type": "date"}
    return {"type": "struct", "schema-id": 0, "fields": [*fields, day]}


def _spec() -> dict[str, Any]:
    part = {"name": trips.PARTITION, "transform": "identity", "source-id": _DAY_ID, "field-id": _PART_ID}
    return {"spec-id": 0, "fields": [part]}


def _snapshot(home: Path, number: int, snapshot_id: int, summary: dict[str, str]) -> dict[str, Any]:
    return {
        "snapshot-id": snapshot_id, "sequence-number": number + 1, "timestamp-ms": _BEGUN + number * 60_000,
        "manifest-list": f"{home}/metadata/snap.avro", "summary": summary, "schema-id": 0,
    }  # fmt: skip


def _committed(home: Path, number: int) -> dict[str, Any]:
    counts = {
        "added-data-files": 3, "added-records": 30_000, "added-files-size": 271_828_182, "changed-partition-count": 1,
        "total-records": 30_000 * (number + 1), "total-files-size": 271_828_182 * (number + 1),
        "total-data-files": 3 * (number + 1), "total-delete-files": 0, "total-position-deletes": 0,
        "total-equality-deletes": 0,
    }  # fmt: skip
    words = {"operation": "append", "spark.app.id": f"app-20260101-{number:06d}", "engine-name": "spark"}
    summary = {**words, "engine-version": "3.5.7", **{k: str(v) for k, v in counts.items()}}
    snapshot = _snapshot(home, number, _SNAPSHOT + number, summary)
    return snapshot if number == 0 else {**snapshot, "parent-snapshot-id": _SNAPSHOT + number - 1}


def _write_metadata(folder: Path, home: Path, snapshots: list[dict[str, Any]]) -> None:
    newest = snapshots[-1]
    log = [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in snapshots]
    document = {
        "format-version": 2, "table-uuid": _UUID, "location": str(home), "last-updated-ms": newest["timestamp-ms"],
        "last-sequence-number": newest["sequence-number"], "last-column-id": _ELEMENT_ID,
        "schemas": [_schema()], "current-schema-id": 0, "partition-specs": [_spec()], "default-spec-id": 0,
        "last-partition-id": _PART_ID, "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0,
        "properties": {"write.format.default": "parquet"}, "current-snapshot-id": newest["snapshot-id"],
        "refs": {"main": {"snapshot-id": newest["snapshot-id"], "type": "branch"}},
        "snapshots": snapshots, "snapshot-log": log, "metadata-log": [],
    }  # fmt: skip
    (folder / "v1.metadata.json").write_text(json.dumps(document))


# -- Avro: the schemas


def _field(name: str, field_id: int, type_: Any, required: bool = True) -> dict[str, Any]:
    if required:
        return {"name": name, "field-id": field_id, "type": type_}
    return {"name": name, "field-id": field_id, "type": ["null", type_], "default": None}


def _map(name: str, field_id: int, key_id: int, value: str) -> dict[str, Any]:
    pair = [_field("key", key_id, "int"), _field("value", key_id + 1, value)]
    items = {"type": "record", "name": f"k{key_id}_v{key_id + 1}", "fields": pair}
    return _field(name, field_id, {"type": "array", "logicalType": "map", "items": items}, required=False)


_DATE = {"type": "int", "logicalType": "date"}
_FILE = {
    "type": "record", "name": "r2",
    "fields": [
        _field("content", 134, "int"), _field("file_path", 100, "string"), _field("file_format", 101, "string"),
        _field("partition", 102, {
            "type": "record", "name": "r102", "fields": [_field(trips.PARTITION, _PART_ID, _DATE, required=False)]}),
        _field("record_count", 103, "long"), _field("file_size_in_bytes", 104, "long"),
        _map("column_sizes", 108, 117, "long"), _map("value_counts", 109, 119, "long"),
        _map("null_value_counts", 110, 121, "long"), _map("nan_value_counts", 137, 138, "long"),
        _map("lower_bounds", 125, 126, "bytes"), _map("upper_bounds", 128, 129, "bytes"),
        _field("key_metadata", 131, "bytes", required=False),
        _field("split_offsets", 132, {"type": "array", "items": "long", "element-id": 133}, required=False),
        _field("equality_ids", 135, {"type": "array", "items": "int", "element-id": 136}, required=False),
        _field("sort_order_id", 140, "int", required=False),
    ],
}  # fmt: skip
_ENTRY = {
    "type": "record", "name": "manifest_entry",
    "fields": [
        _field("status", 0, "int"), _field("snapshot_id", 1, "long", required=False),
        _field("sequence_number", 3, "long", required=False), _field("file_sequence_number", 4, "long", required=False),
        _field("data_file", 2, _FILE),
    ],
}  # fmt: skip
_SUMMARY = {
    "type": "record", "name": "r508",
    "fields": [
        _field("contains_null", 509, "boolean"), _field("contains_nan", 518, "boolean", required=False),
        _field("lower_bound", 510, "bytes", required=False), _field("upper_bound", 511, "bytes", required=False),
    ],
}  # fmt: skip
_COUNTS = (
    ("added_files_count", 504, "int"), ("existing_files_count", 505, "int"), ("deleted_files_count", 506, "int"),
    ("added_rows_count", 512, "long"), ("existing_rows_count", 513, "long"), ("deleted_rows_count", 514, "long"),
)  # fmt: skip
_LIST = {
    "type": "record", "name": "manifest_file",
    "fields": [
        _field("manifest_path", 500, "string"), _field("manifest_length", 501, "long"),
        _field("partition_spec_id", 502, "int"), _field("content", 517, "int"), _field("sequence_number", 515, "long"),
        _field("min_sequence_number", 516, "long"), _field("added_snapshot_id", 503, "long"),
        *(_field(*count) for count in _COUNTS),
        _field("partitions", 507, {"type": "array", "items": _SUMMARY, "element-id": 508}, required=False),
    ],
}  # fmt: skip


# -- Avro: the bytes


def _long(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _long(len(data)) + data


def _container(
    path: Path, schema: dict[str, Any], metadata: dict[str, str], blocks: Iterator[tuple[int, bytes]]
) -> int:
    """An Avro file of blocks (how many records, their bytes); its length."""
    header = {"avro.schema": json.dumps(schema), "avro.codec": "deflate", **metadata}
    parts = [b"Obj\x01", _long(len(header)), *(_text(k) + _text(v) for k, v in header.items()), _long(0), SYNC]
    for count, content in blocks:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packer.compress(content) + packer.flush()
        parts += [_long(count), _long(len(packed)), packed, SYNC]
    data = b"".join(parts)
    path.write_bytes(data)
    return len(data)


def _manifest(folder: Path, home: Path, first: int, count: int, deletes: bool = False) -> bytes:
    """One manifest of the files from a number on, to its record in the list."""
    frame = pl.DataFrame({"file": pl.int_range(first, first + count, eager=True)})
    if deletes:
        frame = frame.filter(pl.col("file") % DELETED_EVERY == 0)
    records = _records(frame, home, deletes)
    name = f"{'deletes' if deletes else 'data'}-{first:09d}.avro"
    metadata = {
        "schema": json.dumps(_schema()), "partition-spec": json.dumps(_spec()["fields"]), "partition-spec-id": "0",
        "format-version": "2", "content": "deletes" if deletes else "data",
    }  # fmt: skip
    length = _container(folder / name, _ENTRY, metadata, _blocks(records))
    rows = len(records) * (5 if deletes else trips.ROWS_PER_FILE)
    days = [struct.pack("<i", _day(number)) for number in (first, first + count - 1)]
    return b"".join(
        [
            _text(f"{home}/metadata/{name}"), _long(length), _long(0), _long(deletes), _long(1), _long(1),
            _long(_SNAPSHOT), _long(len(records)), _long(0), _long(0), _long(rows), _long(0), _long(0),
            _long(1), _long(1), b"\0", _long(1), b"\0", *(_long(1) + _text(day) for day in days), _long(0),
        ]
    )  # fmt: skip


def _write_list(path: Path, manifests: list[bytes]) -> None:
    _container(path, _LIST, {"format-version": "2"}, iter([(len(manifests), b"".join(manifests))]))


def _blocks(records: list[bytes]) -> Iterator[tuple[int, bytes]]:
    size, block = 0, list[bytes]()
    for record in records:
        block.append(record)
        size += len(record)
        if size >= _BLOCK_BYTES:
            yield len(block), b"".join(block)
            size, block = 0, []
    if block:
        yield len(block), b"".join(block)


def _day(number: int) -> int:
    return (trips.FIRST_DAY - date(1970, 1, 1)).days + number // trips.FILES_PER_DAY


def _records(frame: pl.DataFrame, home: Path, deletes: bool) -> list[bytes]:
    """The entries' bytes, put together a column at a time."""
    files = trips.files(0, 1).clear() if not frame.height else _files_of(frame)
    pieces: list[pa.Array | bytes] = [_long(1) + _long(1) + _long(_SNAPSHOT) + _long(0) + _long(0)]
    data = [f"{home}/data/{path}" for path in files["path"]]
    paths = [f"{p.removesuffix('.parquet')}-deletes.parquet" for p in data] if deletes else data
    pieces += [_long(int(deletes)), _binary([_text(p) for p in paths]), _text("PARQUET")]
    pieces += [_binary([_long(1) + _long(_day(n)) for n in frame["file"]])]
    pieces += [_long(5 if deletes else trips.ROWS_PER_FILE), _varints(files["size"] // (1_000 if deletes else 1))]
    pieces += _path_metrics(data) if deletes else _metrics(frame)
    pieces += [_long(0), _long(1) + _long(1) + _long(4) + _long(0), _long(0), _long(1) + _long(0)]
    arrays = [pa.scalar(p, pa.binary()) if isinstance(p, bytes) else p for p in pieces]
    entries: list[bytes] = pc.binary_join_element_wise(*arrays, pa.scalar(b"", pa.binary())).to_pylist()
    return entries


def _files_of(frame: pl.DataFrame) -> pl.DataFrame:
    first = int(frame["file"][0])
    files = trips.files(first, int(frame["file"][-1]) - first + 1)
    return files[(frame["file"] - first).to_list()]


def _path_metrics(data: list[str]) -> list[pa.Array | bytes]:
    """Bounds of a position delete file's column of paths: it names one file."""
    bounds = _binary([_long(2147483546) + _text(path) for path in data])
    one = _long(1) + _long(1)
    return [_long(0) * 4, one, bounds, _long(0), one, bounds, _long(0)]


def _metrics(frame: pl.DataFrame) -> list[pa.Array | bytes]:
    ids = list(enumerate(trips.COLUMNS, 1))
    begin = _long(1) + _long(len(ids))
    sizes = [frame.select((trips.scattered(181 + 2 * i, 9_000) * 211 + 40_000).alias("n"))["n"] for i, _ in ids]
    nulls = [frame.select(pl.lit(0) * pl.col("file") + c.nulls)[:, 0] for _, c in ids]
    pieces: list[pa.Array | bytes] = [begin]
    for (i, _), size in zip(ids, sizes, strict=True):
        pieces += [_long(i), _varints(size)]
    pieces += [_long(0), begin + b"".join(_long(i) + _long(trips.ROWS_PER_FILE) for i, _ in ids) + _long(0), begin]
    for (i, _), count in zip(ids, nulls, strict=True):
        pieces += [_long(i), _varints(count)]
    floats = [i for i, c in ids if c.type == "double"]
    pieces += [_long(0), _long(1) + _long(len(floats)) + b"".join(_long(i) + _long(0) for i in floats) + _long(0)]
    bounded = [(i, c) for i, c in ids if c.low is not None]
    for side in ("low", "high"):
        pieces.append(_long(1) + _long(len(bounded)))
        for i, c in bounded:
            value = getattr(c, side)
            pieces += [_long(i), _bounds(frame.select(value.alias("v")), frame.height, c.type)]
        pieces.append(_long(0))
    return pieces


def _bounds(values: pl.DataFrame, height: int, type_: str) -> pa.Array:
    series = values["v"] if values.height == height else values["v"].new_from_index(0, height)
    if type_ == "string":
        return _binary([_text(v[:16]) for v in series])
    if type_ == "timestamp":
        series = series.cast(pl.Datetime("us", "UTC")).to_physical()
    numbers = series.cast({"integer": pl.Int32(), "double": pl.Float64()}.get(type_, pl.Int64())).to_numpy()
    width = numbers.itemsize
    prefix = np.full((height, 1), 2 * width, dtype=np.uint8)
    both = np.hstack([prefix, numbers.view(np.uint8).reshape(height, width)])
    return pa.Array.from_buffers(pa.binary(width + 1), height, [None, pa.py_buffer(both.tobytes())]).cast(pa.binary())


def _binary(values: list[bytes]) -> pa.Array:
    return pa.array(values, type=pa.binary())


def _varints(values: pl.Series) -> pa.Array:
    codes = {v: _long(v) for v in values.unique()}
    return _binary([codes[v] for v in values])


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the Iceberg bench tables.")
    parser.add_argument("--files", type=int, nargs="*", default=[100_000])
    parser.add_argument("--manifests", type=int, nargs="*", default=[1_000], help="small manifests")
    parser.add_argument("--snapshots", type=int, nargs="*", default=[5_000])
    options = parser.parse_args()
    for count in options.files:
        print(iceberg_files(count).path)
        print(iceberg_files(count, deletes=True).path)
    for count in options.manifests:
        print(iceberg_files(count * SMALL, SMALL).path)
    for count in options.snapshots:
        print(iceberg_snapshots(count).path)


if __name__ == "__main__":
    main()
