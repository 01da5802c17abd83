"""Stories to Iceberg tables by pyiceberg: what happens to a table, one step after another, drawn by hypothesis."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
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
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from lakeview.demo.position_deletes import delete_positions

# the ids that a catalog gives anew: the columns first, then what is inside them
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "cat", StringType()),
    NestedField(3, "v", DoubleType()),
    NestedField(4, "d", DateType()),
    NestedField(5, "t", TimestampType()),
    NestedField(6, "z", TimestamptzType()),
    NestedField(7, "m", DecimalType(12, 3)),
    NestedField(8, "n", IntegerType()),
    NestedField(9, "f", FloatType()),
    NestedField(10, "yes", BooleanType()),
    NestedField(11, "data", BinaryType()),
    NestedField(
        12,
        "inner",
        StructType(NestedField(14, "a", IntegerType()), NestedField(15, "l", ListType(16, StringType(), False))),
    ),
    NestedField(13, "pairs", MapType(17, StringType(), 18, LongType(), False)),
)
START = datetime(1969, 12, 20, 5, tzinfo=UTC)

SPECS: Mapping[str, list[tuple[int, Transform[Any, Any]]]] = {
    "unpartitioned": [],
    "identity": [(2, IdentityTransform())],
    "bucket, hour and truncated text": [(1, BucketTransform(4)), (5, HourTransform()), (2, TruncateTransform(2))],
    "month, day and truncated decimal": [(4, MonthTransform()), (6, DayTransform()), (7, TruncateTransform(50))],
    "year, day, bucketed decimal and a flag": [
        (5, YearTransform()),
        (4, DayTransform()),
        (7, BucketTransform(3)),
        (10, IdentityTransform()),
    ],
}
"""Name -> (source field id, transform): each transform once, in as few tables as can be."""


@dataclass(frozen=True)
class Step:
    """One thing that happens; `seed` decides on the details."""

    what: str
    seed: int


@dataclass(frozen=True)
class Story:
    """What a table is made with (a name of SPECS), and its steps."""

    spec: str
    version: int
    steps: tuple[Step, ...]


def stories(max_steps: int) -> st.SearchStrategy[Story]:
    """Stories of up to so many steps."""
    step = st.builds(Step, st.sampled_from(tuple(STEPS)), st.integers(0, 60))
    steps = st.lists(step, min_size=1, max_size=max_steps).map(tuple)
    # Version 1 has no delete files and no branches worth the name, and is still what many tables began with.
    return st.builds(Story, st.sampled_from(tuple(SPECS)), st.sampled_from((1, 2, 2, 2)), steps)


def some_rows(seed: int, number: int) -> list[dict[str, Any]]:
    """Rows that depend on the seed alone, in the columns of SCHEMA; every one but the id has nulls somewhere."""
    chance = random.Random(seed)

    def row() -> dict[str, Any]:
        when = START + timedelta(hours=chance.randrange(24 * 60), microseconds=chance.randrange(10**6))
        values = {
            "id": chance.randrange(1000), "cat": chance.choice(["a", "bb", "ccc", "ünï", "", "100%/x=y z"]),
            "v": chance.choice([0.0, -0.0, -1.5, float("nan"), 1e300, float("-inf")]),
            "d": when.date(), "t": when.replace(tzinfo=None), "z": when,
            "m": Decimal(chance.randrange(-99999, 99999)) / 1000, "n": chance.randrange(-5, 5),
            "f": chance.choice([0.5, float("nan"), -2.25]), "yes": chance.random() < 0.5,
            "data": chance.choice([b"", b"\x00\xff", b"abc" * 20]),
            "inner": {"a": chance.choice([None, 1, -7]), "l": chance.choice([None, [], ["x", None]])},
            "pairs": chance.choice([[], [("k", 1), ("l", None)]]),
        }  # fmt: skip
        return {k: None if k != "id" and chance.random() < 0.1 else v for k, v in values.items()}

    return [row() for _ in range(number)]


def arrow(table: Table, seed: int, number: int) -> pa.Table:
    """New rows under the names and types that the columns have by now; columns that came later hold the seed."""
    by_id = {f.field_id: f.name for f in SCHEMA.fields}
    arrays = []
    for row in some_rows(seed, number):
        columns: dict[str, Any] = {}
        for field in table.schema().fields:
            old = by_id.get(field.field_id)
            columns[field.name] = _later(field.field_type, seed) if old is None else row[old]
            if old == "inner" and row["inner"] is not None:
                columns[field.name] = _inner(field.field_type, row["inner"], seed)
        arrays.append(columns)
    return pa.Table.from_pylist(arrays, schema=schema_to_pyarrow(table.schema(), include_field_ids=False))


def _later(type_: Any, seed: int) -> Any:
    return f"later {seed}" if isinstance(type_, StringType) else seed


def _inner(type_: Any, value: dict[str, Any], seed: int) -> dict[str, Any]:
    old = {14: "a", 15: "l"}
    return {f.name: value[old[f.field_id]] if f.field_id in old else _later(f.field_type, seed) for f in type_.fields}


@contextmanager
def table_of(story: Story, folder: Path) -> Iterator[Table]:
    """The table that a story ends with, in a folder of its own below `folder`."""
    catalog = InMemoryCatalog("test", warehouse=str(folder))
    try:
        catalog.create_namespace("db")
        spec = PartitionSpec(*[PartitionField(i, 1000 + p, t, f"p{p}") for p, (i, t) in enumerate(SPECS[story.spec])])
        table = catalog.create_table("db.t", SCHEMA, str(folder / "t"), spec, properties=_version(story.version))
        table.append(arrow(table, 1, 20))
        for number, step in enumerate(story.steps):
            STEPS[step.what](table, step.seed + number)
        yield table
    finally:
        catalog.close()


def _version(version: int) -> dict[str, str]:
    return {"format-version": str(version)}


def _name(table: Table, field_id: int) -> str:
    """A column's name by now; the dropped ones of SCHEMA are never asked for."""
    name = table.schema().find_column_name(field_id)
    assert name is not None
    return name


