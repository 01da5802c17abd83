"""Tables that get the definition of a new one, and new ones that are clustered, as other engines read them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from tests.builders.findings import GRAVE
from tests.differential.oracles import ORACLES, compare_version

OLD = {"id": pl.Int64, "part": pl.String, "n": pl.Int32}
NEW = {"day": pl.Date, "n": pl.String}  # DuckDB 1.5.5 reads null from a partition behind other mapped columns
OLD_ROWS = pl.DataFrame({"id": [1, 2], "part": ["a", "b"], "n": [1, 2]}, OLD)
NEW_ROWS = pl.DataFrame({"day": [date(2026, 3, 1)] * 2, "n": ["x", None]}, NEW)
MAPPED = {"delta.columnMapping.mode": "name"}


def check_with_others(table: DeltaTable) -> None:
    """Every version is read alike by other engines, and the log breaks no law."""
    for version in range(table.latest_version + 1):
        if table.files(version).height:  # polars-deltalake reads no table without files
            compare_version(table, table.address, version, {n: ORACLES[n] for n in ("deltalake", "DuckDB")})
    assert [finding for finding in table.check() if finding.severity in GRAVE] == []
    assert "violated" not in table.audit()["verdict"].to_list()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"partition_by": "part"}, {"partition_by": "day"}),
        ({"partition_by": "part"}, {"cluster_by": ["day", "n"]}),
        ({"cluster_by": "n"}, {}),
        ({"properties": MAPPED}, {"partition_by": "day"}),
        ({"properties": MAPPED}, {"properties": MAPPED, "cluster_by": "n"}),
        ({"properties": {"delta.enableInCommitTimestamps": "true"}}, {}),
        ({}, {"properties": {"delta.enableRowTracking": "true"}}),
        ({"properties": {"delta.enableRowTracking": "true"}}, {}),
        ({"properties": {"delta.enableRowTracking": "true"}}, {"properties": {"delta.enableRowTracking": "true"}}),
    ],
    ids=repr,
)
def test_a_table_that_is_replaced_is_a_new_one_with_its_history(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any]
) -> None:
    table = lv.create_table(tmp_path, OLD, description="old", **before)
    table.set_properties({"mine": "yes"})
    table.add_constraint("small", "n < 10")
    table.append(OLD_ROWS)
    identity = table.snapshot().id
    version = table.replace_table(NEW, description="new", **after)
    now = table.snapshot()
    assert (version, now.schema.names, now.num_files, now.id) == (4, ["day", "n"], 0, identity)
    assert now.description == "new"
    assert now.partition_columns == ([after["partition_by"]] if "partition_by" in after else [])
    assert not {"mine", "delta.constraints.small"} & set(now.properties)
    assert [r["column"] for r in now.rules.filter(kind="clustering").to_dicts()] == sorted(after.get("cluster_by", []))
    assert table.history(1)["operation"].to_list() == ["CREATE OR REPLACE TABLE"]
    table.append(NEW_ROWS)
    assert table.scan().collect().equals(NEW_ROWS)
    assert table.scan(3).collect().sort("id").equals(OLD_ROWS)
    check_with_others(table)


def test_ids_of_mapped_columns_are_not_given_again(tmp_path: Path) -> None:
    table = lv.create_table(tmp_path, OLD, properties=MAPPED)
    table.append(OLD_ROWS)
    names = {field.physical_name for field in table.snapshot().schema}
    table.replace_table(OLD)
    fields = list(table.snapshot().schema)
    assert [field.id for field in fields] == [4, 5, 6]
    assert not names & {field.physical_name for field in fields}
    assert table.snapshot().properties["delta.columnMapping.mode"] == "name"


def test_what_another_writer_appends_meanwhile_is_removed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lv.create_table(tmp_path, OLD)
    table.append(OLD_ROWS)
    begin = DeltaTable.transaction
    others = iter([lambda: DeltaTable(table.storage).append(OLD_ROWS)])

    def transaction(self: DeltaTable, *arguments: Any, **options: Any) -> Any:
        txn = begin(self, *arguments, **options)
        if self is table:
            next(others, int)()
        return txn

    monkeypatch.setattr(DeltaTable, "transaction", transaction)
    assert table.replace_table(NEW) == 3
    assert table.snapshot().num_files == 0


def test_a_table_that_must_stay_is_not_replaced(tmp_path: Path) -> None:
    table = lv.create_table(tmp_path, OLD, properties={"delta.appendOnly": "true"})
    table.append(OLD_ROWS)
    with pytest.raises(ConstraintViolationError, match="append-only"):
        table.replace_table(NEW)
    assert table.refresh() is False


def test_a_new_table_is_clustered_as_others_know_it(tmp_path: Path) -> None:
    table = lv.create_table(
        tmp_path, {f"c{n}": pl.Int64 for n in range(40)}, cluster_by=["c39", "c1"], properties=MAPPED
    )
    assert table.state().protocol.writer_features == ["clustering", "columnMapping", "domainMetadata"]
    assert table.snapshot().rules["rule"].to_list() == ["2 of 2", "1 of 2"]
    table.append(pl.DataFrame({f"c{n}": [n] for n in range(40)}))
    assert table.statistics(columns=["c39"])["c39"].struct.field("max").to_list() == [39]
    check_with_others(table)


@pytest.mark.parametrize(
    ("cluster_by", "words"),
    [
        (["id", "id"], "clustered by id, id"),
        (["missing"], "missing, which is not in the schema"),
        (["flag"], "flag, a boolean, whose bounds skip no files"),
        (["a", "b", "c", "d", "id"], "clustered by a, b, c, d, id"),
    ],
    ids=["twice", "missing", "type", "five"],
)
def test_columns_that_no_table_is_clustered_by_are_refused(tmp_path: Path, cluster_by: list[str], words: str) -> None:
    schema = {"id": pl.Int64, "flag": pl.Boolean, **dict.fromkeys("abcd", pl.Int64)}
    with pytest.raises(InvalidRequestError, match=words) as caught:
        lv.create_table(tmp_path, schema, cluster_by=cluster_by)
    assert caught.value.kind == "clustering-columns"
    with pytest.raises(InvalidRequestError, match="not clustered as well"):
        lv.create_table(tmp_path, schema, cluster_by=["id"], partition_by=["a"])
