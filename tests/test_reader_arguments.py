"""Arguments of another kind in calls that read a table: refused alike by the tables of every format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import lakeview as lv
from lakeview.model.errors import InvalidRequestError
from tests.builders.iceberg import IcebergHistory
from tests.builders.shares import SharingServer

CALLS: dict[str, Callable[[Any], object]] = {
    "changes from a text": lambda t: t.changes("0"),
    "changes from nothing": lambda t: t.changes(None),
    "changes from a fraction": lambda t: t.changes(0.5),
    "changes from a truth value": lambda t: t.changes(True),
    "changes to a text": lambda t: t.changes(t.latest_version, "0"),
    "a difference from a text": lambda t: t.difference("0"),
    "a difference from nothing": lambda t: t.difference(None),
    "a commit as text": lambda t: t.commit("0"),
    "no commit": lambda t: t.commit(None),
    "a version that is a truth value": lambda t: t.snapshot(False),
    "versions in an array": lambda t: t.snapshot(np.array([0, 1])),
    "no moment of pandas": lambda t: t.snapshot(at=pd.NaT),
    "a negative number of days": lambda t: lv.inspect(t).retention(-1),
    "a scan of a truth value": lambda t: t.scan(True),
    "a moment that UTC has not": lambda t: t.snapshot(at=datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))),
    "a plan for a number": lambda t: t.plan("1"),
    "a plan for a column": lambda t: t.plan(pl.col("id")),
    "a plan for a value": lambda t: t.plan("id + 1"),
    "tasks for a column": lambda t: t.tasks(where="id"),
    "columns of a listing": lambda t: t.files(columns=5),
    "a column twice in a listing": lambda t: t.files(columns=["path", "path"]),
    "columns with statistics": lambda t: t.statistics(columns=[5]),
    "columns of lifetimes": lambda t: t.lifetimes(columns=5),
    "paths of a scan": lambda t: t.scan(paths=5),
    "a file to look into": lambda t: t.physical(5),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder: Path = tmp_path_factory.mktemp("tables")
    server = SharingServer()
    story = server.share("a.b.c", {"id": "long"})
    story.holds(story.file({"id": [1]}))
    profile = folder / "team.share"
    profile.write_text(json.dumps(server.profile()))
    profile.chmod(0o600)
    delta = lv.create_table(str(folder / "delta"), {"id": "long"})
    history = IcebergHistory(folder / "iceberg", [{"id": 1, "name": "id", "required": False, "type": "long"}])
    history.append("a", [{"id": 1}])
    yield {"delta": delta, "iceberg": lv.open_table(history.address), "sharing": lv.open_table(f"{profile}#a.b.c")}
    server.close()


@pytest.mark.parametrize("name", ["delta", "iceberg", "sharing"])
@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_an_argument_of_another_kind_is_refused(
    tables: dict[str, Any], name: str, call: Callable[[Any], object]
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        call(tables[name])
    assert caught.value.fix


@pytest.mark.parametrize("name", ["delta", "iceberg"])
@pytest.mark.parametrize("arguments", [{"limit": "5"}, {"limit": 0.5}, {"before": "5"}], ids=str)
def test_a_page_of_history_is_whole_numbers(tables: dict[str, Any], name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="no whole number"):
        tables[name].history(**arguments)


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_a_page_of_history_has_no_negative_number_of_commits(tables: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidRequestError, match="limit is -1"):
        tables[name].history(-1)
    assert tables[name].history(0).is_empty()


@pytest.mark.parametrize("name", ["delta", "iceberg", "sharing"])
def test_one_name_is_a_list_of_columns(tables: dict[str, Any], name: str) -> None:
    assert tables[name].files(columns="path").columns == ["path"]
