"""Bytes to each parser of a table's text and binary data: a value or a LakeviewError comes out, never anything else.

A target takes bytes and returns nothing. What it asserts beyond "no other error" stands in its docstring.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache

import fsspec
import polars as pl
import pyarrow as pa

from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.delta.data.partition_values import partition_columns, partition_text
from lakeview.delta.data.schemas import parse_schema, schema_text
from lakeview.delta.data.statistics import physical_leaves, statistics_frame
from lakeview.delta.log.commits import parse_commit, raw_actions
from lakeview.delta.log.file_actions import file_actions, text_maps
from lakeview.delta.log.log_segment import checkpoint_hint, checksum
from lakeview.delta.log.paths import canonical, decode_path, decode_paths, encode_path
from lakeview.delta.log.record_counts import records
from lakeview.model.addresses import below
from lakeview.model.config import Config
from lakeview.model.data_types import DataType, DecimalType, Field, PrimitiveType, StructType
from lakeview.model.errors import LakeviewError
from lakeview.model.schema import Schema
from lakeview.predicates import predicate
from lakeview.rows.bitmaps import position_bitmap
from lakeview.rows.footers import physical_file
from lakeview.rows.variant import variant_text
from lakeview.storage import Storage, open_storage
from tests.builders.opening import open_delta_table
from tests.fuzz import iceberg_targets as iceberg

Target = Callable[[bytes], None]

ROOT = "/lakeview-fuzz/table"

TYPES = (
    "string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp",
    "timestamp_ntz", "void",
)  # fmt: skip


def commit(data: bytes) -> None:
    """A commit file; what is readable is readable as raw actions too."""
    with suppress(LakeviewError):
        actions = parse_commit(data, 7, "fuzzed.json")
        _ = actions.info
        file_actions([actions], ROOT)
        assert len(raw_actions(data, 7, "fuzzed.json")) >= 0


def path(data: bytes) -> None:
    """A recorded path: one decoding, one canonical spelling, encoding turns back, and none leads out of the table."""
    text = data.decode(errors="replace")
    plain = decode_path(text)
    series = pl.Series("path", [text, plain], dtype=pl.String)
    once = canonical(decode_paths(series), ROOT)
    assert canonical(once, ROOT).equals(once), "a canonical path has one spelling"
    assert decode_path(encode_path(plain)) == plain
    with suppress(LakeviewError):
        assert below(os.path.realpath(_storage().resolve(plain)), ROOT), "a path led out of the table"


@cache
def _storage() -> Storage:
    return open_storage(ROOT, config=Config())


def vector(data: bytes) -> None:
    """A serialised bitmap: its positions can be counted, and lie within 64 bits."""
    with suppress(LakeviewError):
        bitmap = position_bitmap(data, "fuzzed.bin")
        if len(bitmap):
            assert 0 <= bitmap.min() <= bitmap.max() < 2**63


def inline_vector(data: bytes) -> None:
    """The text of a deletion vector descriptor: its kind, then a name or inline bytes in Z85."""
    text = data.decode("latin-1")
    for kind in ("u", "i", "p", text[:1]):
        with suppress(LakeviewError):
            descriptor = DeletionVector(kind, text[1:], 1, len(text), 1)
            if descriptor.path is None:
                descriptor.bitmap(_storage())


@cache
def _every_type() -> Schema:
    fields = tuple(Field(t, PrimitiveType(t)) for t in TYPES)
    nested = Field("s", StructType((*fields, Field("d", DecimalType(10, 2)))))
    return Schema((*fields, Field("d", DecimalType(38, 4)), nested))


def statistics(data: bytes) -> None:
    """Statistics of one file beside those of another, which must not suffer."""
    sound = '{"numRecords":1,"minValues":{"long":1},"maxValues":{"long":2},"nullCount":{"long":0}}'
    stats = pl.Series("stats", [data.decode(errors="replace"), sound], dtype=pl.String)
    adds = pl.DataFrame(
        {"path": ["a", "b"], "deletion_vector": [None, None], "stats": stats},
        schema={"path": pl.String, "deletion_vector": pl.String, "stats": pl.String},
    )
    leaves = physical_leaves(_every_type(), None, ())
    with suppress(LakeviewError):
        frame = statistics_frame(adds, leaves)
        assert frame["long"][1] == {"min": 1, "max": 2, "null_count": 0, "exact": True, "null_count_exact": True}
        frame.to_dicts()
    records(stats, None)


def partition_value(data: bytes) -> None:
    """Recorded text as a value of every type that a partition column can have."""
    text = data.decode(errors="replace")
    types: list[DataType] = [*map(PrimitiveType, TYPES[:-1]), DecimalType(12, 3)]
    fields = [Field(f"c{i}", t) for i, t in enumerate(types)]
    for field in fields:
        values = text_maps([{field.name: text}, {field.name: None}, {}])
        with suppress(LakeviewError):
            for column in partition_columns(values, [field]):
                column.to_list()
        partition_text(values, [field]).to_list()


def schema(data: bytes) -> None:
    """A schemaString: what can be parsed says the same when written and parsed again."""
    text = data.decode(errors="replace")
    for mapped in (False, True):
        with suppress(LakeviewError):
            schema_read = parse_schema(text, is_mapped=mapped)
            assert parse_schema(schema_text(schema_read), is_mapped=mapped) == schema_read
            schema_read.to_polars()
            schema_read.to_arrow()


def hint(data: bytes) -> None:
    """`_last_checkpoint`: a version or None, and a checksum or None; no error at all."""
    version = checkpoint_hint(data)
    assert version is None or 0 <= version < 2**63
    digest = checksum(data)
    assert digest is None or len(digest) == 32


def variant(data: bytes) -> None:
    """A variant: the first byte says how long its metadata is, the rest is metadata and value."""
    cut = 1 + (data[0] if data else 0)
    struct = pa.StructArray.from_arrays(
        [pa.array([data[1:cut]], pa.binary()), pa.array([data[cut:]], pa.binary())], ["metadata", "value"]
    )
    with suppress(LakeviewError):
        texts = variant_text(struct)
        texts.validate(full=True)
        texts.to_pylist()


def condition(data: bytes) -> None:
    """The text of a filter."""
    with suppress(LakeviewError):
        predicate(data.decode(errors="replace"))


def checkpoint(data: bytes) -> None:
    """The bytes of a Parquet checkpoint of version 1, beside the commit of version 0."""
    memory = fsspec.filesystem("memory")
    root = "/lakeview-fuzz-checkpoint"
    memory.pipe_file(f"{root}/_delta_log/{0:020d}.json", COMMIT)
    memory.pipe_file(f"{root}/_delta_log/{1:020d}.checkpoint.parquet", data)
    with suppress(LakeviewError):
        fuzzed_table = open_delta_table(f"memory:/{root}")
        for question in (fuzzed_table.files, fuzzed_table.statistics, fuzzed_table.check, fuzzed_table.lifetimes):
            with suppress(LakeviewError):
                question()
        with suppress(LakeviewError):
            now = fuzzed_table.snapshot()
            _ = now.transactions, now.tombstones, now.domain_metadata


def footer(data: bytes) -> None:
    """The footer of a data file, looked into as the page Files does."""
    memory = fsspec.filesystem("memory")
    root = "/lakeview-fuzz-footer"
    memory.pipe_file(f"{root}/f", data)
    with suppress(LakeviewError):
        physical_file(open_storage(f"memory:/{root}"), "f", len(data))


COMMIT = b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'


def table(data: bytes) -> None:
    """A whole table: a byte says which log file comes next, NUL bytes part them. It opens or not, and is examined."""
    memory = fsspec.filesystem("memory")
    root = "/lakeview-fuzz-table"
    if memory.exists(root):
        memory.rm(root, recursive=True)
    for part in data.split(b"\0")[:8]:
        if part:
            memory.pipe_file(f"{root}/_delta_log/{NAMES[part[0] % len(NAMES)]}", part[1:])
    with suppress(LakeviewError):
        fuzzed_table = open_delta_table(f"memory:/{root}")
        fuzzed_table.check()
        for question in (
            fuzzed_table.history,
            fuzzed_table.versions,
            fuzzed_table.files,
            fuzzed_table.statistics,
            fuzzed_table.snapshot,
            fuzzed_table.schemas,
        ):
            with suppress(LakeviewError):
                question()


NAMES = (
    f"{0:020d}.json", f"{1:020d}.json", f"{2:020d}.json", f"{1:020d}.checkpoint.parquet", "_last_checkpoint",
    f"{1:020d}.crc", f"{0:020d}.{1:020d}.compacted.json",
    f"{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
)  # fmt: skip
"""The log files that `table` can be given."""

TARGETS: Mapping[str, Target] = {
    f.__name__: f
    for f in (
        commit, path, vector, inline_vector, statistics, partition_value, schema, hint, variant, condition, checkpoint,
        footer, table, iceberg.iceberg_metadata, iceberg.avro_container, iceberg.manifest, iceberg.manifest_list,
        iceberg.puffin_vector, iceberg.single_values, iceberg.name_mapping, iceberg.location, iceberg.iceberg_table,
    )
}  # fmt: skip
"""Name -> target."""
