"""A table that goes away, is made anew or breaks while somebody looks at it: every page says so, and comes back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lakeview.app import cache
from lakeview.app.session import OpenTable
from lakeview.model.errors import StoreUnavailableError
from tests.breadth import with_breadth
from tests.builders.iceberg import IcebergHistory
from tests.pages import tables
from tests.pages.app import TABLE_PAGES, open_page, text


def iceberg(root: Path, *names: str, first_id: int = 1000) -> Path:
    """A table of one file a snapshot, whose ids follow one another."""
    history = IcebergHistory(root, [{"id": 1, "name": "id", "required": False, "type": "long"}])
    history.first_id = first_id
    history.document["table-uuid"] = f"8d5c4a9e-0000-4000-8000-{first_id:012}"
    for number, name in enumerate(names):
        history.append(name, [{"id": number}])
    return root


def good_by_another(root: Path) -> Path:
    newest = tables.good(root) / FORMATS["delta"].newest_file
    newest.write_text(newest.read_text(encoding="utf-8").replace('"li"', '"al"'), encoding="utf-8")
    return root


@dataclass(frozen=True, slots=True)
class Format:
    """How a table of a format is made, made anew with fewer versions, and with as many, all files named alike; its
    latest version, and the file that tells of it."""

    make: Callable[[Path], Path]
    recreate: Callable[[Path], Path]
    alike: Callable[[Path], Path]
    latest: str
    newest_file: str


FORMATS = {
    "delta": Format(tables.good, tables.silent, good_by_another, "6", f"_delta_log/{6:020}.json"),
    "iceberg": Format(
        lambda root: iceberg(root, "a", "b", "c"),
        lambda root: iceberg(root, "x", first_id=5000),
        lambda root: iceberg(root, "x", "y", "z", first_id=5000),
        "1003",
        "metadata/v4.metadata.json",
    ),
}

BOTH = with_breadth(
    [("delta", page) for page in ("overview", "timeline", "compare", "data")] + [("iceberg", "files")],
    [("delta", page) for page in TABLE_PAGES] + [("iceberg", page) for page in ("overview", "health")],
)
"""What opens a table is the same on every page; of these the timeline shows logs that do not open, the comparison reads
two versions, and the data page reads in another process."""


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


def tried_again(app: AppTest) -> str:
    app.button(key="try-again").click().run()
    assert not app.exception
    return text(app)


@pytest.mark.parametrize(("format_", "page"), BOTH)
def test_a_page_says_that_its_table_is_gone_and_tries_again(format_: str, page: str, tmp_path: Path) -> None:
    own = FORMATS[format_].make(tmp_path / "own")
    app = open_page(page, own)
    moved = own.rename(own.with_name("moved"))
    for page_text in (refreshed(app), later(app), tried_again(app)):
        assert str(own) in page_text
        assert "not-a-table" in page_text
    moved.rename(own)
    assert "not-a-table" not in tried_again(app)


@pytest.mark.parametrize(("format_", "page"), BOTH)
def test_a_page_says_that_its_newest_commit_is_garbage_and_that_its_table_was_made_anew(
    format_: str, page: str, tmp_path: Path
) -> None:
    what = FORMATS[format_]
    own = what.make(tmp_path / "own")
    app = open_page(page, own)
    newest = own / what.newest_file
    data = newest.read_bytes()
    newest.write_text("garbage\n", encoding="utf-8")
    assert newest.name in refreshed(app)
    if page != "compare":  # without a comparison it reads no version
        page_text = later(app)
        assert newest.name in page_text
        assert "corrupt-" in page_text
        newest.write_bytes(data)
        assert "corrupt-" not in tried_again(app)
    shutil.rmtree(own)
    what.recreate(own)
    page_text = later(app)
    assert f"version {what.latest}" in page_text or f"v{what.latest}" in page_text
    assert "recreated" in page_text


@pytest.mark.parametrize("look", [later, refreshed], ids=["when it is asked again", "by a click"])
@pytest.mark.parametrize("format_", FORMATS)
def test_another_table_of_as_many_versions_is_noticed(
    format_: str, look: Callable[[AppTest], str], tmp_path: Path
) -> None:
    own = FORMATS[format_].make(tmp_path / "own")
    app = open_page("files", own)
    assert "recreated" not in look(app)
    shutil.rmtree(own)
    FORMATS[format_].alike(own)
    page_text = look(app)
    assert page_text.count("recreated") == 1
    assert "recreated" not in look(app)


def test_a_newest_file_that_was_written_again_as_it_was_is_read_again_and_not_told(tmp_path: Path) -> None:
    own = tables.good(tmp_path / "own")
    app = open_page("files", own)
    cached_table = cache.table(str(own))
    newest = own / FORMATS["delta"].newest_file
    os.utime(newest, (0, 0))
    assert "recreated" not in later(app)
    assert cache.table(str(own)) is not cached_table


def test_a_table_that_was_never_written_to_is_not_told_to_be_made_anew(tmp_path: Path) -> None:
    assert "is still the latest" in refreshed(open_page("files", iceberg(tmp_path / "own")))


def test_each_of_several_errors_of_a_page_has_its_button(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> None:
        raise StoreUnavailableError("the store does not answer", fix="try again")

    app = open_page("data", tables.good(tmp_path / "own"), tab="Profile")
    monkeypatch.setattr(OpenTable, "snapshot", property(silent))
    app.run()
    assert not app.exception
    assert [button.key for button in app.button if button.label == "Try again"][:2] == ["try-again", "try-again-2"]
