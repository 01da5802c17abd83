"""The widths of a table's columns: what its cells need, and what gives way where there is no room for all."""

from __future__ import annotations

import polars as pl

from lakeview.app import columns, table_cells, widths
from lakeview.model.partition_texts import unescape_text
from lakeview.views.partitions.keys import short_name


def test_columns_have_what_they_need_where_there_is_room() -> None:
    columns = [widths.needs("rows", ["1,200"]), widths.needs("file", ["part-0001.parquet"], may_be_cut=True)]
    assert widths.fit_widths(columns, 600) == [column.whole for column in columns]


def test_the_widest_texts_give_way_and_numbers_and_headings_do_not() -> None:
    number = widths.needs("rows", ["1,234,567,890"])
    short = widths.needs("table", ["flights"], may_be_cut=True)
    long = widths.needs("a comment", ["word " * 40], may_be_cut=True)
    place = number.whole + short.whole + 100
    assert widths.fit_widths([number, short, long], place) == [number.whole, short.whole, 100]
    assert widths.fit_widths([number, short, long], 0) == [number.whole, short.least, widths.heading_width("a comment")]


def test_names_are_not_cut_while_other_texts_are() -> None:
    name = widths.needs("column", ["departure_delay"], may_be_cut=True, uncut=widths.NAME)
    comment = widths.needs("comment", ["word " * 40], may_be_cut=True)
    assert widths.fit_widths([name, comment], 0) == [name.whole, comment.least]
    assert widths.fit_widths([widths.needs("column", ["x" * 300], may_be_cut=True, uncut=widths.NAME)], 0) == [
        widths.NAME
    ]


def test_seconds_of_a_whole_minute_are_left_out_of_timestamps_alone() -> None:
    texts = ["2026-07-01 03:00:00", "2026-07-01 03:00:05", None, "2026-07-01 03:00:00"]
    rows = pl.DataFrame({"type": ["timestamp", "timestamp_ntz", "timestamp", "string"], "text": texts})
    cells, _ = columns.bound_text("min", of="text").cells(rows.to_struct())
    assert cells.to_list() == ["2026-07-01 03:00", *texts[1:]]


def test_a_partition_of_several_keys_is_shown_by_its_values() -> None:
    texts = pl.Series(["month=2026-05", "month=2026-09/origin=JFK", None])
    column = columns.partition(["month", "origin"])
    assert column.cells(texts)[0].to_list() == ["2026-05", "2026-09/JFK", "no partition"]
    assert column.cells(texts[:1])[0].to_list() == ["month=2026-05"]
    of_all = columns.partition(["month", "origin"], texts.drop_nulls().to_list())
    assert of_all.cells(texts[:1])[0].to_list() == ["2026-05"]


def test_a_partition_value_that_looks_like_a_key_is_whole() -> None:
    texts = pl.Series(["path=a%2Fkey=1/key=b", "path=a%252F/key=c"])
    assert columns.partition(["path", "key"]).cells(texts)[0].to_list() == ["a/key=1/b", "a%2F/c"]
    assert columns.partition(["path"]).cells(pl.Series(["path=a%2Fb"]))[0].to_list() == ["path=a/b"]
    assert short_name(texts[0], ["path", "key"]) == "a/key=1/b"
    assert [unescape_text(name) for name in texts] == ["path=a/key=1/key=b", "path=a%2F/key=c"]
    alike = pl.Series(["path=a%2F1/key=b", "path=a/key=1%2Fb"])
    assert columns.partition(["path", "key"]).cells(alike)[0].to_list() == ["a%2F1/b", "a/1%2Fb"]
    assert short_name("path.to/a=1/day=b", ["to/a"]) == "path.to/a=1/day=b"


def test_a_partition_by_moments_is_shown_without_what_is_zero() -> None:
    texts = pl.Series(["at=2026-01-01T21:00:00.000000Z", "at=2026-01-01 21:00:07", "at=2026-01-01T21:00:07.123Z"])
    short = ["at=2026-01-01 21:00", "at=2026-01-01 21:00:07", "at=2026-01-01T21:00:07.123Z"]
    assert columns.partition(["at"]).cells(texts)[0].to_list() == short
    alike = pl.Series(["at=2026-01-01T21:00:00.000000Z", "at=2026-01-01 21:00:00"])
    assert columns.partition(["at"]).cells(alike)[0].to_list() == alike.to_list()
    assert short_name(texts[0], ["at"]) == "2026-01-01 21:00"


def test_a_metadata_file_is_named_by_the_first_digits_of_its_uuid() -> None:
    names = pl.Series(["c798a0c0-672b-42e3-b406-2fae3c0922b6-m0.avro", "manifest-1001.avro", None])
    short, _ = columns.metadata_file("manifest", of="file").cells(names)
    assert short.to_list() == ["c798a0c0\N{HORIZONTAL ELLIPSIS} -m0.avro", "manifest-1001.avro", None]


