"""The schema page: the rules of columns and of the whole table beside the types."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from lakeview.app import widths
from lakeview.app.components import BROKEN_LINES, ROW_HEIGHT
from lakeview.app.schema import panels
from lakeview.charts.palette import LIGHT
from tests.pages.app import column_widths, open_page, text
from tests.pages.tables import LogWriter

FIELDS = (
    {"name": "month", "type": "integer", "nullable": True, "metadata": {}},
    {"name": "carrier", "type": "string", "nullable": True, "metadata": {"CURRENT_DEFAULT": "'UA'"}},
    {"name": "delay", "type": "long", "nullable": True, "metadata": {"delta.generationExpression": "arrived - due"}},
)


@pytest.fixture
def ruled(tmp_path: Path) -> Path:
    """A table with a default, a generated column and two constraints."""
    log = LogWriter(tmp_path / "ruled")
    described = log.metadata(FIELDS)
    described["metaData"]["configuration"] |= {
        "delta.constraints.plausible": "delay < 10000",
        "delta.constraints.odd": "carrier <> '*<b>$x$'",
    }
    log.commit("CREATE TABLE", {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, described)
    return log.root


def test_rules_stand_beside_their_columns_and_constraints_below(ruled: Path) -> None:
    app = open_page("schema", ruled)
    assert not app.exception
    columns, constraints = (element.value for element in app.dataframe)
    assert columns.set_index("name")["rules"].fillna("").to_dict() == {
        "month": "",
        "carrier": "default 'UA'",
        "delay": "generated as arrived - due",
    }
    assert constraints.to_dict("records") == [
        {"name": "plausible", "rule": "delay < 10000"},
        {"name": "odd", "rule": "carrier <> '*<b>$x$'"},
    ]
    assert "2 constraints · a write that violates one is refused" in text(app)


def test_whole_numbers_are_not_cut_however_many_columns_there_are() -> None:
    number = str(-(2**62))
    bounds = pl.Series(["12", number, "2026-01-01", "0.123456789012345678901234", "a long text of a comment", None])
    assert panels._uncut(bounds) == widths.heading_width(number)
    assert panels._uncut(bounds[2:]) == widths.DAY


@pytest.mark.parametrize(("page", "parameters"), [("schema", {"tab": "Since when"}), ("schema", {}), ("overview", {})])
def test_a_column_with_a_dot_has_one_name_everywhere(tmp_path: Path, page: str, parameters: dict[str, str]) -> None:
    log = LogWriter(tmp_path / "dotted")
    fields = (FIELDS[0], {"name": "a.b", "type": "long", "nullable": True, "metadata": {}})
    log.commit("CREATE TABLE", {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, log.metadata(fields))
    app = open_page(page, log.root, **parameters)
    assert not app.exception
    names = [
        name
        for rows in (element.value for element in app.dataframe)
        for name in (rows["name"] if "name" in rows else rows.get("column", []))
    ]
    assert set(names) == {"month", "`a.b`"}


def test_a_table_without_rules_has_no_place_for_them(good: Path) -> None:
    app = open_page("schema", good)
    assert not app.exception
    assert len(app.dataframe) == 1
    assert "Constraints" not in text(app)


@pytest.mark.parametrize(
    ("page", "tables", "parameters"),
    [("data", 2, {"tab": "Profile"}), ("overview", 1, {})],
    ids=["profile and null shares", "overview"],
)
def test_the_part_before_a_column_existed_is_pale_and_named(
    good: Path, page: str, tables: int, parameters: dict[str, str]
) -> None:
    app = open_page(page, good, **parameters)
    assert not app.exception
    shares = [table.value for table in app.dataframe if "bar" in table.value]
    assert len(shares) == tables
    pale = f"fill='{LIGHT.quiet.replace('#', '%23')}'"
    for table in shares:
        rows = {row.get("name", row.get("column")): row for row in table.to_dict("records")}
        late, old = rows["cancelled"], rows["carrier"]
        assert f"width='0.0' {pale}" in old["bar"]
        assert f"width='0.0' {pale}" not in late["bar"]
        assert pale in late["bar"]
        if "distinct" not in late:  # the profile's pictures name it
            assert str(late["since"] if page == "overview" else late["absent"]).endswith("v4")


def test_the_part_before_a_column_existed_is_named_beside_its_null_share(good: Path) -> None:
    rows = open_page("schema", good).dataframe[0].value.set_index("name")
    assert rows["absent"]["cancelled"].endswith(" before v4")
    assert float(rows["absent"]["cancelled"].split()[0]) <= rows["null"]["cancelled"]
    assert rows["absent"]["carrier"] == ""


def test_a_difference_says_what_it_breaks_and_why(good: Path) -> None:
    app = open_page("schema", good, tab="What changed")
    assert not app.exception
    assert "1 is safe" in text(app)
    row = app.dataframe[0].value.to_dict("records")[0]
    assert (row["risk"], row["change"], row["column"]) == ("\N{CHECK MARK}", "+ added", "cancelled")
    assert "it may be null: rows written before have none" in text(app).replace("\\", "")


def test_a_dropped_column_breaks_readers(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "dropped").create()
    log.commit("REPLACE COLUMNS", log.metadata(FIELDS[:2]), user="li")
    app = open_page("schema", log.root, tab="What changed")
    assert "1 breaks readers" in text(app)
    row = app.dataframe[0].value.to_dict("records")[-1]
    assert (row["risk"], row["breaks"]) == ("\N{MULTIPLICATION X}", "readers of it")


def test_what_a_change_breaks_is_not_cut_on_a_narrow_page(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "widened").create()
    month, name = FIELDS[0], "departure_delay"
    long = {"type": "struct", "fields": [{**month, "name": f"{name}_{n}"} for n in range(9)]}
    log.commit("CHANGE COLUMN", log.metadata([month, {**FIELDS[1], "name": f"{name}_1", "type": long}]))
    log.commit("CHANGE COLUMN", log.metadata([{**month, "type": "long"}, {**month, "name": f"{name}_2", "type": long}]))
    table = open_page("schema", log.root, tab="What changed").dataframe[0]
    pixels = column_widths(table)
    assert "readers of the old type" in table.value["breaks"].to_list()
    assert pixels["breaks"] >= widths.heading_width("readers of the old type")
    assert sum(pixels.values()) <= widths.PLACE


def test_every_change_is_blamed_on_its_commit_and_writer(good: Path) -> None:
    app = open_page("schema", good, tab="Since when")
    assert not app.exception
    newest = app.dataframe[1].value.to_dict("records")[0]
    assert (newest["column"], newest["change"], newest["version"]) == ("cancelled", "added", "v4")
    assert (newest["operation"], newest["writer"]) == ("ADD COLUMNS", "li")
    assert app.selectbox(key="blamed").value == "4"
    assert any("Compare with v3" in link.label for link in app.page_link)


def test_operations_of_all_changes_are_whole_on_a_narrow_page(good: Path) -> None:
    pixels = column_widths(open_page("schema", good, tab="Since when").dataframe[1])
    assert pixels["operation"] >= widths.heading_width("CREATE TABLE")
    assert sum(pixels.values()) <= widths.PLACE - widths.TICK_BOXES


@pytest.mark.parametrize("tab", ["What changed", "Since when"])  # the first: `test_pages.py`
@pytest.mark.parametrize("kind", ["empty", "silent", "unsupported", "corrupt"])
def test_every_other_tab_draws_or_says_what_is_wrong(tab: str, kind: str, request: pytest.FixtureRequest) -> None:
    assert not open_page("schema", request.getfixturevalue(kind), tab=tab).exception


def test_a_wide_schema_can_be_searched_by_name_and_comment_and_is_shown_by_page(tmp_path: Path) -> None:
    fields = [
        {
            "name": f"c{i}",
            "type": "long",
            "nullable": True,
            "metadata": {"comment": "the *odd* one"} if i == 1100 else {},
        }
        for i in range(1200)
    ]
    log = LogWriter(tmp_path / "wide", partitioned=False).create(fields=fields)
    app = open_page("schema", log.root)
    assert not app.exception
    assert len(app.dataframe[0].value) == 1000
    assert open_page("schema", log.root, find="ODD").dataframe[0].value["name"].to_list() == ["c1100"]
    assert "No column matches" in text(open_page("schema", log.root, find="nothing"))


@pytest.mark.parametrize(("sentences", "lines"), [(1, 1), (3, 2)])
def test_rows_have_two_lines_only_where_most_comments_need_them(sentences: int, lines: int, tmp_path: Path) -> None:
    comments = ["minutes after the time in the timetable"] * sentences + ["short"] * (4 - sentences)
    fields = [
        {"name": f"c{i}", "type": "long", "nullable": True, "metadata": {"comment": comment}}
        for i, comment in enumerate(comments)
    ]
    app = open_page("schema", LogWriter(tmp_path / "t", partitioned=False).create(fields=fields).root)
    assert app.dataframe[0].proto.row_height == (ROW_HEIGHT if lines == 1 else BROKEN_LINES)
    assert text(app).count(comments[0]) == (1 if lines == 1 else 0), "whole below the table where its row cuts it"
