"""No conformance table is convicted: every one of them is a good log of some engine."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.discovery import open_table
from lakeview.errors import LakeviewError
from tests.golden.conformance import conformance_root, delta_tables
from tests.golden.iceberg_conformance import GoldenIceberg, iceberg_tables
from tests.golden.iceberg_reader import open_golden_table

pytestmark = pytest.mark.golden

TABLES = [(table.name, table.path) for table in delta_tables()]
ICEBERG = iceberg_tables()


@pytest.mark.parametrize("path", [path for _, path in TABLES], ids=[f"delta-{name}" for name, _ in TABLES])
def test_no_false_alarm(path: str) -> None:
    try:
        table = open_table(path)
    except LakeviewError:
        return  # `test_delta_tables` says whether it may be refused
    verdicts = table.audit()
    assert verdicts.filter(pl.col("verdict") == "violated").to_dicts() == []


@pytest.mark.parametrize("golden", ICEBERG, ids=[f"iceberg-{table.name}" for table in ICEBERG])
def test_no_false_alarm_in_iceberg(golden: GoldenIceberg) -> None:
    try:
        table = open_golden_table(golden.path, golden)
    except LakeviewError:
        return  # `test_iceberg_tables` says whether it may be refused
    assert table.audit().filter(pl.col("verdict") == "violated").to_dicts() == []


def test_tables_are_there() -> None:
    if not TABLES:
        pytest.skip(f"no conformance tables at {conformance_root()}")
    assert len(TABLES) > 100
    assert len(ICEBERG) > 100
