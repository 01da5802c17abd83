"""What the header hands out: code that opens the same version elsewhere, and frames as files."""

from __future__ import annotations

import csv
import io
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import lakeview as lv
from lakeview.app import code_samples, downloads
from lakeview.app.pages import PAGES
from lakeview.model.table import Table
from tests.builders.iceberg import IcebergHistory
from tests.pages.app import open_page

FRAME = pl.DataFrame({"version": [2**60, 1], "tags": [["a", "b"], None], "where": [{"gate": "A1"}, {"gate": None}]})


def of(table_format: str, address: str, version: int, **further: Any) -> dict[str, str]:
    return code_samples.snippets(code_samples.View("data", table_format, address, version, **further))


def test_every_tool_opens_the_version_shown() -> None:
    snippets = of("delta", "/lake/flights", 41)
    assert list(snippets) == ["lakeview", "PySpark", "polars", "DuckDB"]
    assert all("41" in text and "/lake/flights" in text for text in snippets.values())
    assert "delta_scan('file:///lake/flights', version => 41)" in snippets["DuckDB"]


def test_every_tool_gets_the_filter_and_the_limit() -> None:
    for tool, text in of("delta", "/lake/flights", 41, where="month = 3", limit=50).items():
        assert "month = 3" in text, tool
        assert "50" in text, tool


def test_quotes_in_an_address_stay_in_it() -> None:
    snippets = of("delta", "/lake/o'hare", 1)
    assert '"/lake/o\'hare"' in snippets["lakeview"]
    assert "'file:///lake/o''hare'" in snippets["DuckDB"]


def test_a_name_in_a_catalog_that_others_spell_otherwise_has_lakeviews_code_only() -> None:
    assert list(of("iceberg", "catalog://prod/a%2Eb", 1)) == ["lakeview"]


FORMATS = ("delta", "iceberg", "sharing")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("table_format", FORMATS)
def test_snippets_are_code(page: str, table_format: str) -> None:
    for where in (None, "note = '{x}' \n OR \"y\" = 'it''s'"):
        view = code_samples.View(page, table_format, "/lake/{o'hare}\n", 41, where=where)
        for tool, text in code_samples.snippets(view).items():
            if tool != "DuckDB":
                compile(text, tool, "exec")


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory: pytest.TempPathFactory) -> str:
    fields = [
        {"id": 1, "name": "month", "required": False, "type": "int"},
        {"id": 2, "name": "carrier", "required": False, "type": "string"},
    ]
    root = tmp_path_factory.mktemp("iceberg") / "flights"
    history = IcebergHistory(root, fields, [(1, "identity", "month")], location=str(root))
    for month in (1, 2):
        history.append(f"load-{month}", [{"month": month, "carrier": carrier} for carrier in ("AA", "B6", "UA")])
    return history.address


@pytest.fixture(params=["delta", "iceberg"])
def either_table(request: pytest.FixtureRequest, good: Path, iceberg: str) -> Table:
    return lv.open_table(good if request.param == "delta" else iceberg)


def ran(text: str) -> dict[str, Any]:
    """What a snippet leaves in its names."""
    names: dict[str, Any] = {}
    exec(compile(text, "snippet", "exec"), names)  # noqa: S102 (that it runs is what is promised)
    return names


