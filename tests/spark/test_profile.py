"""The profile on Spark: the figures that polars gives of the same rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakeview as lv
from lakeview.model.errors import InvalidRequestError
from lakeview.spark.profile import profile
from lakeview.views.data.profile import PROFILE
from lakeview.views.data.profile import profile as profile_by_polars

pytestmark = pytest.mark.spark

N = 60
NAN, INF = float("nan"), float("inf")


def repeat(*values: Any) -> list[Any]:
    return [values[i % len(values)] for i in range(N)]


ROWS = pa.table(
    {
        "^x$": pa.array([None if i % 7 == 0 else i for i in range(N)], pa.int64()),
        "extremes": pa.array(repeat(-(2**63), 2**63 - 1, 0, None, *range(20)), pa.int64()),
        "few": pa.array(repeat(1, 2, 3, None), pa.int8()),
        "double": pa.array(repeat(NAN, -0.0, 0.0, None, 1.5, 1e300, -1e300)),
        "float": pa.array([i / 7 for i in range(N)], pa.float32()),
        "endless": pa.array(repeat(INF, 1.0, None)),
        "nan": pa.array([NAN] * N),
        "text": pa.array(repeat("b", "a", "é", "", None, "\U0001f600", "\uffff", *(f"v{i}" for i in range(9)))),
        "day": pa.array([date(1582, 10, 1) + timedelta(days=i * i) for i in range(N)]),
        "at": pa.array([datetime(1, 1, 1, tzinfo=UTC) + timedelta(days=i * 3, microseconds=i) for i in range(N)]),
        "local": pa.array([datetime(2013, 1, 1) + timedelta(hours=i) for i in range(N)]),  # noqa: DTZ001 (without zone)
        "exact": pa.array([Decimal(i) / 100 * (-1) ** i for i in range(N)], pa.decimal128(10, 2)),
        "wide": pa.array([Decimal(i * 10**30) for i in range(N)], pa.decimal128(38, 0)),
        "flag": pa.array(repeat(True, False, None)),
        "bytes": pa.array(repeat(b"\x00", b"\xff", None, b"")),
        "list": pa.array(repeat([1], None, [])),
        "struct": pa.array(repeat({"a": 1}, None)),
        "nothing": pa.array([None] * N, pa.string()),
        "`q`.x": pa.array(["k"] * N),
    }
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("profile") / "table")
    table = lv.create_table(place, ROWS.schema)
    table.append(ROWS.slice(0, 30))
    table.append(ROWS.slice(30))
    return place


def test_figures_of_every_type_equal_those_of_polars(spark: SparkSession, address: str) -> None:
    steps: list[str] = []
    columns, rows = profile(spark, address, on_step=steps.append)
    assert (columns.schema, rows) == (PROFILE, N)
    assert columns.to_dicts() == profile_by_polars(lv.scan(address))[0].to_dicts()
    assert steps == ["planning", "facts of all columns", "values of all columns"]


def test_a_version_a_condition_and_columns(spark: SparkSession, address: str) -> None:
    selection = lv.open_table(address).scan(1).filter(pl.col("few") > 1).select("few", "flag")
    columns, rows = profile(spark, address, version=1, where="few > 1", columns=["few", "flag"])
    expected, count = profile_by_polars(selection)
    assert (columns.to_dicts(), rows) == (expected.to_dicts(), count)
    columns, rows = profile(spark, address, where="few = 9", columns=["FEW", "few"])
    expected, count = profile_by_polars(selection.filter(few=9).select("few"))
    assert (columns.to_dicts(), rows) == (expected.to_dicts(), count)


def test_columns_that_mean_nothing_are_refused(address: str) -> None:
    no_session: Any = None
    with pytest.raises(InvalidRequestError, match="names no column\n  fix: name one or more"):
        profile(no_session, address, columns=())
    with pytest.raises(InvalidRequestError, match="there is no column fwe\n  fix: choose from"):
        profile(no_session, address, columns=["fwe"])


def test_spark_reads_a_condition_as_it_was_checked(spark: SparkSession, address: str) -> None:
    # to Spark, unlike to lakeview, the text ends after the second quote, and all rows satisfy what follows
    _, rows = profile(spark, address, where=r"text = 'x\'' OR true --'", columns=["few"])
    assert rows == 0
