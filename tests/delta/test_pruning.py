"""Filters to files: what is spared and why, and that no row is ever lost."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.errors import CorruptTableError, DataFileMissingError, InvalidRequestError, UnsupportedTableError
from lakeview.rows import read_task
from lakeview.snapshot import PLAN
from tests.builders.actions import add, metadata, protocol, struct
from tests.builders.history import DeltaHistory
from tests.builders.stores import FarStorage

FIRST = date(2026, 1, 1)


def months(history: DeltaHistory) -> DeltaHistory:
    """Three months of ten days each; month is a partition column, day and city have statistics."""
    history.create({"day": "integer", "city": "string", "month": "integer"}, partition_by=("month",))
    for month in (1, 2, 3):
        rows = {"day": pa.array(range(1, 11), pa.int32()), "city": [f"{'abc'[month - 1]}{i}" for i in range(10)]}
        stats = {
            "numRecords": 10,
            "minValues": {"day": 1, "city": rows["city"][0]},
            "maxValues": {"day": 10, "city": rows["city"][-1]},
            "nullCount": {"day": 0, "city": 0},
        }
        history.commit(history.data(f"m{month}", rows, stats=stats, partition={"month": str(month)}))
    return history


P, S, K = "partition", "statistics", "kept"
PLANS: list[tuple[str, list[str]]] = [
    ("month = 2", [P, K, P]),
    ("month = 2 AND day = 3", [P, K, P]),
    ("month = 2 AND day > 10", [P, S, P]),
    ("month <> 2", [K, P, K]),
    ("month IN (1, 3)", [K, P, K]),
    ("month NOT IN (1, 3)", [P, K, P]),
    ("NOT (month = 1 OR month = 2)", [P, P, K]),
    ("month BETWEEN 2 AND 9", [P, K, K]),
    ("month NOT BETWEEN 2 AND 9", [K, P, P]),
    ("month IS NULL", [P, P, P]),
    ("month IS NOT NULL", [K, K, K]),
    ("day > 10", [S, S, S]),
    ("day >= 10", [K, K, K]),
    ("day IS NULL", [S, S, S]),
    ("city = 'b5'", [S, K, S]),
    ("city LIKE 'b%'", [S, K, S]),
    ("city < 'b'", [K, S, S]),
    ("city IN ('a1', 'c1', 'zz')", [K, S, K]),
    ("month = 1 OR city = 'c3'", [K, S, K]),
    ("1 = 1", [K, K, K]),
    ("1 = 2", [P, P, P]),
    ("day + 1 > 100", [K, K, K]),
    ("month = NULL", [P, P, P]),
]


@pytest.mark.parametrize(("where", "reasons"), PLANS, ids=[where for where, _ in PLANS])
def test_a_plan_says_what_spares_each_file(history: DeltaHistory, where: str, reasons: list[str]) -> None:
    table = lv.open_table(months(history).address)
    plan = table.plan(where)
    assert plan.schema == PLAN
    plan = plan.sort("path")
    assert dict(zip(plan["path"], plan["reason"], strict=True)) == dict(zip(["m1", "m2", "m3"], reasons, strict=True))
    assert plan["kept"].to_list() == [reason == K for reason in reasons]


@pytest.mark.parametrize(("where", "reasons"), PLANS, ids=[where for where, _ in PLANS])
def test_a_scan_opens_only_the_files_its_filter_needs(history: DeltaHistory, where: str, reasons: list[str]) -> None:
    store = FarStorage(months(history).address)
    table = DeltaTable(store)
    rows = table.scan()
    everything = rows.collect()
    store.requests.clear()
    found = rows.filter(pl.sql_expr(where)).collect()
    if where == "month = NULL":  # polars knows by itself that no row can match, and does not ask
        store.requests.clear()
    assert store.requests["open"] == reasons.count(K)
    assert found.equals(everything.filter(pl.sql_expr(where)))


def test_only_as_many_files_are_opened_as_the_first_rows_need(history: DeltaHistory) -> None:
    store = FarStorage(months(history).address)
    assert DeltaTable(store).scan().head(10).collect().height == 10
    assert store.requests["open"] == 1


def test_counting_rows_of_a_partition_reads_no_column(history: DeltaHistory) -> None:
    table = lv.open_table(months(history).address)
    assert table.scan().filter(pl.col("month") == 2).select(pl.len()).collect().item() == 10
    assert table.scan().select("month").collect()["month"].value_counts(sort=True)["count"].to_list() == [10] * 3


def test_a_scan_is_pinned_to_its_version(history: DeltaHistory) -> None:
    table = lv.open_table(months(history).address)
    rows, first = table.scan(), table.scan(1)
    history.commit(history.data("m4", {"day": pa.array([1], pa.int32()), "city": ["d"]}, partition={"month": "4"}))
    table.refresh()
    assert rows.collect().height == 30
    assert first.collect().height == 10
    assert table.scan().collect().height == 31


@pytest.mark.parametrize("address", ["in a folder", "in memory"], indirect=True)
def test_two_scans_of_the_same_files_may_be_read_in_turns(address: str) -> None:
    table = lv.open_table(months(DeltaHistory(address)).address)
    assert isinstance(table, DeltaTable)
    with table.storage.open("m1") as one, table.storage.open("m1") as other:
        begun = one.read(8)
        assert other.read(4) == begun[:4]
        assert one.read() == table.storage.read("m1")[8:]


REFUSED = {
    "an unknown column": ("planet = 3", "unknown-column", "there is no column planet"),
    "no condition": ("month = ", "bad-predicate", "is no condition"),
    "a statement": ("DROP TABLE x", "bad-predicate", "is no condition"),
    "nothing": ("", "bad-predicate", "is no condition"),
}


@pytest.mark.parametrize(("where", "kind", "words"), REFUSED.values(), ids=REFUSED)
def test_a_filter_that_cannot_be_meant_is_refused(history: DeltaHistory, where: str, kind: str, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words) as caught:
        lv.open_table(months(history).address).plan(where)
    assert caught.value.kind == kind
    assert caught.value.fix is not None
    assert caught.value.place == "where"


# -- rows


def test_a_column_the_file_lacks_is_null_and_one_the_schema_lacks_is_left_out(history: DeltaHistory) -> None:
    history.create({"new": "string", "x": "long"}).commit(history.data("f", {"x": [1, 2], "_extra": ["a", "b"]}))
    assert lv.open_table(history.address).scan().collect().rows() == [(None, 1), (None, 2)]


def test_columns_are_found_whatever_their_case_unless_one_fits_exactly(history: DeltaHistory) -> None:
    history.create({"X": "long", "Name": "string"}).commit(history.data("f", {"x": [1], "X": [2], "NAME": ["n"]}))
    assert lv.open_table(history.address).scan().collect().rows() == [(2, "n")]


def test_the_partition_value_of_the_log_wins_over_the_files(history: DeltaHistory) -> None:
    history.create({"p": "long", "x": "long"}, partition_by=("p",))
    history.commit(history.data("f", {"p": [7, 8], "x": [1, 2]}, partition={"p": "3"}))
    rows = lv.open_table(history.address).scan()
    assert rows.collect().rows() == [(3, 1), (3, 2)]
    assert rows.filter(pl.col("p") == 7).collect().height == 0


EARLY, LATE = (datetime.fromisoformat(text) for text in ("1500-01-01T00:00:00", "9999-12-31T23:59:59"))


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(
    ("unit", "int96"), [("ms", False), ("us", False), ("us", True)], ids=["milliseconds", "microseconds", "INT96"]
)
@pytest.mark.parametrize("zone", [None, "UTC"], ids=["without zone", "in UTC"])
def test_timestamps_of_every_encoding_are_microseconds(
    history: DeltaHistory, type_: str, unit: str, int96: bool, zone: str | None
) -> None:
    moments = [EARLY.replace(microsecond=5000), LATE.replace(microsecond=999000), None]
    values = pa.array(moments, pa.timestamp(unit, None)).cast(pa.timestamp(unit, zone), safe=False)
    history.create({"t": type_}).commit(history.data("f", {"t": values}, int96=int96))
    column = lv.open_table(history.address).scan().collect()["t"]
    expected = [m if m is None or type_ == "timestamp_ntz" else m.replace(tzinfo=UTC) for m in moments]
    assert column.to_list() == expected


def test_timestamps_in_nanoseconds_are_cut_to_microseconds(history: DeltaHistory) -> None:
    values = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))
    history.create({"t": "timestamp"}).commit(history.data("f", {"t": values}))
    assert lv.open_table(history.address).scan().collect()["t"].dt.epoch("us").to_list() == [1_700_000_000_123_456]


def test_narrower_numbers_are_widened(history: DeltaHistory) -> None:
    history.create({"a": "long", "b": "integer", "c": "double", "d": "double", "e": "decimal(20,4)"})
    history.commit(
        history.data(
            "f",
            {
                "a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int8()), "c": pa.array([0.5], pa.float32()),
                "d": pa.array([7], pa.int32()), "e": pa.array([1], pa.decimal128(5, 2)),
            },
        )
    )  # fmt: skip
    row = lv.open_table(history.address).scan().collect().row(0)
    assert row[:4] == (1, 2, 0.5, 7.0)
    assert str(row[4]) == "1.0000"


def test_a_value_too_large_for_its_column_is_a_designed_error(history: DeltaHistory) -> None:
    history.create({"a": "integer"}).commit(history.data("f", {"a": [2**40]}))
    with pytest.raises(UnsupportedTableError, match="column a is int64 in a file and integer in the schema") as caught:
        lv.open_table(history.address).scan().collect()
    assert (caught.value.kind, caught.value.place) == ("unsupported-cast", "a")
    assert caught.value.fix == "read the other columns, or a version from before the type changed"


def test_a_missing_data_file_is_named_only_when_rows_are_read(history: DeltaHistory) -> None:
    months(history).remove("m2")
    table = lv.open_table(history.address)
    assert table.snapshot().num_records == 30
    assert table.scan().filter(pl.col("month") != 2).collect().height == 20
    with pytest.raises(DataFileMissingError) as caught:
        table.scan().collect()
    assert caught.value.message == f"data file m2 is in the log of {history.address} but not in the store"
    assert caught.value.fix == "restore it, or read another version; table.versions() lists which are whole"
    assert (caught.value.kind, caught.value.place) == ("data-file-missing", "m2")
    reasons = dict(table.versions().select("version", "reason").iter_rows())
    assert reasons[3] == reasons[2] == "1 of its data files is missing from the store"
    assert reasons[1] is None


SPOILED = {"empty": lambda _: b"", "no Parquet": lambda _: b"x" * 99, "cut in half": lambda d: d[: len(d) // 2]}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=[f"a data file {words}" for words in SPOILED])
def test_a_broken_data_file_is_named(history: DeltaHistory, spoil: Any) -> None:
    months(history).write("m2", spoil((Path(history.address) / "m2").read_bytes()))
    with pytest.raises(CorruptTableError, match="data file m2 cannot be read: ") as caught:
        lv.open_table(history.address).scan().collect()
    assert (caught.value.kind, caught.value.place) == ("corrupt-data-file", "m2")
    assert caught.value.fix == "restore the file from a backup, or read a version without it"


def test_text_that_is_no_utf8_is_a_designed_error(history: DeltaHistory) -> None:
    bad = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    history.create({"x": "string"}).commit(history.data("f", {"x": bad}))
    with pytest.raises(CorruptTableError, match="data file f cannot be read"):
        lv.open_table(history.address).scan().collect()


# -- no row is ever lost

TEXTS = st.one_of(st.sampled_from(["", "a", "ab", "b", "B", "\u00e9", "\U0010ffff", "a" * 40]), st.text(max_size=3))
COLUMNS: dict[str, tuple[pl.DataType, st.SearchStrategy[Any]]] = {
    "i": (pl.Int32(), st.integers(-5, 5)),
    "l": (pl.Int64(), st.sampled_from([-(2**63), -(2**53) - 1, -1, 0, 1, 2**53 + 1, 2**63 - 1])),
    "d": (pl.Float64(), st.sampled_from([float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.1, -1.5, 1e300])),
    "s": (pl.String(), TEXTS),
    "b": (pl.Boolean(), st.booleans()),
    "day": (pl.Date(), st.sampled_from([FIRST - timedelta(days=1), FIRST, date(1, 1, 1), date(9999, 12, 31)])),
    "t": (
        pl.Datetime("us", "UTC"),
        st.sampled_from([datetime(2026, 1, 1, 0, 0, 0, us, tzinfo=UTC) for us in (0, 1, 999, 1000, 1001, 999_999)]),
    ),
    "p": (pl.Int32(), st.integers(1, 2)),
    "q": (pl.String(), st.sampled_from(["x", "y=/%", "\u00e9 "])),
}
PARTITIONS = ["p", "q"]


@st.composite
def frames(draw: st.DrawFn) -> list[pl.DataFrame]:
    """A few batches of rows, each written as a commit of its own."""
    batches = []
    for _ in range(draw(st.integers(1, 3))):
        height = draw(st.integers(1, 4))
        batches.append(
            pl.DataFrame(
                {
                    name: pl.Series(draw(st.lists(st.none() | values, min_size=height, max_size=height)), dtype=dtype)
                    for name, (dtype, values) in COLUMNS.items()
                }
            )
        )
    return batches


def literal(value: Any, dtype: pl.DataType) -> str:
    """A value as SQL text."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, date) and not isinstance(value, datetime):
        return f"DATE '{value.isoformat()}'"
    return str(value).upper() if isinstance(value, bool) else str(value)


