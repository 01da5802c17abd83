"""Arguments of the wrong kind: an error of lakeview's says which one it is, what was given, and what is taken."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.model.errors import InvalidRequestError

ROWS = pl.DataFrame({"id": [1], "v": [1]})
FIVE: Any = 5
CALLS: dict[str, Callable[[Any], object]] = {
    "update without a mapping": lambda t: t.update("v = 1"),
    "update of a number": lambda t: t.update({5: "1"}),
    "merge on a number": lambda t: t.merge(ROWS, 5),
    "merge with a clause": lambda t: t.merge(ROWS, "id").when_matched_update("v = 1").execute(),
    "optimize by a number": lambda t: t.optimize(z_order_by=5),
    "optimize to a text": lambda t: t.optimize(target_bytes="1GB"),
    "add a column": lambda t: t.add_column(5, "long"),
    "rename to a number": lambda t: t.rename_column("v", 5),
    "reorder by numbers": lambda t: t.reorder_columns([1]),
    "a nullable text": lambda t: t.set_nullable("v", nullable="no"),
    "a comment": lambda t: t.set_comment("v", 5),
    "properties": lambda t: t.set_properties(5),
    "properties to remove": lambda t: t.unset_properties(5),
    "features": lambda t: t.upgrade_protocol(5),
    "the name of a constraint": lambda t: t.add_constraint(5, "v > 0"),
    "a constraint": lambda t: t.add_constraint("c", 5),
    "a constraint to drop": lambda t: t.drop_constraint(5),
    "a retention in days": lambda t: t.vacuum(7),
    "a retention of ever": lambda t: t.vacuum(timedelta.max),
    "a dry run in words": lambda t: t.vacuum(dry_run="no"),
    "a version to keep": lambda t: t.vacuum(keep_versions=5),
    "a retention of the log": lambda t: t.clean_log(timedelta.max),
    "parts of a checkpoint": lambda t: t.checkpoint(parts="2"),
    "commits to compact": lambda t: t.compact_log("0", 1),
    "the address of a clone": lambda t: t.clone(5),
    "a user": lambda t: t.transaction("WRITE", user=5),
    "parameters": lambda t: t.transaction("WRITE", parameters=5),
    "changes of nothing": lambda t: t.changes(None),
    "a page of history": lambda t: t.history("5"),
    "a commit": lambda t: t.commit("0"),
    "columns": lambda t: t.files(columns=5),
    "columns with statistics": lambda t: t.statistics(columns=[5]),
    "a condition": lambda t: t.plan(5),
    "a range to audit": lambda t: t.audit("0"),
    "a time of a check": lambda t: t.check(5),
    "a retention in the inspection": lambda t: lv.inspect(t).retention(days=1e12),
    "partitions": lambda _: lv.create_table("memory://arguments-2", {"id": "long"}, partition_by=FIVE),
    "the address of a table": lambda _: lv.open_table(FIVE),
    "options": lambda t: lv.open_table(t.address, storage_options=FIVE),
    "half a surrogate pair in a condition": lambda t: t.delete("v = '\ud800'"),
    "half a surrogate pair in a column's name": lambda t: t.add_column("\ud800", "long"),
    "half a surrogate pair in a comment": lambda t: t.set_comment("v", "\ud800"),
    "half a surrogate pair in a property": lambda t: t.set_properties({"owner": "\ud800"}),
    "half a surrogate pair in a constraint's name": lambda t: t.add_constraint("\ud800", "v > 0"),
    "half a surrogate pair in a user": lambda t: t.optimize(user="\ud800"),
}


@pytest.fixture(scope="module")
def table() -> Any:
    created = lv.create_table(
        "memory://arguments", {"id": "long", "v": "long"}, properties={"delta.columnMapping.mode": "name"}
    )
    created.append(ROWS)
    return created


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_an_argument_of_another_kind_is_refused_by_name(table: Any, call: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        call(table)
    assert caught.value.fix
    assert table.latest_version == 1
