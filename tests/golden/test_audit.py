"""No conformance table is convicted: every one of them is a good log of some engine."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.discovery import open_table
from lakeview.errors import LakeviewError
from tests.golden.conformance import conformance_root, delta_tables

pytestmark = pytest.mark.golden

TABLES = [(table.name, table.path) for table in delta_tables()]


@pytest.mark.parametrize("path", [path for _, path in TABLES], ids=[f"delta-{name}" for name, _ in TABLES])
def test_no_false_alarm(path: str) -> None:
    try:
        table = open_table(path)
    except LakeviewError:
        return  # `test_delta_tables` says whether it may be refused
    found = table.audit()
    assert found.filter(pl.col("verdict") == "violated").to_dicts() == []


def test_tables_are_there() -> None:
    if not TABLES:
        pytest.skip(f"no conformance tables at {conformance_root()}")
    assert len(TABLES) > 100
