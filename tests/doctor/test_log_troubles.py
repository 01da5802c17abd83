"""Troubles of the log's own files: each is found, said with its figures, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import lakeview as lv
from lakeview.delta.log.log_segment import checksum
from lakeview.model.findings import Severity
from tests.builders.actions import Action, add, info, metadata, protocol, remove, txn
from tests.builders.history import START, STEP, DeltaHistory, log_name
from tests.builders.opening import open_delta_table
from tests.doctor.diagnosis import TROUBLE, diagnosis, one_finding, rows, sound, write

BROKEN, ATTENTION, NOTE = Severity.BROKEN, Severity.ATTENTION, Severity.NOTE
Tell = Callable[[DeltaHistory], object]

ICT = protocol(1, 7, writerFeatures=["inCommitTimestamp"])
ICT_ON: dict[str, str | None] = {"delta.enableInCommitTimestamps": "true"}


def domain(name: str, text: str = "{}") -> Action:
    return {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}


def gap(h: DeltaHistory) -> None:
    write(sound(h), "c.parquet").without(2)


def bridged_gap(h: DeltaHistory) -> None:
    write(sound(h), "c.parquet").checkpoint().without(2)


def cleaned_halfway(h: DeltaHistory) -> None:
    write(sound(h), "c.parquet").checkpoint().without(0, 1)


def half_a_line(h: DeltaHistory) -> None:
    sound(h).raw_commit(b'{"add":{"path":"x", "si')


def old_half_a_line(h: DeltaHistory) -> None:
    write(sound(h), "c.parquet").checkpoint().raw_commit(b'{"add":{"pa', version=1)


def without_protocol(h: DeltaHistory) -> None:
    h.commit(metadata())


def checkpoint_of_something_else(h: DeltaHistory) -> None:
    sound(h).checkpoint(actions=[protocol(), metadata(), rows(h, "a.parquet")])


def checkpoint_of_other_sizes(h: DeltaHistory) -> None:
    actions = sound(h).reconciled(2)
    for action in actions:
        if "add" in action and action["add"]["path"] == "a.parquet":
            action["add"] = {**action["add"], "size": 7, "stats": '{"numRecords":9}'}
    h.checkpoint(actions=actions)


def checkpoint_of_another_schema(h: DeltaHistory) -> None:
    actions = [a for a in sound(h).reconciled(2) if "metaData" not in a]
    h.checkpoint(actions=[*actions, metadata({"id": "long"})])


def checkpoint_without_a_txn(h: DeltaHistory) -> None:
    sound(h).commit(txn("stream", 4))
    h.checkpoint(actions=[a for a in h.reconciled(3) if "txn" not in a])


def checkpoint_with_a_file_twice(h: DeltaHistory) -> None:
    actions = sound(h).reconciled(2)
    h.checkpoint(actions=[*actions, next(a for a in actions if "add" in a)])


def garbled_checkpoint(h: DeltaHistory) -> None:
    write(sound(h).write(log_name(1, "checkpoint.parquet"), b"PAR1 no PAR1"), "c.parquet").checkpoint()


def half_a_checkpoint(h: DeltaHistory) -> None:
    sound(h).checkpoint(parts=3, write_parts=(1, 3))


def parts_where_v2_is_on(h: DeltaHistory) -> None:
    both = ["v2Checkpoint"]
    h.commit(
        protocol(3, 7, readerFeatures=both, writerFeatures=both), metadata(properties={"delta.checkpointPolicy": "v2"})
    )
    write(h, "a.parquet").checkpoint(parts=2)


def hint_to_nothing(h: DeltaHistory) -> None:
    sound(h).checkpoint().hint({"version": 1, "size": 4})


def garbled_hint(h: DeltaHistory) -> None:
    sound(h).checkpoint().hint(b"{")


def stale_hint(h: DeltaHistory) -> None:
    sound(h).checkpoint(1).checkpoint(2).hint({"version": 1})


def hint_of_other_figures(h: DeltaHistory) -> None:
    sound(h).checkpoint().hint({"version": 2, "size": 4, "numOfAddFiles": 5, "sizeInBytes": 1})


def hint_with_a_wrong_checksum(h: DeltaHistory) -> None:
    sound(h).checkpoint().hint({"version": 2, "checksum": "0" * 32})


def hint_to_a_v2_file_that_is_gone(h: DeltaHistory) -> None:
    sound(h).checkpoint().hint({"version": 2, "v2Checkpoint": {"path": "x.checkpoint.parquet"}})


def long_tail(h: DeltaHistory) -> None:
    sound(h)
    for _ in range(100):
        h.commit(info(operation="ANALYZE"))


def unreconciled_compaction(h: DeltaHistory) -> None:
    sound(h)
    lines = [json.dumps(a) for v in (0, 1, 2) for a in h.actions[v]] + [json.dumps(remove("a.parquet"))]
    h.write("_delta_log/00000000000000000000.00000000000000000002.compacted.json", "\n".join(lines).encode())


def garbled_compaction(h: DeltaHistory) -> None:
    sound(h).write("_delta_log/00000000000000000000.00000000000000000001.compacted.json", b"{")


def other_checksum(h: DeltaHistory) -> None:
    sound(h).write(log_name(2, "crc"), json.dumps({"numFiles": 5, "tableSizeBytes": "12", "numProtocol": 1}).encode())


def garbled_checksum(h: DeltaHistory) -> None:
    sound(h).write(log_name(2, "crc"), b"\x00")


def two_protocols(h: DeltaHistory) -> None:
    sound(h).commit(protocol(), protocol(1, 3))


def two_metadata(h: DeltaHistory) -> None:
    sound(h).commit(metadata(), metadata())


def two_txns(h: DeltaHistory) -> None:
    sound(h).commit(txn("stream", 1), txn("stream", 2), txn("other", 1))


def two_of_a_domain(h: DeltaHistory) -> None:
    h.commit(protocol(1, 7, writerFeatures=["domainMetadata"]), metadata(), domain("a", "1"), domain("a", "2"))


def two_infos(h: DeltaHistory) -> None:
    sound(h).commit(info(operation="A"), info(operation="B"))


def added_and_removed(h: DeltaHistory) -> None:
    action = rows(h, "c.parquet")
    sound(h).commit(action, remove("c.parquet"))


def added_twice(h: DeltaHistory) -> None:
    action = rows(h, "c.parquet")
    sound(h).commit(action, action)


def removed_twice(h: DeltaHistory) -> None:
    sound(h).commit(remove("a.parquet"), remove("./a.parquet"))


def reads_the_future(h: DeltaHistory) -> None:
    sound(h).commit(info(operation="WRITE", readVersion=3))


def append_only_and_not(h: DeltaHistory) -> None:
    sound(h, properties={"delta.appendOnly": "true"}).commit(remove("a.parquet"))


def back_in_time(h: DeltaHistory) -> None:
    sound(h).commit(info(operation="WRITE"), at=START - timedelta(days=1))


def a_little_back_in_time(h: DeltaHistory) -> None:
    sound(h).commit(info(operation="WRITE"), at=START + 2 * STEP - timedelta(milliseconds=250))


def without_in_commit_time(h: DeltaHistory) -> None:
    h.commit(info(inCommitTimestamp=5), ICT, metadata(properties=ICT_ON)).commit(info(operation="WRITE"))


def in_commit_time_second(h: DeltaHistory) -> None:
    h.commit(info(inCommitTimestamp=5), ICT, metadata(properties=ICT_ON))
    h.commit(txn("a", 1), info(inCommitTimestamp=9))


def in_commit_time_stands_still(h: DeltaHistory) -> None:
    h.commit(info(inCommitTimestamp=5), ICT, metadata(properties=ICT_ON)).commit(info(inCommitTimestamp=5))


def other_metrics(h: DeltaHistory) -> None:
    metrics = {"numFiles": "2", "numOutputRows": 70}
    sound(h).commit(info(operation="WRITE", operationMetrics=metrics), rows(h, "c.parquet"))


def other_metrics_of_delta_rs(h: DeltaHistory) -> None:
    metrics = {"num_added_files": 1, "num_removed_files": 1}
    sound(h).commit(info(operation="WRITE", operationMetrics=metrics), rows(h, "c.parquet"))


def metrics_with_an_empty_file(h: DeltaHistory) -> None:
    metrics = {"numFiles": "2", "numOutputRows": "3"}
    sound(h).commit(info(operation="WRITE", operationMetrics=metrics), rows(h, "c.parquet"))


TROUBLES: dict[str, tuple[Tell, Severity, str, str]] = {
    "a gap": (gap, BROKEN, "The log has a gap: commit 2 is missing", "no checkpoint lies above it"),
    "a gap below a checkpoint": (bridged_gap, ATTENTION, "commit 2 is missing", "a later checkpoint bridges it"),
    "leavings of a cleanup": (cleaned_halfway, NOTE, "The commits begin at v2", "cleanup"),
    "half a line": (half_a_line, BROKEN, "1 commit cannot be read", "at line 1"),
    "half a line below a checkpoint": (old_half_a_line, ATTENTION, "1 commit cannot be read", "at line 1"),
    "no protocol": (without_protocol, BROKEN, "version 0 cannot be rebuilt", "no protocol action"),
    "a checkpoint that lost a file": (
        checkpoint_of_something_else, BROKEN, "The checkpoint of v2 disagrees", "1 file lost (b.parquet)",
    ),
    "a checkpoint of other sizes": (
        checkpoint_of_other_sizes, BROKEN, "The checkpoint of v2 disagrees", "records of a.parquet 9, not 3",
    ),
    "a checkpoint of another schema": (
        checkpoint_of_another_schema, BROKEN, "The checkpoint of v2 disagrees", "schema_string",
    ),
    "a checkpoint without a txn": (
        checkpoint_without_a_txn, BROKEN, "The checkpoint of v3 disagrees", "txn of stream None, not 4",
    ),
    "a checkpoint with a file twice": (
        checkpoint_with_a_file_twice, BROKEN, "The checkpoint of v2 holds files twice", "a.parquet",
    ),
    "a garbled checkpoint": (garbled_checkpoint, BROKEN, "The checkpoint of v1 cannot be read", "checkpoint"),
    "half a checkpoint": (half_a_checkpoint, ATTENTION, "v2 is incomplete: 2 of 3 parts", "missing: part 2"),
    "a multi-part checkpoint with v2Checkpoint": (
        parts_where_v2_is_on, ATTENTION, "Multi-part checkpoints in a table with v2Checkpoint", "v1",
    ),
    "a hint to a checkpoint that is not there": (
        hint_to_nothing, ATTENTION, "_last_checkpoint names v1, which has no complete", "v2",
    ),
    "a garbled hint": (garbled_hint, ATTENTION, "_last_checkpoint cannot be read", "1 bytes"),
    "a stale hint": (stale_hint, NOTE, "_last_checkpoint is stale: it names v1", "readers"),
    "a hint of other figures": (
        hint_of_other_figures, ATTENTION, "_last_checkpoint describes another checkpoint", "numOfAddFiles 5, not 2",
    ),
    "a hint with a wrong checksum": (
        hint_with_a_wrong_checksum, ATTENTION, "_last_checkpoint fails its own checksum", "00000000",
    ),
    "a hint to a V2 file that is gone": (
        hint_to_a_v2_file_that_is_gone, ATTENTION, "_last_checkpoint names a V2 checkpoint file", "x.checkpoint",
    ),
    "a long log without a checkpoint": (long_tail, ATTENTION, "103 commits and no checkpoint", "bytes to read"),
    "a compaction that was not reconciled": (
        unreconciled_compaction, ATTENTION, "1 log compaction is not reconciled", "1 file twice",
    ),
    "a garbled compaction": (garbled_compaction, ATTENTION, "1 log compaction cannot be read", "compacted"),
    "a checksum that disagrees": (
        other_checksum, ATTENTION, "1 version checksum disagrees", "v2: numFiles 5, not 2; tableSizeBytes 12, not",
    ),
    "a garbled checksum": (garbled_checksum, NOTE, "1 version checksum cannot be read", "v2"),
    "two protocols in a commit": (two_protocols, BROKEN, "A commit holds two protocol actions", "v3"),
    "two metaData in a commit": (two_metadata, BROKEN, "A commit holds two metaData actions", "v3"),
    "two txns of one application": (two_txns, BROKEN, "A commit holds two txn actions", "first for stream"),
    "two entries of one domain": (two_of_a_domain, BROKEN, "A commit holds two domainMetadata", "first for a"),
    "two commitInfos": (two_infos, ATTENTION, "A commit holds two commitInfo actions", "v3"),
    "a file added and removed at once": (
        added_and_removed, BROKEN, "1 file is added and removed in the same version", "v3: c.parquet",
    ),
    "a file added twice at once": (added_twice, BROKEN, "1 file is added twice in the same version", "v3: c.parquet"),
    "a file removed twice at once": (removed_twice, NOTE, "1 file is removed twice in the same version", "v3"),
    "a commit that read the future": (
        reads_the_future, ATTENTION, "1 commit says it read a version not older than itself", "v3 read v3",
    ),
    "a remove from an append-only table": (
        append_only_and_not, BROKEN, "1 file removed from an append-only table", "at v3: a.parquet",
    ),
    "a commit dated a day before the last": (back_in_time, ATTENTION, "1 commit is dated before", "v3; by up to"),
    "a commit dated a moment before the last": (a_little_back_in_time, NOTE, "1 commit is dated before", "0.250 s"),
    "a commit without its in-commit time": (without_in_commit_time, BROKEN, "1 commit lacks the in-commit", "v1"),
    "an in-commit time that is not first": (in_commit_time_second, ATTENTION, "not the first action of 1 commit", "v1"),
    "an in-commit time that stands still": (
        in_commit_time_stands_still, BROKEN, "In-commit timestamps do not increase at 1 commit", "v1",
    ),
    "metrics of something else": (
        other_metrics, ATTENTION, "1 commit did something else than its metrics say", "numOutputRows 70, not 3",
    ),
    "metrics of something else, as delta-rs writes them": (
        other_metrics_of_delta_rs, ATTENTION, "1 commit did something else", "num_removed_files 1, not 0",
    ),
    "metrics that count an empty file": (
        metrics_with_an_empty_file, NOTE, "1 commit counts more files than its actions add", "numFiles 2, not 1",
    ),
}  # fmt: skip
"""What is wrong -> how it is told, how grave it is, and parts of the claim and of its evidence."""


@pytest.mark.parametrize(("tell", "severity", "claim", "evidence"), TROUBLES.values(), ids=TROUBLES)
def test_a_trouble_of_the_log_is_found_and_nothing_graver(
    history: DeltaHistory, tell: Tell, severity: Severity, claim: str, evidence: str
) -> None:
    tell(history)
    findings = diagnosis(history)
    one_finding(findings, severity, claim, evidence)
    graver = list(Severity)[: list(Severity).index(severity)]
    assert [f for f in findings if f.severity in graver] == []


def test_a_sound_table_gets_nothing_but_passes(history: DeltaHistory) -> None:
    write(sound(history).checkpoint(), "c.parquet")
    findings = open_delta_table(history.address).check()
    assert {f.severity for f in findings} == {Severity.PASS}
    assert len(findings) >= 8
    assert all(f.evidence and f.rule for f in findings)
    agree = next(f for f in findings if f.claim == "Checkpoints agree with the commits")
    assert agree.evidence == "1 checkpoint, 1 of them compared with a replay of the commits"


def test_a_log_that_grows_meanwhile_is_in_no_trouble(history: DeltaHistory) -> None:
    table = open_delta_table(sound(history).address)
    write(history, "c.parquet").checkpoint()
    history.hint({"version": 3, "size": 5})
    assert [f for f in table.check() if f.severity in TROUBLE] == []


def test_what_the_writer_writes_gets_nothing_but_passes(tmp_path: Path) -> None:
    import polars as pl

    table = lv.create_table(str(tmp_path / "t"), lv.Schema.from_arrow(pl.DataFrame({"id": [1]}).to_arrow().schema))
    for start in range(0, 36, 3):
        table.append(pl.DataFrame({"id": [start, start + 1]}))
    table.overwrite(pl.DataFrame({"id": [5]}))
    findings = open_delta_table(table.address).check()
    assert [f for f in findings if f.severity is not Severity.PASS] == []


def test_many_of_one_kind_are_one_finding(history: DeltaHistory) -> None:
    sound(history)
    for _ in range(5):
        history.commit(info(operation="A"), info(operation="B"))
    findings = [f for f in diagnosis(history) if "commitInfo" in f.claim]
    assert [(f.claim, f.evidence, f.place) for f in findings] == [
        (
            "5 commits hold two commitInfo actions",
            "v3, v4, v5 and 2 more; readers may take any of them",
            "00000000000000000003.json",
        )
    ]


def test_a_table_that_does_not_open_is_examined_all_the_same(history: DeltaHistory) -> None:
    history.commit(protocol(3, 7, readerFeatures=["fromTheFuture"], writerFeatures=["fromTheFuture"]), metadata())
    history.commit(rows(history, "a.parquet"), add("gone.parquet", records=1), add("gone.parquet", records=1))
    claims = {f.claim for f in diagnosis(history)}
    assert "1 file is added twice in the same version" in claims
    assert "1 live file is missing from the store" in claims


HINTS: dict[str, tuple[str, str | None]] = {
    "the specification's example": (
        """{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2],
        {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}""",
        "6a92d155a59bf2eecbd4b4ec7fd1f875",
    ),
    "no object": ("[1]", None),
    "no JSON": ("{", None),
    "nested without end": ("[" * 100_000, None),
}


@pytest.mark.parametrize(("text", "digest"), HINTS.values(), ids=HINTS)
def test_the_checksum_of_a_hint(text: str, digest: str | None) -> None:
    assert checksum(text.encode()) == digest


def test_a_schema_that_is_spaced_in_another_way_is_the_same(history: DeltaHistory) -> None:
    sound(history)
    actions = history.reconciled(2)
    for action in actions:
        if "metaData" in action:
            document = json.loads(action["metaData"]["schemaString"])
            action["metaData"] = {**action["metaData"], "schemaString": json.dumps(document, indent=2, sort_keys=True)}
    history.checkpoint(actions=actions)
    assert [f.claim for f in diagnosis(history) if "disagree" in f.claim] == []
