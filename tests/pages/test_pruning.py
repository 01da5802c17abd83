"""The pruning page: what a filter would read, at one version and at two, and clustering by column."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

import lakeview as lv
from lakeview.app.widths import heading_width
from tests.pages.app import column_widths, open_page, text

pytestmark = pytest.mark.app


def tiles(app: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in app.metric}


@pytest.mark.parametrize(
    ("where", "files_read", "partition", "ranged", "nulls"),
    [
        pytest.param("month = 2", "1", "2", "0", "0", id="by its partition"),
        pytest.param("delay > 40", "1", "0", "2", "0", id="by min and max"),
        pytest.param("carrier IS NULL", "0", "0", "0", "3", id="by nulls"),
        pytest.param("month < 3 AND delay > 30", "1", "1", "1", "0", id="by both"),
    ],
)
def test_a_filter_reads_some_files_and_skips_the_others(
    good: Path, where: str, files_read: str, partition: str, ranged: str, nulls: str
) -> None:
    app = open_page("pruning", good, where=where)
    assert not app.exception
    figures = tiles(app)
    assert (figures["Files read"], figures["Skipped by partition"]) == (files_read, partition)
    assert (figures["By min and max"], figures["By nulls"]) == (ranged, nulls)


def test_each_condition_is_planned_alone(good: Path) -> None:
    app = open_page("pruning", good, where="month < 3 AND delay > 30")
    rows = next(f.value for f in app.dataframe if "part" in f.value.columns)
    assert rows["part"].to_list() == ["month < 3", "delay > 30"]
    assert rows["files"].to_list() == [2, 2]


def test_a_condition_that_data_skipping_does_not_support_is_named(good: Path) -> None:
    app = open_page("pruning", good, where="abs(delay) > 30")
    assert not app.exception
    assert "Data skipping does not support abs(delay) > 30" in text(app)
    assert tiles(app)["Files read"] == "3"


def test_the_version_compared_with_stands_beside_the_one_shown(good: Path) -> None:
    app = open_page("pruning", good, where="delay > 0", version="5", base="2")
    assert not app.exception
    assert tiles(app)["Files read"] == "4"
    assert r"v2\: 2" in [m.proto.delta_description for m in app.metric]


def test_a_version_without_the_column_says_so_beside_the_one_that_has_it(good: Path) -> None:
    app = open_page("pruning", good, where="cancelled IS NULL", version="5", base="2")
    assert not app.exception
    assert "Invalid at v2:** there is no column cancelled" in text(app)
    assert tiles(app)["Files read"] == "4"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        pytest.param("nobody = 1", "There is no column nobody", id="a column that is not there"),
        pytest.param("month", "This is a value (int32), and no condition", id="no condition"),
        pytest.param("carrier > 3", "cannot compare string with numeric type", id="another type"),
        pytest.param("month = = 3", "cannot be read", id="no SQL"),
    ],
)
def test_a_bad_filter_is_explained_with_the_columns_there_are(good: Path, where: str, message: str) -> None:
    app = open_page("pruning", good, where=where)
    assert not app.exception
    assert message.lower() in text(app).lower()
    assert "**Columns of v6**" in text(app)
    assert "Clustering by column" in text(app)


def test_an_example_fills_the_filter_in(good: Path) -> None:
    app = open_page("pruning", good)
    assert "Files read" not in tiles(app)
    app.pills(key="example").set_value("month = 2").run()
    assert app.text_input(key="where").value == "month = 2"
    assert tiles(app)["Files read"] == "1"
    assert app.query_params["where"] == "month = 2"


def test_an_example_with_the_name_of_a_column_is_no_markup(tmp_path: Path) -> None:
    rows = pl.DataFrame({"[x](http://e)": [1, 2]})
    table = lv.create_table(str(tmp_path / "t"), rows.to_arrow().schema)
    for _ in range(2):
        table.append(rows)
    options = open_page("pruning", tmp_path / "t").pills(key="example").options
    assert [option.partition(" = ")[0] for option in options] == [r'"\[x\](http\://e)"']


def test_files_are_listed_by_verdict(good: Path) -> None:
    app = open_page("pruning", good, where="month = 2")
    app.segmented_control(key="verdict").set_value("skipped").run()
    rows = next(f.value for f in app.dataframe if "reason" in f.value.columns)
    assert rows["reason"].to_list() == ["skipped by partition"] * 2


def test_a_column_can_be_linked_to(good: Path) -> None:
    app = open_page("pruning", good, column="carrier")
    assert app.selectbox(key="column").value == "carrier"
    assert "depth of carrier" in app.session_state["_downloads"]


def test_columns_whose_names_begin_alike_can_be_distinguished(tmp_path: Path) -> None:
    names = ["measurement_000", "measurement_001"]
    rows = pl.DataFrame({name: [1.0, 2.0] for name in names})
    lv.create_table(str(tmp_path / "t"), rows.to_arrow().schema).append(rows)
    tables = open_page("pruning", tmp_path / "t").dataframe
    (table,) = [table for table in tables if "exact" in table.value.columns]
    assert column_widths(table)["column"] >= heading_width(names[0])


def test_a_table_without_statistics_has_no_clustering(silent: Path) -> None:
    app = open_page("pruning", silent, where="delay > 3")
    assert not app.exception
    assert "No file has min and max of a column" in text(app)
    assert tiles(app)["Files read"] == "1"
