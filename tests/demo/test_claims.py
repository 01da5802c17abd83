"""The demo's table of claims: every change of single rows is in its log, and other readers find the same rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.demo.calendar import Calendar
from lakeview.demo.claims import CLUSTERED, LATE, PILED_UP, SETTLED, read_claims
from tests.builders.opening import open_delta_table
from tests.differential.oracles import kernel_rows

DELETED, RESTORED = 11, 12


@pytest.fixture(scope="module")
def claims(demo_lake: Path) -> DeltaTable:
    return open_delta_table(str(demo_lake / "claims"))


@pytest.fixture(scope="module")
def source(calendar: Calendar) -> pl.DataFrame:
    return read_claims(calendar)


def test_the_history_has_every_operation_on_rows(claims: DeltaTable, calendar: Calendar) -> None:
    commits = claims.history().sort("version")
    assert commits["operation"].to_list() == [
        "CREATE TABLE", *["WRITE"] * 6, "MERGE", "CHANGE COLUMN", "WRITE", "WRITE", "DELETE", "RESTORE", "WRITE",
        *["UPDATE"] * len(SETTLED), "DELETE", "WRITE", "OPTIMIZE", "WRITE", "WRITE",
    ]  # fmt: skip
    assert commits["timestamp"].is_sorted()
    assert commits["timestamp"][0].date() == calendar.day(1, 1)
    assert commits["timestamp"][-1] < calendar.end


def test_the_rows_are_late_flights_but_for_what_the_story_changed(claims: DeltaTable, source: pl.DataFrame) -> None:
    rows = claims.scan().collect()
    assert rows.schema["claim"] == pl.Int64
    others = ~pl.col("period").is_in([CLUSTERED, PILED_UP])
    expected = source.cast({"claim": pl.Int64}).filter(others)
    assert rows.filter(others).sort("claim").equals(expected.sort("claim"))
    corrected = rows.filter(pl.col("period") == CLUSTERED)
    before = source.filter(pl.col("period") == CLUSTERED)
    assert corrected.height == before.height + 20
    assert corrected["minutes"].sum() > before["minutes"].sum() + 20 * LATE
    paid = rows.filter(pl.col("period") == PILED_UP, pl.col("carrier").is_in(SETTLED))
    assert set(paid["state"]) == {"paid"}
    assert rows.filter(pl.col("period") == PILED_UP)["minutes"].min() == LATE + 10


def test_deletion_vectors_pile_up_on_one_file(claims: DeltaTable) -> None:
    files = claims.snapshot().files.filter(pl.col("deleted_records") > 0)
    assert files["partition_text"].unique().to_list() == [f"period={PILED_UP}"]
    vectors = claims.lifetimes().group_by("path").agg(pl.col("deletion_vector").n_unique())
    assert vectors["deletion_vector"].max() == len(SETTLED) + 2, "none, one of each update, that of the delete"


def test_a_restore_brings_back_what_the_delete_took(claims: DeltaTable) -> None:
    before, deletion, after = (claims.snapshot(version) for version in (DELETED - 1, DELETED, RESTORED))
    assert deletion.num_records == 0
    assert after.num_records == before.num_records
    assert after.files["path"].sort().equals(before.files["path"].sort())


def test_the_one_thing_that_needs_attention_is_the_deleted_rows(claims: DeltaTable, calendar: Calendar) -> None:
    """The restore is no bad load, and the delete that it took back is none either."""
    last = calendar.end
    findings = lv.inspect(claims, clock=lambda: last).findings()
    assert [f.id for f in findings if f.severity.value in ("broken", "attention")] == ["deleted-rows"]


def test_each_commit_kept_its_promises(claims: DeltaTable) -> None:
    assert claims.audit().filter(pl.col("verdict") == "violated").is_empty()


def test_another_reader_finds_the_same_rows(claims: DeltaTable) -> None:
    theirs = pl.DataFrame(kernel_rows(claims.address, claims.latest_version))
    ours = claims.scan().collect().sort("claim")
    assert theirs.select(ours.columns).sort("claim").equals(ours)
