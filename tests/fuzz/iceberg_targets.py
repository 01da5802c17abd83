"""Bytes to each parser of an Iceberg table's metadata: a value or a LakeviewError comes out, never anything else.

A target takes bytes and returns nothing. What it asserts beyond "no other error" stands in its docstring.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import fsspec
import msgspec
import polars as pl
import pyarrow as pa

from lakeview.iceberg.deletes.positions import VectorPlace
from lakeview.iceberg.manifests.avro import read_frame, read_records
from lakeview.iceberg.manifests.avro_container import open_container
from lakeview.iceberg.manifests.entries import open_manifest, read_manifests
from lakeview.iceberg.manifests.manifest_lists import read_manifest_list
from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.single_values import NotAValueError, decoded_bounds, single_value
from lakeview.iceberg.metadata.table_metadata import Metadata, parse_metadata
from lakeview.iceberg.metadata.transforms import parse_transform
from lakeview.iceberg.metadata.types import parse_type
from lakeview.iceberg.opening import open_iceberg
from lakeview.iceberg.scan.projection import has_ids, with_mapping
from lakeview.model.config import Config
from lakeview.model.data_types import DataType
from lakeview.model.errors import LakeviewError
from lakeview.storage import open_storage
from tests.builders.iceberg_metadata import document, snapshot, text

TYPES = (
    "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
    "timestamptz_ns", "string", "uuid", "binary", "unknown", "variant", "decimal(9,2)", "decimal(38,10)", "fixed[3]",
    "geometry", "nonsense",
)  # fmt: skip
NESTED: tuple[Mapping[str, Any], ...] = (
    {"type": "list", "element-id": 2, "element": "date", "element-required": False},
    {"type": "map", "key-id": 3, "key": "string", "value-id": 4, "value": "int", "value-required": False},
    {"type": "struct", "fields": [{"id": 5, "name": "a", "required": False, "type": "decimal(9,2)"}]},
)
FOLDER = "/lakeview-fuzz-iceberg"


def iceberg_metadata(data: bytes) -> None:
    """A metadata file: what can be read names a schema, a spec and a snapshot that are there."""
    with suppress(LakeviewError):
        content = parse_metadata(data, "v1.metadata.json")
        content.schema.to_polars()
        assert content.spec.spec_id == content.default_spec_id
        for entry in content.snapshots.values():
            assert -(2**63) <= entry.snapshot_id < 2**63
            content.schema_of(entry)


def avro_container(data: bytes) -> None:
    """An Avro file: both readers give as many records as its blocks claim, or refuse it."""
    with suppress(LakeviewError):
        container = open_container(data, "fuzzed.avro")
        with suppress(LakeviewError):
            assert read_frame(container, "fuzzed.avro").height == container.records
        with suppress(LakeviewError):
            read_records(container, "fuzzed.avro")


def manifest(data: bytes) -> None:
    """A manifest: its entries have a path each, and what is nobody's manifest is refused."""
    with suppress(LakeviewError):
        row = {"sequence_number": 3, "added_snapshot_id": 1, "first_row_id": 10, "partition_spec_id": 0}
        entries = read_manifests([open_manifest(data, "fuzzed.avro", row)], (), (1, 2))
        assert not entries["path"].has_nulls()
        assert entries["status"].is_in([0, 1, 2]).all()


def manifest_list(data: bytes) -> None:
    """A manifest list."""
    with suppress(LakeviewError):
        assert not read_manifest_list(data, "fuzzed.avro")["manifest_path"].has_nulls()


