"""Variants as bytes, told in words."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql.variant_utils import VariantUtils

from lakeview.rows.variant import variant_text

EMPTY = b"\x01\x00\x00"
"""Metadata without names."""

BINARIES = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])


def unshredded(*values: bytes | None, metadata: bytes = EMPTY) -> pa.StructArray:
    """A column of values that share their metadata; None is a null struct."""
    return pa.array([None if v is None else {"metadata": metadata, "value": v} for v in values], BINARIES)


def text(value: bytes, metadata: bytes = EMPTY) -> str | None:
    """One value as the reader shows it."""
    texts: list[str | None] = variant_text(unshredded(value, metadata=metadata)).to_pylist()
    return texts[0]


def spark_variant(value: Any) -> tuple[bytes, bytes]:
    """Value and metadata as Spark encodes a JSON value."""
    binary, metadata = VariantUtils.parse_json(json.dumps(value))
    return bytes(binary), bytes(metadata)


def encoded(value: Any) -> bytes:
    """A value without field names, as Spark encodes it."""
    return spark_variant(value)[0]


def primitive(kind: int, data: bytes = b"") -> bytes:
    """A value of a primitive type."""
    return bytes([kind << 2]) + data


def integer(value: int, size: int) -> bytes:
    """A signed number in `size` bytes."""
    return value.to_bytes(size, "little", signed=True)


def object_of(index: int, value: bytes) -> bytes:
    """An object with one field, named by its place in the metadata."""
    return b"\x02\x01" + bytes([index, 0, len(value)]) + value
