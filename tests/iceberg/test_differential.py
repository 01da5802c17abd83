"""Generated histories, written by pyiceberg: it and we must see the same snapshots, files and rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from lakeview.iceberg.table import open_iceberg
from tests.golden.rows import differences

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records:UserWarning"),
]

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "cat", StringType()),
    NestedField(3, "v", DoubleType()),
    NestedField(4, "d", DateType()),
    NestedField(5, "t", TimestampType()),
    NestedField(6, "z", TimestamptzType()),
    NestedField(7, "m", DecimalType(12, 3)),
    NestedField(8, "n", IntegerType()),
)
ARROW = pa.schema(
    [
        ("id", pa.int64()), ("cat", pa.string()), ("v", pa.float64()), ("d", pa.date32()), ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", "UTC")), ("m", pa.decimal128(12, 3)), ("n", pa.int32()),
    ]
)  # fmt: skip
START = datetime(1969, 12, 20, 5, tzinfo=UTC)

SPECS: dict[str, list[tuple[int, Transform[Any, Any]]]] = {
    "unpartitioned": [],
    "identity": [(2, IdentityTransform())],
    "bucket and day": [(1, BucketTransform(4)), (6, DayTransform())],
    "month and truncated text": [(4, MonthTransform()), (2, TruncateTransform(2))],
    "hour": [(5, HourTransform())],
    "year and truncated decimal": [(5, YearTransform()), (7, TruncateTransform(50))],
    "bucketed decimal": [(7, BucketTransform(3))],
}


def rows(chance: random.Random, number: int) -> pa.Table:
    def row(i: int) -> dict[str, Any]:
        when = START + timedelta(hours=chance.randrange(24 * 60), microseconds=chance.randrange(10**6))
        found = {
            "id": i, "cat": chance.choice(["a", "bb", "ccc", "ünï", ""]),
            "v": chance.choice([0.0, -1.5, float("nan"), 1e300]),
            "d": when.date(), "t": when.replace(tzinfo=None), "z": when,
            "m": Decimal(chance.randrange(-99999, 99999)) / 1000,
            "n": chance.randrange(-5, 5),
        }  # fmt: skip
        return {k: None if k != "id" and chance.random() < 0.1 else v for k, v in found.items()}

    return pa.Table.from_pylist([row(chance.randrange(1000)) for _ in range(number)], schema=ARROW)


def history(table: Table, chance: random.Random) -> Iterator[str]:
    """Eight commits of every kind that the library writes."""
    table.append(rows(chance, 20))
    yield "append"
    for _ in range(7):
        kind = chance.choice(["append", "delete", "overwrite", "rename", "add", "widen", "spec"])
        match kind:
            case "delete":
                table.delete("id >= 200 and id < 400")
            case "overwrite":
                table.overwrite(arrow(table, chance, 5), overwrite_filter="id = 7")
            case "rename" if "cat" in names(table):
                with table.update_schema() as change:
                    change.rename_column("cat", "category")
            case "add" if "extra" not in names(table):
                with table.update_schema() as change:
                    change.add_column("extra", StringType())
            case "widen":
                with table.update_schema() as change:
                    change.update_column("n", field_type=LongType())
            case "spec" if "id_bucket_new" not in {f.name for f in table.spec().fields}:
                with table.update_spec() as spec:
                    spec.add_field("id", BucketTransform(7), "id_bucket_new")
            case _:
                table.append(arrow(table, chance, 8))
        yield kind


def names(table: Table) -> set[str]:
    return {f.name for f in table.schema().fields}


def arrow(table: Table, chance: random.Random, number: int) -> pa.Table:
    """New rows under the names and types the columns have by now."""
    made = rows(chance, number)
    if "category" in names(table):
        made = made.rename_columns([{"cat": "category"}.get(n, n) for n in made.column_names])
    if "extra" in names(table):
        made = made.append_column("extra", pa.array(["x"] * number))
    if table.schema().find_field("n").field_type == LongType():
        made = made.set_column(made.column_names.index("n"), "n", made["n"].cast(pa.int64()))
    return made


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[InMemoryCatalog]:
    found = InMemoryCatalog("test", warehouse=str(tmp_path / "warehouse"))
    found.create_namespace("db")
    yield found
    found.close()


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("seed", [1, 2])
def test_what_another_writer_wrote_is_read_as_it_reads_it(catalog: InMemoryCatalog, name: str, seed: int) -> None:
    chance = random.Random(f"{name} {seed}")
    spec = PartitionSpec(*[PartitionField(i, 1000 + p, t, f"p{p}") for p, (i, t) in enumerate(SPECS[name])])
    theirs = catalog.create_table("db.t", schema=SCHEMA, partition_spec=spec, properties={"format-version": "2"})
    address = theirs.location().removeprefix("file://")
    done = list(history(theirs, chance))
    ours = open_iceberg(address)
    told = ours.history().sort("position")
    assert told["version"].to_list() == [s.snapshot_id for s in theirs.metadata.snapshots], done
    same_rows(theirs, ours.scan().collect(), None, done)
    for snapshot in theirs.metadata.snapshots:
        same_rows(theirs, ours.scan(snapshot.snapshot_id).collect(), snapshot.snapshot_id, done)
        files = theirs.inspect.files(snapshot.snapshot_id)
        mine = ours.snapshot(snapshot.snapshot_id)
        assert mine.num_files == files.num_rows
        assert mine.num_records == sum(files["record_count"].to_pylist())
        assert sorted(mine.files["path"]) == sorted(files["file_path"].to_pylist())
    for where, condition in filters(theirs):
        frame = ours.scan().filter(where).collect()
        expected = theirs.scan(row_filter=condition).to_arrow()
        assert not differences(expected, frame), (done, where)
        kept = set(ours.plan(where).filter("kept")["path"])
        assert kept <= {str(p) for p in ours.files(columns=["path"])["path"]}
        needed = {t.file.file_path for t in theirs.scan(row_filter=condition).plan_files()}
        assert kept <= needed, (done, where, "the other reader spares more files")


def same_rows(theirs: Table, found: pl.DataFrame, snapshot_id: int | None, done: list[str]) -> None:
    wanted = theirs.scan(snapshot_id=snapshot_id).to_arrow()
    assert not differences(wanted, found), (done, snapshot_id)


def filters(table: Table) -> list[tuple[pl.Expr, str]]:
    """The same conditions, for us and for the other reader."""
    day, month = date(1969, 12, 31), START + timedelta(days=10)
    cat = "category" if "category" in names(table) else "cat"
    return [
        (pl.col("id") == 7, "id = 7"),
        (pl.col(cat) == "bb", f"{cat} = 'bb'"),
        (pl.col("d") < day, f"d < '{day}'"),
        ((pl.col("id") >= 500) & (pl.col("d") >= day), f"id >= 500 and d >= '{day}'"),
        (pl.col("z") >= month, f"z >= '{month.isoformat()}'"),
        (pl.col("m") < Decimal("0.000"), "m < 0.000"),
    ]
