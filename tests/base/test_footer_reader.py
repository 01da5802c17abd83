"""Footers at whose column chunks pyarrow's C++ code throws, which would end this process: they are refused."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from lakeview.rows.footer_reader import FIRST_READ, MAGIC, read_footer
from tests.builders.parquet_footers import with_footer

ROWS = pa.table({"abc": [b"q", None, b"z"], "list": [[1], [2, 3], []]})
TYPE, INT64, BYTE_ARRAY = b"\x15", b"\x04", b"\x0c"
OPTIONAL_ABC, REQUIRED_ABC = b"\x25\x02\x18\x03abc", b"\x25\x00\x18\x03abc"
PATH_OF_ABC = b"\x19\x18\x03abc"
CHUNK = b"\x2c\x26\x00\x1c"
COLUMN_KEY = b"\x0c\x90\x80\x08\x0c\x84\x80\x08" + PATH_OF_ABC + b"\0\0"
"""Field 8 of a chunk, crypto_metadata, as 65544, and in it field 2, ENCRYPTION_WITH_COLUMN_KEY, as 65538."""


def parquet(rows: pa.Table = ROWS, **options: Any) -> bytes:
    buffer = BytesIO()
    pq.write_table(rows, buffer, compression="none", store_schema=False, **options)
    return buffer.getvalue()


def test_a_sound_footer_is_that_of_pyarrow() -> None:
    wide = pa.table({f"column_{i:04}": [i] for i in range(900)})
    for data in (parquet(), parquet(ROWS.slice(0, 0)), parquet(pa.table({"none": pa.nulls(2)})), parquet(wide)):
        assert read_footer(BytesIO(data)).equals(pq.read_metadata(pa.BufferReader(data)))
    assert len(parquet(wide)) > FIRST_READ


SHORT = with_footer(parquet(ROWS.select(["abc"])), TYPE + BYTE_ARRAY, TYPE + INT64, 2)
DAMAGE = {
    "bounds shorter than a value": (SHORT, "a bound is shorter than a value of 8 bytes"),
    "another type than the column": (
        with_footer(parquet(), TYPE + BYTE_ARRAY + b"%", TYPE + INT64 + b"%", 1),
        "a chunk is of another type than INT64",
    ),
    "no codec of Parquet": (
        with_footer(parquet(), PATH_OF_ABC + TYPE + b"\0", PATH_OF_ABC + TYPE + b"\x40", 1),
        "it is compressed by codec 32",
    ),
    "a histogram of other levels": (
        with_footer(parquet(), OPTIONAL_ABC, REQUIRED_ABC, 1),
        "a histogram has 2 levels, and the column 1",
    ),
    "elements of another kind": (
        with_footer(parquet(), PATH_OF_ABC, b"\x19\x15\x03abc", 1),
        "elements of kind 5 where 8 was expected",
    ),
    "a field twice": (
        with_footer(parquet(), TYPE + BYTE_ARRAY + b"\x19", TYPE + BYTE_ARRAY + b"\x05\x02" + BYTE_ARRAY + b"\x19", 1),
        "field 1 is there twice",
    ),
    "a field whose number is another to pyarrow": (
        with_footer(parquet(), CHUNK, CHUNK[:1] + COLUMN_KEY + b"\x06\x04" + CHUNK[2:], 1),
        "field 65544 has no number of 16 bits",
    ),
}


@pytest.mark.parametrize(("data", "why"), DAMAGE.values(), ids=DAMAGE)
def test_a_column_chunk_that_pyarrow_throws_at_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match=why):
        read_footer(BytesIO(data))


def test_bounds_of_fixed_length_bytes_that_are_cut_are_beyond_pyarrow() -> None:
    """As Rust's parquet cuts those of more than 64 bytes."""
    fixed = parquet(pa.table({"abc": pa.array([b"abcd"], pa.binary(4))}))
    cut = with_footer(fixed, b"\x04abcd", b"\x02ab", 2)
    with pytest.raises(pa.ArrowNotImplementedError, match="column abc: its bounds are cut"):
        read_footer(BytesIO(cut))


def test_what_is_no_parquet_file_is_refused_as_pyarrow_does() -> None:
    for data in (b"", b"PAR1", b"x" * 100, parquet()[:-1], parquet()[:-8] + b"\xff\xff\xff\x7fPAR1"):
        with pytest.raises(pa.ArrowInvalid):
            read_footer(BytesIO(data))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"1234567"])
def test_a_file_that_is_too_short_is_refused_by_its_own_size(data: bytes) -> None:
    with pytest.raises(pa.ArrowInvalid, match=rf"it holds {len(data)} bytes, too few for a Parquet file"):
        read_footer(BytesIO(data))


def test_a_footer_that_would_begin_before_its_file_is_refused() -> None:
    """Behind the "1" of PAR1, which is a field 3 in Thrift, the first field is the row groups; alone it is another."""
    footer = SHORT[len(SHORT) - 8 - int.from_bytes(SHORT[-8:-4], "little") : -8]
    groups = footer.index(b"\x19\x1c\x19\x1c")
    writer = footer.index(b"\x28\x20parquet-cpp")
    version, created_by = b"\x05\x02\x04", b"\x38"
    alone = footer[groups:writer] + version + footer[2:groups] + created_by + footer[writer + 1 :]
    with pytest.raises(pa.ArrowInvalid, match="the footer is said to be longer than the file"):
        read_footer(BytesIO(alone + (len(alone) + 1).to_bytes(4, "little") + MAGIC))


class _Keys(pe.KmsClient):  # type: ignore[misc]  # pyarrow says nothing of its types
    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64decode(key)


def test_a_column_that_is_encrypted_with_a_key_of_its_own_is_refused() -> None:
    factory = pe.CryptoFactory(lambda _: _Keys())
    columns = pe.EncryptionConfiguration(footer_key="k", column_keys={"c": ["abc"]}, plaintext_footer=True)
    secret = factory.file_encryption_properties(pe.KmsConnectionConfig(), columns)
    buffer = BytesIO()
    with pq.ParquetWriter(buffer, ROWS.schema, encryption_properties=secret) as writer:
        writer.write_table(ROWS)
    with pytest.raises(pa.ArrowNotImplementedError, match="column abc: it is encrypted with a key of its own"):
        read_footer(BytesIO(buffer.getvalue()))
