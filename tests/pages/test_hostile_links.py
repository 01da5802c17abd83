"""Links that nobody means well: no page breaks on one, waits for ever, or tells what lies on the server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakeview.app import errors, tables
from lakeview.app.pages import PAGES
from lakeview.model.errors import NotATableError
from tests.pages.app import open_page, text

BAD = (
    "abc", "x" * 10_000, "9" * 5_000, "-1", str(1 << 63), "1e308", "nan", "", "   ", "\0\x07\x1b[31m\r\n\t",
    "\N{RIGHT-TO-LEFT OVERRIDE}gpj.\N{ZERO WIDTH SPACE}", "<script>alert(1)</script>", "' OR 1=1; DROP TABLE x --",
    "0001-01-01T00:00", "9999-12-31T23:59", "2024-01-01T00:00+23:59", "(" * 5_000, "{0}$e$`c`", "%00%ff",
    ["a", "b", "a"],
)  # fmt: skip
KEYS = (
    "blamed", "budget", "changes-limit", "column", "columns", "columns-filter", "commit", "commits", "commits-page",
    "course-table", "depth-table", "expectation", "file", "files_page", "filter", "filter-column", "filter-operator",
    "filter-value", "find", "from", "keep", "lake-table", "lanes", "limit", "lives-page", "measure", "metrics",
    "moment", "name", "order", "output", "page", "partition", "partitions-table", "profile-file", "raw", "read-at-most",
    "recipients-fold", "root", "run", "seconds", "share-name", "sizes", "span", "sql", "sql-limit", "state",
    "statistics-of", "tab", "times", "to", "tree-page", "values-table", "verdict", "when", "where", "why", "writer",
)  # fmt: skip
"""Whatever a page keeps in the link."""


@pytest.mark.parametrize("page", PAGES)
def test_no_page_breaks_on_parameters_that_nobody_means_well(page: str, good: Path) -> None:
    start = 7 * list(PAGES).index(page)  # each page meets other values under each key
    parameters = {key: BAD[(start + 3 * number) % len(BAD)] for number, key in enumerate(KEYS)}
    assert not open_page(page, good, **parameters).exception


@pytest.mark.parametrize(
    "address",
    [
        "/etc/passwd", "file:///etc", "/dev/zero", "/proc/self/environ", "/", "../../../../../../etc", "|ls", "   ",
        "http://127.0.0.1:9/", "nosuchstore://x", "zip::file:///etc", "s3://", "/etc/passwd#a.b.c", "{}/pipe",
        "{}/pipe#a.b.c", "{}/table", "{}/linked", "{}/loop", "{}/closed",
    ],
)  # fmt: skip
def test_an_address_of_something_else_is_refused_in_words(address: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("table", "linked"):
        (tmp_path / name / "_delta_log").mkdir(parents=True)
    os.mkfifo(tmp_path / "table" / "_delta_log" / f"{0:020}.json")
    (tmp_path / "linked" / "_delta_log" / f"{0:020}.json").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "closed").mkdir(mode=0)
    app = open_page("files", address.format(tmp_path))
    assert not app.exception
    assert ":red[" in text(app)
    assert "root:" not in text(app)
    assert "PATH=" not in text(app)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("nope", "nope is no table: the folder is empty or not there"),
        ("./a/../nope", "nope is no table"),
        ("~/nope", "~/nope is no table"),
        ("..", ".. is no table"),
        (".", ". is no table"),
        ("nope.json#a.b.c", "There is no profile at nope.json"),
        ("demo/nope", "demo/nope is no table: the demo lake is not built"),
    ],
)
def test_a_page_does_not_tell_where_the_server_runs(
    table: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home", tmp_path / "srv" / "app"
    for folder in (home, here):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    app = open_page("files", table)
    assert not app.exception
    assert message in text(app)
    assert str(tmp_path) not in text(app)


def test_what_was_typed_is_told_as_it_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    message = f"{tmp_path}{os.sep}t is no table"
    assert errors.public_text(message) == "t is no table"
    others = f"/srv{tmp_path}/x or {tmp_path}-2 or {tmp_path}.2"
    assert errors.public_text(f"{others} is no table, nor is {tmp_path}.") == f"{others} is no table, nor is .."
    assert errors.public_text(message, f"{tmp_path}{os.sep}t") == message


def test_a_table_of_the_demo_lake_is_one_of_those_it_holds(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEVIEW_DEMO", str(good.parent))
    assert tables.address("demo/flights") == str(good)
    with pytest.raises(
        NotATableError, match="demo/nope is no table: the demo lake holds no table of this name"
    ) as demo_error:
        tables.address("demo/nope")
    assert demo_error.value.fix == "choose from demo/flights"
    app = open_page("files", "demo/flights", version="99")
    assert "Version 99 of demo/flights is not in the log, which ends at 6" in text(app)
