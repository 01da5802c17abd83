"""Every page on a table of thousands of commits and files: it draws, and sends no table of more than 1,000 rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeview.app.components import MAX_ROWS
from tests.pages.app import TABLE_PAGES, open_page
from tests.pages.tables import LogWriter

pytestmark = pytest.mark.app

COMMITS = 2_500


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file a commit, in a partition of its own; the log has them, the folder does not."""
    table = LogWriter(tmp_path_factory.mktemp("large") / "flights").create()
    for number in range(COMMITS):
        add = {
            "path": f"month={number}/load.parquet",
            "partitionValues": {"month": str(number)},
            "size": 1_000 + number,
            "modificationTime": 0,
            "dataChange": True,
            "stats": f'{{"numRecords":{number},"minValues":{{"delay":{number}}},"maxValues":{{"delay":{number + 9}}}}}',
        }
        table.commit("WRITE", {"add": add}, user=f"writer {number % 1_500}")
    return table.root


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_draws_a_large_table_and_sends_a_bounded_part(page: str, large: Path) -> None:
    app = open_page(page, large)
    assert not app.exception
    assert max((frame.value.shape[0] for frame in app.dataframe), default=0) <= MAX_ROWS
