"""The demo lake and its calendar, and a Spark session for short stories."""

from pathlib import Path

import polars as pl
import pytest

import lakeview as lv
from lakeview.demo.calendar import Calendar
from tests.fixtures_demo import demo_lake
from tests.spark.conftest import spark

__all__ = ["calendar", "demo_lake", "spark"]


@pytest.fixture(scope="session")
def calendar(demo_lake: Path) -> Calendar:
    """What the lake was built by: its last day is that of the last flight."""
    return Calendar(lv.scan(str(demo_lake / "flights")).select(pl.col("flight_date").max()).collect().item())
