"""What the header hands out: code that opens the same version elsewhere, and frames as files."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest

from lakeview.ui import code, downloads
from tests.pages.app import open_page

FRAME = pl.DataFrame({"version": [2**60, 1], "tags": [["a", "b"], None], "where": [{"gate": "A1"}, {"gate": None}]})


def test_every_tool_opens_the_version_shown() -> None:
    snippets = code.snippets("delta", "/lake/flights", 41)
    assert list(snippets) == ["lakeview", "PySpark", "polars", "DuckDB"]
    assert all("41" in text and "/lake/flights" in text for text in snippets.values())
    assert "delta_scan('file:///lake/flights', version => 41)" in snippets["DuckDB"]


def test_quotes_in_an_address_stay_in_it() -> None:
    snippets = code.snippets("delta", "/lake/o'hare", 1)
    assert '"/lake/o\'hare"' in snippets["lakeview"]
    assert "'file:///lake/o''hare'" in snippets["DuckDB"]


def test_a_format_that_other_tools_do_not_know_has_lakeviews_code() -> None:
    assert list(code.snippets("sharing", "profile.share#a.b.c", 1)) == ["lakeview"]


@pytest.mark.parametrize("snippet", code.snippets("delta", "/lake/flights", 41).values())
def test_snippets_are_code(snippet: str) -> None:
    if "delta_scan('" not in snippet:
        compile(snippet, "snippet", "exec")


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