@st.composite
def sql(draw: st.DrawFn) -> str:
    """A condition in SQL."""
    name = draw(st.sampled_from(["i", "l", "s", "p", "q", "i", "p"]))
    dtype, values = COLUMNS[name]
    kind = draw(st.sampled_from(["compare", "in", "between", "null", "like", "mirror", "not", "and", "or"]))
    one, other = (literal(draw(values.filter(_plain)), dtype) for _ in range(2))
    match kind:
        case "compare":
            return f"{name} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {one}"
        case "mirror":
            return f"{one} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {name}"
        case "in":
            return f"{name} {draw(st.sampled_from(['IN', 'NOT IN']))} ({one}, {other})"
        case "between":
            return f"{name} {draw(st.sampled_from(['', 'NOT ']))}BETWEEN {one} AND {other}"
        case "null":
            return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        case "like":
            text = draw(st.sampled_from(["a%", "%", "ab", "_", "%b", "\u00e9%", "x%", "y=/%"]))
            return f"{draw(st.sampled_from(['s', 'q']))} {draw(st.sampled_from(['', 'NOT ']))}LIKE '{text}'"
        case "not":
            return f"NOT ({draw(sql())})"
    return f"({draw(sql())}) {kind.upper()} ({draw(sql())})"


def _plain(value: Any) -> bool:
    """Whether SQL text can carry it: polars reads an integer below -(2**63) + 1 as a fraction."""
    return value != -(2**63) and not (isinstance(value, str) and "\0" in value)


