"""Packed rows: what goes in comes out, selected or whole, and chunks without a selected row stay packed."""

from __future__ import annotations

from io import BytesIO

import polars as pl
import pytest

from lakeview.sharing.server.lines import ROWS_A_CHUNK, PackedRows, Row

HEIGHT = 2 * ROWS_A_CHUNK + 7
ROWS: list[Row] = [(f"p{i}", f"v{i}" if i % 3 else None, "h", None, f"tail {i}") for i in range(HEIGHT)]


def paths(rows: PackedRows) -> list[str]:
    return [path for frame in rows.frames() for path in frame["path"]]


def test_rows_come_back_as_they_went_in() -> None:
    packed = PackedRows.of(iter(ROWS))
    assert [row for frame in packed.frames() for row in frame.iter_rows()] == ROWS
    assert [frame.height for frame in packed.frames()] == [ROWS_A_CHUNK, ROWS_A_CHUNK, 7]
    assert (packed.height, len(packed.chunks)) == (HEIGHT, 3)
    assert list(PackedRows.of([]).frames()) == []


def test_a_mask_and_a_slice_select_rows_across_chunks() -> None:
    mask = pl.Series([i % 7 == 0 for i in range(HEIGHT)])
    rows = PackedRows.of(ROWS).filter(mask)
    expected = [f"p{i}" for i in range(0, HEIGHT, 7)]
    assert (paths(rows), rows.height) == (expected, len(expected))
    assert paths(rows.slice(70, 5)) == expected[70:75]
    assert paths(rows.slice(len(expected), 5)) == []


def test_only_chunks_with_a_selected_row_are_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = PackedRows.of(ROWS)
    read = pl.read_ipc_stream
    unpacked: list[bytes] = []

    def unpack_and_note(source: BytesIO) -> pl.DataFrame:
        unpacked.append(source.getvalue())
        return read(source)

    monkeypatch.setattr(pl, "read_ipc_stream", unpack_and_note)
    assert paths(packed.slice(HEIGHT - 3, 2)) == [f"p{HEIGHT - 3}", f"p{HEIGHT - 2}"]
    assert unpacked == [packed.chunks[2]]


def test_similar_rows_take_a_fraction_of_their_bytes() -> None:
    rows: list[Row] = [
        (f"month=1/part-{i:05d}.parquet", None, '{"file":{"url":"', None, "x" * 500) for i in range(5000)
    ]
    assert PackedRows.of(rows).size * 5 < sum(len(row[0]) + len(row[2]) + len(row[4]) for row in rows)
