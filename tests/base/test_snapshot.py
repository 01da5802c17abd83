"""A snapshot is a value: made from frames without any file system, counted, shown, and safe to show."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.frames import FILES
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot, milliseconds
from lakeview.model.snapshot_sources import SnapshotLoader
from lakeview.model.table_metadata import TableMetadata, TableProtocol
from lakeview.model.version_names import register

METADATA = TableMetadata(
    address="/lake/<b>orders</b>",
    format="delta",
    version=41,
    timestamp=datetime(2026, 3, 1, 12, tzinfo=UTC),
    schema=Schema((Field("<script>", PrimitiveType("long"), nullable=False),)),
    partition_columns=("a&b",),
    properties={"k": "v"},
    protocol=TableProtocol(1, 2),
)


def files(*rows: tuple[int | None, int | None]) -> pl.DataFrame:
    """FILES of 10 bytes each, from (records, deleted records)."""
    return pl.DataFrame(
        {"path": [str(i) for i in range(len(rows))], "size": [10] * len(rows), "records": [r for r, _ in rows],
         "deleted_records": [d for _, d in rows]}, schema_overrides=FILES,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "records"),
    [([], 0), ([(5, 0), (7, 2)], 10), ([(5, 0), (None, 0)], None), ([(5, None)], None)],
    ids=["no files", "all known", "a count unknown", "deletes unknown"],
)
def test_rows_are_exact_or_unknown(rows: list[tuple[int | None, int | None]], records: int | None) -> None:
    snapshot = Snapshot(METADATA, frames={"files": files(*rows)})
    assert (snapshot.num_files, snapshot.size_bytes, snapshot.num_records) == (len(rows), 10 * len(rows), records)


class Loader(SnapshotLoader):
    """Counts what is asked of it."""

    def __init__(self) -> None:
        self.requests: list[object] = []

    def files(self, columns: Sequence[str] | None) -> pl.DataFrame:
        self.requests.append(columns if columns is None else list(columns))
        frame = files((5, 1))
        return frame if columns is None else frame.select(columns)

    def delete_files(self) -> pl.DataFrame:
        self.requests.append("delete_files")
        return pl.DataFrame(schema=FILES)


def test_only_what_is_asked_for_is_loaded_and_only_once() -> None:
    loader = Loader()
    snapshot = Snapshot(METADATA, loader)
    assert (snapshot.version, snapshot.schema.names, snapshot.properties) == (41, ["<script>"], {"k": "v"})
    assert loader.requests == []
    assert (snapshot.num_files, snapshot.size_bytes, snapshot.num_files) == (1, 10, 1)
    assert loader.requests == [["size"]], "a size costs no statistics"
    assert (snapshot.num_records, snapshot.num_records) == (4, 4)
    assert snapshot.files is snapshot.files
    assert loader.requests[1:] == [["size", "records", "deleted_records"], None]


def test_pickling_loads_everything_and_drops_the_loader() -> None:
    loader = Loader()
    copy = pickle.loads(pickle.dumps(Snapshot(METADATA, loader)))
    assert "delete_files" in loader.requests
    assert copy.metadata == METADATA
    assert copy.num_records == 4
    assert b"Loader" not in pickle.dumps(copy)


def test_names_of_a_table_are_text_not_markup() -> None:
    html = Snapshot(METADATA, frames={"files": files((5, 0))})._repr_html_()
    assert "<script>" not in html
    assert "<b>orders" not in html
    assert "&lt;script&gt;" in html
    assert "a&amp;b" in html
    assert "2026-03-01 12:00 UTC" in html
    assert "not null" in html


def test_what_is_unknown_is_shown_as_unknown() -> None:
    metadata = TableMetadata("x", "delta", 0, None, Schema())
    html = Snapshot(metadata, frames={"files": files((None, 0))})._repr_html_()
    assert html.count("unknown") == 2
    assert ">v0<" in html
    assert "not partitioned" not in html
    assert repr(Snapshot(metadata)) == "Snapshot('x', version=0, columns=0)"


def test_the_html_has_the_name_of_a_version_and_a_bound_of_its_rows() -> None:
    register({2**61 + 12345: 13})
    metadata = TableMetadata("x", "iceberg", 2**61 + 12345, None, Schema())
    html = Snapshot(metadata, frames={"files": files((5, None), (4, 0))})._repr_html_()
    assert f"s13 ({2**61 + 12345})" in html
    assert "\N{GREATER-THAN OR EQUAL TO} 4<" in html


@pytest.mark.parametrize(
    ("protocol", "label", "features"),
    [
        (TableProtocol(1, 2), "reader 1 · writer 2", ()),
        (TableProtocol(3, 7, ("b", "a"), ("c", "a")), "reader 3 · writer 7", ("a", "b", "c")),
        (TableProtocol(format_version=2), "version 2", ()),
    ],
)
def test_a_protocol_has_a_label(protocol: TableProtocol, label: str, features: tuple[str, ...]) -> None:
    assert protocol.label == label
    assert protocol.features == features


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_moment_keeps_its_millisecond(count: int) -> None:
    assert milliseconds(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=count)) == count


def test_a_naive_moment_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="has no time zone") as caught:
        milliseconds(datetime.fromisoformat("2013-05-01"))
    assert caught.value.kind == "naive-moment"
    assert caught.value.fix is not None


def test_the_case_of_a_name_means_nothing_where_no_column_is_called_exactly_so() -> None:
    columns = Schema(tuple(Field(name, PrimitiveType("long")) for name in ("id", "Two", "two", "ÄRA")))
    assert columns.resolve_names(["ID", "two", "Two", "ära"]) == ["id", "two", "Two", "ÄRA"]
    for name in ("TWO", "three"):
        with pytest.raises(InvalidRequestError, match=f"no column {name}"):
            columns.resolve_names([name])
