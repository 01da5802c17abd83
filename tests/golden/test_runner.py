"""The runner itself: change one thing that must be found, and it has to say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from tests.golden.conformance import Commit, Expected, GoldenTable, Latest, Protocol, Refusal
from tests.golden.reader import Problem, problems
from tests.golden.test_delta_tables import TABLES, refused_by_name

BY_NAME = {table.name: table for table in TABLES}

pytestmark = [
    pytest.mark.golden,
    pytest.mark.skipif(not TABLES, reason="no conformance tables; test_delta_tables.py fails in CI for that"),
]


def changed(table: GoldenTable, **changes: Any) -> GoldenTable:
    return msgspec.structs.replace(table, expected=msgspec.structs.replace(table.expected, **changes))


def latest(change: Callable[[Latest], dict[str, Any]]) -> Callable[[Expected], dict[str, Any]]:
    def changes(expected: Expected) -> dict[str, Any]:
        assert expected.latest is not None
        return {"latest": msgspec.structs.replace(expected.latest, **change(expected.latest))}

    return changes


def first_version(**changes: Any) -> Callable[[Expected], dict[str, Any]]:
    def changed_versions(expected: Expected) -> dict[str, Any]:
        assert expected.versions is not None
        return {"versions": {"0": msgspec.structs.replace(expected.versions["0"], **changes)}}

    return changed_versions


CHANGES: dict[str, tuple[Callable[[Expected], dict[str, Any]], str]] = {
    "a file more": (latest(lambda it: {"num_files": it.num_files + 1}), "latest: num_files"),
    "a byte more": (latest(lambda it: {"size_bytes": it.size_bytes + 1}), "latest: size_bytes"),
    "a later version": (latest(lambda it: {"version": it.version + 1}), "latest: version"),
    "a row more in the statistics": (latest(lambda _: {"num_rows_from_stats": 7}), "latest: num_records"),
    "a row more": (latest(lambda it: {"num_rows": it.num_rows and it.num_rows + 1}), "latest: rows of scan"),
    "other rows": (latest(lambda _: {"rows": "expected/v0.parquet", "num_rows": None}), "latest: 6 rows, expected 3"),
    "columns in another order": (latest(lambda it: {"columns": it.columns[::-1]}), "latest: columns"),
    "another partition column": (latest(lambda _: {"partition_columns": ["number"]}), "latest: partition columns"),
    "a deletion vector": (latest(lambda _: {"num_files_with_dv": 1}), "latest: deletion vectors"),
    "a missing file": (latest(lambda _: {"missing_files": 1}), "latest: scan gave 6 rows"),
    "a tombstone": (lambda _: {"tombstones": 1}, "latest: 0 tombstones"),
    "a transaction": (lambda _: {"txns": {"app": 1}}, "latest: transactions"),
    "a domain": (lambda _: {"domain_metadata": {"d": "{}"}}, "latest: domain metadata"),
    "another operation": (lambda _: {"history": [Commit(0, "MERGE", None)]}, "history of version 0: operation"),
    "another moment": (lambda _: {"history": [Commit(0, None, 1)]}, "history of version 0: recorded_timestamp"),
    "another commit": (lambda _: {"history": [Commit(9, None, None)]}, "history of version 9: not there"),
    "fewer readable versions": (lambda _: {"versions_reconstructable": (1, 1)}, "readable versions [0, 1]"),
    "a file more in an old version": (
        first_version(num_files=9),
        "version 0: num_files",
    ),
    "other rows in an old version": (
        first_version(rows="expected/v1.parquet"),
        "version 0: 3 rows, expected 6",
    ),
    "an error": (lambda _: {"error": Refusal("missing-protocol", "")}, "opened at version 1, expected an error"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_is_seen(case: str) -> None:
    change, message = CHANGES[case]
    golden = BY_NAME["basic_partitioned"]
    messages = [problem.text for problem in problems(changed(golden, **change(golden.expected)))]
    assert any(text.startswith(message) for text in messages), messages


def test_an_error_of_another_kind_is_seen() -> None:
    golden = changed(BY_NAME["crc-malformed"], error=Refusal("missing-protocol", ""))
    assert next(problem.text for problem in problems(golden)).endswith("expected 'missing-protocol'")


def test_a_table_that_opens_only_with_an_error_it_must_not_give_is_seen() -> None:
    golden = changed(BY_NAME["crc-malformed"], error=None, latest=BY_NAME["basic_partitioned"].expected.latest)
    assert problems(golden)[0].text.startswith("latest: refused")


def test_only_a_refusal_that_names_the_feature_is_excused() -> None:
    features = frozenset({"deletionVectors"})
    by_name = UnsupportedTableError("needs the Delta reader feature deletionVectors", fix="upgrade")
    assert refused_by_name(Problem("", by_name), features)
    assert not refused_by_name(Problem("", UnsupportedTableError("needs something", fix="upgrade")), features)
    assert not refused_by_name(Problem("", CorruptTableError("deletionVectors are odd", fix="?")), features)
    assert not refused_by_name(Problem("latest: num_files is 1, expected 2"), features)


def test_column_mapping_that_is_not_in_use_excuses_nothing() -> None:
    golden = BY_NAME["basic_partitioned"]
    unused = changed(golden, protocol=Protocol(2, None))
    golden_table = changed(golden, protocol=Protocol(2, None), features=["column-mapping-id"])
    assert unused.excusable_features == frozenset()
    assert golden_table.excusable_features == {"columnMapping"}
