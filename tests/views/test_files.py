"""Sizes of files, and one page of them."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from lakeview import views
from lakeview.model.column_values import format_expression
from lakeview.model.frames import FILES, LIFETIMES
from tests.views.story import MIB, Story, flights
from tests.views.test_columns import statistics


def sized(*sizes: int) -> pl.DataFrame:
    rows = [{"path": f"f{i}", "size": s, "records": 10, "deleted_records": 0} for i, s in enumerate(sizes)]
    return pl.DataFrame(rows, schema=FILES)


@pytest.mark.parametrize(
    ("size", "label"),
    [
        pytest.param(0, "<64 KiB", id="empty"),
        pytest.param((64 << 10) - 1, "<64 KiB", id="just below the first doubling"),
        pytest.param(64 << 10, "64\N{EN DASH}128 KiB", id="a power of two opens its bin"),
        pytest.param(MIB - 1, "512 KiB\N{EN DASH}1 MiB", id="just below one MiB"),
        pytest.param(MIB, "1\N{EN DASH}2 MiB", id="one MiB"),
        pytest.param(64 * MIB, "64\N{EN DASH}128 MiB", id="the target begins"),
        pytest.param(256 * MIB - 1, "128\N{EN DASH}256 MiB", id="the target ends"),
        pytest.param(50 << 30, "≥8 GiB", id="enormous"),
    ],
)
def test_a_file_falls_in_its_bin(size: int, label: str) -> None:
    assert views.files.sizes.file_sizes(sized(size)).filter(pl.col("files") > 0)["label"].to_list() == [label]


def test_bins_double_without_gaps_and_reach_the_target() -> None:
    bins = views.files.sizes.file_sizes(sized(100, 200))
    assert bins.schema == views.files.sizes.FILE_SIZES
    assert (bins["bin_low"][1:] == bins["bin_high"][:-1]).all()
    assert bins["bin_high"][-1] == views.thresholds.TARGET_HIGH
    assert bins["label"].is_unique().all()
    assert bins.filter("target")["label"].to_list() == ["64\N{EN DASH}128 MiB", "128\N{EN DASH}256 MiB"]
    assert bins.filter("small")["bin_high"].max() == views.thresholds.SMALL_FILE_BYTES
    assert (bins["files"].sum(), bins["bytes"].sum()) == (2, 300)


def test_no_files_make_empty_bins_and_unknown_figures() -> None:
    empty = pl.DataFrame(schema=FILES)
    assert views.files.sizes.file_sizes(empty)["files"].sum() == 0
    facts = views.files.sizes.file_facts(empty)
    assert (facts.files, facts.median_size, facts.median_records, facts.with_records_share) == (0, None, None, None)


def test_facts_of_a_story() -> None:
    facts = views.files.sizes.file_facts(flights().files())
    assert (facts.files, facts.small_files, facts.small_bytes) == (456, 360, 360 * 290_000)
    assert (facts.median_size, facts.median_records) == (290_000, 600)
    assert facts.ideal_files == 48
    assert facts.with_records_share == 1.0


def test_what_some_files_do_not_tell_leaves_the_least_there_is() -> None:
    files = sized(1, 2, 4, 8).with_columns(
        size=pl.Series([1, None, 4, 8], dtype=pl.Int64),
        records=pl.Series([10, 20, None, 40], dtype=pl.Int64),
        deleted_records=pl.Series([1, 2, 0, None], dtype=pl.Int64),
    )
    facts = views.files.sizes.file_facts(files)
    assert (facts.bytes, facts.least_bytes, facts.least_records) == (None, 13, 9 + 18)
    whole = views.files.sizes.file_facts(flights().files())
    assert (whole.least_bytes, whole.least_records) == (whole.bytes, flights().files()["records"].sum())


def test_facts_leave_unknown_deletes_unknown() -> None:
    files = sized(1, 2).with_columns(deletion_vector=pl.Series([None, "dv"]), deleted_records=pl.Series([0, None]))
    facts = views.files.sizes.file_facts(files)
    assert (facts.files_with_deletes, facts.files_perhaps_with_deletes, facts.deleted_records) == (1, 0, None)
    untold = files.with_columns(deletion_vector=pl.lit(None, pl.String))  # delete files may hit it
    facts = views.files.sizes.file_facts(untold)
    assert (facts.files_with_deletes, facts.files_perhaps_with_deletes, facts.deleted_records) == (0, 1, None)


def test_deleted_rows_are_at_most_those_that_files_of_position_deletes_name() -> None:
    files = sized(1, 2).with_columns(records=pl.Series([60, 40]), deleted_records=pl.Series([0, None]))
    deletes = sized(1).with_columns(records=pl.lit(7), content=pl.lit("position deletes"))
    facts = views.files.sizes.file_facts(files, deletes)
    assert (facts.least_records, facts.deleted_records_text) == (93, "\N{LESS-THAN OR EQUAL TO} 7 rows")
    equality = deletes.with_columns(content=pl.lit("equality deletes"))  # each may delete any row
    assert views.files.sizes.file_facts(files, equality).deleted_records_text == "\N{LESS-THAN OR EQUAL TO} 40 rows"
    uncounted = views.files.sizes.file_facts(files.with_columns(records=pl.lit(None, pl.Int64)), deletes)
    assert uncounted.deleted_records_text == "rows unknown"


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        (["s3://b/t/data/p=1/a.parquet", "s3://b/t/data/p=12/b.parquet"], "s3://b/t/data/"),
        (["/lake/t/data/a.parquet"], "/lake/t/data/"),
        (["/a/x.parquet", "/b/y.parquet"], "/"),
        (["s3://b/x.parquet", "s3://c/y.parquet"], ""),
        (["file:///a/x.parquet", "s3://b/x.parquet"], ""),
        (["p=1/a.parquet", "p=1/b.parquet"], ""),
        (["s3://clone/t/a.parquet", "p=1/b.parquet"], ""),
        ([], ""),
    ],
)
def test_a_listing_may_leave_out_the_folder_that_absolute_paths_share(paths: list[str], folder: str) -> None:
    assert views.files.sizes.common_folder(pl.Series(paths, dtype=pl.String)) == folder


def test_a_page_is_sorted_cut_and_stable() -> None:
    files = sized(3, 1, 2, 1)
    assert views.files.sizes.file_page(files)["path"].to_list() == ["f1", "f3", "f2", "f0"]
    assert views.files.sizes.file_page(files, "size", True)["path"].to_list() == ["f0", "f2", "f1", "f3"]
    assert views.files.sizes.file_page(files, offset=1, limit=2)["path"].to_list() == ["f3", "f2"]
    assert views.files.sizes.file_page(files, "path", True, limit=1)["path"].to_list() == ["f3"]
    assert views.files.sizes.file_page(files, offset=99).schema == views.files.sizes.FILE_PAGE


def test_a_page_knows_who_added_a_file_and_its_range() -> None:
    story = Story().append(10).append(20, month=2).optimize(1)
    files = story.files().filter(pl.col("partition_text") == "month=2")
    page = views.files.sizes.file_page(files, "path", lifetimes=story.lifetimes())
    assert page.select("path", "added").rows() == [("month=2/part-1.parquet", 1)]
    stats = statistics({"path": [("a", "b", 1), None]})
    ranged = views.files.sizes.file_page(sized(1, 2), statistics=stats, column="path")
    assert ranged.select("null_count", "min_text", "max_text").rows() == [(1, "a", "b"), (None, None, None)]
    assert views.files.sizes.file_page(sized(1), statistics=stats, column="no such")["min_text"].to_list() == [None]
    cut = datetime(2026, 1, 1, 4, 0, 0, 999, tzinfo=UTC)
    times = statistics({"path": [(cut, cut, 0)]}).with_columns(pl.col("path").struct.with_fields(exact=False))
    ranged = views.files.sizes.file_page(sized(1), statistics=times, column="path")
    assert ranged["max_text"].to_list() == ["2026-01-01 04:00:00"]


def test_a_file_removed_and_added_again_was_added_last() -> None:
    rows = [("f0", None, 1, 2, 1, 1), ("f0", None, 5, None, 1, 1)]
    lifetimes = pl.DataFrame(rows, schema=LIFETIMES, orient="row")
    assert views.files.sizes.file_page(sized(1), lifetimes=lifetimes)["added"].to_list() == [5]


def test_a_deletion_vector_that_is_replaced_adds_no_file() -> None:
    rows = [("f0", None, 1, 2, 1, 1), ("f0", "v", 2, 4, 1, 1), ("f0", "w", 4, None, 1, 1)]
    lifetimes = pl.DataFrame(rows, schema=LIFETIMES, orient="row")
    page = views.files.sizes.file_page(sized(1), lifetimes=lifetimes)
    assert page["added"].to_list() == [1]


def test_a_listing_leaves_out_the_folder_of_a_partition_null_too() -> None:
    paths = ["day=1/region=__HIVE_DEFAULT_PARTITION__/f", "region=north/g", "region=south/h", "k"]
    partitions = ["day=1/region=null", "region=north", "region=null", None]
    page = pl.DataFrame({"path": paths, "partition_text": partitions}, schema_overrides={"partition_text": pl.String})
    assert views.files.names.with_short_paths(page, "")["file"].to_list() == ["f", "g", "region=south/h", "k"]


@pytest.mark.parametrize(
    ("path", "partition"),
    [
        pytest.param("hub/zone=a%20b%2Fc/f", "hub/zone=a b%2Fc", id="escaped, with a slash in name and value"),
        pytest.param("read+at=1/site=x+y%252/f", "read at=1/site=x y%2", id="a space as plus"),
        pytest.param("zone=a+b/f", "zone=a+b", id="a plus as such"),
        pytest.param("zone=a%252Fb/f", "zone=a%252Fb", id="an escape as value"),
        pytest.param("zone=null/f", 'zone="null"', id="the text null"),
        pytest.param("zone=null/f", "zone=null", id="null"),
    ],
)
def test_a_listing_leaves_out_folders_of_escaped_values(path: str, partition: str) -> None:
    page = pl.DataFrame({"path": [f"s3://lake/{path}"], "partition_text": [partition]})
    assert views.files.names.with_short_paths(page, "s3://lake/")["file"].to_list() == ["f"]


def test_a_million_files_fit() -> None:
    n = 1_000_000
    files = (
        pl.DataFrame(schema=FILES)
        .clear(n)
        .with_columns(
            path=format_expression("part-{}", pl.int_range(n)),
            size=pl.int_range(n, dtype=pl.Int64) * 1000,
            partition_text=format_expression("day={}", pl.int_range(n) % 400),
        )
    )
    assert views.files.sizes.file_sizes(files)["files"].sum() == n
    assert views.files.sizes.file_facts(files).files == n
    assert views.files.sizes.file_page(files, descending=True, offset=n - 1)["path"].to_list() == ["part-0"]