def puffin_vector(data: bytes) -> None:
    """A deletion vector in a Puffin file: what its envelope, checksum and manifest do not all say is refused."""
    memory = fsspec.filesystem("memory")
    memory.pipe_file(f"{FOLDER}/v.puffin", b"PFA1" + data)
    store = open_storage(f"memory:/{FOLDER}")
    for cardinality in (0, 1, 6):
        with suppress(LakeviewError):
            assert len(VectorPlace("v.puffin", 4, len(data), cardinality).bitmap(store)) == cardinality
    claimed = int.from_bytes(data[:8], "big", signed=True)
    for offset, size in ((claimed, len(data)), (4, claimed)):
        with suppress(LakeviewError):
            VectorPlace("v.puffin", offset, size, 1).bitmap(store)


@cache
def _types() -> Sequence[DataType]:
    return [parse_type(t) for t in (*TYPES, *NESTED)]


def single_values(data: bytes) -> None:
    """Bytes as a bound, text as a default, of every type; a neighbour's bound does not suffer."""
    for type_ in _types():
        alone = decoded_bounds(pl.Series([b"\1\0\0\0\0\0\0\0"], dtype=pl.Binary), type_)
        values = decoded_bounds(pl.Series([data, b"\1\0\0\0\0\0\0\0", None], dtype=pl.Binary), type_)
        assert (values is None) == (alone is None)
        if values is not None and alone is not None:
            assert values.dtype == alone.dtype
            assert values[1:2].equals(alone, null_equal=True)
            assert values[2] is None
            values.to_list()
    with suppress(msgspec.DecodeError, RecursionError):
        value = msgspec.json.decode(data.decode(errors="replace"))
        for type_ in _types():
            with suppress(NotAValueError):
                single_value(value, type_)
    parse_transform(data.decode(errors="replace"))


def name_mapping(data: bytes) -> None:
    """A name mapping: fields keep their names and their order."""
    fields = [
        pa.field("a", pa.int64()),
        pa.field("s", pa.struct([("a", pa.string()), ("l", pa.list_(pa.int32()))])),
        pa.field("m", pa.map_(pa.string(), pa.struct([("a", pa.date32())]))),
    ]
    with suppress(msgspec.DecodeError, RecursionError):
        fields_read = with_mapping(fields, msgspec.json.decode(data.decode(errors="replace")))
        assert [f.name for f in fields_read] == [f.name for f in fields]
        has_ids(fields_read)


@cache
def _metadata() -> Metadata:
    return parse_metadata(text(document(snapshots=[snapshot(1)])), "v1.metadata.json")


def location(data: bytes) -> None:
    """A recorded path leads into the table or to a place that the store refuses: never up, never through a NUL."""
    with suppress(LakeviewError):
        path = Locations("/lakeview-fuzz/table", _metadata()).resolve(data.decode(errors="replace"))
        assert ".." not in path.split("/")
        assert "\0" not in path


def iceberg_table(data: bytes) -> None:
    """A whole table: metadata, a manifest list and a manifest, parted by SEPARATOR. It opens or not, and is asked."""
    memory = fsspec.filesystem("memory")
    root = f"{FOLDER}-table"
    if memory.exists(root):
        memory.rm(root, recursive=True)
    parts = data.split(SEPARATOR)
    for name, part in zip(("metadata/v1.metadata.json", "metadata/1.avro", "metadata/m.avro"), parts, strict=False):
        memory.pipe_file(f"{root}/{name}", part)
    with suppress(LakeviewError):
        table = open_iceberg(f"memory:/{root}", config=Config())
        table.check()
        questions = (
            table.history, table.versions, table.files, table.statistics, table.snapshot, table.schemas,
            table.lifetimes, lambda: table.plan("id = 1"), lambda: table.snapshot().delete_files,
            lambda: table.scan().collect(),
        )  # fmt: skip
        for question in questions:
            with suppress(LakeviewError):
                question()


SEPARATOR = b"\0lakeview\0"


def whole_table(manifests: bytes, entries: bytes) -> bytes:
    """The input of `iceberg_table` for a sound table of these two files."""
    metadata = document(**{"snapshots": [snapshot(1)], "current-snapshot-id": 1})
    return SEPARATOR.join((json.dumps(metadata).encode(), manifests, entries))