def test_a_data_file_is_named_by_the_first_digits_of_its_uuid_and_its_folder_as_it_is() -> None:
    uuid = "c798a0c0-672b-42e3-b406-2fae3c0922b6"
    write = "8e79db4a9fb1443db72dc1be62c58af7"  # that all files of one write by Spark share
    names = pl.Series(
        [
            f"part-00000-{uuid}.c000.snappy.parquet", f"user={uuid}/{uuid}.parquet", f"part-{write}-{uuid}.parquet",
            f"data/{write}-{uuid}.parquet", "load-2.parquet", None,
        ]
    )  # fmt: skip
    short = [
        "part-00000-c798a0c0\N{HORIZONTAL ELLIPSIS}.c000.snappy.parquet",
        f"user={uuid}/c798a0c0\N{HORIZONTAL ELLIPSIS}.parquet",
        "part-c798a0c0\N{HORIZONTAL ELLIPSIS}.parquet",
        "data/c798a0c0\N{HORIZONTAL ELLIPSIS}.parquet",
        "load-2.parquet",
        None,
    ]
    for column in (columns.data_file("file"), columns.path("file", "")):
        assert column.cells(names)[0].to_list() == short
    shared, _ = columns.data_file("file").cells(pl.Series([f"part-{uuid}.c0.parquet", f"part-d{uuid[1:]}.c0.parquet"]))
    assert shared.to_list() == ["part-c798a0c0\N{HORIZONTAL ELLIPSIS}", "part-d798a0c0\N{HORIZONTAL ELLIPSIS}"]


def test_sizes_of_thousands_of_their_unit_are_grouped() -> None:
    kib = pl.Series([6033.34, 411.12, 768.0, 0.44]) * 1024
    column = columns.size("written")
    cells, label = column.cells(kib)
    assert (cells.to_list(), label) == ([6033.0, 411.0, 768.0, 0.4], "written, KiB")
    assert column.options_for(cells)["format"] == "localized"
    cells, _ = column.cells(kib.tail(3))
    assert column.options_for(cells)["format"] == "%.1f"


def test_broken_lines_do_not_begin_inside_the_digits_of_a_metadata_file() -> None:
    column = columns.metadata_file("manifest", of="file")
    cells, label = column.cells(pl.Series(["04040404-672b-42e3-b406-2fae3c0922b6-m0.avro"]))
    digits = cells[0].split(" ")[0]
    assert widths.fit_widths([column.needs(cells, label, "unknown")], 0) >= [widths.heading_width(digits)]


def test_a_share_that_is_not_quite_none_or_all_has_digits_enough_to_say_so() -> None:
    percent = columns.percent("null, %")
    cells, _ = percent.cells(pl.Series([0.0, 0.0002, 0.83851, 0.9998, 1.0, None]))
    assert cells.to_list() == [0.0, 0.02, 83.85, 99.98, 100.0, None]
    assert percent.options_for(cells)["format"] == "%.2f"
    cells, _ = percent.cells(pl.Series([0.000038, 0.02008, 0.83851]))
    assert cells.to_list() == [0.0038, 2.008, 83.851]
    assert percent.options_for(cells)["format"] == "%.4f"
    cells, _ = percent.cells(pl.Series([0.0, 0.00000021, 0.83851]))
    assert cells.to_list() == [0.0, 0.000021, 83.9]
    assert percent.options_for(cells)["format"] == "%.15g"
    assert widths.longest(cells[1:], widths.ALL_DIGITS) == ["2.1e-05", "83.9"]
    cells, _ = percent.cells(pl.Series([0.0, 0.83851, None]))
    assert percent.options_for(cells)["format"] == "%.1f"


def test_longest_cells_are_those_of_the_numbers_format() -> None:
    assert widths.longest(pl.Series([-5, 1_234_567, None]), "localized") == ["-5", "1,234,567"]
    assert widths.longest(pl.Series([0.25, 99.96]), "%.1f") == ["0.2", "100.0"]
    assert widths.longest(pl.Series(["a", "long", None]), None) == ["long"]
    assert widths.longest(pl.Series([], dtype=pl.String), None) == []


def test_escapes_of_what_is_unseen_have_room() -> None:
    rows = pl.DataFrame({"a": ["x\N{ZERO WIDTH SPACE}y"], "b": ["x\N{ZERO WIDTH SPACE}y" * 40]})
    cells, configuration = table_cells.cells_and_columns(
        rows, {"a": columns.text("a"), "b": columns.text("b")}, place=300, unknown=""
    )
    assert cells["a"].to_list() == [r"x\u200by"]
    assert configuration["a"]["width"] == widths.heading_width(r"x\u200by")
