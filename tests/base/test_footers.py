"""How one file is laid out inside, from its footer alone: by ranges, with the names of the table, and told when it
cannot be."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.model.errors import (
    CorruptTableError,
    DataFileMissingError,
    InvalidRequestError,
    LakeviewError,
    UnsupportedTableError,
)
from lakeview.model.physical_file import PHYSICAL, PhysicalFile
from lakeview.rows.footer_reader import FIRST_READ
from lakeview.rows.footers import physical_file
from lakeview.storage import open_storage
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.builders.mapped import field, mapped, physical
from tests.pages import tables


def parquet(table: pa.Table, **options: object) -> bytes:
    buffer = BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


ROWS = pa.table({"id": pa.array(range(1000), pa.int64()), "name": ["x" * (i % 7) or None for i in range(1000)]})


def looked_into(root: Path, data: bytes, size: int | None = None) -> PhysicalFile:
    (root / "f").write_bytes(data)
    return physical_file(open_storage(root), "f", len(data) if size is None else size)


def test_row_groups_columns_encodings_and_bytes_are_told(tmp_path: Path) -> None:
    data = parquet(ROWS, row_group_size=400, compression="zstd", write_page_index=True)
    facts = looked_into(tmp_path, data)
    assert (facts.size, facts.records, facts.row_groups, facts.parquet_version) == (len(data), 1000, 3, "2.6")
    assert (facts.created_by or "").startswith("parquet-cpp")
    assert facts.chunks.schema == PHYSICAL
    assert facts.chunks["column"].to_list() == ["id", "name"] * 3
    assert facts.chunks["group_records"].to_list() == [400, 400, 400, 400, 200, 200]
    first = facts.chunks.row(0, named=True)
    assert (first["codec"], first["physical_type"], first["min_text"], first["max_text"]) == (
        "ZSTD",
        "INT64",
        "0",
        "399",
    )
    assert (first["dictionary"], first["page_index"], first["bloom_filter"]) == (True, True, False)
    assert "RLE_DICTIONARY" in first["encodings"]
    assert facts.chunks.filter(pl.col("column") == "name")["null_count"].sum() == ROWS["name"].null_count
    assert facts.chunks["compressed"].sum() < len(data)


def test_one_range_is_read_and_two_where_the_footer_is_large(tmp_path: Path) -> None:
    wide = pa.table({f"column_{i:04}": [1] for i in range(900)})
    for data, requests in ((parquet(ROWS), 1), (parquet(wide), 2)):
        (tmp_path / "f").write_bytes(data)
        storage = open_storage(tmp_path)
        facts = physical_file(storage, "f", len(data))
        assert storage.requests == {"read": requests}
        assert (facts.footer_size > FIRST_READ) is (requests == 2)


def test_a_file_without_rows_has_no_chunks(tmp_path: Path) -> None:
    facts = looked_into(tmp_path, parquet(ROWS.slice(0, 0)))
    assert (facts.records, facts.chunks["values"].sum()) == (0, 0)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(b"Obj\x01" + bytes(60), "an Avro file", id="Avro"),
        pytest.param(b"ORC" + bytes(60), "an ORC file", id="ORC"),
        pytest.param(b"PFA1" + bytes(60) + b"PFA1", "a Puffin file", id="Puffin"),
        pytest.param(b"PARE" + bytes(60) + b"PARE", "an encrypted file", id="encrypted"),
    ],
)
def test_a_file_of_another_kind_is_said_to_be_one(data: bytes, kind: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableError, match=f"f is {kind}, and only the layout of Parquet files"):
        looked_into(tmp_path, data)


def test_a_sound_file_that_pyarrow_cannot_look_into_is_not_called_broken(tmp_path: Path) -> None:
    buffer = BytesIO()
    pl.DataFrame({"a": [1]}, schema={"a": pl.Int128}).write_parquet(buffer)
    with pytest.raises(UnsupportedTableError, match="pyarrow cannot look into f: Integers with more than 64 bits"):
        looked_into(tmp_path, buffer.getvalue())


GOOD = parquet(ROWS)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"", "does not end as a Parquet file of 0 bytes does", id="empty"),
        pytest.param(GOOD[:-40], "does not end as a Parquet file", id="cut off"),
        pytest.param(b"not parquet at all", "does not end as a Parquet file of 18 bytes does", id="text"),
        pytest.param(
            b"PAR1\xff\xff\xff\x7fPAR1", "its footer of 2,147,483,647 bytes is longer than the file", id="lies"
        ),
        pytest.param(b"PAR1" + bytes(30) + b"\x1e\0\0\0PAR1", "", id="zeros for a footer"),
    ],
)
def test_a_broken_file_is_told_and_named(data: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptTableError) as raised:
        looked_into(tmp_path, data)
    assert raised.value.message.startswith("data file f cannot be looked into: ")
    assert why in raised.value.message
    assert raised.value.kind == "corrupt-data-file"


def test_a_file_that_is_gone_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataFileMissingError, match="data file f is in the log and not in the store"):
        physical_file(open_storage(tmp_path), "f", 100)


def test_only_files_of_the_version_are_opened(tmp_path: Path) -> None:
    table = lv.open_table(str(tables.good(tmp_path / "t")))
    assert table.physical("month=1/load-1.parquet").records == 20
    assert table.physical("month=4/load-4.parquet", 5).records == 60
    for path in ("month=4/load-4.parquet", "/etc/passwd", "_delta_log/00000000000000000000.json"):
        with pytest.raises(InvalidRequestError, match="is no file of this version") as raised:
            table.physical(path)
        assert raised.value.kind == "unknown-file"


def test_columns_have_the_names_the_table_gives_them_now(tmp_path: Path) -> None:
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    history = IcebergHistory(tmp_path / "notes", fields)
    history.append("a", [{"id": 1}])
    history.evolve([{**fields[0], "name": "number"}])
    table = lv.open_table(history.address)
    chunks = table.physical(table.files()["path"][0]).chunks
    assert chunks.select("column", "stored_as").rows() == [("number", "id")]


def test_a_delete_file_can_be_looked_into(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "notes", [{"id": 1, "name": "id", "required": False, "type": "long"}])
    first = history.append("a", [{"id": i} for i in range(5)])
    history.delete_positions("d", {first: [0, 1]})
    table = lv.open_table(history.address)
    (path,) = table.snapshot().delete_files["path"]
    assert table.physical(path).records == 2


def test_mapped_columns_are_told_by_their_own_names(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").commit(*mapped("name", field("amount", "long", 1)))
    history.commit(history.data("f.parquet", {physical(1): [1, 2]}))
    chunks = lv.open_table(history.address).physical("f.parquet").chunks
    assert chunks.select("column", "stored_as").rows() == [("amount", "col-1")]


def test_every_error_is_a_designed_one(tmp_path: Path) -> None:
    """Each byte of the footer set to something else: it is read, or it is refused."""
    data = bytearray(parquet(ROWS.slice(0, 5)))
    for place in range(len(data) - 300, len(data), 3):
        changed = bytes(data[:place]) + bytes([data[place] ^ 0xFF]) + bytes(data[place + 1 :])
        with suppress(LakeviewError):
            assert looked_into(tmp_path, changed).chunks.schema == PHYSICAL
