"""The audit of Delta logs: a good log is proven law by law, and each planted violation is found where it is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.model.frames import AUDIT
from lakeview.model.laws import DELTA, LAWS
from tests.builders.actions import Action, add, info, metadata, protocol, remove, txn
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table

Log = dict[int, list[Action]]

WRITER = ["appendOnly", "deletionVectors", "domainMetadata", "inCommitTimestamp", "rowTracking"]
PROPERTIES: dict[str, str | None] = {"delta.enableInCommitTimestamps": "true"}
MARK = "delta.rowTracking"


def engine_of(version: int) -> str:
    return f"Engine {version}/1.{version}"


def commit_info(version: int, operation: str, version_read: int | None = None, **more: Any) -> Action:
    body = {"operation": operation, "inCommitTimestamp": 1_000 + version, "engineInfo": engine_of(version), **more}
    return info(**body if version_read is None else {**body, "readVersion": version_read})


def file(
    path: str, records: int, nulls: int = 0, *, base: int | None = None, vector: Any = None, **more: Any
) -> Action:
    body: dict[str, Any] = {} if base is None else {"baseRowId": base}
    body |= {} if vector is None else {"deletionVector": vector}
    return add(path, stats={"numRecords": records, "nullCount": {"id": 0, "city": nulls}}, **body, **more)


def vector(name: str, cardinality: int) -> dict[str, Any]:
    return {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 40, "cardinality": cardinality}


def mark(value: int) -> Action:
    configuration = f'{{"rowIdHighWaterMark":{value}}}'
    return {"domainMetadata": {"domain": MARK, "configuration": configuration, "removed": False}}


FIRST, SECOND = vector("ab^-aqEH.-t@S}K{vb[*k^", 2), vector("cd^-aqEH.-t@S}K{vb[*k^", 3)


def good() -> Log:
    """Every operation that has a law, done right."""
    moved = {"data_change": False}
    return {
        0: [
            commit_info(0, "CREATE TABLE"),
            protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=WRITER),
            metadata(properties=PROPERTIES),
        ],
        1: [
            commit_info(
                1, "WRITE", 0, operationParameters={"mode": "Append"}, operationMetrics={"numOutputRows": "15"}
            ),
            file("a", 10, 2, base=0),
            file("b", 5, 1, base=10),
            mark(14),
        ],
        2: [
            commit_info(2, "DELETE", 1, operationMetrics={"numDeletedRows": "2"}),
            remove("a"),
            file("a", 10, 2, base=0, vector=FIRST),
        ],
        3: [
            commit_info(3, "DELETE", 2, operationMetrics={"numDeletedRows": "1"}),
            remove("a", deletionVector=FIRST),
            file("a", 10, 2, base=0, vector=SECOND),
        ],
        4: [commit_info(4, "WRITE", 3, operationParameters={"mode": "Append"}), file("c", 10, base=15), mark(24)],
        5: [
            commit_info(5, "OPTIMIZE", 4, operationMetrics={"numAddedFiles": "1", "numRemovedFiles": "2"}),
            remove("b", **moved),
            remove("c", **moved),
            file("d", 15, 1, base=25, **moved),
            mark(39),
        ],
        6: [commit_info(6, "UPDATE", 5), remove("d"), file("e", 15, base=40)],
        7: [
            commit_info(7, "RESTORE", 6, operationParameters={"version": "4"}),
            remove("e"),
            file("b", 5, 1, base=10),
            file("c", 10, base=15),
        ],
        8: [
            commit_info(8, "WRITE", 7, operationParameters={"mode": "Overwrite"}),
            remove("a", deletionVector=SECOND),
            remove("b"),
            remove("c"),
            file("f", 3),
        ],
        9: [commit_info(9, "WRITE", 8, isBlindAppend=True), txn("app", 1), file("g", 1)],
        10: [
            commit_info(10, "OPTIMIZE", 8),
            protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=[*WRITER, "checkConstraints"]),
            metadata(properties={**PROPERTIES, "delta.appendOnly": "true"}),
            remove("f", **moved),
            file("h", 3, **moved),
        ],
        11: [commit_info(11, "WRITE", 10, isBlindAppend=True), txn("app", 2), file("i", 1)],
    }


def body(log: Log, version: int, kind: str, path: str | None = None) -> dict[str, Any]:
    """The action of a commit to be changed."""
    actions = [a[kind] for a in log[version] if kind in a and path in (None, a[kind].get("path"))]
    changed: dict[str, Any] = actions[0]
    return changed


def drop(log: Log, version: int, kind: str, path: str) -> None:
    log[version] = [a for a in log[version] if a.get(kind, {}).get("path") != path]


def restated(log: Log, version: int, path: str, records: int, nulls: int) -> None:
    body(log, version, "add", path)["stats"] = f'{{"numRecords":{records},"nullCount":{{"id":0,"city":{nulls}}}}}'


def planted(name: str, plant: Callable[[Log], object], law: str, version: int) -> Any:
    return pytest.param(plant, law, version, id=name)


VIOLATIONS = [
    planted("optimize loses a row", lambda g: restated(g, 5, "d", 14, 1), "rearrangement-conserves-rows", 5),
    planted("optimize doubles its file", lambda g: g[5].append(file("d2", 15, 1, data_change=False)),
            "rearrangement-conserves-rows", 5),
    planted("optimize loses a value", lambda g: restated(g, 5, "d", 15, 2), "rearrangement-conserves-nulls", 5),
    planted("an add is dropped", lambda g: drop(g, 1, "add", "b"), "remove-names-live-file", 5),
    planted("a file is removed twice", lambda g: g[6].append(remove("b")), "remove-names-live-file", 6),
    planted("a remove names the wrong vector", lambda g: body(g, 3, "remove").pop("deletionVector"),
            "remove-names-live-file", 3),
    planted("an add is doubled", lambda g: g[4].append(file("c", 10)), "one-action-per-file", 4),
    planted("a file is added and removed", lambda g: g[4].append(remove("c")), "one-action-per-file", 4),
    planted("a path is resurrected", lambda g: g[9].append(file("b", 5)), "removed-file-stays-removed", 9),
    planted("a vector shrinks", lambda g: body(g, 3, "add")["deletionVector"].update(cardinality=1),
            "vectors-only-grow", 3),
    planted("a vector is lost", lambda g: body(g, 3, "add").pop("deletionVector"), "vectors-only-grow", 3),
    planted("the old vector stays", lambda g: drop(g, 3, "remove", "a"), "one-vector-per-path", 3),
    planted("an append removes", lambda g: g[4].append(remove("b")), "append-removes-nothing", 4),
    planted("a blind append removes", lambda g: g[9].append(remove("f")), "append-removes-nothing", 9),
    planted("rows go from an append-only table",
            lambda g: g[7].append(metadata(properties={**PROPERTIES, "delta.appendOnly": "true"})),
            "append-only-table", 8),
    planted("an overwrite leaves a file", lambda g: drop(g, 8, "remove", "b"), "overwrite-leaves-own-files", 8),
    planted("a metric is changed", lambda g: body(g, 1, "commitInfo").update(operationMetrics={"numOutputRows": 16}),
            "metrics-equal-actions", 1),
    planted("optimize counts one file less",
            lambda g: body(g, 5, "commitInfo")["operationMetrics"].update(numRemovedFiles="1"),
            "metrics-equal-actions", 5),
    planted("an update loses a row", lambda g: restated(g, 6, "e", 14, 0), "row-counts-fit-operation", 6),
    planted("a delete deletes more", lambda g: body(g, 3, "commitInfo").update(operationMetrics={"numDeletedRows": 4}),
            "row-counts-fit-operation", 3),
    planted("a restore lacks a file", lambda g: drop(g, 7, "add", "c"), "restore-equals-target", 7),
    planted("a restore leaves a file", lambda g: drop(g, 7, "remove", "e"), "restore-equals-target", 7),
    planted("a feature is dropped in passing", lambda g: g[4].append(protocol(1, 7, writerFeatures=WRITER[:1])),
            "protocol-keeps-features", 4),
    planted("a row id is used twice", lambda g: body(g, 4, "add").update(baseRowId=12), "row-ids-unique", 4),
    planted("a row id is below the mark", lambda g: g[11].append(file("j", 1, base=38)), "row-ids-unique", 11),
    planted("an in-commit timestamp stands still", lambda g: body(g, 4, "commitInfo").update(inCommitTimestamp=1_003),
            "in-commit-timestamps-increase", 4),
    planted("an in-commit timestamp is missing", lambda g: body(g, 4, "commitInfo").pop("inCommitTimestamp"),
            "in-commit-timestamps-increase", 4),
    planted("a delete does nothing", lambda g: g[3].__delitem__(slice(1, None)), "row-counts-fit-operation", 3),
    planted("a file that was not read is removed", lambda g: g[10].append(remove("g", data_change=False)),
            "reads-unchanged", 10),
]  # fmt: skip


def table(path: Path, log: Log) -> lv.Table:
    history = DeltaHistory(path / "t")
    for version, actions in log.items():
        history.commit(*actions, version=version)
    return lv.open_table(history.address)


def violations(verdicts: pl.DataFrame) -> list[tuple[str, int]]:
    wrong = verdicts.filter(pl.col("verdict") == "violated")
    return list(zip(wrong["law"], wrong["version"], strict=True))


def test_a_good_log_is_proven_law_by_law(tmp_path: Path) -> None:
    verdicts = table(tmp_path, good()).audit()
    assert verdicts.schema == AUDIT
    assert violations(verdicts) == []
    assert verdicts["verdict"].unique().to_list() == ["proven"]
    assert set(verdicts["law"]) == {law.id for law in LAWS.values() if law.table_format == DELTA}


@pytest.mark.parametrize(("plant", "law", "version"), VIOLATIONS)
def test_a_planted_violation_is_found(plant: Callable[[Log], object], law: str, version: int, tmp_path: Path) -> None:
    log = copy.deepcopy(good())
    plant(log)
    verdicts = table(tmp_path, log).audit()
    assert (law, version) in violations(verdicts)
    row = verdicts.filter((pl.col("law") == law) & (pl.col("version") == version)).row(0, named=True)
    assert row["reason"]
    assert row["engine"] == engine_of(version)


UNKNOWABLE = {"a restore lacks a file", "a restore leaves a file", "an in-commit timestamp stands still"}
"""What the commit before, or the target of a restore, would show."""


@pytest.mark.parametrize(("plant", "law", "version"), VIOLATIONS)
def test_a_planted_violation_is_found_in_the_first_commit_behind_a_checkpoint(
    plant: Callable[[Log], object], law: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    log = copy.deepcopy(good())
    plant(log)
    history = DeltaHistory(tmp_path / "t")
    for number in range(version):
        history.commit(*log[number], version=number)
    open_delta_table(history).checkpoint()
    history.commit(*log[version], version=version).without(*range(version))
    verdicts = lv.open_table(history.address).audit()
    verdict = "unknowable" if request.node.callspec.id in UNKNOWABLE else "violated"
    assert verdicts.filter(pl.col("law") == law)["verdict"].to_list() == [verdict]


def test_every_law_has_a_planted_violation() -> None:
    laws = {law.id for law in LAWS.values() if law.table_format == DELTA}
    # an application may start over, so that its versions prove nothing
    assert laws - {param.values[1] for param in VIOLATIONS} == {"transactions-advance"}


@pytest.mark.parametrize(
    ("counts", "verdict", "reason"),
    [
        ({"id": 0, "city": 1}, "proven", None),
        ({"id": 0}, "unknowable", "the null counts of city are not exact in all files"),
        ({}, "unknowable", "no column has exact null counts in all of the files"),
        ({"id": 1}, "violated", "nulls of id changed: dataChange=false promises the same rows"),
    ],
    ids=str,
)
def test_nulls_are_proven_if_those_of_every_counted_column_are(
    counts: dict[str, int], verdict: str, reason: str | None, tmp_path: Path
) -> None:
    log = good()
    body(log, 5, "add", "d")["stats"] = json.dumps({"numRecords": 15, "nullCount": counts})
    law = table(tmp_path, log).audit(5, 5).filter(pl.col("law") == "rearrangement-conserves-nulls")
    assert law.select("verdict", "reason").rows() == [(verdict, reason)]


def test_an_application_that_goes_back_is_named(tmp_path: Path) -> None:
    log = good()
    body(log, 11, "txn")["version"] = 0
    row = table(tmp_path, log).audit(start=11).filter(pl.col("law") == "transactions-advance").row(0, named=True)
    assert (row["verdict"], row["reason"]) == ("unknowable", "application app went back from 1 to 0")


def test_a_range_of_commits(tmp_path: Path) -> None:
    verdicts = table(tmp_path, good()).audit(3, 5)
    assert verdicts["version"].unique(maintain_order=True).to_list() == [3, 4, 5]


OVERWRITES: dict[str, tuple[dict[str, Any], dict[str, str | None], str, str, str]] = {
    "of a version that is not recorded": ({}, {}, "b", "Append", "unknowable"),
    "of the version before the append": ({"readVersion": 1}, {}, "b", "Append", "unknowable"),
    "of the version with the append": ({"readVersion": 2}, {}, "b", "Append", "violated"),
    "that removes a later file": ({}, {}, "a", "Append", "violated"),
    "beside another overwrite": ({}, {}, "b", "Overwrite", "violated"),
    "that is serializable": ({"isolationLevel": "Serializable"}, {}, "b", "Append", "violated"),
    "that is write-serializable": ({"isolationLevel": "WriteSerializable"}, {}, "b", "Append", "unknowable"),
    "of a serializable table": ({}, {"delta.isolationLevel": "Serializable"}, "b", "Append", "violated"),
}


@pytest.mark.parametrize("cleaned", [False, True], ids=["whole log", "from a checkpoint"])
@pytest.mark.parametrize(("more", "properties", "left", "mode", "verdict"), OVERWRITES.values(), ids=list(OVERWRITES))
def test_an_overwrite_that_leaves_a_file(
    more: dict[str, Any], properties: dict[str, str | None], left: str, mode: str, verdict: str, cleaned: bool,
    tmp_path: Path,
) -> None:  # fmt: skip
    history = DeltaHistory(tmp_path / "t").create(properties=properties)
    history.commit(info(operation="WRITE", operationParameters={"mode": "Append"}), file("a", 1))
    if cleaned:
        history.checkpoint().without(0, 1)
    others = [remove("a")] if mode == "Overwrite" else []
    history.commit(info(operation="WRITE", operationParameters={"mode": mode}), file("b", 1), *others)
    removal = remove("b" if left == "a" else "a")
    replaced = [] if mode == "Overwrite" else [removal]
    overwrite = info(operation="WRITE", operationParameters={"mode": "Overwrite"}, **more)
    history.commit(overwrite, *replaced, file("c", 1))
    verdicts = lv.open_table(history.address).audit(start=3)
    law = verdicts.filter(pl.col("law") == "overwrite-leaves-own-files")
    assert law["verdict"].to_list() == [verdict]


PARTITIONED = [
    pytest.param("day = '2'", {}, [file("n", 1, partition={"day": "1"})], "proven", id="another partition"),
    pytest.param("day = '1'", {}, [remove("m"), file("n", 1, partition={"day": "1"})], "violated", id="its partition"),
    pytest.param("""["(day#7 = '1')"]""", {}, [remove("m"), file("n", 1, partition={"day": "1"})], "violated",
                 id="of Spark"),
    pytest.param("id = 5", {}, [remove("m"), file("n", 1, partition={"day": "1"})], "unknowable",
                 id="by a data column"),
    pytest.param(None, {}, [remove("m"), file("n", 1, partition={"day": "1"})], "violated", id="the whole table"),
    pytest.param("day = '1'", {"isolationLevel": "WriteSerializable"}, None, "proven", id="an append comes after"),
    pytest.param("day = '1'", {"isolationLevel": "Serializable"}, None, "violated", id="no append under serializable"),
    pytest.param("day = '1'", {}, None, "unknowable", id="an append, isolation not recorded"),
    pytest.param("day = '1'", {"readVersion": None}, None, "unknowable", id="no readVersion"),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "more", "between", "verdict"), PARTITIONED)
def test_what_a_delete_read_was_unchanged(
    condition: str | None, more: dict[str, Any], between: list[Action] | None, verdict: str, tmp_path: Path
) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long", "day": "string"}, partition_by=("day",))
    first = [file(name, 1, partition={"day": "1"}) for name in "mo"]
    history.commit(info(operation="WRITE", operationParameters={"mode": "Append"}), *first)
    append = [info(operation="WRITE", isBlindAppend=True), file("n", 1, partition={"day": "1"})]
    history.commit(*(append if between is None else [info(operation="UPDATE", readVersion=1), *between]))
    parameters = {} if condition is None else {"predicate": condition}
    history.commit(
        info(**{"operation": "DELETE", "readVersion": 1, "operationParameters": parameters, **more}), remove("o")
    )
    verdicts = lv.open_table(history.address).audit()
    row = verdicts.filter((pl.col("version") == 3) & (pl.col("law") == "reads-unchanged")).row(0, named=True)
    assert row["verdict"] == verdict


@pytest.mark.parametrize(
    ("checkpoint", "path", "verdict"), [(True, "a", "proven"), (True, "z", "violated"), (False, "a", "unknowable")]
)
def test_files_of_a_log_that_was_cleaned_up(checkpoint: bool, path: str, verdict: str, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(file("a", 1))
    if checkpoint:
        history.checkpoint()
    history.commit(info(operation="DELETE"), remove(path)).commit(file("b", 1)).checkpoint().without(0, 1)
    verdicts = lv.open_table(history.address).audit(end=2)
    assert verdicts.filter(pl.col("law") == "remove-names-live-file")["verdict"].to_list() == [verdict]


@pytest.mark.parametrize(
    ("wanted", "cleaned", "start", "verdict"),
    [
        ("c", (0, 1, 2, 3, 4), None, "proven"),
        ("z", (0, 1, 2, 3, 4), None, "violated"),
        ("c", (0, 1, 2, 3), None, "proven"),
        ("c", (0, 1, 2), 5, "proven"),
        ("z", (), 5, "violated"),
        ("c", (), 5, "proven"),
    ],
    ids=[
        "the target's checkpoint", "another file", "a run without a base", "a range of a cleaned log",
        "another file of a range", "a range",
    ],
)  # fmt: skip
def test_a_restore_is_judged_by_a_target_that_the_commits_read_do_not_show(
    wanted: str, cleaned: tuple[int, ...], start: int | None, verdict: str, tmp_path: Path
) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(file("a", 1)).commit(file("c", 1))
    if 2 in cleaned:
        history.checkpoint()
    history.commit(info(operation="DELETE"), remove("a"), remove("c")).commit(info(operation="WRITE"), file("b", 1))
    if len(cleaned) != 4:  # so that the restore begins a run
        history.checkpoint()
    restore = info(operation="RESTORE", operationParameters={"version": "2"})
    history.commit(restore, remove("b"), file("a", 1), file(wanted, 1))
    if len(cleaned) == 4:
        history.checkpoint()
    history.without(*cleaned)
    verdicts = lv.open_table(history.address).audit(start)
    assert verdicts.filter(pl.col("law") == "restore-equals-target")["verdict"].to_list() == [verdict]


def test_a_file_that_a_checkpoint_has_as_removed_does_not_come_back(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(file("a", 1)).commit(info(operation="DELETE"), remove("a"))
    history.checkpoint().commit(info(operation="WRITE"), file("a", 1)).without(0, 1, 2)
    verdicts = lv.open_table(history.address).audit()
    assert ("removed-file-stays-removed", 3) in violations(verdicts)


def test_what_the_log_does_not_show_is_not_proven(tmp_path: Path) -> None:
    """Rows that no statistics count, and the time of a commit that a cleanup has deleted."""
    history = DeltaHistory(tmp_path / "t")
    for version, actions in good().items():
        for action in actions:
            action.get("add", {}).pop("stats", None)
        history.commit(*actions, version=version)
        if version == 3:
            history.checkpoint()
    verdicts = lv.open_table(history.address).audit(end=1)
    assert verdicts.filter(pl.col("law") == "metrics-equal-actions")["verdict"].to_list() == ["unknowable"]
    history.without(0, 1, 2, 3)
    times = lv.open_table(history.address).audit().filter(pl.col("law") == "in-commit-timestamps-increase")
    assert times.sort("version")["verdict"].to_list() == ["unknowable", *["proven"] * 7]


@pytest.mark.parametrize(("cleaned", "verdict"), [(False, "proven"), (True, "unknowable")])
def test_statistics_added_to_a_file_multiply_no_rows(cleaned: bool, verdict: str, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(file("a", 2)).commit(file("a", 2, data_change=False))
    if cleaned:
        history.checkpoint().without(0, 1)
    verdicts = lv.open_table(history.address).audit()
    assert verdicts.filter(pl.col("law") == "rearrangement-conserves-rows")["verdict"].to_list() == [verdict]


@pytest.mark.parametrize(("given_at", "verdicts"), [(1, []), (4, ["violated"]), (None, ["violated"])])
def test_row_ids_of_files_from_before_a_log_that_was_cleaned_up(
    given_at: int | None, verdicts: list[str], tmp_path: Path
) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(file("a", 1, base=0), mark(0))
    history.commit(info(operation="DELETE"), remove("a")).checkpoint().commit(mark(5))
    more = {} if given_at is None else {"defaultRowCommitVersion": given_at}
    history.commit(info(operation="RESTORE"), file("a", 1, base=0, **more)).without(0, 1, 2)
    laws = lv.open_table(history.address).audit()
    assert laws.filter(pl.col("law") == "row-ids-unique")["verdict"].to_list() == verdicts


def test_what_deltalake_writes_is_not_convicted(tmp_path: Path) -> None:
    def rows(start: int, end: int) -> pa.Table:
        ids = range(start, end)
        return pa.table({"id": list(ids), "day": [i % 3 for i in ids], "v": [None if i % 4 else str(i) for i in ids]})

    path = str(tmp_path / "t")
    for start in (0, 10, 20):
        deltalake.write_deltalake(path, rows(start, start + 10), mode="append", partition_by=["day"])
    table_of_deltalake = deltalake.DeltaTable(path)
    table_of_deltalake.delete("day = 1 and id > 15")
    table_of_deltalake.update(updates={"v": "'z'"}, predicate="id = 3")
    source = pa.table({"id": [3, 100], "day": [0, 1], "v": ["a", "b"]})
    merge = table_of_deltalake.merge(source, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table_of_deltalake.optimize.compact()
    table_of_deltalake.optimize.z_order(["id"])
    table_of_deltalake.restore(3)
    deltalake.write_deltalake(path, rows(0, 9), mode="overwrite", predicate="day = 0 or day > 0")
    deltalake.write_deltalake(path, rows(0, 5), mode="overwrite")
    deltalake.DeltaTable(path).vacuum(0, enforce_retention_duration=False, dry_run=False)
    verdicts = lv.open_table(path).audit()
    assert violations(verdicts) == []
    unknown = verdicts.filter(pl.col("verdict") == "unknowable").select("operation", "law").unique().rows()
    assert set(unknown) <= {("WRITE", "reads-unchanged"), ("WRITE", "metrics-equal-actions")}


def test_a_transaction_records_the_condition_of_a_delete(tmp_path: Path) -> None:
    """Without one the audit took it for a delete of the whole table, which had not seen what came in between."""
    address = str(tmp_path / "t")
    lv.create_table(address, {"id": "long"}).append(pl.DataFrame({"id": [0, 1, 2]}))
    delete, merge = (lv.open_table(address).transaction(name) for name in ("DELETE", "MERGE"))
    with delete:
        delete.delete("id = 0")
        with merge:
            merge.merge(pl.DataFrame({"id": [9]}), "id").when_not_matched_insert().execute()
    table = lv.open_table(address)
    assert json.loads(table.commit(3)["action"][0])["operationParameters"] == {"predicate": '["id = 0"]'}
    condition = table.audit().filter((pl.col("version") == 3) & (pl.col("law") == "reads-unchanged"))
    assert condition["verdict"].to_list() == ["unknowable"]
