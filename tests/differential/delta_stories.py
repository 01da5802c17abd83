"""Stories to Delta tables by deltalake: what happens to a table, one step after another, drawn by hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from deltalake.transaction import CommitProperties
from hypothesis import strategies as st

PARTS = ("a", "b c", "100%/x=y", "\u00e9", "")
"""Values of the partition column; the empty one is null in Delta."""

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("number", pa.int32()),
        ("price", pa.float64()),
        ("amount", pa.decimal128(10, 2)),
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("inner", pa.struct([("a", pa.int64()), ("names", pa.list_(pa.string()))])),
        ("data", pa.binary()),
    ]
)
_TEXTS = (None, "", "x", "a longer text that goes on beyond thirty-two characters", "\U0001f600", 'it\'s "quoted"\\')
_AT = datetime(2024, 2, 29, 23, 59, 59, 123456, UTC)


def some_rows(seed: int, count: int) -> pa.Table:
    """Rows that depend on the seed alone; every column but the id has nulls somewhere."""
    rows: list[dict[str, Any]] = []
    for i in range(count):
        n = seed * 31 + i * 7
        rows.append(
            {
                "id": seed * 100 + i,
                "part": PARTS[n % len(PARTS)] or None,
                "number": None if n % 5 == 0 else n % 1000 - 500,
                "price": None if n % 7 == 0 else n / 8 - 10,
                "amount": None if n % 6 == 0 else Decimal(n % 2000 - 1000) / 100,
                "text": _TEXTS[n % len(_TEXTS)],
                "flag": (None, True, False)[n % 3],
                "day": None if n % 4 == 0 else (_AT + timedelta(days=n)).date(),
                "at": None if n % 9 == 0 else _AT + timedelta(hours=n, microseconds=n),
                "inner": None if n % 8 == 0 else {"a": n, "names": [None, "q"][: n % 3]},
                "data": None if n % 10 == 0 else bytes([n % 256]) * (n % 4),
            }
        )
    return pa.Table.from_pylist(rows, SCHEMA)


@dataclass(frozen=True)
class Step:
    """One thing that happens; `seed` decides on the details."""

    what: str
    seed: int


STEPS = (
    "append", "append", "append widened", "delete", "delete a part", "update", "merge", "overwrite", "overwrite a part",
    "compact", "add a column", "set a property", "checkpoint", "restore", "clean up",
)  # fmt: skip


@dataclass(frozen=True)
class Story:
    """What a table is made with, and its steps."""

    partitioned: bool
    change_feed: bool
    steps: tuple[Step, ...]


def stories(max_steps: int, what: tuple[str, ...] = STEPS) -> st.SearchStrategy[Story]:
    """Stories of up to so many of these steps."""
    step = st.builds(Step, st.sampled_from(what), st.integers(0, 60))
    steps = st.lists(step, min_size=1, max_size=max_steps).map(tuple)
    return st.builds(Story, st.booleans(), st.booleans(), steps)


def tell(story: Story, address: str) -> None:
    """Make the table that a story ends with."""
    deltalake.write_deltalake(
        address,
        some_rows(1, 12),
        partition_by=["part"] if story.partitioned else None,
        configuration={"delta.enableChangeDataFeed": "true"} if story.change_feed else None,
    )
    for number, step in enumerate(story.steps):
        _STEPS[step.what](deltalake.DeltaTable(address), address, step.seed, number)


def _append(_: deltalake.DeltaTable, address: str, seed: int, number: int) -> None:
    properties = CommitProperties(custom_metadata={"told": str(number)})
    rows = some_rows(seed + number, seed % 6 + 1)
    # a table that has got columns since takes rows without them
    deltalake.write_deltalake(address, rows, mode="append", schema_mode="merge", commit_properties=properties)


def _append_widened(_: deltalake.DeltaTable, address: str, seed: int, number: int) -> None:
    rows = some_rows(seed, 3).append_column(f"more {seed % 3}", pa.array([None, seed, number], pa.int64()))
    deltalake.write_deltalake(address, rows, mode="append", schema_mode="merge")


def _delete(table: deltalake.DeltaTable, _: str, seed: int, __: int) -> None:
    table.delete(f"id % {seed % 4 + 2} = 0")


def _delete_part(table: deltalake.DeltaTable, _: str, seed: int, __: int) -> None:
    part = PARTS[seed % len(PARTS)]
    table.delete(f"part = '{part}'" if part else "part IS NULL")


def _update(table: deltalake.DeltaTable, _: str, seed: int, __: int) -> None:
    table.update(predicate=f"id % {seed % 5 + 2} = 1", updates={"number": str(seed), "text": "'updated'"})


def _merge(table: deltalake.DeltaTable, _: str, seed: int, __: int) -> None:
    source = some_rows(seed % 8, 8)
    columns = {name: f"s.{name}" for name in source.schema.names}
    merger = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merger.when_matched_update({"number": "s.number"}).when_not_matched_insert(columns).execute()


def _overwrite(_: deltalake.DeltaTable, address: str, seed: int, __: int) -> None:
    deltalake.write_deltalake(address, some_rows(seed, 5), mode="overwrite", schema_mode="merge")


def _overwrite_part(table: deltalake.DeltaTable, address: str, seed: int, __: int) -> None:
    rows = some_rows(seed, 10)
    rows = rows.filter(pa.array([value == "a" for value in rows["part"].to_pylist()]))
    rows = rows.cast(SCHEMA)
    missing = [field for field in table.schema().to_arrow() if field.name not in SCHEMA.names]  # type: ignore[attr-defined]  # arro3's schema is iterable
    for field in missing:
        rows = rows.append_column(field.name, pa.nulls(rows.num_rows, pa.int64()))
    deltalake.write_deltalake(address, rows, mode="overwrite", predicate="part = 'a'")


def _compact(table: deltalake.DeltaTable, _: str, __: int, ___: int) -> None:
    table.optimize.compact()


def _add_column(table: deltalake.DeltaTable, _: str, seed: int, __: int) -> None:
    name = f"added {seed % 4}"
    if name not in [field.name for field in table.schema().fields]:
        table.alter.add_columns([deltalake.Field(name, deltalake.schema.PrimitiveType("long"))])


def _set_property(table: deltalake.DeltaTable, _: str, seed: int, __: int) -> None:
    table.alter.set_table_properties({"delta.logRetentionDuration": f"interval {seed} days"})


def _checkpoint(table: deltalake.DeltaTable, _: str, __: int, ___: int) -> None:
    table.create_checkpoint()


def _restore(table: deltalake.DeltaTable, address: str, seed: int, _: int) -> None:
    if 0 in _commits(address) and table.version():
        table.restore(seed % table.version())


def _clean_up(table: deltalake.DeltaTable, address: str, _: int, __: int) -> None:
    """A checkpoint, and the commits before it gone."""
    table.create_checkpoint()
    for version, path in _commits(address).items():
        if version < table.version():
            path.unlink()


def _commits(address: str) -> dict[int, Path]:
    return {int(path.stem): path for path in Path(address, "_delta_log").glob("*.json") if path.stem.isdecimal()}


_STEPS = {
    "append": _append,
    "append widened": _append_widened,
    "delete": _delete,
    "delete a part": _delete_part,
    "update": _update,
    "merge": _merge,
    "overwrite": _overwrite,
    "overwrite a part": _overwrite_part,
    "compact": _compact,
    "add a column": _add_column,
    "set a property": _set_property,
    "checkpoint": _checkpoint,
    "restore": _restore,
    "clean up": _clean_up,
}
