"""Statistics of histories that deltalake writes: its own reading of them, and filters that trust them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import deltalake
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders.opening import open_delta_table
from tests.differential.delta_stories import PARTS, Story, stories, tell
from tests.golden.rows import differences

WRITES = ("append", "append", "append widened", "update", "overwrite a part", "compact", "add a column", "checkpoint")
FEW = settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
MANY = settings(FEW, max_examples=8)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(-5, 6500),
    "part": st.sampled_from([part for part in PARTS if part]),
    "number": st.integers(-600, 600),
    "price": st.floats(-20, 300),
    "amount": st.integers(-1100, 1100).map(lambda cents: Decimal(cents) / 100),
    "text": st.sampled_from(["", "x", "\U0001f600", "it", "a longer text that goes on beyond thirty-two char", "z"]),
    "flag": st.booleans(),
    "day": st.integers(0, 2500).map(lambda days: date(2024, 2, 29) + timedelta(days=days)),
    "at": st.integers(0, 2500).map(
        lambda hours: datetime(2024, 2, 29, 23, 59, 59, 123456, UTC) + timedelta(hours=hours)
    ),
}
COMPARED: dict[str, Any] = {
    "=": pl.Expr.__eq__,
    "!=": pl.Expr.__ne__,
    "<": pl.Expr.__lt__,
    "<=": pl.Expr.__le__,
    ">": pl.Expr.__gt__,
    ">=": pl.Expr.__ge__,
}


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> pl.Expr:
    """Comparisons and null checks, joined by and, or and not."""
    if depth and draw(st.booleans()):
        one, other = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        return draw(st.sampled_from([one & other, one | other, ~one]))
    name = draw(st.sampled_from(sorted(VALUES)))
    what = draw(st.sampled_from([*COMPARED, "null", "not null"]))
    if what in ("null", "not null"):
        return pl.col(name).is_null() if what == "null" else pl.col(name).is_not_null()
    compared: pl.Expr = COMPARED[what](pl.col(name), pl.lit(draw(VALUES[name])))
    return compared


@FEW
@given(story=stories(5, WRITES))
def test_statistics_are_what_deltalake_makes_of_them(tmp_path_factory: pytest.TempPathFactory, story: Story) -> None:
    address = str(tmp_path_factory.mktemp("statistics"))
    tell(story, address)
    ours = open_delta_table(address).statistics()
    theirs = pl.DataFrame(deltalake.DeltaTable(address).get_add_actions(flatten=True))
    theirs = theirs.with_columns(pl.Series("path", [unquote(path) for path in theirs["path"]])).sort("path")
    ours = ours.sort("_path")
    assert ours["_path"].to_list() == theirs["path"].to_list()
    for name in (column for column in ours.columns if column[0] != "_"):
        for figure in ("min", "max", "null_count"):
            if (key := f"{figure}.{name}") in theirs.columns:
                values = ours[name].struct.field(figure)
                if isinstance(values.dtype, pl.Datetime):  # ours holds the microseconds that the log has not
                    values = values.dt.truncate("1ms")
                assert values.to_list() == theirs[key].to_list(), key


def filters_lose_no_row(story: Story, filters: list[pl.Expr], address: str) -> None:
    """What a filter finds when files are spared is what it finds among all rows."""
    tell(story, address)
    table = open_delta_table(address)
    everything = table.scan().collect()
    for condition in filters:
        rows = table.scan().filter(condition).collect()
        assert differences(everything.filter(condition).to_arrow(), rows) == [], str(condition)


@FEW
@given(story=stories(5, WRITES), filters=st.lists(conditions(), min_size=1, max_size=8))
def test_filters_that_spare_files_lose_no_row(
    tmp_path_factory: pytest.TempPathFactory, story: Story, filters: list[pl.Expr]
) -> None:
    filters_lose_no_row(story, filters, str(tmp_path_factory.mktemp("filters")))


@pytest.mark.slow
@MANY
@given(story=stories(10, WRITES), filters=st.lists(conditions(), min_size=5, max_size=30))
def test_many_filters_that_spare_files_lose_no_row(
    tmp_path_factory: pytest.TempPathFactory, story: Story, filters: list[pl.Expr]
) -> None:
    filters_lose_no_row(story, filters, str(tmp_path_factory.mktemp("filters")))
