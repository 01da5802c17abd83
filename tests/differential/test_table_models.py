"""Histories with deletion vectors, mapped columns and every kind of checkpoint: the rows told, and others' word."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import deltalake
import pytest
from hypothesis import HealthCheck, given, settings

from tests.builders.opening import open_delta_table
from tests.differential.oracles import ORACLES, readable
from tests.differential.table_models import STEPS, Plan, TableModel, plans
from tests.golden.rows import differences

FEW = settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
MANY = settings(FEW, max_examples=6)


def checked(table_with_rows: TableModel) -> None:
    """Every readable version: the rows that were told, and what each oracle makes of them."""
    address = table_with_rows.history.address
    table = open_delta_table(address)
    for version in readable(table):
        snapshot, rows_read = table.snapshot(version), table.scan(version).collect()
        assert rows_read.columns == table_with_rows.names[version]
        expected = Counter(repr([row[name] for name in rows_read.columns]) for row in table_with_rows.expected[version])
        assert Counter(repr(list(row)) for row in rows_read.rows()) == expected, f"version {version}"
        assert snapshot.num_records == rows_read.height
        theirs = deltalake.DeltaTable(address, version=version)
        assert snapshot.num_files == len(theirs.file_uris())
        assert snapshot.schema.names == [field.name for field in theirs.schema().fields]
        for name, rows in ORACLES.items():
            if name == "DuckDB" and table_with_rows.partitioned and table_with_rows.mode != "none":
                continue  # it looks for a partition's value under the logical name, and finds null
            assert differences(rows(address, version), rows_read) == [], f"version {version}, {name}"


@FEW
@given(plan=plans(6))
def test_a_short_plan_is_read_as_told(tmp_path_factory: pytest.TempPathFactory, plan: Plan) -> None:
    checked(plan.build(str(tmp_path_factory.mktemp("plan"))))


@pytest.mark.slow
@MANY
@given(plan=plans(16))
def test_long_plans_are_read_as_told(tmp_path_factory: pytest.TempPathFactory, plan: Plan) -> None:
    checked(plan.build(str(tmp_path_factory.mktemp("plan"))))


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
def test_a_plan_in_which_everything_happens(tmp_path: Path, mode: str, partitioned: bool) -> None:
    steps = tuple((what, 3 + 4 * number) for number, what in enumerate([*STEPS, "append", "checkpoint", "delete"]))
    checked(Plan(mode, partitioned, steps).build(str(tmp_path)))