def _append(table: Table, seed: int) -> None:
    table.append(arrow(table, seed, seed % 9 + 1))


def _delete(table: Table, seed: int) -> None:
    table.delete(f"id >= {seed * 10} and id < {seed * 10 + 300}")


def _delete_a_part(table: Table, seed: int) -> None:
    table.delete(f"{_name(table, 2)} = '{'bb' if seed % 2 else 'ccc'}'")


def _delete_positions(table: Table, seed: int) -> None:
    """Some rows of every file of the newest spec, by number; version 1 has no such deletes."""
    if table.format_version < 2 or table.current_snapshot() is None:
        return
    files = [t.file for t in table.scan().plan_files() if t.file.spec_id == table.spec().spec_id]
    positions = {f: [n for n in range(f.record_count) if (n + seed) % 4 == 0] for f in files}
    targets = {f: rows for f, rows in positions.items() if rows}
    if targets:
        delete_positions(table, targets, {})


def _overwrite(table: Table, seed: int) -> None:
    table.overwrite(arrow(table, seed, 5), overwrite_filter=f"id < {seed * 10}")


def _overwrite_all(table: Table, seed: int) -> None:
    table.overwrite(arrow(table, seed, 4))


def _overwrite_partitions(table: Table, seed: int) -> None:
    """Those that the new rows fall into; the library does it for identities only."""
    if table.spec().fields and all(isinstance(f.transform, IdentityTransform) for f in table.spec().fields):
        table.dynamic_partition_overwrite(arrow(table, seed, 3))


def _rename(table: Table, seed: int) -> None:
    with table.update_schema() as change:
        for field_id in (2, 14) if seed % 2 else (3,):
            change.rename_column(_name(table, field_id), f"renamed_{field_id}_{seed}")


def _add(table: Table, seed: int) -> None:
    if f"extra {seed % 3}" in table.schema().column_names:
        return
    with table.update_schema() as change:
        change.add_column(f"extra {seed % 3}", StringType() if seed % 2 else LongType(), doc="later")


def _add_inside(table: Table, seed: int) -> None:
    with table.update_schema() as change:
        inner = _name(table, 12)
        if f"{inner}.more{seed % 2}" not in table.schema().column_names:
            change.add_column((inner, f"more{seed % 2}"), StringType())


def _drop(table: Table, seed: int) -> None:
    """A column that came later, so that the story can go on with the others."""
    later = [f.name for f in table.schema().fields if f.field_id > 18]
    if later:
        with table.update_schema() as change:
            change.delete_column((later[seed % len(later)],))


def _move(table: Table, seed: int) -> None:
    with table.update_schema() as change:
        change.move_first(_name(table, (8, 4, 12)[seed % 3]))


_WIDER: Mapping[int, PrimitiveType] = {8: LongType(), 9: DoubleType(), 7: DecimalType(20, 3)}


def _widen(table: Table, seed: int) -> None:
    field_id = tuple(_WIDER)[seed % 3]
    with table.update_schema() as change:
        change.update_column(_name(table, field_id), field_type=_WIDER[field_id])


def _new_spec(table: Table, seed: int) -> None:
    source, transform = ((1, BucketTransform(7)), (10, IdentityTransform()), (1, TruncateTransform(100)))[seed % 3]
    if any(f.source_id == source for f in table.spec().fields):
        return  # pyiceberg writes no rows for two partition fields of one column
    with table.update_spec() as change:
        change.add_field(_name(table, source), transform, f"new{seed % 3}")


def _less_spec(table: Table, seed: int) -> None:
    fields = table.spec().fields
    if fields:
        with table.update_spec() as change:
            change.remove_field(fields[seed % len(fields)].name)


def _branch(table: Table, seed: int) -> None:
    """Rows on a branch that may be new."""
    name, head = f"branch {seed % 2}", table.current_snapshot()
    if head is None:
        return
    if name not in table.refs():
        table.manage_snapshots().create_branch(head.snapshot_id, name).commit()
    table.append(arrow(table, seed, 3), branch=name)


def _tag(table: Table, seed: int) -> None:
    head = table.current_snapshot()
    if head is not None and f"tag {seed}" not in table.refs():
        table.manage_snapshots().create_tag(head.snapshot_id, f"tag {seed}").commit()


def _roll_back(table: Table, seed: int) -> None:
    head = table.current_snapshot()
    if head is not None and head.parent_snapshot_id is not None:
        table.manage_snapshots().rollback_to_snapshot(head.parent_snapshot_id).commit()


def _upgrade(table: Table, _: int) -> None:
    if table.format_version < 2:
        with table.transaction() as transaction:
            transaction.upgrade_table_version(2)


STEPS: Mapping[str, Callable[[Table, int], None]] = {
    "append": _append,
    "append more": _append,
    "delete": _delete,
    "delete a part": _delete_a_part,
    "delete positions": _delete_positions,
    "delete more positions": _delete_positions,
    "overwrite": _overwrite,
    "overwrite all": _overwrite_all,
    "overwrite partitions": _overwrite_partitions,
    "rename": _rename,
    "add a column": _add,
    "add a column inside": _add_inside,
    "drop a column": _drop,
    "move a column": _move,
    "widen": _widen,
    "partition by more": _new_spec,
    "partition by less": _less_spec,
    "branch": _branch,
    "tag": _tag,
    "roll back": _roll_back,
    "upgrade": _upgrade,
}
