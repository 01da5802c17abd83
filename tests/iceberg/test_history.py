"""Snapshots, refs, moments and the doctor: what the metadata tells without a row."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import fsspec
import polars as pl
import pytest

import lakeview as lv
from lakeview.iceberg.opening import open_iceberg
from lakeview.iceberg.table import IcebergTable
from lakeview.model.config import Config
from lakeview.model.errors import InvalidRequestError, LakeviewError, VersionNotFoundError
from lakeview.model.findings import Severity
from lakeview.model.frames import ACTIONS, COMMITS, LIFETIMES, SCHEMAS, VERSIONS
from tests.builders.iceberg import LIST_SCHEMA, IcebergHistory

FIELDS: list[dict[str, Any]] = [{"id": 1, "name": "id", "required": False, "type": "long"}]
START = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def grown(place: Path, **more: Any) -> IcebergHistory:
    history = IcebergHistory(place / "t", FIELDS, **more)
    for i in range(3):
        history.append(f"f{i}", [{"id": i}])
    return history


def rewritten(history: IcebergHistory, change: Callable[[dict[str, Any]], None]) -> IcebergTable:
    """The table after a change to its newest metadata file."""
    newest = max((history.root / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].partition(".")[0]))
    document = json.loads(newest.read_text())
    change(document)
    newest.write_text(json.dumps(document))
    return open_iceberg(history.address)


def test_frames_have_the_columns_they_declare(tmp_path: Path) -> None:
    table = open_iceberg(grown(tmp_path).address)
    assert table.history().schema == {**COMMITS, "on_main": pl.Boolean(), "refs": pl.List(pl.String())}
    assert table.versions().schema == VERSIONS
    assert table.schemas().schema == SCHEMAS
    assert table.lifetimes().schema == LIFETIMES
    assert table.commit(1001).schema == ACTIONS


def test_history_is_newest_first_and_pages(tmp_path: Path) -> None:
    table = open_iceberg(grown(tmp_path).address)
    history = table.history()
    assert history["version"].to_list() == [1003, 1002, 1001]
    assert history["parent"].to_list() == [1002, 1001, None]
    assert history["position"].to_list() == [2, 1, 0]
    assert history["files_added"].to_list() == [1, 1, 1]
    assert history["files_removed"].to_list() == [0, 0, 0]
    assert table.history(1, before=1003)["version"].to_list() == [1002]
    assert table.history(before=1001).is_empty()


def test_lifetimes_follow_files_through_manifests_written_anew(tmp_path: Path) -> None:
    history = grown(tmp_path)
    history.remove(f"{history.location}/data/f1")
    lifetimes = open_iceberg(history.address).lifetimes().sort("path")
    assert lifetimes["added"].to_list() == [1001, 1002, 1003]
    assert lifetimes["removed"].to_list() == [None, 1004, None]


def test_a_commit_is_told_as_what_it_added_and_removed(tmp_path: Path) -> None:
    history = grown(tmp_path)
    history.remove(f"{history.location}/data/f1")
    actions = open_iceberg(history.address).commit(1004)
    assert actions["kind"].to_list() == ["snapshot", "remove data file"]
    assert json.loads(actions["action"][0])["snapshot-id"] == 1004


def test_a_snapshot_whose_files_are_gone_says_which(tmp_path: Path) -> None:
    history = grown(tmp_path)
    (history.root / "data" / "f2").unlink()
    (history.root / "metadata" / "snap-1001.avro").unlink()
    versions = open_iceberg(history.address).versions()
    assert versions["readable"].to_list() == [False, True, False]
    assert "f2" in versions["reason"][0]
    assert "snap-1001.avro" in versions["reason"][2]


def test_versions_are_told_without_a_look_at_the_files(tmp_path: Path) -> None:
    table = open_iceberg(grown(tmp_path).address)
    before = dict(table.storage.requests)
    versions = table.versions(look=False)
    assert dict(table.storage.requests) == before
    looked = table.versions()
    assert versions.schema == looked.schema
    assert versions.select("version", "timestamp").equals(looked.select("version", "timestamp"))
    assert versions.select("readable", "reason").null_count().row(0) == (3, 3)


MISSING_FILES: dict[str, tuple[list[str], list[str]]] = {
    "nothing": ([], []),
    "a file that all have": (["f0"], []),
    "a file that was removed since": (["f1"], []),
    "the newest file": (["f4"], []),
    "every file": (["f0", "f1", "f2", "f3", "f4"], []),
    "a manifest in the middle": ([], ["f2"]),
    "a file and a manifest behind it": (["f0"], ["f3"]),
    "a file behind a manifest": (["f3"], ["f0"]),
}


@pytest.mark.parametrize("at_once", [2, 2_000_000])
@pytest.mark.parametrize("case", MISSING_FILES)
def test_a_snapshot_is_readable_if_each_of_its_files_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, at_once: int
) -> None:
    monkeypatch.setattr("lakeview.iceberg.history._PATHS_AT_ONCE", at_once)
    history = IcebergHistory(tmp_path / "t", FIELDS)
    for number in range(4):
        history.append(f"f{number}", [{"id": number}])
    history.remove(f"{history.location}/data/f1")
    history.append("f4", [{"id": 4}])
    table = open_iceberg(history.address)
    own = {version: table.state.tree.manifests(entry) for version, entry in table.metadata.snapshots.items()}
    appended = own[sorted(own)[3]]  # a manifest for each file; what follows writes them anew
    files = {v: open_iceberg(history.address).files(v)["path"].str.extract("([^/]+)$").to_list() for v in own}
    missing_files, broken = MISSING_FILES[case]
    for name in missing_files:
        (history.root / "data" / name).unlink()
    holding = {
        table.state.tree.entries(appended[i])["path"][0]: path for i, path in enumerate(appended["manifest_path"])
    }
    lost_manifests = {holding[f"{history.location}/data/{name}"] for name in broken}
    for path in lost_manifests:
        (history.root / path.removeprefix(f"{history.location}/")).write_bytes(b"no Avro")
    expected = {
        version: not ({*missing_files} & {*files[version]}) and not (lost_manifests & {*own[version]["manifest_path"]})
        for version in own
    }
    versions = open_iceberg(history.address).versions()
    assert dict(versions.select("version", "readable").iter_rows()) == expected
    for version, reason in versions.filter(~pl.col("readable")).select("version", "reason").iter_rows():
        names = [name for name in (*missing_files, "cannot be read") if f"/{name} " in f"{reason} " or name in reason]
        assert names, (version, reason)


# -- time travel


def branched(document: dict[str, Any]) -> None:
    document["refs"] |= {"audit": {"snapshot-id": 1001, "type": "branch"}, "v1": {"snapshot-id": 1001, "type": "tag"}}
    wider = {"id": 2, "name": "new", "required": False, "type": "int"}
    document["schemas"].append({"type": "struct", "schema-id": 1, "fields": [*FIELDS, wider]})
    document["current-schema-id"] = 1


def test_branches_have_the_table_s_schema_and_tags_their_own(tmp_path: Path) -> None:
    table = rewritten(grown(tmp_path), branched)
    assert (table.snapshot(ref="audit").version, table.snapshot(ref="audit").schema.names) == (1001, ["id", "new"])
    assert (table.snapshot(ref="v1").version, table.snapshot(ref="v1").schema.names) == (1001, ["id"])
    assert table.scan(ref="audit").collect().rows() == [(0, None)]
    assert table.snapshot(ref="main").version == 1003
    with pytest.raises(VersionNotFoundError, match="no branch or tag nothing") as caught:
        table.snapshot(ref="nothing")
    assert "audit, main, v1" in (caught.value.fix or "")


def test_a_moment_gives_what_was_current_then(tmp_path: Path) -> None:
    table = open_iceberg(grown(tmp_path).address)
    minutes = [timedelta(minutes=m) for m in (1, 1.5, 2, 60)]
    assert [table.snapshot(at=START + m).version for m in minutes] == [1001, 1001, 1002, 1003]
    with pytest.raises(VersionNotFoundError, match="begins later"):
        table.snapshot(at=START)
    with pytest.raises(VersionNotFoundError, match="has no snapshot yet"):
        open_iceberg(IcebergHistory(tmp_path / "empty", FIELDS).address).snapshot(at=START)
    with pytest.raises(InvalidRequestError, match="no time zone"):
        table.snapshot(at=datetime(2024, 1, 1))  # noqa: DTZ001  # what is refused
    with pytest.raises(InvalidRequestError, match="more than one"):
        table.snapshot(1001, ref="main")


LOGS: dict[str, tuple[list[tuple[int, int]], int]] = {
    "the last of a tie": ([(100, 1001), (100, 1002), (100, 1003)], 1003),
    "the last in order after clocks ran backwards": ([(90, 1003), (100, 1001), (50, 1002)], 1002),
    "a rollback": ([(10, 1001), (20, 1002), (30, 1001)], 1001),
}


@pytest.mark.parametrize("case", LOGS)
def test_the_snapshot_log_decides(tmp_path: Path, case: str) -> None:
    log, expected = LOGS[case]
    entries = [{"timestamp-ms": t, "snapshot-id": s} for t, s in log]
    table = rewritten(grown(tmp_path), lambda d: d.update({"snapshot-log": entries}))
    assert table.snapshot(at=datetime(1970, 1, 1, 0, 1, tzinfo=UTC)).version == expected


def test_without_a_log_the_branch_decides(tmp_path: Path) -> None:
    table = rewritten(grown(tmp_path), lambda d: d.update({"snapshot-log": []}))
    assert table.snapshot(at=START + timedelta(minutes=2)).version == 1002


@pytest.mark.parametrize("recorded", [True, False], ids=["its child names it", "as pyiceberg expires it"])
def test_a_snapshot_that_has_expired_is_not_found(tmp_path: Path, recorded: bool) -> None:
    def expired(document: dict[str, Any]) -> None:
        document["snapshots"] = document["snapshots"][1:]
        if not recorded:
            del document["snapshots"][0]["parent-snapshot-id"]

    table = rewritten(grown(tmp_path), expired)
    with pytest.raises(VersionNotFoundError, match="has expired"):
        table.snapshot(at=START + timedelta(minutes=1))
    with pytest.raises(VersionNotFoundError, match="no snapshot 1001; it holds 2 snapshots"):
        table.snapshot(1001)
    with pytest.raises(VersionNotFoundError, match="has expired"):
        table.changes(1002)
    assert set(table.audit()["verdict"]) == {"proven", "unknowable"}
    assert table.lifetimes().sort("path")["added"].to_list() == [None, 1002, 1003]


# -- the doctor


def test_a_sound_table_passes(tmp_path: Path) -> None:
    (finding,) = open_iceberg(grown(tmp_path).address).check()
    assert finding.severity is Severity.PASS


def without_main(document: dict[str, Any]) -> None:
    document["refs"]["main"]["snapshot-id"] = 1002


TROUBLES: dict[str, tuple[Callable[[dict[str, Any]], None], Severity, str]] = {
    "a tag of a snapshot that is gone": (
        lambda d: d["refs"].update({"v0": {"snapshot-id": 7, "type": "tag"}}),
        Severity.BROKEN,
        "The tag v0 names a snapshot that is not there",
    ),
    "main is elsewhere": (without_main, Severity.BROKEN, "The branch main and the current snapshot differ"),
    "sequence numbers": (lambda d: d.update({"last-sequence-number": 1}), Severity.BROKEN, "sequence number"),
    "column ids": (lambda d: d.update({"last-column-id": 0}), Severity.BROKEN, "A column has an id"),
    "a wrong total": (
        lambda d: d["snapshots"][-1]["summary"].update({"total-data-files": "8"}),
        Severity.ATTENTION,
        "differ in total-data-files",
    ),
    "a snapshot's schema": (
        lambda d: d["snapshots"][0].update({"schema-id": 77}),
        Severity.ATTENTION,
        "names a schema that is not there",
    ),
    "the sort order": (
        lambda d: d.update({"default-sort-order-id": 5}),
        Severity.ATTENTION,
        "The default sort order is none of the table's",
    ),
    "statistics": (
        lambda d: d.update({"statistics": [{"snapshot-id": 7, "statistics-path": "s"}]}),
        Severity.NOTE,
        "Statistics files belong to snapshots that are not there",
    ),
    "clocks": (
        lambda d: d["snapshot-log"].insert(0, {"timestamp-ms": 1_800_000_000_000, "snapshot-id": 1001}),
        Severity.NOTE,
        "runs backwards",
    ),
    "a log that ends elsewhere": (
        lambda d: d["snapshot-log"].append({"timestamp-ms": 1_800_000_000_000, "snapshot-id": 1001}),
        Severity.ATTENTION,
        "does not end at the current snapshot",
    ),
}


@pytest.mark.parametrize("case", TROUBLES)
def test_what_contradicts_itself_is_found(tmp_path: Path, case: str) -> None:
    change, severity, claim = TROUBLES[case]
    findings = rewritten(grown(tmp_path), change).check()
    assert [f for f in findings if f.severity is severity and claim in f.claim], findings
    assert all(f.rule for f in findings)


def test_a_list_that_counts_other_files_than_its_manifests_hold_is_found(tmp_path: Path) -> None:
    history = grown(tmp_path)
    (path,) = (history.root / "metadata").glob(f"snap-{history.document['current-snapshot-id']}.avro")
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
    rows[0]["added_files_count"] += 3
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(LIST_SCHEMA), rows)
    (finding,) = open_iceberg(history.address).check()
    assert finding.claim.startswith("The manifest list counts added files that its manifests do not")
    assert finding.evidence.endswith("in the manifests")


def test_several_deletion_vectors_of_one_file_are_found(tmp_path: Path) -> None:
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    history = IcebergHistory(tmp_path / "t", fields, version=3)
    path = history.append("a", [{"id": i} for i in range(3)])
    history.delete_vectors("one", {path: [0]})
    assert [f.severity for f in open_iceberg(history.address).check()] == [Severity.PASS]
    history.delete_vectors("two", {path: [0, 1]})
    finding = open_iceberg(history.address).check()[0]
    assert (finding.id, finding.evidence) == ("data-file-with-several-deletion-vectors", path)


def test_files_that_are_gone_break_the_current_snapshot(tmp_path: Path) -> None:
    history = grown(tmp_path)
    (history.root / "data" / "f0").unlink()
    findings = open_iceberg(history.address).check()
    assert findings[0].severity is Severity.BROKEN
    assert "f0" in findings[0].evidence


# -- requests


def test_opening_and_planning_ask_for_what_they_need_and_no_more(tmp_path: Path) -> None:
    history = grown(tmp_path)
    table = open_iceberg(history.address)
    assert dict(table.storage.requests) == {"list": 1, "read": 1}
    assert table.history().height == 3
    assert table.snapshot().schema.names == ["id"]
    assert dict(table.storage.requests) == {"list": 1, "read": 1}
    table.tasks()
    assert table.storage.requests["read"] == 1 + 1 + 3
    table.tasks()
    assert table.storage.requests["read"] == 1 + 1 + 3
    assert table.storage.requests["open"] == 0


def test_files_outside_the_table_need_a_root_or_a_rule(tmp_path: Path) -> None:
    history = grown(tmp_path)
    aside = tmp_path / "aside"
    (history.root / "data").rename(aside)
    with pytest.raises(LakeviewError):
        open_iceberg(history.address).scan().collect()
    moved = open_iceberg(history.address, relocate={f"{history.location}/data": str(aside)})
    assert sorted(moved.scan().collect()["id"].to_list()) == [0, 1, 2]
    allowed = Config(roots=(history.address,))
    with pytest.raises(lv.errors.AccessDeniedError):
        open_iceberg(
            history.address, relocate={f"{history.location}/data": str(aside)}, config=allowed
        ).scan().collect()


def test_statistics_are_those_of_the_manifests(tmp_path: Path) -> None:
    table = open_iceberg(grown(tmp_path).address)
    statistics = table.statistics(columns=["id"]).unnest("id").sort("min")
    assert statistics.select("min", "max", "null_count", "exact").rows() == [(i, i, 0, True) for i in range(3)]
    with pytest.raises(InvalidRequestError, match="no column x"):
        table.statistics(columns=["x"])
    assert statistics.schema["min"] == pl.Int64()


def test_bounds_are_exact_only_where_all_values_are_one(tmp_path: Path) -> None:
    """The specification promises that no value lies beyond them, not that they occur."""
    fields = [{"id": 1, "name": "x", "required": False, "type": "double"}]
    history = IcebergHistory(tmp_path / "t", fields)
    files: dict[str, list[float | None]] = {
        "a": [1.0, 2.0], "b": [1.0, 1.0, None], "c": [None], "d": [float("nan"), 1.0]
    }  # fmt: skip
    for name, values in files.items():
        history.append(name, [{"x": value} for value in values])
    statistics = open_iceberg(history.address).statistics().sort("_path")
    assert statistics["x"].struct.field("exact").to_list() == [False, True, False, True]


def test_a_table_is_read_from_any_store(tmp_path: Path) -> None:
    history = grown(tmp_path)
    memory = fsspec.filesystem("memory")
    for path in history.root.rglob("*"):
        if path.is_file():
            memory.pipe_file(f"/any-store/t/{path.relative_to(history.root)}", path.read_bytes())
    table = lv.open_table("memory://any-store/t")
    assert sorted(table.scan().collect()["id"].to_list()) == [0, 1, 2]
    assert table.versions()["readable"].all()
    assert lv.find_tables("memory://any-store")["format"].to_list() == ["iceberg"]
