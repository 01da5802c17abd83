"""deltalake reads what we write, and we read what deltalake writes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeview as lv
from lakeview.delta.table import DeltaTable
from tests.builders.history import DeltaHistory

MOMENT = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
EVERY_TYPE = pl.DataFrame(
    {
        "string": ["a", None, "\u00e9\u4e2d\U0001f600", ""],
        "long": [1, None, -(2**63), 2**63 - 1],
        "integer": pl.Series([1, None, -(2**31), 2**31 - 1], dtype=pl.Int32),
        "short": pl.Series([1, None, -32768, 32767], dtype=pl.Int16),
        "byte": pl.Series([1, None, -128, 127], dtype=pl.Int8),
        "float": pl.Series([1.5, None, float("inf"), -0.25], dtype=pl.Float32),
        "double": [1.5, None, float("-inf"), 1e300],
        "boolean": [True, None, False, True],
        "binary": [b"\x00\xff", None, b"", b"x"],
        "date": [date(2026, 3, 1), None, date(1, 1, 1), date(9999, 12, 31)],
        "timestamp": [MOMENT, None, datetime(1600, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)],
        "local": [MOMENT.replace(tzinfo=None), None, datetime.fromisoformat("1600-01-01"), MOMENT.replace(tzinfo=None)],
        "decimal": pl.Series([Decimal("1.50"), None, Decimal("-9.99"), Decimal("0.00")], dtype=pl.Decimal(38, 2)),
        "list": [[1, None], None, [], [2]],
        "struct": [{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}, {"a": 2, "b": []}],
    }
)
ARROW = EVERY_TYPE.to_arrow().cast(
    pa.schema([f.with_type(_narrow) if (_narrow := {
        "string": pa.string(), "binary": pa.binary(), "list": pa.list_(pa.int64()),
        "struct": pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]),
    }.get(f.name)) else f for f in EVERY_TYPE.to_arrow().schema])
)  # fmt: skip


def read(address: object, version: int | None = None) -> pl.DataFrame:
    """A table's rows as deltalake reads them."""
    table = deltalake.DeltaTable(str(address), version=version)
    frame = pl.from_arrow(table.to_pyarrow_dataset().to_table())
    assert isinstance(frame, pl.DataFrame)
    return frame


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert sorted(one.columns) == sorted(other.columns)
    assert sorted(map(repr, one.rows())) == sorted(map(repr, other.select(one.columns).rows()))


def ours(address: object, schema: Any, **more: Any) -> DeltaTable:
    table = lv.create_table(str(address), schema, **more)
    assert isinstance(table, DeltaTable)
    return table


# -- what we write


def test_every_type_we_write_is_read(tmp_path: Path) -> None:
    table = ours(tmp_path, ARROW.schema)
    table.append(ARROW)
    same(table.scan().collect(), EVERY_TYPE)
    same(read(tmp_path), EVERY_TYPE)


SPECIAL = [
    "plain",
    "a b",
    "a/b",
    "a=b",
    "100%",
    "a%20b",
    "\u00e9",
    "a+b",
    "a:b",
    "'q\"",
    "x\\y",
    "#?&",
    "\t",
    "..",
    "*",
]


@pytest.mark.parametrize("checkpointed", [False, True], ids=["from commits", "from a checkpoint"])
def test_partitions_of_special_characters_are_read(tmp_path: Path, checkpointed: bool) -> None:
    frame = pl.DataFrame({"p": [*SPECIAL, None], "x": range(len(SPECIAL) + 1)})
    table = ours(tmp_path, frame.to_arrow().schema, partition_by=["p"], properties={"delta.checkpointInterval": "1"})
    table.append(frame)
    if checkpointed:
        DeltaHistory(tmp_path).without(0, 1)
    same(lv.open_table(str(tmp_path)).scan().collect(), frame)
    same(read(tmp_path), frame)
    for value in SPECIAL:
        assert lv.open_table(str(tmp_path)).scan().filter(pl.col("p") == value).collect().height == 1


PARTITION_TYPES = ["long", "integer", "short", "byte", "boolean", "date", "timestamp", "local", "decimal", "double"]