@pytest.mark.parametrize("page", PAGES)
def test_the_lakeview_code_of_every_page_runs(page: str, either_table: Table) -> None:
    versions = either_table.versions()["version"].to_list()
    view = code_samples.View(
        page, either_table.format, either_table.address, versions[0], base=versions[1], where="carrier = 'AA'"
    )
    names = ran(code_samples.snippets(view)["lakeview"])
    assert names["snapshot"].version == versions[0]
    frames = [name for name, value in names.items() if isinstance(value, pl.DataFrame) and value.width]
    assert frames or "findings" in names, "nothing of what the page shows"


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")  # polars has a faster planner, which is not needed here
@pytest.mark.parametrize(
    "where", [None, "carrier = 'AA'", "carrier <> 'AA' AND carrier IS NOT NULL", "carrier LIKE 'A%'"]
)
def test_polars_reads_the_rows_that_lakeview_reads(where: str | None, either_table: Table) -> None:
    version = either_table.versions()["version"][1]
    view = code_samples.View("data", either_table.format, either_table.address, version, where=where, limit=500)
    snippets = code_samples.snippets(view, code_samples.metadata_file(either_table))
    ours, theirs = ran(snippets["lakeview"])["rows"], ran(snippets["polars"])["rows"]
    assert ours.height > 0
    assert_frame_equal(ours, theirs.select(ours.columns), check_row_order=False, check_dtypes=False)


def test_csv_keeps_nested_values_as_json() -> None:
    lines = downloads.to_csv(FRAME).decode().splitlines()
    assert lines[0] == "version,tags,where"
    assert lines[1] == '1152921504606846976,"[""a"", ""b""]","{""gate"": ""A1""}"'


def test_json_has_an_object_a_row() -> None:
    assert json.loads(downloads.to_json(FRAME))[0]["tags"] == ["a", "b"]


def test_parquet_keeps_types() -> None:
    assert pl.read_parquet(BytesIO(downloads.to_parquet(FRAME))).equals(FRAME)


@pytest.mark.parametrize("page", ["overview", "timeline", "schema", "files", "partitions", "data"])
def test_every_page_offers_something_to_download(page: str, good: Path) -> None:
    app = open_page(page, good)
    assert not app.button(key="download").disabled
    app.button(key="download").click().run()
    assert not app.exception
    assert {button.label for button in app.download_button} == {"CSV", "JSON", "Parquet"}


def test_the_code_dialog_shows_the_version(good: Path) -> None:
    app = open_page("files", good, version="2")
    app.button(key="code").click().run()
    assert not app.exception
    assert "table.snapshot(2)" in app.code[0].value
    assert "lv.views.files.sizes.file_sizes(files)" in app.code[0].value


def test_the_code_of_a_comparison_takes_the_base_that_the_page_takes(good: Path) -> None:
    app = open_page("compare", good, version="2")
    app.button(key="code").click().run()
    assert "look.compare(1, 2)" in app.code[1].value


def test_the_code_dialog_has_the_filter_of_the_page(good: Path) -> None:
    app = open_page("data", good, where="month = 2", limit="100")
    app.button(key="code").click().run()
    assert not app.exception
    assert "pl.sql_expr('month = 2')).head(100)" in app.code[0].value


def test_a_spreadsheet_runs_nothing_of_a_csv_file() -> None:
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a=1", "", None, "'=1"]
    frame = pl.DataFrame({"=cmd|' /C calc'!A0": texts, "'=cmd|' /C calc'!A0": texts, "n": range(-5, 5)})
    rows = list(csv.reader(io.StringIO(downloads.to_csv(frame).decode(), newline="")))
    assert rows[0] == ["'=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0", "n"]
    assert [row[0] for row in rows[1:]] == [
        *("'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\t=1", "'\r=1", "a=1", "", "", "'=1"),
    ]
    assert [int(row[2]) for row in rows[1:]] == list(range(-5, 5))
    assert pl.read_parquet(downloads.to_parquet(frame)).equals(frame)


def test_code_holds_nothing_but_the_condition() -> None:
    view = code_samples.View("data", "delta", "/lake/t", 3, where="TRUE; COPY t TO '/tmp/x'; --")
    for tool, snippet in code_samples.snippets(view).items():
        assert "COPY" not in snippet, tool
    view = code_samples.View("data", "delta", "/lake/t", 3, where="\"a b\" = 'x' /* y */")
    assert "WHERE \"a b\" = 'x' LIMIT" in code_samples.snippets(view)["DuckDB"]
    assert ".where(\"`a b` = 'x'\")" in code_samples.snippets(view)["PySpark"]
