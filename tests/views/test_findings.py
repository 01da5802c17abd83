"""What needs attention, and how it is said."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from lakeview import views
from lakeview.model.contradictions import contradictions
from lakeview.model.findings import Finding, Severity
from lakeview.model.frames import FILES
from lakeview.model.snapshot import Snapshot
from lakeview.model.table_metadata import TableMetadata
from lakeview.views.health.findings import Evidence
from lakeview.views.quality.sudden_changes import SUDDEN
from tests.views.story import FLIGHTS, MIB, Story, flights
from tests.views.test_columns import statistics


def found_in(story: Story, unreadable: dict[int, str] | None = None) -> dict[str, Finding]:
    evidence = Evidence(
        story.snapshot(),
        versions=story.versions(unreadable),
        commits=story.frame(),
        lifetimes=story.lifetimes(),
    )
    findings_found = views.health.findings.findings(evidence, story.now)
    assert [f.severity for f in findings_found] == sorted(
        (f.severity for f in findings_found), key=list(Severity).index
    )
    return {f.claim: f for f in findings_found}


def test_a_year_of_flights() -> None:
    findings = found_in(flights(), {**dict.fromkeys(range(12), "log cleanup"), 50: "1 of its 163 files is missing"})
    hole = "History has a hole: v50 cannot be read"
    bad = "v35: 4.12 M rows, removed again"
    assert list(findings) == [
        "month=9 arrived 66 days late",
        "360 of 456 files are smaller than 1 MiB",
        "month=12 has 37 times the files of its siblings",
        hole,
        bad,
        "v0\N{EN DASH}v11 can no longer be read",
        "The last commit is on time",
        "Every file has a row count",
    ]
    assert findings[hole].evidence == "1 of its 163 files is missing"
    small = findings["360 of 456 files are smaller than 1 MiB"]
    assert small.evidence.startswith("0.9 % of the bytes, 78.9 % of the requests; 48 files of up to 256 MiB")
    assert small.evidence.endswith("would hold the table; 370 of the 456 are in month=12")
    assert small.remedy is not None
    assert small.page == "files"
    verdict = views.health.findings.verdict(list(findings.values()))
    assert verdict == "Readable and fresh, but four things need attention"


def test_a_table_in_order_needs_nothing() -> None:
    story = Story()
    for day in range(8):
        story.after(days=1).append(1000, size=100 * MIB, month=day + 1)
    findings = found_in(story)
    assert {f.severity for f in findings.values()} == {Severity.PASS}
    assert views.health.findings.verdict(list(findings.values())) == "Readable and fresh, and nothing needs attention"


def test_small_tables_of_small_files_are_fine() -> None:
    findings = found_in(Story().append(10, files=12, size=1000))
    assert not any("smaller" in claim for claim in findings)


def test_many_medium_files_are_named_by_what_would_do() -> None:
    findings = found_in(Story().append(1000, files=100, size=2 * MIB))
    assert "100 files where 1 would do" in findings


def test_what_a_clean_up_takes_is_told_after_what_is_wrong_with_the_table() -> None:
    story = (
        Story().append(1, size=200 * MIB).overwrite(0, records=1).append(1000, files=100, size=2 * MIB).after(days=30)
    )
    policy = views.retention.policy.retention_policy({})
    retention = views.retention.simulation.retention(
        story.versions(), story.lifetimes(), policy, commits=story.frame(), now=story.now
    )
    whole = Evidence(story.snapshot(), versions=story.versions(), retention=retention)
    findings = views.health.findings.findings(whole, story.now)
    assert [(f.severity, f.page) for f in findings[:2]] == [
        (Severity.ATTENTION, "files"),
        (Severity.ATTENTION, "health"),
    ]
    present = views.health.findings.findings(Evidence(story.snapshot()), story.now)
    past = views.health.findings.past_findings(whole, story.now)
    assert views.health.findings.worst_first([*past, *present]) == findings


def test_no_data_for_long_is_late() -> None:
    story = Story()
    for _ in range(8):
        story.after(days=1).append(1000)
    story.after(days=9)
    late = found_in(story)["No new data for longer than expected"]
    assert late.severity is Severity.ATTENTION
    assert late.evidence.startswith("9 days 1 h ago, expected every 1 day 1 h")


def test_a_load_that_stands_out_is_asked_about() -> None:
    story = Story()
    for _ in range(8):
        story.after(days=1).append(1000)
    findings = found_in(story.append(9000))
    assert findings["v8: 9,000 rows, expected 1,000"].severity is Severity.ATTENTION


def test_files_without_statistics_are_counted() -> None:
    findings = found_in(Story().append(10, size=300).append(None, size=100))
    silent = findings["1 of 2 files has no row count"]
    assert silent.evidence.startswith("25.0 % of the bytes; only partition values can skip them")


def test_repaired_loads_are_named_newest_first() -> None:
    story = Story()
    for _ in range(12):
        story.after(days=1).append(1000)
    story.append(500).after(days=2).delete(12).append(9000).after(days=2).delete(14)
    claims = [claim for claim, f in found_in(story).items() if f.id == "load-anomaly-repaired"]
    assert claims == ["v14: 9,000 rows, removed again", "v12: 500 rows, removed again"]


def test_statistics_that_say_nothing_are_told_from_counts() -> None:
    rows = [{"path": f"f{i}", "size": 10, "records": 5, "deleted_records": 0} for i in range(2)]
    metadata = TableMetadata("memory://t", "delta", 0, None, FLIGHTS)
    snapshot = Snapshot(metadata, frames={"files": pl.DataFrame(rows, schema=FILES)})
    stats = statistics({"^x$": [(1, 2, 0), None], "records": [None, None]})
    claims = [f.claim for f in views.health.findings.findings(Evidence(snapshot, statistics=stats), Story().now)]
    assert "1 of 2 files has no statistics" in claims


@pytest.mark.parametrize(
    ("bounds", "evidence"),
    [
        pytest.param([(1, 2, 0), (9, 2, 0)], "min 9, max 2 in f1", id="bounds"),
        pytest.param([(1, 2, 0), (1, 2, 6)], "6 nulls in 5 rows in f1", id="nulls"),
        pytest.param([(1.0, 2.0, 0), (math.nan, 2.0, 0)], None, id="NaN is no bound"),
        pytest.param([(1, 2, 0), (1, 2, 5)], None, id="all null with bounds: no rows are lost"),
        pytest.param([(1, 1, 0), None], None, id="nothing wrong"),
    ],
)
def test_statistics_that_cannot_be_true_are_broken(bounds: list[Any], evidence: str | None) -> None:
    rows = [{"path": f"f{i}", "size": 10, "records": 5, "deleted_records": 0} for i in range(2)]
    metadata = TableMetadata("memory://t", "delta", 0, None, FLIGHTS)
    snapshot = Snapshot(metadata, frames={"files": pl.DataFrame(rows, schema=FILES)})
    wrong = contradictions(statistics({"x": bounds}), snapshot.files["records"])
    findings = views.health.findings.findings(Evidence(snapshot, contradictions=wrong), Story().now)
    broken = [(f.claim, f.evidence) for f in findings if f.severity is Severity.BROKEN]
    assert broken == ([("Statistics of x contradict themselves in 1 of 2 files", evidence)] if evidence else [])


@pytest.mark.parametrize(
    ("deleted", "records", "severity"),
    [
        pytest.param(1, 100, Severity.PASS, id="a small share"),
        pytest.param(2, 10, Severity.NOTE, id="a large share of few rows"),
        pytest.param(999, 3_000, Severity.NOTE, id="fewer than a thousand"),
        pytest.param(1_000, 3_000, Severity.ATTENTION, id="many"),
    ],
)
def test_deleted_rows_are_weighed(deleted: int, records: int, severity: Severity) -> None:
    rows = [{"path": "f", "size": 10, "records": records, "deleted_records": deleted, "deletion_vector": "dv"}]
    metadata = TableMetadata("memory://t", "delta", 0, None, FLIGHTS)
    findings = views.health.findings.findings(
        Evidence(Snapshot(metadata, frames={"files": pl.DataFrame(rows, schema=FILES)})), Story().now
    )
    weighed = next(f for f in findings if f.claim.startswith("Deleted rows"))
    assert weighed.severity is severity
    share = views.units.format_percent(deleted / records)
    assert weighed.evidence == f"1 file, {views.units.count_text(deleted, 'row')}, {share} of the table"


@pytest.mark.parametrize(
    ("records", "evidence"),
    [
        pytest.param(
            30, ["at least 1 file, at least 30 rows, at least 15.0 % of the table"], id="the known ones decide"
        ),
        pytest.param(3, [], id="few are known"),
        pytest.param(None, [], id="none is known"),
    ],
)
def test_deleted_rows_of_which_some_are_unknown_are_weighed_by_the_known_ones(
    records: int | None, evidence: list[str]
) -> None:
    rows = [{"path": f"f{i}", "size": 10, "records": 100, "deleted_records": n} for i, n in enumerate((records, None))]
    metadata = TableMetadata("memory://t", "iceberg", 0, None, FLIGHTS)
    snapshot = Snapshot(metadata, frames={"files": pl.DataFrame(rows, schema=FILES)})
    findings = views.health.findings.findings(Evidence(snapshot), Story().now)
    assert [f.evidence for f in findings if f.id == "deleted-rows"] == evidence


@pytest.mark.parametrize(
    ("deletes_count", "claim", "evidence"),
    [
        (30, "Position deletes pile up", "up to 2 files, up to 30 rows, up to 15.0 % of the table"),
        (3, "Deleted rows in files are few", "up to 2 files, up to 3 rows, up to 1.5 % of the table"),
    ],
)
def test_position_deletes_are_weighed_by_the_rows_that_they_name(deletes_count: int, claim: str, evidence: str) -> None:
    rows = [{"path": f"f{i}", "size": 10, "records": 100, "deleted_records": None} for i in range(2)]
    recorded = [{"path": "d", "size": 1, "records": deletes_count, "content": "position deletes"}]
    deletes = pl.DataFrame(recorded, schema={**FILES, "content": pl.String()})
    metadata = TableMetadata("memory://t", "iceberg", 0, None, FLIGHTS)
    snapshot = Snapshot(metadata, frames={"files": pl.DataFrame(rows, schema=FILES), "delete_files": deletes})
    findings = views.health.findings.findings(Evidence(snapshot), Story().now)
    assert [(f.claim, f.evidence) for f in findings if f.id == "deleted-rows"] == [(claim, evidence)]
    equal = Snapshot(
        metadata,
        frames={"files": snapshot.files, "delete_files": deletes.with_columns(content=pl.lit("equality deletes"))},
    )
    assert "deleted-rows" not in {f.id for f in views.health.findings.findings(Evidence(equal), Story().now)}


def test_an_empty_table_says_so() -> None:
    metadata = TableMetadata("memory://t", "delta", 0, None, FLIGHTS)
    findings = views.health.findings.findings(Evidence(Snapshot(metadata)), Story().now + timedelta(days=1))
    assert [f.claim for f in findings] == ["The table has no files"]


@pytest.mark.parametrize(
    ("story", "severity"),
    [
        (Story().append(1000).delete(0, user="li@ops"), Severity.ATTENTION),
        (Story().append(1).delete(0).append(1).delete(2, user="li@ops"), Severity.NOTE),
    ],
    ids=["once", "as a routine"],
)
def test_a_table_that_was_emptied_says_since_when_and_by_whom(story: Story, severity: Severity) -> None:
    findings = found_in(story)
    first = next(iter(findings.values()))
    assert (first.claim, first.severity) == (f"The table is empty since v{story.version}, by li@ops", severity)
    assert first.evidence.startswith("DELETE; 1 h ago")
    assert "The table has no files" not in findings


@pytest.mark.parametrize(("size", "claims"), [(MIB // 2, ["200 of 200 partitions are smaller than 1 MiB"]), (MIB, [])])
def test_partitions_that_are_too_small_are_found(size: int, claims: list[str]) -> None:
    story = Story()
    for month in range(200):
        story.append(10, size=size, month=month)
    findings = found_in(story)
    assert [claim for claim in findings if "smaller than" in claim] == claims
    for claim in claims:
        assert findings[claim].evidence == "median 512 KiB; the table has 100 MiB"
    few = found_in(Story().append(10, size=size, month=1).append(10, size=size, month=2))
    assert not [claim for claim in few if "smaller than" in claim], "in a small table it costs nothing"


def test_a_large_table_without_partitions_has_none_that_are_too_small() -> None:
    findings = found_in(Story(partitioned=False).append(1000, files=30, size=100 * MIB))
    assert not [claim for claim in findings if "smaller than" in claim]


def test_a_gap_between_partitions_is_found() -> None:
    story = Story().append(1, month=1).append(1, month=2).append(1, month=4)
    gap = found_in(story)["1 partition missing in the sequence"]
    assert gap.evidence == "month=3, between 3 partitions that are there"


def test_a_version_that_cannot_be_read_is_not_called_readable() -> None:
    story = Story().append(1).append(1).append(1).append(1).append(1)
    versions = story.versions({0: "vacuumed", 2: "f2 is missing", 3: "f3 is missing"})

    def broken(version: int) -> tuple[str, list[tuple[str, str]]]:
        snapshot = Snapshot(TableMetadata("memory://t", "delta", version, None, FLIGHTS))
        findings = views.health.findings.findings(Evidence(snapshot, versions=versions), story.now)
        return views.health.findings.verdict(findings), [
            (f.claim, f.evidence) for f in findings if f.severity in views.health.findings.OPEN
        ]

    assert broken(4) == (
        "Readable, but one thing needs attention",
        [("History has a hole: v2\N{EN DASH}v3 cannot be read", "v3: f3 is missing")],
    )
    own = "This version cannot be read"
    assert broken(3) == (
        "Not readable: one thing is broken and one needs attention",
        [(own, "f3 is missing"), ("History has a hole: v2 cannot be read", "f2 is missing")],
    )
    verdict, rest_findings = broken(0)
    assert verdict == "Not readable: one thing is broken and one needs attention"
    assert rest_findings[0] == (own, "vacuumed")


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("1 of its data files is missing from the store", "restore what is missing from a backup"),
        ("the file f3 is of the format LANCE, which is not read", "read it with an engine that reads this format"),
        ("1 of its data files lies outside the table and the allowed roots", "add its folder to LAKEVIEW_ROOTS"),
    ],
)
def test_the_remedy_of_a_version_that_cannot_be_read_is_that_of_its_reason(reason: str, remedy: str) -> None:
    versions = Story().append(1).append(1).append(1).versions({1: reason, 2: reason})
    for version in (0, 2):  # where another version has the fault, and where the one shown has it
        findings = views.health.history.version_findings(versions, version)
        assert {(f.remedy or "")[: len(remedy)] for f in findings if f.severity is not Severity.NOTE} == {remedy}


@pytest.mark.parametrize(
    ("broken", "attention", "sentence"),
    [
        pytest.param(0, 0, "Readable, and nothing needs attention", id="nothing"),
        pytest.param(0, 1, "Readable, but one thing needs attention", id="one"),
        pytest.param(0, 9, "Readable, but 9 things need attention", id="many"),
        pytest.param(2, 0, "Readable, but two things are broken", id="broken only"),
        pytest.param(1, 2, "Readable, but one thing is broken and two need attention", id="both"),
    ],
)
def test_the_verdict_counts(broken: int, attention: int, sentence: str) -> None:
    findings = [Finding("a-finding", Severity.BROKEN, "b")] * broken + [
        Finding("a-finding", Severity.ATTENTION, "a")
    ] * attention
    assert views.health.findings.verdict(findings) == sentence


def test_loads_after_the_version_shown_are_not_called_normal() -> None:
    story = Story().append(100).append(100).append(100)
    normal = {"column": "x", "usual": 0.0, "null_share": 0.0, "sudden": False, "sudden_range": False, "lane": "append"}
    loads = pl.DataFrame([{**normal, "version": version} for version in range(3)], schema=SUDDEN)
    snapshot = Snapshot(TableMetadata("memory://t", "delta", 1, None, FLIGHTS), frames={"files": story.files()})
    evidence = Evidence(snapshot, commits=story.frame(), lifetimes=story.lifetimes(), loads=loads)
    (finding,) = [f for f in views.health.findings.findings(evidence, story.now) if f.claim == "No anomalous loads"]
    assert finding.evidence == "2 loads, 1 column"
