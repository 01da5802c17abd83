"""Every Iceberg table of the conformance folder: read as it must be, or refused as it must be. None is excused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.golden.conformance import require_tables
from tests.golden.iceberg_conformance import Current, GoldenIceberg, IcebergRefusal, iceberg_tables
from tests.golden.iceberg_reader import problems

TABLES = iceberg_tables()
BY_NAME = {table.name: table for table in TABLES}

pytestmark = pytest.mark.golden


@pytest.fixture(autouse=True)
def _tables_are_there() -> None:
    require_tables(TABLES)


@pytest.mark.parametrize("golden", TABLES, ids=[table.name for table in TABLES])
def test_table(golden: GoldenIceberg, record_property: Callable[[str, object], None]) -> None:
    record_property("golden", "iceberg")
    messages = problems(golden)
    assert not messages, "\n".join(problem.text for problem in messages)


# -- the runner itself: change one thing that must be found, and it has to say so


def changed(golden: GoldenIceberg, change: Callable[[Current], dict[str, Any]]) -> GoldenIceberg:
    current = golden.expected.current
    assert current is not None
    replaced = msgspec.structs.replace(current, **change(current))
    return msgspec.structs.replace(golden, expected=msgspec.structs.replace(golden.expected, current=replaced))


def first_file(**changes: Any) -> Callable[[Current], dict[str, Any]]:
    def change(current: Current) -> dict[str, Any]:
        assert current.files
        return {"files": [msgspec.structs.replace(current.files[0], **changes), *current.files[1:]]}

    return change


CHANGES: dict[str, tuple[Callable[[Current], dict[str, Any]], str]] = {
    "a file more": (lambda it: {"num_data_files": (it.num_data_files or 0) + 1}, "current: data files"),
    "a delete file more": (lambda it: {"num_delete_files": (it.num_delete_files or 0) + 1}, "current: delete files"),
    "a row more": (lambda it: {"num_rows": (it.num_rows or 0) + 1}, "current: rows of scan"),
    "another snapshot": (lambda _: {"snapshot_id": 5}, "snapshot id"),
    "a column less": (lambda it: {"columns": it.columns[1:]}, "columns"),
    "another column id": (lambda it: {"columns": [msgspec.structs.replace(it.columns[0], id=77)]}, "columns"),
    "no partition spec": (lambda _: {"partition_spec": []}, "partition spec"),
    "a file of another sequence number": (first_file(sequence_number=99), "file "),
    "a file in another partition": (first_file(partition={"cat": "z"}), "file "),
    "another bound": (first_file(lower_bounds={"1": -5}), "file "),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_is_seen(case: str) -> None:
    change, message = CHANGES[case]
    messages = [problem.text for problem in problems(changed(BY_NAME["synth_pos_partitioned"], change))]
    assert any(text.startswith(message) for text in messages), messages


def test_an_error_that_does_not_come_is_seen() -> None:
    golden = BY_NAME["synth_pos_partitioned"]
    for stage in ("metadata", "manifest_list", "manifest"):
        error = IcebergRefusal("corrupt_file", stage)
        expected = msgspec.structs.replace(golden.expected, error=error)
        assert problems(msgspec.structs.replace(golden, expected=expected)), stage


def test_an_error_of_another_kind_is_seen() -> None:
    golden = BY_NAME["synth_err_version_4"]
    expected = msgspec.structs.replace(golden.expected, error=IcebergRefusal("not_a_table", "metadata"))
    assert problems(msgspec.structs.replace(golden, expected=expected))
