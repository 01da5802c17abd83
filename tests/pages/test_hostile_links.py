"""Links that nobody means well: no page breaks on one, waits for ever, or tells what lies on the server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakeview.errors import NotATableError
from lakeview.ui import errors, tables
from tests.pages.app import open_page, text


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("nope", "nope is no table: the folder is empty or not there"),
        ("./a/../nope", "nope is no table"),
        ("~/nope", "~/nope is no table"),
        ("..", ".. is no table"),
        (".", ". is no table"),
        ("nope.json#a.b.c", "there is no profile at nope.json"),
        ("demo/nope", "demo/nope is no table: the demo lake is not built"),
    ],
)
def test_a_page_does_not_tell_where_the_server_runs(
    table: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home", tmp_path / "srv" / "app"
    for folder in (home, here):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    app = open_page("files", table)
    assert not app.exception
    assert said in text(app)
    assert str(tmp_path) not in text(app)


def test_what_was_typed_is_told_as_it_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = f"{tmp_path}{os.sep}t is no table"
    assert errors.told(said) == "t is no table"
    assert errors.told(f"{tmp_path} is no table, {tmp_path}-2 neither") == f". is no table, {tmp_path}-2 neither"
    assert errors.told(said, f"{tmp_path}{os.sep}t") == said


def test_a_table_of_the_demo_lake_is_one_of_those_it_holds(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEVIEW_DEMO", str(good.parent))
    assert tables.address("demo/flights") == str(good)
    with pytest.raises(
        NotATableError, match="demo/nope is no table: the demo lake holds no table of this name"
    ) as told:
        tables.address("demo/nope")
    assert told.value.fix == "choose from demo/flights"
    app = open_page("files", "demo/flights", version="99")
    assert "version 99 of demo/flights is not in the log, which holds 0 to 6" in text(app)
