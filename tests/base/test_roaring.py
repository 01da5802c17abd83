"""Bytes of deletion vectors to positions, and what is wrong with bytes that are none."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakeview.model.errors import CorruptTableError
from lakeview.rows.bitmaps import position_bitmap
from tests.builders.vectors import NATIVE, PORTABLE, array_container, buckets, native, portable, run_container

POSITIONS = st.sets(
    st.integers(0, 300) | st.integers(0, 2**34) | st.integers(0, 2**20).map(lambda n: n << 20), max_size=300
)
EXAMPLE = bytes.fromhex("6439d3d0000000010000001c3a3000000100000000000500100000000300040007000b0012001d00")


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        pytest.param(portable([]), [], id="no rows"),
        pytest.param(portable([3, 4, 7]), [3, 4, 7], id="an array container"),
        pytest.param(portable(range(5000)), range(5000), id="a bitmap container, above 4096 rows in a block"),
        pytest.param(portable(range(100_000), runs=True), range(100_000), id="run containers"),
        pytest.param(portable([1, 2**32, 2**40 + 7]), [1, 2**32, 2**40 + 7], id="positions beyond 32 bits"),
        pytest.param(portable([2**63 - 1]), [2**63 - 1], id="the last position there is"),
        pytest.param(buckets({0: struct.pack("<II", 12346, 0), 1: array_container(5)}), [2**32 + 5], id="empty bucket"),
        pytest.param(native([3, 2**33 + 1]), [3, 2**33 + 1], id="the native layout, big-endian"),
        pytest.param(native([3, 2**33 + 1], "<"), [3, 2**33 + 1], id="the native layout, little-endian"),
        pytest.param(EXAMPLE, [3, 4, 7, 11, 18, 29], id="the protocol's own example"),
    ],
)
def test_positions_are_read(data: bytes, rows: list[int]) -> None:
    assert list(position_bitmap(data, "v")) == list(rows)


@given(POSITIONS, st.booleans())
def test_what_is_written_is_read_back(positions: set[int], runs: bool) -> None:
    assert set(position_bitmap(portable(positions, runs=runs), "v")) == positions
    assert set(position_bitmap(native({p % 2**34 for p in positions}), "v")) == {p % 2**34 for p in positions}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"", "it holds 0 bytes, too few for a bitmap", id="nothing"),
        pytest.param(b"\x01\x02", "it holds 2 bytes", id="two bytes"),
        pytest.param(b"PAR1" + bytes(40), "it begins with 50415231, which is no magic number", id="Parquet"),
        pytest.param(struct.pack("<I", PORTABLE), "it ends within its header", id="portable, only the magic"),
        pytest.param(struct.pack(">I", NATIVE), "it ends within its header", id="native, only the magic"),
        pytest.param(buckets({0: array_container(1)}, 2**60), "it claims 1,152,921,504,606,846,976 buckets", id="2^60"),
        pytest.param(buckets({0: array_container(1)}, -1), "it claims -1 buckets", id="a negative count"),
        pytest.param(buckets({0: array_container(1)}, 2), "it claims 2 buckets", id="a bucket more than there is"),
        pytest.param(struct.pack(">Ii", NATIVE, 2**31 - 1), "it claims 2,147,483,647 buckets in 0 bytes", id="native"),
        pytest.param(
            struct.pack(">Iii", NATIVE, 1, 2**31 - 1) + bytes(8), "bucket 0 claims 2,147,483,647 bytes of 8", id="size"
        ),
        pytest.param(struct.pack(">Iii", NATIVE, 1, -8) + bytes(8), "bucket 0 claims -8 bytes", id="a negative size"),
        pytest.param(
            struct.pack(">Iii", NATIVE, 2, 20) + bytes(20), "it ends before bucket 1 of 2", id="native, cut short"
        ),
        pytest.param(portable([1, 2, 3])[:-1], "cut short or out of order", id="cut within a container"),
        pytest.param(portable([1, 2, 3])[:26], "cut short", id="cut within a container's header"),
        pytest.param(buckets({0: array_container(3, 2, 1)}), "array elements not strictly increasing", id="unsorted"),
        pytest.param(buckets({0: array_container(1, 1)}), "array elements not strictly increasing", id="twice"),
        pytest.param(
            buckets({1: array_container(1), 0: array_container(2)}), "cut short or out of order", id="unsorted buckets"
        ),
        pytest.param(
            buckets({0: array_container(1, count=4000)}),
            "cut short or out of order",
            id="a container that claims 4000 rows",
        ),
        pytest.param(buckets({0: run_container((10, 65535))}), "run start + length too large", id="a run too long"),
        pytest.param(buckets({0: run_container((5, 9), (7, 1))}), "less than last end", id="runs that overlap"),
        pytest.param(buckets({0: run_container()}), "zero run count", id="a container of no runs"),
        pytest.param(
            buckets({0: struct.pack("<II", 12346, 70_000) + bytes(300_000)}),
            "cut short or out of order",
            id="70,000 containers",
        ),
        pytest.param(buckets({2**31: array_container(1)}), "a position beyond 63 bits", id="a position of 64 bits"),
    ],
)
def test_what_is_no_bitmap_is_corrupt(data: bytes, why: str) -> None:
    with pytest.raises(CorruptTableError) as caught:
        position_bitmap(data, "deletion_vector_7.bin")
    assert why in caught.value.message
    assert caught.value.message.startswith("deletion vector deletion_vector_7.bin cannot be read: ")
    assert (caught.value.kind, caught.value.place) == ("corrupt-deletion-vector", "deletion_vector_7.bin")


def test_a_bitmap_that_claims_a_billion_rows_is_never_expanded() -> None:
    """16,384 runs of 65,536 rows are a hundred kilobytes; a list of the rows would be gigabytes."""
    blocks = 64
    every = struct.pack("<I", 12347 | (blocks - 1) << 16) + b"\xff" * (blocks // 8)
    every += b"".join(struct.pack("<HH", block, 65535) for block in range(blocks))
    every += bytes(4 * blocks)  # where each container lies; readers that go through them in order do without
    every += struct.pack("<HHH", 1, 0, 65535) * blocks
    data = buckets(dict.fromkeys(range(256), every))
    bitmap = position_bitmap(data, "v")
    assert len(bitmap) == 256 * blocks * 65536
    assert len(bytes(bitmap.serialize())) <= len(data)


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda b: portable([1, 5, 70_000])[:12] + b))
@example(buckets({0: array_container(1)}) + b"more")
def test_whatever_the_bytes_are_they_are_positions_or_corrupt(data: bytes) -> None:
    try:
        bitmap = position_bitmap(data, "v")
    except CorruptTableError:
        return
    assert len(bitmap) == 0 or 0 <= bitmap.max() < 2**63


@given(POSITIONS, st.data())
def test_a_changed_byte_gives_positions_or_corrupt(positions: set[int], data: st.DataObject) -> None:
    whole = bytearray(portable(positions))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        position_bitmap(bytes(whole), "v")
    except CorruptTableError:
        return