@pytest.mark.parametrize("column", PARTITION_TYPES)
def test_partition_values_of_every_type_are_read(tmp_path: Path, column: str) -> None:
    frame = EVERY_TYPE.select(column, x=pl.int_range(4))
    if column == "decimal":  # deltalake 1.6 reads the partition value -9.99 as "-9.-99"
        frame = frame.with_columns(pl.col(column).abs())
    table = ours(tmp_path, frame.to_arrow().schema, partition_by=[column])
    table.append(frame)
    same(lv.open_table(str(tmp_path)).scan().collect(), frame)
    same(read(tmp_path), frame)


def test_a_long_history_with_checkpoints_is_read_at_every_version(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [0], "city": ["Rome"]})
    table = ours(tmp_path, frame.to_arrow().schema, partition_by=["city"])
    for i in range(1, 13):
        row = frame.with_columns(id=pl.lit(i, pl.Int64), city=pl.lit("Rome" if i % 2 else "Oslo"))
        if i % 5:
            table.append(row)
        else:
            table.overwrite(row, where=f"city = '{row['city'][0]}'")
    for version in range(13):
        same(read(tmp_path, version), table.scan(version).collect())
    history = deltalake.DeltaTable(str(tmp_path)).history()
    assert [h["operation"] for h in history] == ["WRITE"] * 12 + ["CREATE TABLE"]
    DeltaHistory(tmp_path).without(*range(10))
    same(read(tmp_path), table.scan().collect())


def test_deltalake_goes_on_where_we_stopped_and_we_where_it_did(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [1], "city": ["Rome"]})
    table = ours(tmp_path, frame.to_arrow().schema, partition_by=["city"])
    table.append(frame)
    for i in range(2, 24):
        row = frame.with_columns(id=pl.lit(i, pl.Int64))
        if i % 2:
            table.append(row)
        else:
            deltalake.write_deltalake(str(tmp_path), row.to_arrow(), mode="append")
    table.refresh()
    assert table.latest_version == 23
    assert sorted(table.scan().collect()["id"]) == list(range(1, 24))
    assert sorted(read(tmp_path)["id"]) == list(range(1, 24))
    assert table.versions()["readable"].all()


def test_statistics_we_write_prune_right_for_others(tmp_path: Path) -> None:
    table = ours(tmp_path, ARROW.schema)
    for i in range(4):
        table.append(ARROW.slice(i, 1))
    actions = pl.DataFrame(deltalake.DeltaTable(str(tmp_path)).get_add_actions(flatten=True))
    assert actions["num_records"].to_list() == [1] * 4
    for column in ("long", "string", "date", "decimal", "timestamp", "double"):
        for value in EVERY_TYPE[column].drop_nulls():
            if value == float("-inf"):
                continue
            dataset = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_dataset()
            condition = ds.field(column) == pa.scalar(value, ARROW.schema.field(column).type)
            assert dataset.to_table(filter=condition).num_rows == 1, (column, value)


# -- what deltalake writes


def test_every_type_deltalake_writes_is_read(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), ARROW)
    table = lv.open_table(str(tmp_path))
    same(table.scan().collect(), EVERY_TYPE)
    assert table.snapshot().num_records == 4
    statistics = table.statistics().row(0, named=True)
    assert (statistics["long"]["min"], statistics["long"]["max"]) == (-(2**63), 2**63 - 1)
    assert statistics["decimal"]["min"] == Decimal("-9.99")
    assert statistics["integer"]["null_count"] == 1


