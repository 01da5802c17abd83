"""What statistics tell of columns, and when they only bound it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import polars as pl
import pytest

from lakeview import views
from lakeview.model.data_types import ArrayType, Field, MapType, PrimitiveType, StructType
from lakeview.model.frames import FILES
from lakeview.model.schema import Schema
from lakeview.views.values import bound_texts, value_text, value_texts

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

ColumnCounts = tuple[Any, Any, int | None]


def statistics(
    columns: Mapping[str, Sequence[ColumnCounts | None]], *, exact: bool = True, nulls_exact: bool = True
) -> pl.DataFrame:
    """STATISTICS of files `f0`, `f1`, ...: for each column and file (min, max, null_count), None for none."""
    frames: dict[str, pl.Series] = {}
    for name, file_counts in columns.items():
        rows = [
            dict.fromkeys(("min", "max", "null_count", "exact", "null_count_exact"))
            if s is None
            else {"min": s[0], "max": s[1], "null_count": s[2], "exact": exact, "null_count_exact": nulls_exact}
            for s in file_counts
        ]
        frames[name] = pl.DataFrame(rows).to_struct(name)
    height = len(next(iter(columns.values())))
    paths = pl.Series("_path", [f"f{i}" for i in range(height)], dtype=pl.String)
    vectors = pl.Series("_deletion_vector", [None] * height, dtype=pl.String)
    return pl.DataFrame([paths, vectors, *(s.alias(n) for n, s in frames.items())])


def files(*records: int | None, deleted: int | None = 0) -> pl.DataFrame:
    rows = [{"path": f"f{i}", "size": 1, "records": n, "deleted_records": deleted} for i, n in enumerate(records)]
    return pl.DataFrame(rows, schema=FILES)


def share_of(stats: pl.DataFrame, live: pl.DataFrame) -> tuple[Any, ...]:
    return views.schema.null_shares.null_shares(stats, live).select("null_share", "exact", "mark", "files_known").row(0)


@pytest.mark.parametrize(
    ("file_counts", "live", "expected"),
    [
        pytest.param([(1, 2, 1), (1, 2, 3)], files(10, 10), (0.2, True, "", 2), id="every file tells: exact"),
        pytest.param([(1, 2, 2), None], files(10, 10), (0.1, False, "≥", 1), id="one does not: a lower bound"),
        pytest.param([(1, 2, 2), None], files(10, None), (0.2, False, "≈", 1), id="nor its rows: of those that tell"),
        pytest.param([None, None], files(10, 10), (None, False, None, 0), id="none tells: unknown"),
        pytest.param([(1, 2, 0)], files(0), (None, False, None, 1), id="no rows: no share"),
        pytest.param([(1, 2, 4)], files(10, deleted=None), (0.4, False, "≈", 1), id="deleted rows nobody counted"),
        pytest.param([(1, 2, 4)], files(10, deleted=2), (0.5, False, "≤", 1), id="deleted rows: an upper bound"),
    ],
)
def test_null_shares_say_how_sure_they_are(
    file_counts: list[ColumnCounts | None], live: pl.DataFrame, expected: tuple[Any, ...]
) -> None:
    assert share_of(statistics({"x": file_counts}), live) == expected


def test_null_counts_that_may_include_deleted_rows_are_an_upper_bound() -> None:
    assert share_of(statistics({"x": [(1, 2, 4)]}, nulls_exact=False), files(10)) == (0.4, False, "≤", 1)


def test_null_shares_have_their_declared_shape_without_files() -> None:
    empty = statistics({"x": [(1, 2, 0)]}).clear()
    assert views.schema.null_shares.null_shares(empty, files()).schema == views.schema.null_shares.NULL_SHARES
    assert views.schema.null_shares.null_shares(empty, files())["null_share"].to_list() == [None]


def test_names_that_collide_or_look_like_patterns_are_just_names() -> None:
    file_counts: dict[str, list[ColumnCounts | None]] = {
        name: [(1, 2, 1)] for name in ("path", "records", "^x$", "x", "*", "min")
    }
    assert views.schema.null_shares.null_shares(statistics(file_counts), files(10))["column"].to_list() == list(
        file_counts
    )
    assert views.schema.null_shares.null_shares(statistics(file_counts), files(10))["null_share"].to_list() == [
        0.1
    ] * len(file_counts)


def test_one_file_path_with_two_deletion_vectors_is_joined_by_both() -> None:
    stats = statistics({"x": [(1, 2, 1)]}).with_columns(_deletion_vector=pl.lit("dv-2"))
    live = files(10).with_columns(deletion_vector=pl.lit("dv-2"), deleted_records=pl.lit(5, pl.Int64))
    assert share_of(stats, live)[0] == 0.2


NESTED = Schema(
    (
        Field("x", LONG, nullable=False, metadata={"comment": "what it is"}, id=1),
        Field("s", StructType((Field("a.b", STRING), Field("l", ArrayType(StructType((Field("z", LONG),))))))),
        Field("m", MapType(STRING, LONG)),
    )
)


def test_the_tree_holds_every_level_in_order() -> None:
    tree = views.schema.columns.schema_tree(NESTED)
    assert tree.schema == views.schema.columns.SCHEMA_TREE
    assert tree.select("path", "depth", "name", "type", "leaf").rows() == [
        ("x", 0, "x", "long", True),
        ("s", 0, "s", "struct<a.b: string, l: array<struct<z: long>>>", False),
        ("s.`a.b`", 1, "a.b", "string", True),
        ("s.l", 1, "l", "array<struct<z: long>>", True),
        ("s.l.element", 2, "element", "struct<z: long>", False),
        ("s.l.element.z", 3, "z", "long", False),
        ("m", 0, "m", "map<string, long>", True),
        ("m.key", 1, "key", "string", False),
        ("m.value", 1, "value", "long", False),
    ]
    assert tree.select("nullable", "comment", "id").row(0) == (False, "what it is", 1)
    assert tree["null_share"].null_count() == tree.height


def test_the_tree_tells_ranges_and_nulls_of_leaves() -> None:
    stats = statistics({"x": [(5, 9, 0), (2, 7, 0)], "s.`a.b`": [("a", "k", 1), None], "m": [(None, None, 2)] * 2})
    tree = views.schema.columns.schema_tree(NESTED, stats, files=files(10, 10))
    columns_by_path = {row["path"]: row for row in tree.iter_rows(named=True)}
    assert [columns_by_path["x"][k] for k in ("min_text", "max_text", "range_is", "coverage")] == [
        "2",
        "9",
        "exact",
        1.0,
    ]
    assert [columns_by_path["s.`a.b`"][k] for k in ("min_text", "range_is", "coverage")] == ["a", "partial", 0.5]
    assert (columns_by_path["s.`a.b`"]["null_share"], columns_by_path["s.`a.b`"]["null_share_mark"]) == (0.05, "≥")
    assert (columns_by_path["m"]["null_share"], columns_by_path["m"]["coverage"], columns_by_path["m"]["min_text"]) == (
        0.2,
        None,
        None,
    )
    assert columns_by_path["s"]["null_share"] is None
    assert tree.schema == views.schema.columns.SCHEMA_TREE


def test_partition_values_tell_all_of_a_column_that_files_are_partitioned_by() -> None:
    schema = Schema((Field("x", LONG), Field("a.b", STRING)))
    values = pl.DataFrame({"a.b": ["k", None, "c"], "month": [1, 2, 3]}).to_struct("partition")
    live = files(10, 20, 10).with_columns(values, deleted_records=pl.Series([0, 10, 0]))
    stats = statistics({"x": [(1, 2, 0)] * 3})
    row = views.schema.columns.schema_tree(schema, stats, files=live).row(1, named=True)
    assert (row["path"], row["null_share"], row["null_share_mark"]) == ("`a.b`", 1 / 3, "")
    assert (row["min_text"], row["max_text"], row["range_is"], row["coverage"]) == ("c", "k", "exact", 1.0)
    uncounted = live.with_columns(records=pl.Series([None, 20, 10], dtype=pl.Int64))
    facts = views.schema.columns.schema_tree(schema, stats, files=uncounted).row(1, named=True)
    assert (facts["null_share"], facts["null_share_mark"]) == (0.5, "≈")
    # a column with statistics of its own is told by them: files of another partitioning have no value here
    both = stats.with_columns(stats["x"].alias("`a.b`"))
    assert views.schema.columns.schema_tree(schema, both, files=live).row(1, named=True)["null_share"] == 0.0


def test_a_file_of_nulls_only_has_no_range_to_tell() -> None:
    stats = statistics({"x": [(5, 9, 0), (None, None, 10)]})
    row = views.schema.columns.schema_tree(NESTED, stats, files=files(10, 10)).row(0, named=True)
    assert (row["coverage"], row["range_is"], row["null_share"]) == (1.0, "exact", 0.5)


def test_cut_or_loose_ranges_are_bounds() -> None:
    stats = statistics({"x": [(5, 9, 0)]}, exact=False)
    assert views.schema.columns.schema_tree(NESTED, stats, files=files(10)).row(0, named=True)["range_is"] == "bound"


def test_without_files_the_rows_of_the_table_do() -> None:
    stats = statistics({"x": [(5, 9, 1), (2, 7, 1)]})
    row = views.schema.columns.schema_tree(NESTED, stats, 20).row(0, named=True)
    assert (row["null_share"], row["null_share_mark"], row["coverage"]) == (0.1, "", 1.0)
    unknown = views.schema.columns.schema_tree(NESTED, stats).row(0, named=True)
    assert (unknown["null_share"], unknown["null_share_mark"]) == (None, None)


def test_null_shares_by_version_mark_what_is_far_from_usual() -> None:
    def told_by(version: int) -> pl.DataFrame:
        later = {"code": [(1, 2, 0)]} if version > 33 else {}
        return statistics({"delay": [(1, 2, 99 if version == 35 else 2)], **later})

    history = [(v, NOON, told_by(v), files(100)) for v in range(30, 40)]
    shares = views.schema.null_shares.null_shares_by_version(history)
    assert shares.schema == views.schema.null_shares.NULL_SHARES_BY_VERSION
    unusual = shares.filter("unusual").select("column", "version", "null_share", "usual")
    assert unusual.rows() == [("delay", 35, 0.99, 0.02)]
    partial = views.schema.null_shares.null_shares_by_version(
        [*history, (40, NOON, statistics({"delay": [(1, 2, 99), None]}), files(99, 1))]
    )
    assert partial.filter(version=40).select("mark", "unusual").rows() == [("\N{GREATER-THAN OR EQUAL TO}", False)]
    assert shares.filter(pl.col("column") == "code")["version"].to_list() == list(range(34, 40))
    assert views.schema.null_shares.null_shares_by_version([]).schema == views.schema.null_shares.NULL_SHARES_BY_VERSION


def test_versions_are_spread_with_both_ends() -> None:
    assert views.schema.columns.spread_evenly(range(5), 24) == [0, 1, 2, 3, 4]
    assert views.schema.columns.spread_evenly(range(5), 1) == [4]
    spread = views.schema.columns.spread_evenly(range(1000), 24)
    assert (len(spread), spread[0], spread[-1]) == (24, 0, 999)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param(True, "true", id="a boolean"),
        pytest.param(1.5, "1.5", id="a float"),
        pytest.param(0.1 + 0.2, "0.3", id="no noise"),
        pytest.param(1234567.89, "1234567.89", id="all digits of a price"),
        pytest.param(-0.0, "0", id="a zero as writers record it"),
        pytest.param(date(2026, 7, 1), "2026-07-01", id="a date"),
        pytest.param(datetime(2026, 7, 1, 3, tzinfo=UTC), "2026-07-01 03:00:00", id="a moment in UTC"),
        pytest.param(b"\x00\xff", "00ff", id="bytes in hex"),
        pytest.param([{date(2026, 7, 1): None, 2: b"\xff"}], '[{"2026-07-01": null, "2": "ff"}]', id="a map of dates"),
        pytest.param("x" * 100, "x" * 79 + "…", id="long text cut"),
    ],
)
def test_values_as_text(value: object, text: str | None) -> None:
    assert value_text(value) == text


def test_numbers_of_single_precision_have_the_digits_that_they_have() -> None:
    single = pl.Series([0.1, 7.7, 1048.361, None], dtype=pl.Float32())
    assert value_texts(single).to_list() == ["0.1", "7.7", "1048.361", None]


@pytest.mark.parametrize(
    ("exact", "text"),
    [(False, "2026-07-01 03:00:00.123000"), (True, "2026-07-01 03:00:00.123999"), (None, "2026-07-01 03:00:00.123000")],
)
def test_a_time_that_is_a_bound_is_shown_as_writers_record_it(exact: bool | None, text: str) -> None:
    bounds = pl.Series([datetime(2026, 7, 1, 3, 0, 0, 123_999, tzinfo=UTC)])
    assert bound_texts(bounds, pl.Series([exact], dtype=pl.Boolean)).to_list() == [text]
    finer = pl.Series([datetime(2026, 7, 1, 3, 0, 0, 123_456, tzinfo=UTC)])
    assert bound_texts(finer, pl.Series([exact], dtype=pl.Boolean)).to_list() == ["2026-07-01 03:00:00.123456"]


def test_a_text_that_a_writer_cut_ends_in_an_ellipsis() -> None:
    bounds = pl.Series(["ab\U0010ffff", "ab\x7f", "ab\x7f", "z"])
    texts = bound_texts(bounds, pl.Series([False, None, True, False]))
    assert texts.to_list() == ["ab\N{HORIZONTAL ELLIPSIS}", "ab\N{HORIZONTAL ELLIPSIS}", "ab\x7f", "z"]


@pytest.mark.parametrize(
    ("states", "note"),
    [
        pytest.param([("exact", 1.0), ("exact", 1.0), (None, 0.0)], ["min and max are exact"], id="all exact"),
        pytest.param(
            [("exact", 1.0, "double"), ("exact", 1.0, "long")], ["min and max are exact but for NaN"], id="with NaN"
        ),
        pytest.param([("exact", 1.0, "long"), (None, 0.0, "double")], ["min and max are exact"], id="no range of it"),
        pytest.param([("bound", 1.0)], ["min and max are bounds"], id="all bounds"),
        pytest.param([("partial", 0.864)] * 2, ["min and max of 86.4 % of files"], id="of so many files"),
        pytest.param([("partial", 0.5), ("partial", 0.6)], ["min and max of a part of the files"], id="of some files"),
        pytest.param([("partial", 0.864), ("exact", 1.0)], ["partial: min and max of 86.4 % of files"], id="two kinds"),
        pytest.param([("partial", 0.5), ("partial", 0.6), ("exact", 1.0)], [], id="each its own"),
        pytest.param([(None, None)], [], id="none known"),
    ],
)
def test_what_min_and_max_are_is_noted_once(states: list[tuple[Any, ...]], note: list[str]) -> None:
    rows = [{"range_is": state, "coverage": share, "type": next(iter(kind), "long")} for state, share, *kind in states]
    schema = {"range_is": pl.String(), "coverage": pl.Float64(), "type": pl.String()}
    assert views.schema.tree.range_note(pl.DataFrame(rows, schema=schema)) == note


@pytest.mark.parametrize("value", [None, 7, "a", float("nan"), {"x": NOON}, NOON, b"\xff"])
def test_a_value_alone_reads_as_it_does_among_others(value: object) -> None:
    alone = pl.Series([value], dtype=pl.Null if value is None else None, strict=False)
    assert value_texts(alone).to_list() == value_texts(alone.append(alone.clone())).to_list()[:1]


def test_lists_have_texts() -> None:
    assert value_texts(pl.Series([[1, 2], None, [1, 2]])).to_list() == ["[1, 2]", None, "[1, 2]"]


def test_the_files_that_count_nulls_are_told_of_all() -> None:
    shares = pl.DataFrame(
        {"column": ["x", "y", "z"], "null_share": [0.1, None, 0.5], "files_known": [2999, None, 3], "files": [3000] * 3}
    )
    rows = views.schema.tree.most_nulls_first(shares)
    assert rows.select("column", "files_text").rows() == [("z", "3 of 3,000"), ("x", "2,999 of 3,000"), ("y", None)]
