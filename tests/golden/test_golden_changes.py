"""Changes of every golden table: a version's stored rows and its changes give the next version's stored rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import polars as pl
import polars_deltalake
import pyarrow as pa
import pytest

from lakeview.model.errors import DataFileMissingError, InvalidRequestError
from lakeview.model.frames import CHANGES
from tests.builders.opening import open_delta_table
from tests.golden.conformance import GoldenTable, delta_tables
from tests.golden.expected_failures import EXPECTED_FAILURES
from tests.golden.rows import read_rows, rows

SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}

BY_HAND = {"cdf-table-simple"}
"""Tables with a commit that records changes which its rows never made."""

Row = tuple[Hashable, ...]

TABLES = [
    table
    for table in delta_tables()
    if table.expected.error is None
    and table.expected.may_error is None
    and table.name not in BY_HAND
    and not table.excusable_features & EXPECTED_FAILURES.keys()
    and sum(version.rows is not None for version in (table.expected.versions or {}).values()) > 1
]

pytestmark = [
    pytest.mark.golden,
    pytest.mark.skipif(not TABLES, reason="no conformance tables (LAKEVIEW_CONFORMANCE says where they are)"),
]


@pytest.mark.parametrize("golden", TABLES, ids=[table.name for table in TABLES])
def test_changes_lead_from_each_version_to_the_next(golden: GoldenTable) -> None:
    table = open_delta_table(golden.path)
    stored = {int(v): version.rows for v, version in (golden.expected.versions or {}).items()}
    there = set(table.history()["version"])
    for version in sorted(stored.keys() & there):
        before, after = stored.get(version - 1), stored[version]
        if before is None or after is None:
            continue
        try:
            changes = table.changes(version, version).collect()
        except (DataFileMissingError, InvalidRequestError):  # vacuumed, or its schema change cuts the range
            continue
        assert set(changes["_commit_version"]) <= {version}
        had, has = read_rows(golden.folder / before), read_rows(golden.folder / after)
        if had.schema.names != has.schema.names or had.schema.types != has.schema.types:
            continue  # rows of two schemas do not compare
        moved = Counter(multiset(had))
        kinds = changes["_change_type"]
        plain = changes.drop(CHANGES.names())
        for kind, row in zip(kinds, multiset(plain, has.schema.names), strict=True):
            moved[row] += SIGNS[kind]
        assert {row: n for row, n in moved.items() if n} == dict(Counter(multiset(has))), f"version {version}"


KERNEL = [
    table
    for table in delta_tables()
    if table.name.startswith("cdf-") and not any(tag.startswith("column-mapping") for tag in table.expected.features)
]


@pytest.mark.parametrize("golden", KERNEL, ids=[table.name for table in KERNEL])
def test_the_feed_is_the_one_that_the_rust_kernel_reads(golden: GoldenTable) -> None:
    theirs = polars_deltalake.scan_cdf(golden.path, start_version=0).collect()
    table = open_delta_table(golden.path)
    rows_read = table.changes(0).collect()
    assert set(table.changes_plan(0)["source"]) == {"feed"}
    columns = [name for name in rows_read.columns if name != "_commit_timestamp"]
    assert Counter(multiset(rows_read, columns)) == Counter(multiset(theirs, columns))


def multiset(table: pa.Table | pl.DataFrame, columns: list[str] | None = None) -> list[Row]:
    """Rows as values that equal each other exactly when the rows do, in their order."""
    if isinstance(table, pl.DataFrame):
        if not table.height:
            return []
        table = pa.table({name: table[name].to_arrow() for name in columns or table.columns})
    return list(rows(table))
