"""Tables and links that would bring a page down: names that are patterns, unknown types, clocks of other ages, endless
conditions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.builders.actions import info
from tests.builders.history import DeltaHistory
from tests.builders.iceberg_branches import BranchedHistory
from tests.pages.app import TABLE_PAGES, open_page, text

NAMES = ("^x$", "*", "path", "version", "size", "records", "files", "min", "^.*$")
"""Names that polars takes for patterns, and names of columns that lakeview adds itself."""

SIZES = (1_000, 2**62, -5)
"""Of one file that a file may have, and of two that none has."""

AGES = (datetime(1, 6, 1, tzinfo=UTC), datetime(1650, 1, 1, tzinfo=UTC), datetime(9999, 6, 1, tzinfo=UTC))
"""Of the commits of the Iceberg table, which has a column of an unknown type as well."""


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A table of each format whose columns and partitions have such names, and its files such sizes."""
    history = DeltaHistory(tmp_path_factory.mktemp("delta") / "t").create(dict.fromkeys(NAMES, "string"),
                                                                          partition_by=("^.*$",))  # fmt: skip
    names = NAMES[:-1]
    for i in range(3):
        rows = {n: [f"{i}a", f"{i}b"] for n in names}
        stats = {
            "numRecords": 2,
            "minValues": dict.fromkeys(names, f"{i}a"),
            "maxValues": dict.fromkeys(names, f"{i}b"),
            "nullCount": dict.fromkeys(names, 0),
        }
        action = history.data(f"f{i}", rows, stats=stats, partition={"^.*$": f"p{i}"})
        action["add"]["size"] = SIZES[i]
        history.commit(info(operation="WRITE"), action)
    fields = [{"id": i + 1, "name": n, "required": False, "type": "string"} for i, n in enumerate(NAMES)]
    fields.append({"id": 99, "name": "x", "required": False, "type": "wish(4)"})
    other = BranchedHistory(tmp_path_factory.mktemp("iceberg") / "t", fields, [(1, "identity", "^.*$")])
    for i in range(3):
        other.append(f"f{i}", [dict.fromkeys(NAMES, f"{i}a")], leave_out=["x"])
    for snapshot, entry, at in zip(other.document["snapshots"], other.document["snapshot-log"], AGES, strict=True):
        snapshot["timestamp-ms"] = entry["timestamp-ms"] = int(at.timestamp() * 1000)
    other.record(last_updated_ms=int(AGES[-1].timestamp() * 1000))
    return {"Delta": history.address, "Iceberg": other.address}


@pytest.mark.parametrize("kind", ["Delta", "Iceberg"])
@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_column_may_have_any_name_or_type_a_file_any_size_and_a_commit_any_time(
    page: str, kind: str, addresses: dict[str, str]
) -> None:
    app = open_page(page, addresses[kind], column="^x$")
    assert not app.exception
    if page == "overview" and kind == "Delta":
        assert "2 of 3 files are recorded with an impossible size" in text(app)
        assert "\N{GREATER-THAN OR EQUAL TO} 0.98 KiB" in {metric.value for metric in app.metric}


@pytest.mark.parametrize("page", ["pruning", "data"])
@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("/*'*/ " + " AND ".join(["delay = 1"] * 6_000) + " /*'*/", "more than 5,000 operators"),
        ("LPAD('x', 10000000000) = carrier", "PAD of constants is not evaluated"),
        ("delay BETWEEN 1 AND 2" + " BETWEEN 1 AND 2" * 100, "has more than one meaning"),
    ],
    ids=["a hidden chain", "a constant that grows", "a condition in itself"],
)
def test_a_link_cannot_end_the_app_by_its_condition(page: str, where: str, message: str, good: Path) -> None:
    app = open_page(page, good, where=where)
    assert not app.exception
    assert message in text(app)


def test_a_condition_that_polars_panics_over_is_refused(good: Path) -> None:
    app = open_page("pruning", good, where="CAST(delay AS DECIMAL(99, 98)) = 1")
    assert not app.exception
    assert "this condition cannot be evaluated" in text(app).lower()