@st.composite
def expressions(draw: st.DrawFn) -> pl.Expr:
    """A condition as a polars expression."""
    name = draw(st.sampled_from(list(COLUMNS)))
    dtype, values = COLUMNS[name]
    column = pl.col(name)
    one, other = (pl.lit(draw(values), dtype) for _ in range(2))
    kind = draw(st.integers(0, 15))
    match kind:
        case 0 | 1 | 2 | 3 | 4 | 5:
            sides = (column, one) if draw(st.booleans()) else (one, column)
            return [
                sides[0] == sides[1], sides[0] != sides[1], sides[0] < sides[1],
                sides[0] <= sides[1], sides[0] > sides[1], sides[0] >= sides[1],
            ][kind]  # fmt: skip
        case 6:
            chosen = pl.Series(draw(st.lists(st.none() | values, max_size=3)), dtype=dtype)
            return column.is_in(chosen.implode(), nulls_equal=draw(st.booleans()))
        case 7:
            ends: list[Literal["both", "left", "right", "none"]] = ["both", "left", "right", "none"]
            return column.is_between(one, other, closed=draw(st.sampled_from(ends)))
        case 8:
            return column.is_null() if draw(st.booleans()) else column.is_not_null()
        case 9:
            return pl.col("s").str.starts_with(draw(TEXTS))
        case 10:
            return column.eq_missing(one) if draw(st.booleans()) else column.ne_missing(one)
        case 11:
            return ~draw(expressions())
        case 12:
            return draw(expressions()) & draw(expressions())
        case 13:
            return draw(expressions()) | draw(expressions())
        case 14:
            return pl.col("b") if draw(st.booleans()) else pl.col("d").is_nan() ^ pl.col("b")
    return draw(expressions()).alias("renamed") if draw(st.booleans()) else (pl.col("i") + 1 > pl.col("p"))


