"""What the columns and row groups of one file take."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview import views
from lakeview.model.physical_file import PHYSICAL, PhysicalFile
from tests.views.story import Story


def chunk(group: int, column: str, compressed: int, uncompressed: int, **more: object) -> dict[str, object]:
    values = {
        "row_group": group,
        "group_records": 10,
        "column": column,
        "stored_as": column,
        "physical_type": "INT64",
        "codec": "ZSTD",
        "encodings": "PLAIN, RLE",
        "values": 10,
        "null_count": 1,
        "compressed": compressed,
        "uncompressed": uncompressed,
        "dictionary": True,
        "page_index": False,
        "bloom_filter": False,
    }
    return values | more


def file(*chunks: dict[str, object]) -> PhysicalFile:
    return PhysicalFile("f", 100, 10, 20, 2, "a test", "2.6", pl.DataFrame(list(chunks), schema=PHYSICAL))


def test_columns_add_up_their_chunks_largest_first() -> None:
    columns = views.files.layout.column_chunks(
        file(
            chunk(0, "a", 10, 30),
            chunk(0, "b", 40, 40, logical_type="String", physical_type="BYTE_ARRAY"),
            chunk(1, "a", 10, 30, codec="SNAPPY", encodings="RLE_DICTIONARY, PLAIN", dictionary=False),
            chunk(1, "b", 40, 40, null_count=None),
        )
    )
    assert columns.schema == views.files.layout.COLUMN_CHUNKS
    assert columns.select("column", "compressed", "uncompressed", "null_count").rows() == [
        ("b", 80, 80, None),
        ("a", 20, 60, 2),
    ]
    assert columns["share"].to_list() == [0.8, 0.2]
    assert columns["ratio"].to_list() == [1.0, 3.0]
    assert columns["per_value"].to_list() == [4.0, 1.0]
    assert columns["type"].to_list() == ["String (BYTE_ARRAY)", "INT64"]
    assert (columns["codec"][1], columns["encodings"][1]) == ("SNAPPY, ZSTD", "PLAIN, RLE, RLE_DICTIONARY")
    assert columns["dictionary"].to_list() == [True, False]


def test_types_and_structures_are_short() -> None:
    flags = "is_from_converted_type=false, force_set_converted_type=false"
    types = {
        f"Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, {flags})": "Timestamp(UTC, microseconds)",
        "Decimal(precision=30, scale=6)": "Decimal(30, 6)",
        "Int(bitWidth=16, isSigned=false)": "Int(16, unsigned)",
    }
    chunks = [chunk(0, f"c{i}", 10 - i, 30, logical_type=text) for i, text in enumerate(types)]
    columns = views.files.layout.column_chunks(file(*chunks))
    assert columns["type"].to_list() == [f"{text} (INT64)" for text in types.values()]
    assert columns["dictionary"].to_list() == [True] * 3
    assert "dictionary" not in "".join(columns["structures"]), "the encodings say so"


def test_row_groups_have_the_range_of_one_column() -> None:
    physical_rows = file(chunk(1, "a", 5, 6), chunk(0, "a", 1, 2, min_text="3", max_text="9"), chunk(0, "b", 2, 2))
    groups = views.files.layout.row_groups(physical_rows, "a")
    assert groups.schema == views.files.layout.ROW_GROUPS
    assert groups.rows() == [(0, 10, 3, 4, "3", "9"), (1, 10, 5, 6, None, None)]
    assert views.files.layout.row_groups(physical_rows)["min_text"].to_list() == [None, None]


def test_a_file_without_chunks_has_no_columns() -> None:
    assert views.files.layout.column_chunks(file()).is_empty()
    assert views.files.layout.row_groups(file()).is_empty()


def test_what_the_log_says_of_a_file() -> None:
    story = Story().append(10).append(20, month=2)
    facts = views.files.layout.logged_facts(story.snapshot(), story.lifetimes(), "month=2/part-1.parquet")
    assert facts == {
        "partition": "month=2",
        "size": "32.0 MiB",
        "rows, by the log": "20",
        "rows deleted": "0",
        "added by": "v1",
        "modified, UTC": None,
    }
    assert views.files.layout.logged_facts(story.snapshot(), story.lifetimes(), "nobody") == {}


@pytest.mark.parametrize("label", ["<64 KiB", "16\N{EN DASH}32 MiB", "32\N{EN DASH}64 MiB", "≥8 GiB", "nothing"])
def test_a_bin_holds_the_files_that_it_counts(label: str) -> None:
    story = Story(partitioned=False).append(1, size=10).append(1, size=32 << 20).append(1, size=50 << 30)
    bins = views.files.sizes.file_sizes(story.files())
    count = bins.filter(pl.col("label") == label)["files"].sum()
    assert views.files.sizes.files_in_bin(story.files(), bins, label).height == count
