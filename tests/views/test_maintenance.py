"""Findings about maintenance: what waits for a cleanup, a checkpoint or a rewrite, with the command that does it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from lakeview import views
from lakeview.model.findings import Finding, Severity
from lakeview.model.frames import FILES, LOG_FILES, TOMBSTONES
from lakeview.model.snapshot import Snapshot
from lakeview.model.table_metadata import TableMetadata
from lakeview.views.health.layout import file_findings
from lakeview.views.health.maintenance import history_findings, log_findings
from lakeview.views.retention.remedies import (
    cleanup_command,
    command,
    keep_longer_command,
    partition_condition,
)
from tests.views.story import FLIGHTS, MIB, Story

NOW = datetime(2026, 11, 20, 9, 12, tzinfo=UTC)


def judged(story: Story, properties: dict[str, str] | None = None) -> dict[str, Finding]:
    policy = views.retention.policy.retention_policy(properties or {})
    retention_found = views.retention.simulation.retention(story.versions(), story.lifetimes(), policy, now=story.now)
    judged = history_findings(story.snapshot(), retention_found, story.frame(), story.now)
    return {f.claim: f for f in judged}


def test_a_history_that_costs_more_than_the_table_is_named_with_its_command() -> None:
    story = Story().append(1, size=200 * MIB).overwrite(0, records=1, size=10 * MIB)
    finding = judged(story.after(days=30))["History costs 200 MiB"]
    assert finding.severity is Severity.ATTENTION
    assert finding.evidence == "95.2 % of the bytes retained, 1 file"
    assert finding.command == "VACUUM delta.`memory://flights` RETAIN 168 HOURS"


def test_a_cheap_history_passes() -> None:
    story = Story().append(1, size=200 * MIB).append(1, size=MIB).delete(1)
    assert judged(story)["History costs 1.00 MiB"].severity is Severity.PASS


def test_a_cleanup_after_which_no_earlier_version_is_left_is_noted_with_the_command_that_retains_one() -> None:
    story = Story().append(1)
    for _ in range(8):
        story.after(days=30).overwrite(story.version, records=1)
    finding = judged(story.after(days=20))["The next cleanup ends v0\N{EN DASH}v7"]
    assert finding.severity is Severity.NOTE
    assert finding.effect == "no earlier version is left to restore"
    assert finding.evidence.endswith("; commits come every 30 days")
    assert finding.command is not None
    assert "'interval 91 days'" in finding.command


def test_a_longer_retention_keeps_an_earlier_version_also_where_no_rhythm_is_known() -> None:
    story = Story().append(1)
    story.after(days=90).overwrite(story.version, records=1)
    story.after(days=40)
    finding = judged(story)["The next cleanup ends v0"]
    assert finding.command is not None
    assert "'interval 81 days'" in finding.command  # v0 needs 40 days and some minutes now
    assert "The next cleanup ends no version" in judged(
        story, {"delta.deletedFileRetentionDuration": "interval 81 days"}
    )


def test_versions_that_die_beside_others_are_noted() -> None:
    story = Story().append(1).append(1).delete(0).after(days=30).append(1).append(1)
    finding = judged(story)["The next cleanup ends v0\N{EN DASH}v1"]
    assert finding.severity is Severity.NOTE
    assert finding.effect == "these versions can no longer be read then"


def test_what_a_cleanup_frees_is_unknown_where_no_file_of_the_lost_versions_is_told_of() -> None:
    story = Story().append(1, size=0).after(days=30).overwrite(0, records=1).after(days=30)
    finding = judged(story)["The next cleanup ends v0"]
    assert finding.evidence.startswith("removed files are retained for 7 days; it frees an unknown number of bytes")


def test_a_short_retention_is_named() -> None:
    finding = judged(Story().append(1), {"delta.deletedFileRetentionDuration": "interval 2 hours"})
    short = finding["Removed files are retained for 2 h only"]
    assert (short.severity, short.threshold) == (Severity.ATTENTION, "7 days")
    assert short.evidence == "set by delta.deletedFileRetentionDuration"


def snapshot_of(**frames: pl.DataFrame) -> Snapshot:
    metadata = TableMetadata("/lake/o'neil", "delta", 0, None, FLIGHTS, name=None)
    return Snapshot(metadata, frames=frames)


def log(commits: int, checkpoint: int | None, size: int = 100) -> pl.DataFrame:
    rows: list[tuple[Any, ...]] = [(f"{v}.json", "commit", v, size, NOW) for v in range(commits)]
    if checkpoint is not None:
        rows.append((f"{checkpoint}.checkpoint.parquet", "checkpoint", checkpoint, size, NOW))
    return pl.DataFrame(rows, schema=LOG_FILES, orient="row")


@pytest.mark.parametrize(
    ("log_files", "claim", "evidence"),
    [
        pytest.param(
            log(101, None),
            "There is no checkpoint",
            "101 commits since the first",
            id="none at all",
        ),
        pytest.param(log(150, 20), "The checkpoint is stale", "129 commits since v20", id="an old one"),
        pytest.param(log(150, 140), "The checkpoint is recent", "9 commits since v140", id="a recent one"),
        pytest.param(log(3, None), "There is no checkpoint yet", "3 commits since the first", id="a young table"),
        pytest.param(log(2, None, 40 * MIB), "The log takes 80.0 MiB", "2 files", id="size"),
    ],
)
def test_the_log_is_weighed(log_files: pl.DataFrame, claim: str, evidence: str) -> None:
    evidence_found = {f.claim: f.evidence for f in log_findings(snapshot_of(), log_files)}[claim]
    assert evidence_found.partition(";")[0] == evidence


@pytest.mark.parametrize(
    ("live", "evidence"),
    [
        pytest.param(5 * MIB, "2 files, 16 times the live data", id="more than the data"),
        pytest.param(160 * MIB, "2 files, 50.0 % of the live data", id="less"),
        pytest.param(0, "2 files", id="no data"),
    ],
)
def test_the_log_is_compared_with_the_data(live: int, evidence: str) -> None:
    files = pl.DataFrame([{"path": "f", "size": live}], schema=FILES)
    weighed = {f.claim: f.evidence for f in log_findings(snapshot_of(files=files), log(2, None, 40 * MIB))}
    assert weighed["The log takes 80.0 MiB"].partition(";")[0] == evidence


def test_tombstones_and_delete_files_that_pile_up_are_counted() -> None:
    tombstones = pl.DataFrame({"path": [f"f{i}" for i in range(10_001)]}).with_columns(
        *(pl.lit(None, dtype).alias(name) for name, dtype in TOMBSTONES.items() if name != "path")
    )
    deletes = pl.DataFrame([{"path": f"d{i}", "size": MIB} for i in range(25)], schema=FILES)
    files = pl.DataFrame([{"path": f"f{i}", "size": MIB} for i in range(40)], schema=FILES)
    snapshot = snapshot_of(tombstones=tombstones, delete_files=deletes, files=files)
    claims = [f.claim for f in (*log_findings(snapshot), *file_findings(snapshot))]
    assert {"The log lists more removed files than live ones", "25 files only delete rows"} < set(claims)


def metadata_only(table_format: str, address: str, name: str | None = None) -> Snapshot:
    return Snapshot(TableMetadata(address, table_format, 0, None, FLIGHTS, name=name))


@pytest.mark.parametrize(
    ("snapshot", "run"),
    [
        (metadata_only("delta", "/lake/a`b"), "OPTIMIZE delta.`/lake/a``b`"),
        (metadata_only("iceberg", "/lake/o'neil/"), "CALL system.rewrite_data_files(table => 'o''neil')"),
        (metadata_only("iceberg", "/lake/t", "orders"), "CALL system.rewrite_data_files(table => 'orders')"),
        (metadata_only("sharing", "profile#a.b.c"), None),
    ],
)
def test_names_are_quoted_in_commands(snapshot: Snapshot, run: str | None) -> None:
    assert command("compact", snapshot) == run


@pytest.mark.parametrize(
    ("snapshot", "properties", "days", "warning"),
    [
        pytest.param(metadata_only("delta", "/t"), {}, 7, None, id="as long as files are kept"),
        pytest.param(
            metadata_only("delta", "/t"), {}, 0,
            "Less than the 7 days that removed files are retained for: engines refuse it until "
            "spark.databricks.delta.retentionDurationCheck.enabled is false. "
            "Running queries and writers lose files they need.",
            id="less",
        ),
        pytest.param(
            metadata_only("delta", "/t"), {"delta.deletedFileRetentionDuration": "interval 0 hours"}, 0,
            "Running queries and writers lose files they need.", id="as little as the table says",
        ),
        pytest.param(
            metadata_only("sharing", "/t"), {"delta.deletedFileRetentionDuration": "interval 30 days"}, 8,
            "Less than the 30 days that removed files are retained for: engines refuse it.", id="without words",
        ),
    ],
)  # fmt: skip
def test_a_cleanup_that_keeps_little_comes_with_a_warning(
    snapshot: Snapshot, properties: dict[str, str], days: int, warning: str | None
) -> None:
    assert (
        views.retention.remedies.cleanup_warning(
            snapshot, views.retention.policy.retention_policy(properties), timedelta(days=days)
        )
        == warning
    )


def test_old_versions_that_are_not_kept_at_all_come_with_a_warning() -> None:
    policy = views.retention.policy.retention_policy({}, pl.DataFrame({"name": ["main"]}))
    warnings = [
        views.retention.remedies.cleanup_warning(metadata_only("iceberg", "/t"), policy, timedelta(days=n))
        for n in (0, 1)
    ]
    assert warnings == ["Running queries and writers lose files they need.", None]


def test_a_cleanup_never_keeps_less_than_asked_for() -> None:
    policy = views.retention.policy.retention_policy({})
    keep = timedelta(days=1, minutes=1)
    assert cleanup_command(metadata_only("delta", "/t"), policy, keep, NOW) == "VACUUM delta.`/t` RETAIN 25 HOURS"
    expired = cleanup_command(metadata_only("iceberg", "/t"), policy, timedelta(days=5), NOW)
    assert expired is not None
    assert "older_than => TIMESTAMP '2026-11-15 09:12:00', retain_last => 1" in expired
    longer = keep_longer_command(metadata_only("iceberg", "/my table"), timedelta(days=2))
    assert longer is not None
    assert longer.startswith("ALTER TABLE `my table` SET TBLPROPERTIES")
    assert longer.endswith("= '172800000')")


def test_compaction_is_narrowed_to_the_partition_that_has_most_files() -> None:
    story = Story().append(1000, size=200 * MIB, month=1).append(1000, files=60, size=MIB // 2, month=2)
    (small,) = [f for f in file_findings(story.snapshot()) if f.id == "small-files"]
    assert small.severity is Severity.ATTENTION
    assert small.command == "OPTIMIZE delta.`memory://flights` WHERE month = 2"
    few = Story().append(1000, files=60, size=MIB // 200, month=2)
    (small,) = [f for f in file_findings(few.snapshot()) if f.id == "small-files"]
    assert (small.severity, small.command) == (Severity.NOTE, "OPTIMIZE delta.`memory://flights`")
    assert small.effect is not None
    assert small.effect.startswith("little: ")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({"month": 2, "carrier": "AA"}, "month = 2 AND carrier = 'AA'", id="a number and a text"),
        pytest.param({"month": None, "carrier": "AA"}, "month IS NULL AND carrier = 'AA'", id="null"),
        pytest.param({"month": 2, "carrier": "A'A"}, None, id="a text with a quote"),
        pytest.param({"flight_month": 2}, None, id="the key of a transform"),
    ],
)
def test_a_partition_is_a_condition_where_sql_can_say_it(values: dict[str, Any], expected: str | None) -> None:
    files = pl.DataFrame([{"path": "f", "partition_text": "p", "partition": values}])
    snapshot = Snapshot(TableMetadata("/t", "delta", 0, None, FLIGHTS), frames={"files": files})
    assert partition_condition(snapshot, "p") == expected