def _table(folder: Path, batches: list[pl.DataFrame]) -> DeltaTable:
    schema = batches[0].to_arrow().schema
    table = lv.create_table(str(folder), schema, partition_by=PARTITIONS)
    assert isinstance(table, DeltaTable)
    for batch in batches:
        table.append(batch)
    return table


def _same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert sorted(map(repr, found.rows())) == sorted(map(repr, expected.rows()))


@given(batches=frames(), conditions=st.lists(sql(), min_size=8, max_size=8))
@settings(max_examples=20)
@pytest.mark.slow
def test_a_filter_in_sql_never_loses_a_row(
    tmp_path_factory: pytest.TempPathFactory, batches: list[pl.DataFrame], conditions: list[str]
) -> None:
    table = _table(tmp_path_factory.mktemp("t"), batches)
    everything = pl.concat(batches)
    for where in conditions:
        expected = everything.filter(pl.sql_expr(where))
        _same(table.scan().filter(pl.sql_expr(where)).collect(), expected)
        kept = table.plan(where).filter("kept")["path"].to_list()
        assert kept or expected.is_empty(), where


@given(batches=frames(), conditions=st.lists(expressions(), min_size=12, max_size=12))
@settings(max_examples=25)
@pytest.mark.slow
def test_a_filter_in_polars_never_loses_a_row(
    tmp_path_factory: pytest.TempPathFactory, batches: list[pl.DataFrame], conditions: list[pl.Expr]
) -> None:
    table = _table(tmp_path_factory.mktemp("t"), batches)
    everything = pl.concat(batches)
    for where in conditions:
        _same(table.scan().filter(where).collect(), everything.filter(where))


