"""Text of a table's own is shown as it is: nothing in it is markup, and nothing in it is fetched."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from tests.pages.app import TABLE_PAGES, open_page
from tests.pages.tables import LogWriter

EVIL = "<script>x</script>![m](http://127.0.0.1:9/m) [l](javascript:x) :red[r] $e$ **b** `c`"
LIVE = re.compile(r"(?<!\\)!\[m|(?<!\\)\[l\]|(?<!\\):red\[r|(?<!\\)\$e|(?<!\\)<script|(?<!\\)`c")


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose names, values, comments, properties and provenance all try to be something else."""
    table = LogWriter(tmp_path_factory.mktemp("evil") / "t")
    names = (EVIL, f"by {EVIL}")
    fields = [{"name": n, "type": "string", "nullable": True, "metadata": {"comment": EVIL}} for n in names]
    described = table.metadata(fields)
    described["metaData"] |= {
        "name": EVIL, "description": EVIL, "configuration": {EVIL: EVIL}, "partitionColumns": [names[1]],
    }  # fmt: skip
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    table.commit(EVIL, protocol, described, user=EVIL, **{EVIL: EVIL})
    pl.DataFrame({EVIL: [EVIL]}).write_parquet(table.root / "f.parquet")
    stats = {"numRecords": 1, "minValues": {EVIL: EVIL}, "maxValues": {EVIL: EVIL}, "nullCount": {EVIL: 0}}
    add = {"path": "f.parquet", "partitionValues": {names[1]: EVIL}, "size": 1, "stats": json.dumps(stats)}
    add |= {"modificationTime": 0, "dataChange": True, "tags": {EVIL: EVIL}}
    table.commit(EVIL, {"add": add}, user=EVIL, predicate=EVIL)
    return table.root


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_text_of_a_table_is_no_markup(page: str, evil: Path) -> None:
    app = open_page(page, evil)
    assert not app.exception
    shown = [element.value for element in app.markdown]
    shown += [text for m in app.metric for text in (m.label, m.help) if text]
    shown += [text for e in (*app.error, *app.warning, *app.info, *app.caption) for text in (e.value,)]
    assert [text for text in shown if LIVE.search(text)] == []
