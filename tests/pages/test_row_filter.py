"""The filter of the Data page is a condition of the table, as it is for writers and the command line."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import lakeview as lv
from lakeview.app.query.request import Request
from lakeview.app.query.worker import answer


@pytest.mark.parametrize(
    ("where", "names"), [("X + 1 < 0", []), ("LENGTH(name) - 2 < 0", ["a"]), ("X > 0", ["a", "bcd"])]
)
def test_columns_are_found_and_integers_do_not_wrap_around(tmp_path: Path, where: str, names: list[str]) -> None:
    rows = pl.DataFrame({"x": [2**63 - 1, 1, None], "name": ["a", "bcd", "ef"]})
    lv.create_table(str(tmp_path), rows.to_arrow().schema).append(rows)
    request = Request(str(tmp_path), version=1, limit=9, memory=1 << 30, where=where)
    assert answer(request, lambda _: None).rows["name"].to_list() == names