def test_a_story_deltalake_tells_is_read_at_every_version(tmp_path: Path) -> None:
    address = str(tmp_path)
    frame = pl.DataFrame({"id": range(6), "city": ["a b", "\u00e9%", None, "a b", "x/y", ""]})
    deltalake.write_deltalake(
        address,
        frame.to_arrow(),
        partition_by=["city"],
        configuration={"delta.logRetentionDuration": "interval 9 days"},
    )
    deltalake.write_deltalake(address, frame.with_columns(pl.col("id") + 10).to_arrow(), mode="append")
    their = deltalake.DeltaTable(address)
    their.delete("id = 3")
    their.update(predicate="id = 12", updates={"id": "99"})
    their.optimize.compact()
    their.create_checkpoint()
    deltalake.write_deltalake(
        address, frame.with_columns(price=pl.lit(1.5)).to_arrow(), mode="append", schema_mode="merge"
    )
    deltalake.write_deltalake(
        address, frame.head(1).with_columns(price=pl.lit(2.5)).to_arrow(), mode="overwrite", predicate="city = 'a b'"
    )
    table = lv.open_table(address)
    newest = deltalake.DeltaTable(address).version()
    assert table.latest_version == newest
    for version in range(newest + 1):
        same(table.scan(version).collect(), read(address, version))
        theirs = deltalake.DeltaTable(address, version=version)
        assert table.snapshot(version).num_files == len(theirs.file_uris())
    history = deltalake.DeltaTable(address).history()
    assert table.history()["operation"].to_list() == [h["operation"] for h in history]
    assert table.history()["timestamp"].dt.epoch("ms").is_sorted(descending=True)
    assert table.snapshot().properties == {"delta.logRetentionDuration": "interval 9 days"}
    assert table.snapshot().schema.names == ["id", "city", "price"]
    DeltaHistory(address).without(*range(4))
    same(lv.open_table(address).scan().collect(), read(address))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 99), st.sampled_from(["a", "b", "c d"])),
        st.tuples(st.just("overwrite"), st.integers(0, 99), st.sampled_from(["a", "b", "c d"])),
        st.tuples(st.just("delete"), st.integers(0, 99), st.sampled_from(["a", "b", "c d"])),
        st.tuples(st.just("checkpoint"), st.just(0), st.just("")),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@given(steps=STEPS, turns=st.lists(st.booleans(), min_size=8, max_size=8))
@settings(max_examples=8)
def test_both_engines_take_turns_and_see_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]], turns: list[bool]
) -> None:
    address = str(tmp_path_factory.mktemp("turns"))
    table = ours(address, pa.schema([("n", "int64"), ("p", "string")]), partition_by=["p"])
    expected: list[tuple[int, str]] = []
    for (what, number, part), mine in zip(steps, turns, strict=False):
        row = pl.DataFrame({"n": [number], "p": [part]})
        match what, mine:
            case "append", True:
                table.append(row)
            case "append", False:
                deltalake.write_deltalake(address, row.to_arrow(), mode="append")
            case "overwrite", True:
                table.overwrite(row, where=f"p = '{part}'")
            case "overwrite", False:
                deltalake.write_deltalake(address, row.to_arrow(), mode="overwrite", predicate=f"p = '{part}'")
            case "delete", True:
                with table.transaction("DELETE") as txn:
                    txn.remove(f"p = '{part}'")
            case "delete", False:
                deltalake.DeltaTable(address).delete(f"p = '{part}'")
            case "checkpoint", _:
                deltalake.DeltaTable(address).create_checkpoint()
        if what in ("overwrite", "delete"):
            expected = [r for r in expected if r[1] != part]
        if what in ("append", "overwrite"):
            expected.append((number, part))
        fresh = lv.open_table(address)
        assert sorted(fresh.scan().collect().select("n", "p").rows()) == sorted(expected)
        assert sorted(read(address).select("n", "p").rows()) == sorted(expected)
        table.refresh()
        assert table.snapshot().num_records == len(expected)


def test_in_commit_timestamps_of_ours_are_theirs(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [1]})
    begun = datetime(2025, 1, 1, tzinfo=UTC)
    table = ours(
        tmp_path, frame.to_arrow().schema, properties={"delta.enableInCommitTimestamps": "true"}, clock=lambda: begun
    )
    with table.transaction(clock=lambda: begun + timedelta(days=3)) as txn:
        txn.append(frame)
    history = deltalake.DeltaTable(str(tmp_path)).history()
    assert [h["timestamp"] for h in reversed(history)] == table.history().sort("version")["timestamp"].dt.epoch(
        "ms"
    ).to_list()
