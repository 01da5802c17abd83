"""Every page on a good table, an empty one and broken ones: it draws, or it says what was found and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from streamlit.testing.v1.element_tree import Block

from lakeview.app import session
from lakeview.model.errors import CorruptTableError, StoreUnavailableError
from lakeview.storage.local import LocalStorage
from tests.breadth import with_breadth
from tests.builders.actions import add
from tests.builders.history import DeltaHistory
from tests.pages import tables
from tests.pages.app import TABLE_PAGES, open_page, text

SAYS_ON_GOOD = {
    "overview": "Files 3 3 under 1 MiB",
    "timeline": "v6 · DELETE",
    "compare": "Compare with",
    "schema": "4 columns",
    "files": "3 in v6",
    "partitions": "Partitions 3 3 files",
    "pruning": "of 3 columns: 2 have min and max in every file",
    "data": "Rows of v6",
    "quality": "Loads of",
    "health": "Who can read v6",
}

SAYS_ON_EMPTY = {
    "overview": "Last commit none that changed data",
    "timeline": "v0 · CREATE TABLE",
    "compare": "v0 is the first version: there is nothing to compare.** :gray[Nothing was written since.]",
    "schema": "3 columns",
    "files": "v0 holds no data files",
    "partitions": "orders is not partitioned",
    "pruning": "v0 holds no data files",
    "data": "v0 holds no rows",
    "quality": "No statistics of any load",
    "health": "History costs nothing.** :gray[No commit in the log wrote a data file.]",
}


OF_THE_FRAME = with_breadth(["overview", "files"], TABLE_PAGES)
"""Where no table is opened the frame says so, and no page is drawn: one that asks for answers first, and one that does
not."""


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_draws_a_good_table(page: str, good: Path) -> None:
    app = open_page(page, good)
    assert not app.exception
    assert SAYS_ON_GOOD[page] in text(app)


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_says_why_a_table_is_empty(page: str, empty: Path) -> None:
    app = open_page(page, empty)
    assert not app.exception
    assert SAYS_ON_EMPTY[page] in text(app)


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_draws_a_table_without_statistics(page: str, silent: Path) -> None:
    app = open_page(page, silent)
    assert not app.exception


@pytest.mark.parametrize("page", [name for name in TABLE_PAGES if name != "timeline"])
def test_a_page_names_the_feature_it_cannot_read(page: str, unsupported: Path) -> None:
    app = open_page(page, unsupported)
    assert not app.exception
    assert "timeTurner" in text(app)
    assert any("Look at its log" in link.label for link in app.page_link)


def test_the_log_of_an_unsupported_table_is_shown(unsupported: Path) -> None:
    app = open_page("timeline", unsupported)
    assert not app.exception
    assert "v1 · WRITE" in text(app)


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_says_what_is_corrupt(page: str, corrupt: Path) -> None:
    app = open_page(page, corrupt)
    assert not app.exception
    assert "00000000000000000001" in text(app) or "version 1" in text(app)


def with_broken_commit(folder: Path) -> Path:
    """A table whose newest commit cannot be read."""
    root = tables.good(folder / "flights")
    (root / "_delta_log" / f"{7:020}.json").write_text("{", encoding="utf-8")
    return root


@pytest.mark.parametrize("page", [name for name in TABLE_PAGES if name not in ("health", "timeline")])
def test_an_error_leads_to_the_newest_version_that_can_be_read(page: str, tmp_path: Path) -> None:
    app = open_page(page, with_broken_commit(tmp_path))
    assert not app.exception
    assert "Open v6, the newest that can be read" in app.button(key="open-readable").label
    app.button(key="open-readable").click().run()
    assert app.query_params["version"] in ("6", ["6"])


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_version_before_one_that_cannot_be_read_has_answers(page: str, tmp_path: Path) -> None:
    app = open_page(page, with_broken_commit(tmp_path), version="6")
    assert not app.exception
    lines = [line for line in text(app).splitlines() if line.startswith(":red[:material/broken_image:]")]
    assert len(lines) == (page == "health"), "what a cleanup removes is unknown"
    assert page != "health" or "Who can read v6" in text(app)


def test_what_cannot_be_compared_leaves_no_empty_card(tmp_path: Path) -> None:
    app = open_page("compare", with_broken_commit(tmp_path))
    empty = [block for block in blocks(app.main) if not block.children and block.proto.flex_container.border]
    assert not empty


def blocks(block: Block) -> Iterator[Block]:
    """A block and all that lie in it."""
    yield block
    for child in block.children.values():
        if isinstance(child, Block):
            yield from blocks(child)


def test_a_state_of_which_nothing_is_known_is_named_once(tmp_path: Path) -> None:
    assert ":gray[Table after it:] unknown" in text(open_page("timeline", with_broken_commit(tmp_path)))


def test_a_broken_version_is_told_before_a_folder_that_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tables.good(tmp_path / "flights")
    (root / "_delta_log" / f"{6:020}.json").write_text("{", encoding="utf-8")

    def away(self: LocalStorage) -> NoReturn:
        raise StoreUnavailableError("the store is away", fix="wait")

    monkeypatch.setattr(LocalStorage, "names", away)
    with pytest.raises(CorruptTableError, match="commit 00000000000000000006"):
        session.look_at(str(root)).look.findings()


@pytest.mark.parametrize("page", OF_THE_FRAME)
def test_a_page_without_a_table_says_where_to_choose_one(page: str) -> None:
    app = open_page(page)
    assert not app.exception
    assert "No table is chosen" in text(app)


@pytest.mark.parametrize("page", OF_THE_FRAME)
def test_a_page_says_that_an_address_is_no_table(page: str, tmp_path: Path) -> None:
    app = open_page(page, tmp_path)
    assert not app.exception
    assert str(tmp_path) in text(app)
    assert "not-a-table" in text(app)


def test_a_page_says_that_a_version_is_not_there(good: Path) -> None:
    app = open_page("files", good, version="99")
    assert not app.exception
    assert "99" in text(app)
    assert "version-not-found" in text(app)


def test_bytes_the_store_holds_are_the_same_at_every_version(good: Path) -> None:
    totals = set()
    for version in ("1", "5", "6"):
        app = open_page("overview", good, version=version)
        totals |= {(metric.value, metric.delta) for metric in app.metric if metric.label == "Retained bytes"}
    assert len(totals) == 1


def test_a_table_that_never_had_a_file_retains_none(tmp_path: Path) -> None:
    app = open_page("overview", tables.empty(tmp_path / "t"))
    (retained,) = [metric for metric in app.metric if metric.label == "Retained bytes"]
    assert (retained.value, retained.delta) == ("0 B", "nothing more")


def test_rows_that_one_file_does_not_tell_are_at_least_those_of_the_others(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(add("f", records=7), add("g"))
    (rows,) = [metric for metric in open_page("overview", history.address).metric if metric.label == "Rows"]
    assert (rows.value, "At least 7: some files" in rows.help) == ("\N{GREATER-THAN OR EQUAL TO} 7", True)


def test_a_property_replaces_no_fact_of_its_name(tmp_path: Path) -> None:
    table = tables.LogWriter(tmp_path / "t")
    metadata = table.metadata(tables.FIELDS)
    metadata["metaData"]["configuration"] = {"id": "of a user", "protocol": "mine"}
    table.commit("CREATE TABLE", {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metadata)
    (facts,) = open_page("overview", table.root).table
    pairs = list(facts.value.itertuples(index=False, name=None))
    assert [value for name, value in pairs if name == "id"] == [metadata["metaData"]["id"], "of a user"]
    assert [name for name, _ in pairs].count("protocol") == 2


def test_a_page_says_that_a_version_is_no_number(good: Path) -> None:
    app = open_page("files", good, version="last-tuesday")
    assert not app.exception
    assert "The link asks for version 'last-tuesday', which is no number" in text(app)
    assert "open the latest version, or correct the link" in text(app)


@pytest.mark.usefixtures("fresh_server")
def test_a_table_outside_the_roots_is_not_opened(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEVIEW_ROOTS", str(tmp_path))
    app = open_page("overview", good)
    assert not app.exception
    assert "outside-roots" in text(app)


def test_a_change_that_is_unknown_is_since_nothing(silent: Path) -> None:
    tiles = {tile.label: tile.proto for tile in open_page("overview", silent).metric}
    assert (tiles["Rows"].delta, tiles["Rows"].delta_description) == ("", "")
    assert tiles["Live bytes"].delta_description.startswith("since v")
