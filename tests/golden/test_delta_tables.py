"""Every Delta table of the conformance folder: read as it must be, refused as it must be, or excused by a feature."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakeview.model.errors import UnsupportedTableError
from tests.golden.conformance import GoldenTable, delta_tables, require_tables
from tests.golden.expected_failures import EXPECTED_FAILURES
from tests.golden.reader import Problem, problems

TABLES = delta_tables()

pytestmark = pytest.mark.golden


@pytest.fixture(autouse=True)
def _tables_are_there() -> None:
    require_tables(TABLES)


@pytest.mark.parametrize("golden", TABLES, ids=[table.name for table in TABLES])
def test_table(golden: GoldenTable, record_property: Callable[[str, object], None]) -> None:
    excuses = golden.excusable_features & EXPECTED_FAILURES.keys()
    record_property("golden", "delta")
    record_property("excuses", sorted(excuses))
    messages = problems(golden)
    if excuses and messages and all(refused_by_name(problem, excuses) for problem in messages):
        pytest.xfail("; ".join(f"{feature}: {EXPECTED_FAILURES[feature]}" for feature in sorted(excuses)))
    assert not messages, "\n".join(problem.text for problem in messages)
    assert not excuses, f"reads right: strike {', '.join(sorted(excuses))} from expected_failures.py"


def refused_by_name(problem: Problem, features: frozenset[str]) -> bool:
    """Whether the reader said which of these features it lacks. Anything else is wrong, whatever the table needs."""
    error = problem.refusal
    return isinstance(error, UnsupportedTableError) and any(name in str(error) for name in features)


def test_every_feature_listed_is_needed_by_a_table() -> None:
    features = frozenset[str]().union(*(table.excusable_features for table in TABLES))
    assert EXPECTED_FAILURES.keys() <= features


def test_no_table_of_reader_version_1_and_no_error_is_excused() -> None:
    strict = [
        table
        for table in TABLES
        if table.expected.error or (table.expected.protocol and table.expected.protocol.min_reader_version == 1)
    ]
    assert len(strict) > 80
    assert not any(table.excusable_features & EXPECTED_FAILURES.keys() for table in strict)
