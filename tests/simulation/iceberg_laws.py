"""What has to hold of an Iceberg table after every call and at the end of every schedule."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import fastavro
import polars as pl

from lakeview.iceberg.orphan_files import orphan_files
from lakeview.model.errors import CommitConflictError, LakeviewError, StoreUnavailableError
from lakeview.model.findings import Severity
from tests.simulation.iceberg_operations import (
    ICEBERG_NAMES,
    is_numbered,
    is_version_hint,
    number_of,
    reader,
    rows_at,
    walk,
)
from tests.simulation.laws import Violation
from tests.simulation.operations import Base, Model, Operation
from tests.simulation.store import Call, Files
from tests.simulation.writers import ROOT, Outcome, slot_of

_DELETED = 2
_GROWS = {"snapshots", "snapshot-log", "metadata-log"}
_CHANGES = {"last-updated-ms", "last-sequence-number", "current-snapshot-id", "refs", "next-row-id"} | _GROWS
"""What a commit changes of a metadata file; every other field stays."""


@cache
def _records(data: bytes) -> list[dict[str, Any]]:
    return list(fastavro.reader(io.BytesIO(data)))  # type: ignore[arg-type]


def _place(recorded: str) -> str:
    return recorded.removeprefix(f"{ROOT}/")


def named_files(files: Files, snapshot: Mapping[str, Any]) -> set[str]:
    """What a snapshot reads, by nothing of lakeview's: its list, the manifests and the live files. Violation for one
    that is not there."""
    names = {_place(snapshot["manifest-list"])}
    for manifest in _records(_data(files, _place(snapshot["manifest-list"]), "the manifest list")):
        path = _place(manifest["manifest_path"])
        names.add(path)
        entries = _records(_data(files, path, "a manifest"))
        names |= {_place(e["data_file"]["file_path"]) for e in entries if e["status"] != _DELETED}
    return names


def _data(files: Files, path: str, what: str) -> bytes:
    if path not in files.content:
        raise Violation(f"{what} {path} is not there")
    return files.content[path].data


@dataclass
class IcebergLaws:
    """The laws of one base table, with what was found before: states repeat."""

    base: Base
    _answers: dict[object, Any] = field(default_factory=dict)

    # -- after each call

    def check_effect(self, slot: str, operation: Operation, before: Files, call: Call, after: Files) -> None:
        """What a call must not do to the store."""
        if call.kind == "delete":
            if is_numbered(call.path) or self.needs(before, call.path):
                raise Violation(f"{call.path} was deleted, which a snapshot needs")
        elif is_numbered(call.path):
            if call.kind == "put":
                raise Violation(f"{call.path} was put, not created exclusively")
            if call.path not in before.content:
                self._check_commit(after, call.path)
        elif is_version_hint(call.path):
            if int(call.data) not in _numbers(after):
                raise Violation(f"the version hint is {call.data!r}, and there is no such metadata file")
        elif call.path in before.content:
            raise Violation(f"{call.path} was overwritten: its name is to be unique")

    def needs(self, files: Files, path: str) -> bool:
        """Whether a snapshot reads a file."""
        key = ("needs", _history(files))
        if key not in self._answers:
            document = json.loads(_latest(files))
            self._answers[key] = set().union(*(named_files(files, each) for each in document["snapshots"]))
        return path in self._answers[key]

    def _check_commit(self, after: Files, path: str) -> None:
        """A metadata file follows the one before it with one snapshot more, whose files are there."""
        number = number_of(path)
        if number - 1 not in _numbers(after) or number != max(_numbers(after)):
            raise Violation(f"{path} was committed beside {sorted(_numbers(after))}: the history is not linear")
        new, old = json.loads(after.content[path].data), json.loads(after.content[_numbers(after)[number - 1]].data)
        snapshot = new["snapshots"][-1]
        query, epoch = (snapshot["summary"].get(f"spark.sql.streaming.{name}Id") for name in ("query", "epoch"))
        batch = {} if query is None else {f"lakeview.stream.{query}": f"{epoch}@{snapshot['snapshot-id']}"}
        expected = {
            **{name: value for name, value in old.items() if name not in _CHANGES},
            "snapshots": [*old["snapshots"], snapshot],
            "properties": {**old["properties"], **batch},
            "snapshot-log": [
                *old["snapshot-log"],
                {"timestamp-ms": snapshot["timestamp-ms"], "snapshot-id": snapshot["snapshot-id"]},
            ],
            "metadata-log": [
                *old.get("metadata-log", ()),
                {"timestamp-ms": old["last-updated-ms"], "metadata-file": f"{ROOT}/{_numbers(after)[number - 1]}"},
            ],
            "last-updated-ms": snapshot["timestamp-ms"],
            "last-sequence-number": old["last-sequence-number"] + 1,
            "current-snapshot-id": snapshot["snapshot-id"],
            "refs": {"main": {"type": "branch", "snapshot-id": snapshot["snapshot-id"]}},
            **({"next-row-id": new["next-row-id"]} if new["format-version"] == 3 else {}),
        }
        if new != expected:
            raise Violation(f"{path} does not follow the file before it: {new} instead of {expected}")
        if snapshot["sequence-number"] != new["last-sequence-number"]:
            raise Violation(f"{path}: the sequence number {snapshot['sequence-number']} is not the next one")
        if snapshot.get("parent-snapshot-id") != old["current-snapshot-id"]:
            raise Violation(f"{path}: the parent of its snapshot is not {old['current-snapshot-id']}")
        if snapshot["timestamp-ms"] <= old["last-updated-ms"] or new.get("next-row-id", 0) < old.get("next-row-id", 0):
            raise Violation(f"{path}: its time or its next row id goes back")
        if missing := named_files(after, snapshot) - after.content.keys():
            raise Violation(f"{path} names {min(missing)}, which is not there")

    # -- at the end

    def check_end(
        self, files: Files, slots: Mapping[str, Operation], outcomes: Mapping[str, Outcome | None], *, faulty: bool
    ) -> None:
        """What holds when every writer has reported or was killed (None). `faulty`: whether the store failed once."""
        document = json.loads(_latest(files))
        new = [s["snapshot-id"] for s in document["snapshots"] if slot_of(s["snapshot-id"]) in slots]
        models = self._models(files, new, slots)
        for slot, outcome in outcomes.items():
            own = [number for number in new if slot_of(number) == slot]
            if len(own) > 1:
                raise Violation(f"writer {slot} committed {own}, which is too often")
            if outcome is not None:
                _check_outcome(slot, slots[slot], outcome, own, models, faulty=faulty)
        self._check_table(files, faulty=faulty)

    def _models(self, files: Files, new: list[int], slots: Mapping[str, Operation]) -> list[Model]:
        """Each snapshot holds what the model makes of the one before."""
        models = [self.base.model]
        for version, number in enumerate(new, self.base.version + 1):
            models.append(slots[slot_of(number)].step(models, 0))
            key = ("rows", files.content[_numbers(files)[version]].data)
            if key not in self._answers:
                self._answers[key] = rows_at(files, number)
            if self._answers[key] != models[-1].rows:
                raise Violation(
                    f"the snapshot of writer {slot_of(number)} has the rows {self._answers[key]} instead of "
                    f"{models[-1].rows}"
                )
        return models

    def check_opens(self, files: Files) -> None:
        """A reader that comes now opens the table at the newest metadata file."""
        key = ("opens", _history(files), files.only(is_version_hint).key)
        if key not in self._answers:
            try:
                self._answers[key] = reader(files).latest_version
            except LakeviewError as error:
                raise Violation(f"the table does not open: {type(error).__name__}: {error}") from error
        if (latest := self._answers[key]) != json.loads(_latest(files))["current-snapshot-id"]:
            raise Violation(f"a reader opens the snapshot {latest}, which is not the newest")

    def _check_table(self, files: Files, *, faulty: bool) -> None:
        """The newest table opens, at the snapshot that was compared with its model; neither audit nor log doctor
        finds anything; and what was left behind is what the doctor names, without a fault nothing."""
        self.check_opens(files)
        orphans = files.content.keys() - self.base.files.content.keys()
        orphans = {name for name in orphans if not ICEBERG_NAMES.is_log(name) and not self.needs(files, name)}
        if orphans and not faulty:
            raise Violation(f"{min(orphans)} was left behind, though nothing failed")
        history = _history(files)
        if ("table", history) not in self._answers:
            table = reader(files)
            if wrong := table.audit().filter(pl.col("verdict") == "violated").rows(named=True):
                raise Violation(f"the audit finds {wrong}")
            findings = [f for f in table.check() if f.severity is not Severity.PASS]
            if [f for f in findings if f.id != "snapshot-orphan-files"]:
                raise Violation(f"the log doctor finds {findings}")
            self._answers["table", history] = table
        table = self._answers["table", history]
        key = ("left", history, frozenset(orphans))
        if key not in self._answers:
            self._answers[key] = set(orphan_files(table.state, walk(files))["name"])
        if self._answers[key] != orphans:
            raise Violation(
                f"{sorted(orphans)} were left behind, and the log doctor names {sorted(self._answers[key])}"
            )


def _check_outcome(
    slot: str, operation: Operation, outcome: Outcome, own: list[int], models: list[Model], *, faulty: bool
) -> None:
    error = outcome.error
    if error is None:
        if ([] if outcome.value is None else [outcome.value]) != own:
            raise Violation(f"writer {slot} reported {outcome.value}, and the table has {own} of it")
        if outcome.value is None and not any(operation.step(models[: i + 1], 0) == m for i, m in enumerate(models)):
            raise Violation(f"writer {slot} did nothing, though there was something to do in every snapshot")
        return
    if not isinstance(error, CommitConflictError) and not (faulty and isinstance(error, LakeviewError)):
        raise Violation(f"writer {slot} failed: {type(error).__name__}: {error}") from error
    unknown = isinstance(error, StoreUnavailableError) and error.kind == "outcome-unknown"
    if own and not unknown:
        raise Violation(f"writer {slot} reported {type(error).__name__}, and the table has {own} of it") from error


def _numbers(files: Files) -> dict[int, str]:
    """The metadata files, by number."""
    return {number_of(name): name for name in files.content if is_numbered(name)}


def _latest(files: Files) -> bytes:
    """The newest metadata file."""
    numbers = _numbers(files)
    return files.content[numbers[max(numbers)]].data


def _history(files: Files) -> object:
    """What tells one history from another: the newest metadata file names all that came before, but manifests and their
    lists may have the same names and other contents in another schedule."""
    return _latest(files), frozenset((name, f.data) for name, f in files.content.items() if name.endswith(".avro"))