MISMATCHES = [
    "i = 1.5",
    "i > 0.5",
    "l > 1.5",
    "p < 1.5",
    "i = 3000000000",
    "p IN (1.5, 2)",
    "d > 1",
    "i IN (9999999999)",
]


@given(batches=frames())
@settings(max_examples=15)
@pytest.mark.slow
def test_a_constant_of_another_type_never_loses_a_row(
    tmp_path_factory: pytest.TempPathFactory, batches: list[pl.DataFrame]
) -> None:
    table = _table(tmp_path_factory.mktemp("t"), batches)
    everything = pl.concat(batches)
    for where in MISMATCHES:
        _same(table.scan().filter(pl.sql_expr(where)).collect(), everything.filter(pl.sql_expr(where)))


def test_a_fraction_in_the_file_below_a_widened_column_is_not_pruned_by_old_bounds(history: DeltaHistory) -> None:
    """Bounds of a file from before a column was widened are in the old type's text: still bounds."""
    history.commit(protocol(), metadata({"x": "integer"}))
    stats = {"numRecords": 1, "minValues": {"x": 5}, "maxValues": {"x": 5}, "nullCount": {"x": 0}}
    history.commit(history.data("f", {"x": pa.array([5], pa.int32())}, stats=stats))
    history.commit(metadata({"x": "double"}))
    table = lv.open_table(history.address)
    assert table.scan().filter(pl.col("x") == 5.0).collect().rows() == [(5.0,)]
    assert table.plan("x > 5.5").height == 1


