"""Sizes that no file has are unknown: summed up they would be told as exact, or turn negative."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeview as lv
from lakeview.model.errors import CorruptTableError
from lakeview.model.limits import FILE_BYTES
from tests.builders.actions import add, remove
from tests.builders.history import DeltaHistory

SIZES = {"the most": (FILE_BYTES, FILE_BYTES), "more": (FILE_BYTES + 1, None), "all of 64 bits": (2**63 - 1, None),
         "less than none": (-1, None), "none": (0, 0)}  # fmt: skip


@pytest.mark.parametrize(("size", "expected"), SIZES.values(), ids=list(SIZES))
def test_a_size_that_no_file_has_is_unknown(tmp_path: Path, size: int, expected: int | None) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(add("f", size=size, records=1))
    history.commit(add("g", size=size, records=1)).commit(remove("g", size=size))
    opened = lv.open_table(history.address)
    assert opened.snapshot().size_bytes == expected
    assert opened.snapshot().files["size"].to_list() == [expected]
    assert opened.snapshot().tombstones["size"].to_list() == [expected]
    assert opened.plan("id = 1")["size"].to_list() == [expected]
    assert opened.changes_plan(1, 2)["size"].to_list() == [expected, expected]
    assert opened.lifetimes()["size"].to_list() == [expected, expected]
    assert opened.history()["bytes_added"].to_list() == [0, expected, expected, 0]
    assert opened.history()["bytes_removed"][0] == expected
    history.checkpoint().without(0, 1, 2, 3)
    later = lv.open_table(history.commit(remove("f")).address)
    assert later.snapshot(3).size_bytes == expected
    assert later.lifetimes()["size"].to_list() == [expected]
    assert later.history()["bytes_removed"].to_list() == [expected]


def test_a_file_of_no_possible_size_is_not_looked_into(tmp_path: Path) -> None:
    table = lv.open_table(DeltaHistory(tmp_path / "t").create().commit(add("f", size=-5)).address)
    with pytest.raises(CorruptTableError, match="records a size that no file has for f"):
        table.physical("f")
