"""A table that goes away, is made anew or breaks while somebody looks at it: every page says so, and comes back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lakeview.ui import cache
from tests.pages import tables
from tests.pages.app import TABLE_PAGES, open_page, text


@pytest.fixture
def own(good: Path, tmp_path: Path) -> Path:
    """A table that nobody else looks at."""
    return Path(shutil.copytree(good, tmp_path / "own"))


def later(app: AppTest) -> str:
    """What is said at the next run, when the latest version is asked for again."""
    cache.latest.clear()
    app.run()
    assert not app.exception
    return text(app)


def refreshed(app: AppTest) -> str:
    app.button(key="refresh").click().run()
    assert not app.exception
    return text(app)


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_says_that_its_table_is_gone(page: str, own: Path) -> None:
    app = open_page(page, own)
    moved = own.rename(own.with_name("moved"))
    for said in (refreshed(app), later(app)):
        assert str(own) in said
        assert "not-a-table" in said
    moved.rename(own)
    assert "not-a-table" not in later(app)


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_says_that_its_table_was_made_anew(page: str, own: Path) -> None:
    app = open_page(page, own)
    shutil.rmtree(own)
    tables.silent(own)
    said = later(app)
    assert "version 6" in said or "v6" in said
    assert "version-not-found" in said or "made anew" in said


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_says_that_a_commit_was_overwritten_with_garbage(page: str, own: Path) -> None:
    app = open_page(page, own)
    (own / "_delta_log" / f"{6:020}.json").write_text("garbage\n", encoding="utf-8")
    said = refreshed(app)
    assert f"{6:020}.json" in said, said
