"""Files that only readers with a feature read right, written again before the feature is dropped: mapped columns get
their names, and widened ones their type. Other engines read what is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.feature_drop import drop_feature
from lakeview.delta.write.transaction import Transaction
from lakeview.model.clock import system_clock
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import (
    CommitConflictError,
    ConstraintViolationError,
    InvalidRequestError,
    UnsupportedTableError,
)
from lakeview.model.schema import Schema
from tests.delta.test_feature_drops import VECTORS, days_later, numbers
from tests.differential.oracles import ORACLES
from tests.golden.rows import differences

MAPPED = {"delta.columnMapping.mode": "name"}
ALL_ELSE = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableInCommitTimestamps": "true",
}
COLUMNS = {
    "id": pl.Int64(),
    "a": pl.String(),
    "s": pl.Struct({"x": pl.Int64, "y": pl.String}),
    "l": pl.List(pl.Struct({"e": pl.Int64})),
    "day": pl.Date(),
}


def turn_off(table: DeltaTable, feature: str) -> None:
    """The first call of `drop_feature`, after which only the history uses the feature."""
    with pytest.raises(UnsupportedTableError, match="which the log still has, used it"):
        table.drop_feature(feature)


def check_others(table: DeltaTable) -> None:
    """Each engine reads the rows that we do."""
    rows = table.scan().collect()
    for name, read in ORACLES.items():
        assert differences(read(table.address, table.latest_version), rows) == [], name
    assert "violated" not in table.audit()["verdict"].to_list()


def rows_of(*ids: int) -> pl.DataFrame:
    rows = {
        "id": ids,
        "a": [f"a{i}" if i % 3 else None for i in ids],
        "s": [{"x": i, "y": "y"} if i % 2 else None for i in ids],
        "l": [[{"e": i}, {"e": None}] if i % 4 else None for i in ids],
        "day": [date(2026, 1, 1 + i % 2) if i % 5 else None for i in ids],
    }
    return pl.DataFrame(rows, COLUMNS)


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize(
    ("arguments", "more"),
    [({"partition_by": ["day"]}, ALL_ELSE), ({"cluster_by": ["id", "a"]}, {})],
    ids=["partitioned", "clustered"],
)
def test_files_of_mapped_columns_get_their_names(
    tmp_path: Path, mode: str, arguments: dict[str, Any], more: dict[str, str]
) -> None:
    properties = {"delta.columnMapping.mode": mode, **more}
    table = lv.create_table(str(tmp_path / "t"), COLUMNS, properties=properties, **arguments)
    table.append(rows_of(*range(20)))
    table.append(rows_of(*range(20, 30)))
    for old, new in (("a", "b"), ("s.x", "z"), ("day", "date"), ("l.element.e", "f")):
        table.rename_column(old, new)
    table.drop_column("s.y")
    table.add_constraint("small", "id < 1000")
    table.delete("id % 7 = 1")
    table.update({"b": "b || '!'"}, "id = 5")
    rows = table.scan(row_tracking=bool(more)).collect().sort("id")
    turn_off(table, "columnMapping")
    assert table.history(1)["operation"].to_list() == ["REORG"]
    assert table.scan(row_tracking=bool(more)).collect().sort("id").equals(rows)
    assert "columnMapping" not in (table.state().metadata.schema_string or "")
    assert not [name for name in table.state().properties if "columnMapping" in name]
    names = [name for name in table.schema.names if name != "date" or "cluster_by" in arguments]
    for add in table.state().adds(["stats", "partition_values"]).iter_rows(named=True):
        stored = pq.read_schema(str(tmp_path / "t" / add["path"]))
        assert [name for name in stored.names if not name.startswith("_row-")] == names
        assert not any(b"PARQUET:field_id" in (field.metadata or {}) for field in stored)
        assert set(json.loads(add["stats"])["nullCount"]) == set(names)
        assert dict(add["partition_values"] or {}).keys() == ({"date"} if "partition_by" in arguments else set())
    if "cluster_by" in arguments:
        (domain,) = table.state().domain_metadata()["configuration"]
        assert json.loads(domain)["clusteringColumns"] == [["id"], ["b"]]
    check_others(table)
    with pytest.raises(ConstraintViolationError, match="small"):
        table.append(table.scan().collect().with_columns(id=pl.lit(1000, pl.Int64)))
    table.delete("id = 2")
    assert table.drop_feature("columnMapping", truncate_history=True, clock=days_later(1.1)) == table.latest_version
    assert "columnMapping" not in (table.state().protocol.writer_features or ())
    check_others(table)


def test_names_that_columns_exchanged_are_not_mistaken(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), {"a": "long", "b": "long"})
    table.append(pl.DataFrame({"a": [1, None, None], "b": [4, 5, 6]}))
    table.set_properties(MAPPED)
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        table.rename_column(old, new)
    rows = table.scan().collect()
    turn_off(table, "columnMapping")
    assert table.scan().collect().equals(rows)
    assert table.scan().filter(pl.col("a") > 3).collect().height == 3
    check_others(table)
    with pytest.raises(InvalidRequestError, match="column a was renamed to b"):
        table.changes(1)
    assert table.difference(1).select("_change_type", "a", "b").collect().rows() == [
        (kind, *row) for kind in ("delete", "insert") for row in ((4, 1), (5, None), (6, None))
    ]


def test_identity_columns_count_on_after_mapping(tmp_path: Path) -> None:
    identity = {"start": 1, "step": 1, "allowExplicitInsert": False}
    number = Field("n", PrimitiveType("long"), metadata={f"delta.identity.{k}": v for k, v in identity.items()})
    schema = Schema((Field("id", PrimitiveType("long")), number))
    table = lv.create_table(str(tmp_path / "t"), schema, properties=MAPPED)
    table.append(numbers(7, 8))
    turn_off(table, "columnMapping")
    table.append(numbers(9))
    assert sorted(table.scan().collect().rows()) == [(7, 1), (8, 2), (9, 3)]
    check_others(table)


@pytest.mark.parametrize("path", ["a b", "s.x;y", "l.element.e=f", "c,d"])
def test_a_name_that_only_mapped_columns_have_is_refused(tmp_path: Path, path: str) -> None:
    table = lv.create_table(str(tmp_path / "t"), {**COLUMNS, "c": "long"}, properties=MAPPED)
    *above, name = path.split(".")
    table.rename_column((*above, name[0]), name)
    version = table.latest_version
    with pytest.raises(InvalidRequestError, match="has a name that only mapped columns have") as refusal:
        table.drop_feature("columnMapping")
    assert (refusal.value.place, table.latest_version) == (path, version)


@pytest.mark.parametrize("comment", ["delta.columnMapping.id", '{"delta.columnMapping.id": 1}'])
def test_a_comment_that_names_the_mapping_does_not_keep_it(tmp_path: Path, comment: str) -> None:
    schema = Schema((Field("id", PrimitiveType("long"), metadata={"comment": comment}),))
    table = lv.create_table(str(tmp_path / "t"), schema, properties=MAPPED)
    table.append(numbers(1, 2))
    turn_off(table, "columnMapping")
    table.drop_feature("columnMapping", truncate_history=True, clock=days_later(1.1))
    assert table.history()["operation"].to_list().count("REORG") == 1
    assert table.schema["id"].metadata == {"comment": comment}


def drop_while(table: DeltaTable, feature: str, number: int, write: Callable[[DeltaTable], object]) -> list[str]:
    """Drops a feature; another writer writes while the REORG of this number, from 1, is made. The operations then,
    oldest first."""
    others = iter([DeltaTable(table.storage)])
    reorgs = iter(range(1, 99))
    before = table.latest_version

    def begin(operation: str, **arguments: Any) -> Transaction:
        txn = table.transaction(operation, **arguments)
        if operation == "REORG" and next(reorgs) == number:
            write(next(others))
        return txn

    with pytest.raises(UnsupportedTableError, match="which the log still has, used it"):
        drop_feature(table, begin, feature, truncate_history=False, clock=system_clock)
    table.refresh()
    return table.history(table.latest_version - before)["operation"].to_list()[::-1]


def test_rows_that_come_while_mapping_ends_get_its_names_too(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), {"id": "long"}, properties=MAPPED)
    table.append(numbers(1, 2))
    late = DeltaTable(table.storage).transaction("WRITE")
    late.append(numbers(4))
    operations = drop_while(table, "columnMapping", 1, lambda other: other.append(numbers(3)))
    assert operations == ["WRITE", "REORG"]
    with pytest.raises(CommitConflictError, match="it changed the table's metadata"):
        late.commit()
    assert sorted(table.scan().collect()["id"]) == [1, 2, 3]
    check_others(table)


@pytest.mark.parametrize("write", ["optimize", "delete"])
def test_files_that_go_while_mapping_ends_do_not_come_back(tmp_path: Path, write: str) -> None:
    table = lv.create_table(str(tmp_path / "t"), {"id": "long"}, properties={**MAPPED, **VECTORS})
    table.append(numbers(1, 2))
    table.append(numbers(3, 4))
    operations = drop_while(
        table, "columnMapping", 1, lambda other: other.optimize() if write == "optimize" else other.delete("id = 4")
    )
    assert operations == [write.upper(), "REORG"]
    assert sorted(table.scan().collect()["id"]) == [1, 2, 3, 4][: 4 if write == "optimize" else 3]
    check_others(table)
