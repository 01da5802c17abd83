"""The SQL tab: begins with a query that runs, lists the columns, and runs what is written by a press with its price."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lakeview.app.pages import PAGES
from tests.pages import tables
from tests.pages.app import open_page, text
from tests.pages.test_hostile_tables import NAMES

FIRST = "SELECT month, carrier, delay, cancelled\nFROM t\nLIMIT 100"


def answer(app: AppTest) -> list[str]:
    """The answer's columns; the first table lists those of the open table."""
    return [column for frame in app.dataframe[1:] for column in frame.value.columns]


def test_sql_is_priced_and_answered(good: Path) -> None:
    query = "SELECT carrier, count(*) AS n FROM flights WHERE month = 2 GROUP BY carrier ORDER BY carrier"
    app = open_page("data", good, tab="SQL", sql=query)
    assert app.button(key="run").label.startswith("Run: reads at most 1 file, ")
    app.button(key="run").click().run()
    assert not app.exception
    assert app.dataframe[1].value["n"].to_list() == [7, 7, 6]


def test_a_query_of_all_files_is_priced_so(good: Path) -> None:
    app = open_page("data", good, tab="SQL", sql="select month from t where not_there = 3")
    assert app.button(key="run").label.startswith("Run: reads at most 3 files, ")
    app.button(key="run").click().run()
    assert 'unable to find column "not_there"' in text(app)
    assert app.button(key="run").label


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("drop table t", "DROP is no SELECT"),
        ("select * from read_csv('/etc/passwd')", "read_csv is no function of a query here"),
        ("select * from other", "There is no table other here"),
        ("", "The query is empty"),
    ],
)
def test_a_refused_query_is_corrected_and_run_in_one_step(query: str, message: str, good: Path) -> None:
    app = open_page("data", good, tab="SQL", sql=query)
    assert not app.exception
    assert message in text(app)
    assert app.button(key="run").label == "Run"
    app.text_area(key="sql").set_value("select month from t")
    app.button(key="run").click().run()
    assert answer(app) == ["month"]


def test_the_first_query_is_there_and_runs_by_a_press(good: Path) -> None:
    app = open_page("data", good, tab="SQL")
    assert app.text_area(key="sql").value == FIRST
    assert "sql" not in app.query_params
    assert app.button(key="run").proto.shortcut == "ctrl+enter"
    assert answer(app) == []
    app.button(key="run").click().run()
    assert answer(app) == ["month", "carrier", "delay", "cancelled"]


def test_the_columns_are_listed_with_their_types(good: Path) -> None:
    columns = open_page("data", good, tab="SQL").dataframe[0].value
    assert list(zip(columns["column"], columns["type"], strict=True)) == [
        ("month", "integer"), ("carrier", "string"), ("delay", "integer"), ("cancelled", "string"),
    ]  # fmt: skip


def test_another_table_begins_with_a_query_of_its_own(good: Path, tmp_path: Path) -> None:
    other = tables.LogWriter(tmp_path / "other", partitioned=False).create(fields=tables.FIELDS[1:])
    app = open_page("data", good, tab="SQL")
    app.query_params["table"] = str(other.root)
    del app.query_params["version"]
    app.switch_page(PAGES["data"].file).run()
    assert app.text_area(key="sql").value == "SELECT carrier, delay\nFROM t\nLIMIT 100"
    assert "sql" not in app.query_params


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("^x$", "*", "^.*$")])
def test_columns_that_cannot_be_named_are_left_out(name: str, tmp_path: Path) -> None:
    fields = [{**tables.FIELDS[1], "name": n} for n in ("^x$", "*", "a\0b", name)]
    table = tables.LogWriter(tmp_path / "odd", partitioned=False).create(fields=fields)
    app = open_page("data", table.root, tab="SQL")
    app.button(key="run").click().run()
    assert not app.exception
    assert answer(app) == [name]
