"""Bounds of decimals: exact where they were written as decimals, and still bounds where a double rounded them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import deltalake
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeview as lv
from lakeview.delta.data.bounds import loosen
from tests.builders.history import DeltaHistory

VALUES: dict[str, tuple[tuple[int, int], str]] = {
    "negative, of 17 digits": ((20, 4), "-9697181171602.6959"),
    "positive, of 17 digits": ((20, 4), "9697181171602.6951"),
    "of 36 digits": ((38, 10), "99999999999999999999999999.1234567890"),
    "a whole number of 16 digits": ((16, 0), "9007199254740993"),
    "the largest there is": ((38, 0), "9" * 38),
    "far below numbers of 64 bits": ((20, 0), "-99999999999999999999"),
    "the smallest there is": ((38, 38), "-0." + "9" * 38),
    "small among many digits": ((38, 18), "1.000000000000000001"),
}


@pytest.mark.parametrize(("type_", "text"), VALUES.values(), ids=list(VALUES))
def test_a_bound_that_deltalake_rounds_spares_no_file_that_holds_the_value(
    tmp_path: Path, type_: tuple[int, int], text: str
) -> None:
    value = Decimal(text)
    deltalake.write_deltalake(tmp_path / "t", pa.table({"x": pa.array([value], pa.decimal128(*type_))}))
    table = lv.open_table(str(tmp_path / "t"))
    for where in (pl.col("x") == value, pl.col("x") <= value, pl.col("x") >= value):
        assert table.scan().filter(where).collect()["x"].to_list() == [value]
    bounds = table.statistics()["x"].struct.unnest().row(0, named=True)
    assert bounds["min"] is None or bounds["min"] <= value
    assert bounds["max"] is None or bounds["max"] >= value
    assert not bounds["exact"]


@given(st.integers(-(10**30) + 1, 10**30 - 1), st.integers(0, 30))
@settings(max_examples=300)
def test_bounds_hold_after_a_double(unscaled: int, scale: int) -> None:
    value = Decimal(unscaled).scaleb(-scale)
    text = pl.Series([format(Decimal(repr(float(value))), "f")])
    bound = text.cast(pl.Decimal(30, scale), strict=False)
    low, high = (loosen(bound, text, side)[0].to_list()[0] for side in ("min", "max"))
    assert low is None or low <= value
    assert high is None or high >= value


TEXTS: dict[str, tuple[str, str, bool]] = {
    "few digits": ("decimal(20,4)", "123.4500", True),
    "all the digits of its type, as Spark writes them": ("decimal(38,18)", "1.000000000000000000", True),
    "more digits than a double has": ("decimal(20,4)", "9697181171602695.1234", True),
    "a type of fifteen digits": ("decimal(15,2)", "9999999999999.99", True),
    "as many digits as a double may have": ("decimal(20,4)", "9697181171602.6959", False),
    "a power of ten": ("decimal(38,10)", "1e26", False),
    "a small double": ("decimal(38,30)", "1.5e-7", False),
    "a whole number of 64 bits": ("decimal(38,0)", "1234567890123456789", True),
}


@pytest.mark.parametrize(("type_", "text", "exact"), TEXTS.values(), ids=list(TEXTS))
def test_a_bound_is_exact_where_no_double_can_have_rounded_it(
    history: DeltaHistory, type_: str, text: str, exact: bool
) -> None:
    stats = f'{{"numRecords":1,"minValues":{{"x":{text}}},"maxValues":{{"x":{text}}},"nullCount":{{"x":0}}}}'
    history.create({"x": type_}).commit(history.data("f", {"x": [Decimal(1)]}, stats=stats))
    bounds = lv.open_table(history.address).statistics()["x"].struct.unnest().row(0, named=True)
    assert bounds["exact"] is exact
    if exact:
        assert bounds["min"] == bounds["max"] == Decimal(text)
    else:
        assert bounds["min"] < Decimal(text) < bounds["max"]
