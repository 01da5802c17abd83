"""Text of a table's own is shown as it is: nothing in it is markup, and nothing in it is fetched."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from tests.breadth import with_breadth
from tests.builders.iceberg_branches import BranchedHistory
from tests.pages.app import TABLE_PAGES, open_page
from tests.pages.tables import LogWriter

EVIL = (
    "<script>x</script>![m](http://127.0.0.1:9/m) [l](javascript:x) :red[r] $e$ **b** `c` :material/home: m@e.ee >= --"
)
LIVE = re.compile(
    r"(?<!\\)!\[m|(?<!\\)\[l\]|(?<!\\):red\[r|(?<!\\)\$e|(?<!\\)<script|(?<!\\)`c|:material/home|m@e"
    r"|(?<!\S)(?:\\>=|--)(?!\S)"
)
"""Markup that Streamlit would follow; signs between spaces would become others: one for `>=`, a long dash."""


MOST_DRAWN = 2_000_000


def hostile(root: Path, name: str) -> Path:
    """A table whose names, values, comments, properties and provenance are all this."""
    table = LogWriter(root)
    names = (name, f"by {name}")
    fields = [{"name": n, "type": "string", "nullable": True, "metadata": {"comment": name}} for n in names]
    described = table.metadata(fields)
    described["metaData"] |= {
        "name": name, "description": name, "configuration": {name: name}, "partitionColumns": [names[1]],
    }  # fmt: skip
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    table.commit(name, protocol, described, user=name, **{name: name})
    pl.DataFrame({name: [name]}).write_parquet(table.root / "f.parquet")
    stats = {"numRecords": 1, "minValues": {name: name}, "maxValues": {name: name}, "nullCount": {name: 0}}
    add = {"path": "f.parquet", "partitionValues": {names[1]: name}, "size": 1, "stats": json.dumps(stats)}
    add |= {"modificationTime": 0, "dataChange": True, "tags": {name: name}}
    table.commit(name, {"add": add}, user=name, predicate=name)
    return table.root


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile(tmp_path_factory.mktemp("evil") / "t", EVIL)


ODD = "\N{RIGHT-TO-LEFT OVERRIDE}gpj.\N{ZERO WIDTH SPACE}\x07\x1b[31m\x00\r\n\t\N{REPLACEMENT CHARACTER}" + "x" * 10_000
"""Turns around what follows, hides, rings, colours a terminal, ends a line, and is longer than any screen."""

UNSEEN = set("\N{RIGHT-TO-LEFT OVERRIDE}\N{ZERO WIDTH SPACE}")

NAMES = {"markup": EVIL, "control characters": ODD}


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tables of the other format whose columns, comments, partitions, properties, branches and users are such names."""
    addresses = {}
    for what, name in NAMES.items():
        fields = [
            {"id": 1, "name": name, "required": False, "type": "string", "doc": name},
            {"id": 2, "name": f"by {name}", "required": False, "type": "string"},
        ]
        root = tmp_path_factory.mktemp("iceberg") / "t"
        history = BranchedHistory(root, fields, [(2, "identity", f"p {name}")], properties={name: name})
        history.append("a", [{name: name, f"by {name}": name}], leave_out=[])
        history.branch(name).tag(f"tag {name}")
        history.append("b", [{name: None, f"by {name}": name}])
        addresses[what] = history.address
    return addresses


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile(tmp_path_factory.mktemp("odd") / "t", ODD)


def markdown_texts(app: AppTest) -> list[str]:
    """Every text that is drawn as markdown: words, labels and help."""
    words = [element.value for element in app.markdown]
    metrics = [(m.label, m.help, m.value, m.delta, m.proto.delta_description) for m in app.metric]
    words += [text for texts in metrics for text in texts if text]
    words += [e.value for e in (*app.error, *app.warning, *app.info, *app.caption, *app.toast)]
    words += [link.label for link in app.page_link]
    words += [
        option.content if hasattr(option, "content") else str(option) for g in app.button_group for option in g.options
    ]
    words += [str(cell) for table in app.table for cell in table.value.to_numpy().flatten()]
    widgets = (
        *app.button,
        *app.checkbox,
        *app.toggle,
        *app.radio,
        *app.multiselect,
        *app.selectbox,
        *app.text_input,
        *app.expander,
        *app.tabs,
        *app.slider,
        *app.pills,
    )
    words += [text for w in widgets for text in (w.label, getattr(w, "help", None)) if text]
    return words


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_text_of_a_table_is_no_markup(page: str, evil: Path) -> None:
    app = open_page(page, evil)
    assert not app.exception
    assert [text for text in markdown_texts(app) if LIVE.search(text)] == []


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_characters_that_are_no_text_break_no_page(page: str, odd: Path) -> None:
    app = open_page(page, odd)
    assert not app.exception
    texts = markdown_texts(app)
    assert sum(map(len, texts)) < MOST_DRAWN
    options = [option for box in (*app.selectbox, *app.multiselect) for option in box.options]
    cells = [str(cell) for table in app.dataframe for cell in table.value.to_numpy().flatten()]
    assert [text for text in (*texts, *options, *cells) if UNSEEN & set(text)] == [], "what is unseen is its escape"


def test_long_names_leave_the_answer_of_the_timeline_in_sight(odd: Path) -> None:
    app = open_page("timeline", odd)
    bold = [element.value for element in app.markdown if element.value.startswith("**")]
    assert any("commits by 1 writer" in text for text in bold)
    assert any(text.startswith("**v1 ") for text in bold)
    assert max(map(len, bold)) < 500


@pytest.mark.parametrize("what", with_breadth(["markup"], NAMES))  # control characters: those of the first format
@pytest.mark.parametrize("page", TABLE_PAGES)
def test_text_of_a_table_in_the_other_format_is_no_markup(page: str, what: str, iceberg: dict[str, str]) -> None:
    app = open_page(page, iceberg[what])
    assert not app.exception
    assert [text for text in markdown_texts(app) if LIVE.search(text)] == []


@pytest.mark.parametrize("page", with_breadth(["pruning", "data"], TABLE_PAGES))  # the frame says what was typed
def test_an_address_and_a_filter_are_no_markup(page: str) -> None:
    app = open_page(page, f"/nowhere/{EVIL}", where=f"{EVIL} = '{EVIL}'", ref=EVIL, tab=EVIL, column=EVIL)
    assert not app.exception
    assert [text for text in markdown_texts(app) if LIVE.search(text)] == []