def test_fields_of_structs_prune_as_columns_do(history: DeltaHistory) -> None:
    history.create({"s": struct(a="long", b="string")})
    for low in (0, 100):
        rows = pa.table({"s": [{"a": low, "b": "x"}, {"a": low + 9, "b": "y"}]})
        stats = {
            "numRecords": 2, "minValues": {"s": {"a": low}}, "maxValues": {"s": {"a": low + 9}},
            "nullCount": {"s": {"a": 0}},
        }  # fmt: skip
        history.commit(history.data(f"f{low}", rows, stats=stats))
    table = lv.open_table(history.address)
    where = pl.col("s").struct.field("a") > 50
    assert dict(table.plan(where).select("path", "reason").iter_rows()) == {"f0": "statistics", "f100": "kept"}
    assert table.scan().filter(where).collect().height == 2


def test_a_file_without_statistics_is_always_read(history: DeltaHistory) -> None:
    history.create({"x": "long"}).commit(history.data("f", {"x": [1]}), add("g", stats='{"numRecords":1}'))
    assert lv.open_table(history.address).plan("x > 5")["reason"].to_list() == ["kept", "kept"]


def test_a_file_whose_values_are_all_null_matches_no_comparison(history: DeltaHistory) -> None:
    stats = {"numRecords": 2, "nullCount": {"x": 2}}
    history.create({"x": "long"}).commit(add("f", stats=stats))
    table = lv.open_table(history.address)
    assert table.plan("x > 5")["reason"].to_list() == ["statistics"]
    assert table.plan("x IS NOT NULL")["reason"].to_list() == ["statistics"]
    assert table.plan("x IS NULL")["reason"].to_list() == ["kept"]


def test_a_task_travels_alone(history: DeltaHistory) -> None:
    table = lv.open_table(months(history).address)
    assert isinstance(table, DeltaTable)
    tasks = table.tasks(columns=["month", "day"], where="month = 2")
    copies = pickle.loads(pickle.dumps(tasks))
    batches = [batch for task in copies for batch in read_task(task)]
    assert sum(b.num_rows for b in batches) == 10
    assert batches[0].schema.names == ["month", "day"]
    with pytest.raises(InvalidRequestError, match="there is no column planet"):
        table.tasks(columns=["planet"])


def test_a_file_of_many_batches_is_read_whole(history: DeltaHistory) -> None:
    buffer = BytesIO()
    pq.write_table(pa.table({"x": range(200_000)}), buffer, row_group_size=30_000)
    history.create({"x": "long"}).write("f", buffer.getvalue()).commit(add("f"))
    rows = lv.open_table(history.address).scan()
    assert rows.select(pl.col("x").sum()).collect().item() == sum(range(200_000))
    assert rows.filter(pl.col("x") >= 199_990).head(3).collect()["x"].to_list() == [199_990, 199_991, 199_992]


@pytest.mark.parametrize("nulls_equal", [True, False])
def test_a_null_in_a_list_spares_no_file_that_polars_would_find_rows_in(tmp_path: Path, nulls_equal: bool) -> None:
    rows = pl.DataFrame({"i": [0]}, schema={"i": pl.Int32()})
    table = lv.create_table(str(tmp_path / "t"), rows.to_arrow().schema)
    assert isinstance(table, DeltaTable)
    table.append(rows)
    for chosen in ([None], [1, None], [0, None]):
        where = ~pl.col("i").is_in(pl.Series(chosen, dtype=pl.Int32).implode(), nulls_equal=nulls_equal)
        _same(table.scan().filter(where).collect(), rows.filter(where))
