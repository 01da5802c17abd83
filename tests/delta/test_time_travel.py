"""A moment to a version: file times, times inside commits, times a copy has flattened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import InvalidRequestError, VersionNotFoundError
from tests.builders.actions import Action, add, info, metadata, protocol
from tests.builders.history import START, STEP, DeltaHistory
from tests.builders.stores import FarStorage

MS = timedelta(milliseconds=1)
ICT = {"delta.enableInCommitTimestamps": "true"}


def millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def appended(history: DeltaHistory, last: int) -> DeltaHistory:
    history.create()
    for version in range(1, last + 1):
        history.commit(add(f"f{version}"))
    return history


def times(table: lv.Table) -> dict[int, datetime]:
    return dict(table.history().select("version", "timestamp").iter_rows())


def sources(table: lv.Table) -> list[str]:
    return table.history().sort("version")["timestamp_source"].to_list()


MOMENTS: dict[str, tuple[datetime, int]] = {
    "exactly at a commit": (START + 2 * STEP, 2),
    "between two commits": (START + 2 * STEP + STEP / 2, 2),
    "a millisecond before a commit": (START + 2 * STEP - MS, 1),
    "a microsecond after a commit": (START + 2 * STEP + timedelta(microseconds=1), 2),
    "at the first commit": (START, 0),
    "after the latest commit": (START + 100 * STEP, 3),
    "far in the future": (datetime(9999, 12, 31, tzinfo=UTC), 3),
    "in another zone": ((START + STEP).astimezone(timezone(timedelta(hours=5, minutes=45))), 1),
}


@pytest.mark.parametrize(("moment", "version"), MOMENTS.values(), ids=[f"a moment {words}" for words in MOMENTS])
def test_a_moment_gives_the_last_version_at_or_before_it(history: DeltaHistory, moment: datetime, version: int) -> None:
    table = lv.open_table(appended(history, 3).address)
    snapshot = table.snapshot(at=moment)
    assert snapshot.version == version
    assert snapshot.timestamp == START + version * STEP
    assert snapshot.num_files == version


def test_a_naive_moment_is_refused(history: DeltaHistory) -> None:
    table = lv.open_table(appended(history, 1).address)
    with pytest.raises(InvalidRequestError) as caught:
        table.snapshot(at=datetime(2026, 3, 1, 12))  # noqa: DTZ001 (naive on purpose)
    assert caught.value.message == "the moment 2026-03-01 12:00:00 has no time zone"
    assert caught.value.fix == "give an aware datetime, such as datetime(2026, 7, 15, 3, 25, tzinfo=UTC)"
    assert caught.value.kind == "naive-moment"


@pytest.mark.parametrize("early", [START - MS, datetime(1, 1, 1, tzinfo=UTC)], ids=["just before", "ages before"])
def test_a_moment_before_the_first_commit_is_told_when_the_log_begins(history: DeltaHistory, early: datetime) -> None:
    table = lv.open_table(appended(history, 1).address)
    with pytest.raises(VersionNotFoundError) as caught:
        table.snapshot(at=early)
    assert f"has no version at {early.isoformat(sep=' ')}: its log begins at {START.isoformat(sep=' ')}" in str(
        caught.value
    )
    assert caught.value.fix == "ask for a later moment, or for a version by number"


def test_a_version_and_a_moment_together_are_refused(history: DeltaHistory) -> None:
    table = lv.open_table(appended(history, 1).address)
    with pytest.raises(InvalidRequestError, match="more than one of a version, a moment and a ref was given") as caught:
        table.snapshot(1, at=START)
    assert caught.value.fix == "give one of them"


def test_a_ref_is_refused_by_name(history: DeltaHistory) -> None:
    table = lv.open_table(appended(history, 1).address)
    with pytest.raises(InvalidRequestError, match="a Delta table has no ref called audit") as caught:
        table.snapshot(ref="audit")
    assert (caught.value.kind, caught.value.fix) == ("unknown-ref", "ask for a version or a moment")


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([0, 0, 0], [0, 1, 2]),
        ([5000, 3000, 9000], [5000, 5001, 9000]),
        ([5000, 1, 2, 3, 5002], [5000, 5001, 5002, 5003, 5004]),
    ],
    ids=["equal", "going back once", "going back for long"],
)
def test_file_times_that_do_not_rise_are_made_to(
    history: DeltaHistory, offsets: list[int], expected: list[int]
) -> None:
    appended(history, len(offsets) - 1)
    for version, offset in enumerate(offsets):
        history.dated(version, START + offset * MS)
    table = lv.open_table(history.address)
    assert times(table) == {version: START + offset * MS for version, offset in enumerate(expected)}
    for version, offset in enumerate(expected):
        assert table.snapshot(at=START + offset * MS).version == version
        assert table.snapshot(version).timestamp == START + offset * MS
    assert set(sources(table)) == {"file"}


def in_commit(history: DeltaHistory, own: list[int | None], properties: dict[str, str | None]) -> DeltaHistory:
    """A table whose commits carry these times, as milliseconds after START; all files an hour later."""
    for version, offset in enumerate(own):
        body = {} if offset is None else {"inCommitTimestamp": millis(START + offset * MS)}
        first = [protocol(1, 7, writerFeatures=["inCommitTimestamp"]), metadata(properties=properties)]
        history.commit(info(operation="WRITE", **body), *(first if version == 0 else [add(f"f{version}")]))
        history.dated(version, START + timedelta(hours=1) + version * STEP)
    return history


def test_times_inside_commits_win_over_file_times(history: DeltaHistory) -> None:
    table = lv.open_table(in_commit(history, [0, 700, 900], {**ICT}).address)
    assert times(table) == {0: START, 1: START + 700 * MS, 2: START + 900 * MS}
    assert set(sources(table)) == {"in-commit"}
    assert table.snapshot(at=START + 899 * MS).version == 1
    assert table.snapshot(2).timestamp == START + 900 * MS


def test_times_inside_commits_count_from_the_version_that_enabled_them(history: DeltaHistory) -> None:
    properties: dict[str, str | None] = {
        **ICT,
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(millis(START + timedelta(hours=9))),
    }
    hours = 9 * 3_600_000
    table = lv.open_table(in_commit(history, [1, None, hours, hours + 5], properties).address)
    assert sources(table) == ["file", "file", "in-commit", "in-commit"]
    assert times(table)[0] == START + timedelta(hours=1)
    assert times(table)[2] == START + timedelta(hours=9)
    assert table.snapshot(at=START + timedelta(hours=8)).version == 1
    assert table.snapshot(at=START + timedelta(hours=10)).version == 3
    assert [table.snapshot(v).timestamp for v in range(4)] == [times(table)[v] for v in range(4)]


@pytest.mark.parametrize("value", ["false", "", "yes"])
def test_times_inside_commits_are_ignored_where_the_property_is_off(history: DeltaHistory, value: str) -> None:
    table = lv.open_table(in_commit(history, [0, 1], {"delta.enableInCommitTimestamps": value}).address)
    assert set(sources(table)) == {"file"}


def test_a_version_has_one_time_where_times_inside_commits_were_turned_off(history: DeltaHistory) -> None:
    in_commit(history, [0, 700], {**ICT})
    history.commit(info(operation="SET TBLPROPERTIES"), metadata(properties={}))
    table = lv.open_table(history.dated(2, START + timedelta(hours=2)).address)
    assert set(sources(table)) == {"file"}
    assert [table.snapshot(v).timestamp for v in range(3)] == [times(table)[v] for v in range(3)]


@pytest.mark.parametrize(
    "declared",
    [protocol(1, 7, writerFeatures=["appendOnly"]), protocol(1, 7, writerFeatures=[]), protocol(1, 2)],
    ids=["on writer 7 with another feature", "on writer 7 without features", "on writer 2"],
)
@pytest.mark.parametrize("log_shape", ["all commits", "a checkpoint and one commit"])
def test_times_inside_commits_have_no_force_where_the_protocol_lacks_the_feature(
    history: DeltaHistory, declared: Action, log_shape: str
) -> None:
    own = [millis(START - timedelta(days=day)) for day in (3, 2, 1)]
    history.commit(info(inCommitTimestamp=own[0]), declared, metadata(properties={**ICT}))
    history.commit(info(inCommitTimestamp=own[1]), add("f1")).commit(info(inCommitTimestamp=own[2]), add("f2"))
    if log_shape != "all commits":
        history.checkpoint(1).without(0, 1)
    table = lv.open_table(history.address)
    assert set(sources(table)) == {"file"}
    assert times(table)[2] == START + 2 * STEP
    assert table.snapshot().timestamp == START + 2 * STEP
    assert table.snapshot(at=START + 3 * STEP).version == 2
    with pytest.raises(VersionNotFoundError):
        table.snapshot(at=START - timedelta(hours=1))


def test_times_inside_commits_count_where_only_a_checkpoint_tells_of_them(history: DeltaHistory) -> None:
    in_commit(history, [0, 700, 900], {**ICT}).checkpoint(1).without(0, 1)
    table = lv.open_table(history.address)
    assert sources(table) == ["in-commit"]
    assert table.snapshot(at=START + 900 * MS).version == 2


def flattened(history: DeltaHistory, gap: timedelta, **body: Any) -> DeltaHistory:
    """A table whose writers worked `gap` apart, and whose files all got the time of a copy."""
    for version in range(4):
        commit_info = {"timestamp": millis(START + version * gap)} | body
        history.commit(info(**commit_info), *([protocol(), metadata()] if version == 0 else [add(f"f{version}")]))
    for version in range(4):
        history.dated(version, START + timedelta(days=90, milliseconds=version))
    return history


def test_a_copied_table_takes_its_times_from_its_writers_and_says_so(history: DeltaHistory) -> None:
    table = lv.open_table(flattened(history, timedelta(days=7)).address)
    assert times(table) == {v: START + timedelta(days=7 * v) for v in range(4)}
    assert set(sources(table)) == {"commitInfo"}
    assert table.snapshot(at=START + timedelta(days=8)).version == 1
    assert [table.snapshot(v).timestamp for v in range(4)] == [times(table)[v] for v in range(4)]


@pytest.mark.parametrize(
    ("gap", "body"),
    [
        (timedelta(milliseconds=1), {}),
        (timedelta(days=7), {"timestamp": None}),
        (timedelta(days=7), {"timestamp": "soon"}),
    ],
    ids=["written as fast as copied", "whose writers say nothing", "whose writers say no number"],
)
def test_a_table_keeps_its_file_times(history: DeltaHistory, gap: timedelta, body: dict[str, Any]) -> None:
    table = lv.open_table(flattened(history, gap, **body).address)
    assert set(sources(table)) == {"file"}
    assert times(table)[0] == START + timedelta(days=90)


@pytest.mark.parametrize(
    "commit_info",
    [10**30, -(10**30), 2**63 - 1, -(2**63), 10**17, 1e300, True, "x", [1], {"a": 1}, "1" * 5000],
    ids=lambda value: f"timestamp {str(value)[:24]}",
)
def test_absurd_times_in_commits_harm_nothing(history: DeltaHistory, commit_info: object) -> None:
    history.commit(
        info(timestamp=commit_info, inCommitTimestamp=commit_info), protocol(), metadata(properties={**ICT})
    ).commit(info(timestamp=commit_info), add("f"))
    table = lv.open_table(history.address)
    assert table.snapshot().num_files == 1
    assert table.history().height == 2
    assert table.versions().height == 2
    assert table.snapshot(at=datetime(2100, 1, 1, tzinfo=UTC)).version >= 0
    assert table.commit(0).height == 3


def test_an_old_version_has_the_schema_and_partitioning_of_its_time(history: DeltaHistory) -> None:
    history.create({"a": "long", "p": "string"}, partition_by=("p",)).commit(add("f", partition={"p": "x"}))
    history.commit(metadata({"a": "long", "b": "string"}), add("g"))
    table = lv.open_table(history.address)
    assert (table.snapshot(1).schema.names, table.snapshot(1).partition_columns) == (["a", "p"], ["p"])
    assert (table.snapshot().schema.names, table.snapshot().partition_columns) == (["a", "b"], [])
    assert table.files(1)["partition_text"].to_list() == ["p=x"]
    assert table.schemas()["version"].to_list() == [0, 2]


def test_the_time_of_the_latest_version_needs_no_other_commit(history: DeltaHistory) -> None:
    appended(history, 8).checkpoint(7).hint({"version": 7, "size": 1})
    store = FarStorage(history.address)
    assert DeltaTable(store).snapshot().timestamp == START + 8 * STEP
    assert store.requests["read"] <= 4, "the hint, the last commit, and the two ends where file times may be flattened"


def test_a_log_whose_commits_are_gone_has_no_times(history: DeltaHistory) -> None:
    appended(history, 2).checkpoint().without(0, 1, 2)
    table = lv.open_table(history.address)
    assert table.snapshot().timestamp is None
    assert table.versions()["timestamp"].to_list() == [None]
    with pytest.raises(VersionNotFoundError, match="its log begins at an unknown time"):
        table.snapshot(at=START)
    assert table.history().schema["timestamp"] == pl.Datetime("ms", "UTC")
