"""The data page's profile: of all rows, or of a sample that says what it is; a value leads on to its rows."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

import lakeview as lv
from lakeview.app.query import runner
from lakeview.app.query.budget import BUDGETS
from lakeview.jobs import SparkJobs
from tests.pages import tables
from tests.pages.app import open_page, text


def profile_of(app: AppTest) -> dict[str, int]:
    """Distinct values by column, as shown."""
    rows = next(frame.value for frame in app.dataframe if "distinct" in frame.value)
    return dict(zip(rows["column"], rows["distinct"], strict=True))


def test_the_profile_is_of_all_rows_that_pass_the_filter(good: Path) -> None:
    app = open_page("data", good, tab="Profile", where="month > 1")
    assert not app.exception
    rows = lv.scan(str(good)).filter(pl.col("month") > 1).collect()
    assert f"**All {rows.height} rows of v6 where month > 1, in 2 files**" in text(app)
    assert profile_of(app) == {name: rows[name].drop_nulls().n_unique() for name in rows.columns}
    types = next(frame.value for frame in app.dataframe if "distinct" in frame.value)["type"]
    assert list(types) == [str(field.type) for field in lv.open_table(good).schema.fields], "as on the Schema page"
    twin = next(f.value for f in app.dataframe if "label" in f.value)
    carriers = twin[twin["column"] == "carrier"]
    counts = rows["carrier"].value_counts()
    assert dict(zip(carriers["label"], carriers["count"], strict=True)) == dict(counts.iter_rows())


def test_more_than_the_budget_is_sampled_by_files(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = lv.open_table(good).files()
    monkeypatch.setitem(BUDGETS, "256 MiB", max(files["size"].to_list()))
    app = open_page("data", good, tab="Profile", budget="256 MiB")
    assert app.button(key="read-profile").label.startswith("Profile a sample: reads 1 file, ")
    assert "**A sample of v6: the 20 rows of 1 of 3 files drawn by a seed**" in text(app)


def test_a_sample_of_rows_is_drawn_from_all_files(tmp_path: Path) -> None:
    table = tables.LogWriter(tmp_path / "wide").create()
    for month in (1, 2, 3):
        table.commit("WRITE", table.add(f"load-{month}", tables.flights(month, 400), month))
    app = open_page("data", tmp_path / "wide", draw="sample", limit="50")
    assert not app.exception
    assert "50 drawn from all" in text(app)
    rows = app.dataframe[0].value
    assert (len(rows), set(rows["month"])) == (50, {1, 2, 3})


def test_a_value_leads_to_its_rows(good: Path) -> None:
    app = open_page("data", good, tab="Profile", where="month > 1", value="`carrier` = 'UA'")
    rows = lv.scan(str(good)).filter(pl.col("month") > 1, pl.col("carrier") == "UA").collect().height
    assert f"{rows} rows, " in text(app)
    (link,) = [link for link in app.page_link if "Its rows" in link.label]
    assert parse_qs(link.proto.query_string)["where"] == ["(month > 1) AND `carrier` = 'UA'"]
    app.button(key="narrow").click().run()
    assert not app.exception
    assert f"**All {rows} rows of v6 where " in text(app)


def test_how_nulls_changed_is_told_by_the_quality_page(good: Path) -> None:
    app = open_page("data", good, version="3", tab="Profile")
    (link,) = [link for link in app.page_link if "History by version" in link.label]
    assert "Whole+table" in link.proto.query_string or "Whole%20table" in link.proto.query_string


def test_spark_profiles_all_rows_of_a_table_above_the_budget(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the process of jobs, with another engine than Spark
    monkeypatch.setattr(runner, "SparkJobs", partial(SparkJobs, module="tests.jobs.small_worker"))
    monkeypatch.setitem(BUDGETS, "256 MiB", max(lv.open_table(good).files()["size"].to_list()))
    app = open_page("data", good, tab="Profile", budget="256 MiB", engine="all rows, on Spark")
    button = app.button(key="profile-on-spark")
    assert button.label.startswith("Profile on Spark: reads 3 files, ")
    try:
        button.click().run()
        assert not app.exception
        assert "**All 60 rows of v6, in 3 files**" in text(app)
        rows = lv.scan(str(good)).collect()
        assert profile_of(app) == {name: rows[name].drop_nulls().n_unique() for name in rows.columns}
    finally:
        runner.spark_jobs().close()
