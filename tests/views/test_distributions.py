"""How the values of a sample lie: bins, top values, and conditions that keep just those rows."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import polars as pl
import pytest

from lakeview import charts, views
from tests.views.at_once import distributions

N = 100
START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = {
    "whole": list(range(N)),
    "large": [2**62 + i for i in range(N)],
    "real": [i / 3 if i % 7 else math.nan for i in range(N)],
    "endless": [math.inf] * 50 + [1.0] * 50,
    "wide": [-1.7e308, 1.7e308] * 50,
    "day": [date(2026, 1, 1) + timedelta(days=i) for i in range(N)],
    "moment": [START + timedelta(hours=i) for i in range(N)],
    "price": [Decimal(i) / 100 for i in range(N)],
    "text": ["a", "b", None, "c"] * 25,
    "many": [f"v{i}" for i in range(N)],
    "flag": [True, False] * 50,
    "bytes": [b"\x00\xff"] * N,
    "hour": [time(1)] * N,
    "c`q": [5] * N,
    "nothing": [None] * N,
}
SAMPLE = pl.DataFrame(COLUMNS)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_row_is_counted_once_and_found_again_by_its_condition(name: str) -> None:
    spread = distributions(SAMPLE.select(name))
    assert spread.schema == views.data.profile.DISTRIBUTIONS
    assert int(spread["count"].sum()) == N
    assert math.isclose(float(spread["share"].sum()), 1.0)
    for condition, count in spread.drop_nulls("condition").select("condition", "count").iter_rows():
        assert SAMPLE.filter(pl.sql_expr(condition)).height == count, condition


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("whole", {"bin"}), ("real", {"bin", "nan"}), ("endless", {"value"}), ("day", {"bin"}), ("moment", {"bin"}),
        ("text", {"value", "null"}), ("many", {"value", "others"}), ("nothing", {"null"}),
    ],
)  # fmt: skip
def test_a_column_is_told_in_its_own_way(name: str, kinds: set[str]) -> None:
    spread = distributions(SAMPLE.select(name))
    assert set(spread["kind"]) == kinds
    assert spread.height <= 22


def test_the_most_frequent_value_comes_first() -> None:
    spread = distributions(pl.DataFrame({"x": ["b", "a", "b", None]}))
    assert spread.select("kind", "label", "count").rows() == [("value", "b", 2), ("value", "a", 1), ("null", "null", 1)]


def test_nested_columns_tell_their_nulls_alone() -> None:
    spread = distributions(pl.DataFrame({"l": [[1], None], "s": [{"a": 1}, {"a": 2}]}))
    assert spread.select("column", "kind", "count").rows() == [("l", "null", 1)]


def test_a_name_that_polars_takes_for_a_pattern_has_no_condition() -> None:
    assert distributions(pl.DataFrame({"^x$": ["a", None]}))["condition"].to_list() == [None, None]


def test_a_blank_text_is_seen_between_quotes() -> None:
    spread = distributions(pl.DataFrame({"name": ["", "", " ", "x"]}))
    assert spread["label"].to_list() == ["''", "' '", "x"]
    assert spread["condition"].to_list()[0] == "`name` = ''"


@pytest.mark.parametrize("sample", [pl.DataFrame(), pl.DataFrame(schema={"x": pl.Int64()})])
def test_no_rows_have_no_distribution(sample: pl.DataFrame) -> None:
    assert distributions(sample).equals(pl.DataFrame(schema=views.data.profile.DISTRIBUTIONS))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_distribution_has_a_picture(name: str, dark: bool) -> None:
    chart = charts.distributions.distribution_bars(distributions(SAMPLE.select(name)), dark=dark).to_dict()
    assert name in chart["title"]["text"]


def test_the_rows_from_before_a_column_existed_are_named_below_its_name() -> None:
    spread = distributions(SAMPLE.select("moment"))
    spec = charts.distributions.distribution_bars(spread, absent="40.8 % before v9").to_dict()
    assert spec["title"]["subtitle"] == "40.8 % before v9: absent from the files"
    assert "subtitle" not in charts.distributions.distribution_bars(spread).to_dict()["title"]


def test_the_longest_bar_ends_before_the_shares_at_the_right() -> None:
    spread = distributions(pl.DataFrame({"x": ["a", "a", "a", "b"]}))
    bars = charts.distributions.distribution_bars(spread).to_dict()["layer"][0]
    assert bars["encoding"]["x"]["scale"]["domain"][1] >= 3 * 1.2


def test_the_ends_of_moments_are_days_and_on_one_day_times() -> None:
    def ends(values: pl.Series) -> list[str]:
        spread = distributions(values.to_frame("moment"))
        spec = charts.distributions.distribution_bars(spread, dark=False).to_dict()
        return [spec["datasets"][layer["data"]["name"]][0]["short"] for layer in spec["layer"][2:]]

    assert ends(SAMPLE["moment"]) == ["2026-01-01", "from 2026-01-04"]
    assert ends(SAMPLE["moment"].head(20)) == ["00:00:00", "from 18:03:00"]


def test_changes_are_added_up_by_commit_and_type() -> None:
    rows = [(3, "insert", "a", 5, 10, "derived"), (3, "insert", "b", None, 10, "derived"), (4, None, "c", 2, 7, "feed")]
    plan = pl.DataFrame(
        rows,
        schema={
            "version": pl.Int64, "change_type": pl.String, "path": pl.String, "rows": pl.Int64, "size": pl.Int64,
            "source": pl.String,
        },
        orient="row",
    )  # fmt: skip
    costs = views.data.changes.change_costs(plan)
    assert costs.schema == views.data.changes.CHANGE_COSTS
    assert costs.rows() == [(4, "recorded", 1, 2, 7, "feed"), (3, "insert", 2, None, 20, "derived")]
    assert views.data.changes.change_costs(plan.clear()).schema == views.data.changes.CHANGE_COSTS
