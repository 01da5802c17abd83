"""What has to hold after every call and at the end of every schedule; a Violation says what did not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakeview.delta.data.deletion_vectors import file_of
from lakeview.delta.log.actions import DeletionVectorDescriptor
from lakeview.delta.log.paths import LOG_FOLDER, decode_path
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import CommitConflictError, LakeviewError, StoreUnavailableError
from tests.simulation.operations import APPEND_ONLY, NOW, SET_BY_OPERATIONS, Base, Model, Operation, Row, rows_of
from tests.simulation.store import Call, Files, Reply, Stored, is_commit, is_hint, is_log, reply, version_of
from tests.simulation.writers import Outcome, SimulatedStorage

_CHECKPOINT = ".checkpoint."


Identity = tuple[str, str | None]
"""A logical file: its path, and its deletion vector's unique id."""


class Violation(AssertionError):
    """A law that a schedule broke."""


@dataclass(frozen=True)
class Commit:
    """One commit, read by nothing of lakeview's: the names of its files, and who made it."""

    writer: str
    txn: str
    added: tuple[Identity, ...]
    removed: tuple[Identity, ...]
    apps: tuple[tuple[str, int], ...]
    row_ids: tuple[tuple[str, int, int], ...]
    time: int | None
    data_change: bool
    changes: tuple[str, ...]

    @property
    def paths(self) -> set[str]:
        """The files that it needs to be there."""
        vectors = {file_of(vector) for _, vector in self.added if vector is not None}
        return {path for path, _ in self.added} | {path for path in vectors if path is not None} | set(self.changes)


def parse(data: bytes) -> Commit:
    """The commit that these bytes are."""
    lines = [json.loads(line) for line in data.splitlines() if line]
    actions = [(kind, body) for line in lines for kind, body in line.items()]
    info = next((body for kind, body in actions if kind == "commitInfo"), dict[str, Any]())
    engine, txn = str(info.get("engineInfo", "")), str(info.get("txnId", ""))
    files = [(kind, _identity(body), body) for kind, body in actions if kind in ("add", "remove")]
    return Commit(
        engine.removeprefix("writer ") if engine.startswith("writer ") else txn[:1],
        txn,
        tuple(identity for kind, identity, _ in files if kind == "add"),
        tuple(identity for kind, identity, _ in files if kind == "remove"),
        tuple((body["appId"], body["version"]) for kind, body in actions if kind == "txn"),
        tuple(
            (path, body["baseRowId"], json.loads(body["stats"])["numRecords"])
            for kind, (path, _), body in files
            if kind == "add" and "baseRowId" in body
        ),
        info.get("inCommitTimestamp"),
        any(body.get("dataChange") for _, _, body in files),
        tuple(decode_path(body["path"]) for kind, body in actions if kind == "cdc"),
    )


def _identity(body: Mapping[str, Any]) -> Identity:
    vector = body.get("deletionVector")
    if vector is None:
        return decode_path(body["path"]), None
    descriptor = DeletionVectorDescriptor(
        vector["storageType"],
        vector["pathOrInlineDv"],
        vector["sizeInBytes"],
        vector["cardinality"],
        vector.get("offset"),
    )
    return decode_path(body["path"]), descriptor.unique_id


@dataclass
class Laws:
    """The laws of one base table, with what was found before: states repeat."""

    base: Base
    _parsed: dict[bytes, Commit] = field(default_factory=dict)
    _needed_files: dict[frozenset[tuple[int, bytes]], set[str]] = field(default_factory=dict)
    _rows: dict[object, Any] = field(default_factory=dict)

    # -- after each call

    def check_effect(self, slot: str, operation: Operation, before: Files, call: Call, after: Files) -> None:
        """What a call must not do to the store."""
        if call.kind == "delete":
            self._check_delete(slot, operation, before, call.path)
        elif is_commit(call.path):
            if call.kind == "put":
                raise Violation(f"{call.path} was put, not created exclusively")
            if call.path not in before.content:
                self._check_commit(before, call)
        elif is_hint(call.path):
            self._check_hint(after, call.data)
        elif is_log(call.path):
            file = before.content.get(call.path)
            if file is not None and file.data != call.data:
                raise Violation(f"{call.path} was replaced by a file with other bytes")
        elif call.path in before.content:
            raise Violation(f"{call.path} was overwritten: data files are unique")

    def _check_delete(self, slot: str, operation: Operation, before: Files, path: str) -> None:
        if path not in before.content:
            return
        if is_commit(path) and not (operation.cleans and version_of(path) < self.base.version):
            raise Violation(f"{path} was deleted: commits are immutable")
        if is_log(path):
            return
        if self.needs(before, path):
            raise Violation(f"{path} was deleted, which a version from {self.base.version} on needs")

    def needs(self, files: Files, path: str) -> bool:
        """Whether a version from the base on reads a data file."""
        commits = frozenset(files.commits.items())
        if commits not in self._needed_files:
            self._needed_files[commits] = self._files_of_versions(files)
        return path in self._needed_files[commits]

    def _files_of_versions(self, files: Files) -> set[str]:
        live: dict[str, str | None] = {}
        paths: set[str] = set()
        for version, data in sorted(self._commits(files).items()):
            commit = self.parse(data)
            for path, _ in commit.removed:
                live.pop(path, None)
            live.update(commit.added)
            if version >= self.base.version:
                vectors = {file_of(vector) for vector in live.values() if vector is not None}
                paths |= live.keys() | {path for path in vectors if path is not None} | set(commit.changes)
        return paths

    def _check_commit(self, before: Files, call: Call) -> None:
        version = version_of(call.path)
        latest = max(before.commits)
        if version != latest + 1:
            raise Violation(f"version {version} was committed after {latest}: a gap")
        missing = self.parse(call.data).paths - before.content.keys()
        if missing:
            raise Violation(f"version {version} names {min(missing)}, which is not there")

    def _check_hint(self, after: Files, data: bytes) -> None:
        version = json.loads(data)["version"]
        if not any(name.startswith(f"{LOG_FOLDER}/{version:020d}{_CHECKPOINT}") for name in after.content):
            raise Violation(f"_last_checkpoint names {version}, of which there is no checkpoint")

    # -- at the end

    def check_end(
        self, files: Files, slots: Mapping[str, Operation], outcomes: Mapping[str, Outcome | None], *, faulty: bool
    ) -> None:
        """What holds when every writer has reported or was killed (None). `faulty`: whether the store failed once."""
        commits = {v: self.parse(data) for v, data in files.commits.items() if v > self.base.version}
        if sorted(commits) != list(range(self.base.version + 1, self.base.version + 1 + len(commits))):
            raise Violation(f"the log has a gap: {sorted(commits)}")
        self._check_outcomes(commits, slots, outcomes, faulty=faulty)
        models = self._check_versions(files, commits, slots)
        self._check_actions(files)
        self._check_reports(slots, outcomes, models)
        self._check_checkpoints(files)
        self._check_latest(files, models)
        if not faulty:
            self._check_orphans(files)

    def parse(self, data: bytes) -> Commit:
        """As `parse`, remembered."""
        if data not in self._parsed:
            self._parsed[data] = parse(data)
        return self._parsed[data]

    def _check_outcomes(
        self,
        commits: Mapping[int, Commit],
        slots: Mapping[str, Operation],
        outcomes: Mapping[str, Outcome | None],
        *,
        faulty: bool,
    ) -> None:
        txns = [commit.txn for commit in commits.values()]
        apps = [app for commit in commits.values() for app in commit.apps]
        for kind, identifiers in (
            ("transaction", list(map(str, txns))),
            ("application's progress", list(map(str, apps))),
        ):
            twice = {each for each in identifiers if identifiers.count(each) > 1}
            if twice:
                raise Violation(f"the {kind} {min(twice)} was committed twice")
        for slot, operation in slots.items():
            own = [version for version, commit in commits.items() if commit.writer == slot]
            outcome = outcomes[slot]
            if len(own) > operation.commits:
                raise Violation(f"writer {slot} committed {own}, which is too often")
            if outcome is None:
                continue
            if outcome.error is not None:
                self._check_error(slot, outcome.error, own, operation, faulty=faulty)
            elif type(outcome.value) is int and own[-1:] != [outcome.value]:
                raise Violation(f"writer {slot} reported version {outcome.value}, and the log has {own} of it")
            elif outcome.value is None and own:
                raise Violation(f"writer {slot} reported that nothing was to do, and the log has {own} of it")

    def _check_error(
        self, slot: str, error: BaseException, own: list[int], operation: Operation, *, faulty: bool
    ) -> None:
        unknown = isinstance(error, StoreUnavailableError) and error.kind == "outcome-unknown"
        clean = isinstance(error, CommitConflictError) or (
            isinstance(error, LakeviewError) and (faulty or error.kind == "append-only" or operation.may_fail)
        )
        if not clean:
            raise Violation(f"writer {slot} failed: {type(error).__name__}: {error}") from error
        if own and operation.commits == 1 and not unknown:
            raise Violation(f"writer {slot} reported {type(error).__name__}, and the log has {own} of it") from error

    def _check_versions(
        self, files: Files, commits: Mapping[int, Commit], slots: Mapping[str, Operation]
    ) -> dict[int, Model]:
        """Each version holds what the model makes of the one before."""
        models = {self.base.version: self.base.model}
        for version, commit in sorted(commits.items()):
            before = list(models.values())
            if APPEND_ONLY in before[-1].properties and commit.removed and commit.data_change:
                raise Violation(f"version {version} removes data of a table that is append-only")
            number = [c.writer for v, c in commits.items() if v < version].count(commit.writer)
            models[version] = slots[commit.writer].step(before, number)
            model = self._version(files, version)
            if model != models[version]:
                raise Violation(
                    f"version {version} (writer {commit.writer}) is {_difference_text(model, models[version])}, after "
                    f"{[models[v].rows for v in sorted(models)][:-1]}"
                )
            self._check_feed(files, version, before[-1], model)
        return models

    def _check_reports(
        self, slots: Mapping[str, Operation], outcomes: Mapping[str, Outcome | None], models: Mapping[int, Model]
    ) -> None:
        for slot, operation in slots.items():
            outcome = outcomes[slot]
            if outcome is None or outcome.error is not None:
                continue
            if isinstance(outcome.value, tuple):
                version, rows = outcome.value
                if version not in models or rows != models[version].rows:
                    raise Violation(f"reader {slot} saw {rows} at version {version}, which was never so")
            elif outcome.value is None and operation.commits == 1:
                history = list(models.values())
                steps = (history[: at + 1] for at in range(len(history)))
                if not any(operation.step(some, 0) == some[-1] for some in steps):
                    raise Violation(f"writer {slot} did nothing, though there was something to do at every version")

    def _check_actions(self, files: Files) -> None:
        """Removes name what is live, adds what is not; times and row ids rise."""
        live: dict[str, str | None] = {}
        last_time = -1
        next_id = 0
        for version, data in sorted(self._commits(files).items()):
            commit = self.parse(data)
            before = dict(live)
            for path, vector in commit.removed:
                if path not in live or live[path] != vector:
                    raise Violation(f"version {version} removes {path} ({vector}), which is not live so")
                del live[path]
            for path, vector in commit.added:
                if path in live:
                    raise Violation(f"version {version} adds {path}, which is live with {live[path]}")
                live[path] = vector
            if commit.time is not None:
                if commit.time <= last_time:
                    raise Violation(f"version {version} has time {commit.time}, not above {last_time}")
                last_time = commit.time
            for path, first, count in commit.row_ids:
                if path not in before:
                    if first < next_id:
                        raise Violation(f"version {version} gives row ids from {first} on, {next_id} is the next")
                    next_id = first + count

    def _check_orphans(self, files: Files) -> None:
        names = self._ever_named(files)
        orphans = {
            name for name in files.content.keys() - self.base.files.content.keys()
            if not name.startswith(LOG_FOLDER) and name not in names
        }  # fmt: skip
        if orphans:
            raise Violation(f"{min(orphans)} was left behind, though nothing failed")

    def _ever_named(self, files: Files) -> set[str]:
        return set().union(*(self.parse(data).paths for data in self._commits(files).values()))

    # -- what readers see

    def _commits(self, files: Files) -> dict[int, bytes]:
        """All commits, those that log cleanup has deleted too."""
        return self.base.files.commits | files.commits

    def _version(self, files: Files, version: int) -> Model:
        """A version as the commits alone tell it."""
        commits = {v: data for v, data in self._commits(files).items() if v <= version}
        key = frozenset(commits.items())
        if key not in self._rows:
            self._rows[key] = _model(_table(self._commits_only(files, commits)), version)
        model: Model = self._rows[key]
        return model

    def _check_feed(self, files: Files, version: int, before: Model, after: Model) -> None:
        """The change data feed of a version leads from the rows before to those after, where there is one."""
        commits = {v: data for v, data in self._commits(files).items() if v <= version}
        key = ("feed", frozenset(commits.items()))
        if key not in self._rows:
            self._rows[key] = _changes(_table(self._commits_only(files, commits)), version)
        if self._rows[key] is None:
            return
        rows = Counter(before.rows)
        for change, row in self._rows[key]:
            rows[row] += 1 if change in ("insert", "update_postimage") else -1
        if rows != Counter(after.rows):
            raise Violation(f"the change data feed of version {version} leads to {sorted(rows.items())}")

    def _commits_only(self, files: Files, commits: Mapping[int, bytes]) -> Files:
        log = {f"{LOG_FOLDER}/{v:020d}.json": Stored(data, 0) for v, data in commits.items()}
        return Files({**{n: f for n, f in files.content.items() if not n.startswith(LOG_FOLDER)}, **log})

    def _check_latest(self, files: Files, models: Mapping[int, Model]) -> None:
        """A reader that comes now opens the table at the newest version."""
        latest = max(models)
        key = ("latest", files.log)
        if key not in self._rows:
            try:
                table = _table(files)
                self._rows[key] = (table.latest_version, _model(table, None))
            except LakeviewError as error:
                raise Violation(f"the table does not open: {type(error).__name__}: {error}") from error
        if self._rows[key] != (latest, models[latest]):
            raise Violation(f"a reader opens {self._rows[key]} instead of {(latest, models[latest])}")

    def check_opens(self, files: Files) -> None:
        """A reader that comes now opens the table at the newest version, rows as the commits tell them."""
        latest = max(files.commits)
        self._check_latest(files, {latest: self._version(files, latest)})

    def _check_checkpoints(self, files: Files) -> None:
        """Every checkpoint holds what the commits up to it come to."""
        names = [n for n in files.content if is_log(n) and _CHECKPOINT in n]
        for version in {version_of(name) for name in names}:
            commits = {v: data for v, data in self._commits(files).items() if v <= version}
            parts = {
                n: f for n, f in files.content.items()
                if n.startswith((f"{LOG_FOLDER}/{version:020d}{_CHECKPOINT}", f"{LOG_FOLDER}/_sidecars/"))
            }  # fmt: skip
            key = (frozenset(commits.items()), frozenset(parts.items()))
            if key in self._rows:
                continue
            data = {n: f for n, f in files.content.items() if not n.startswith(LOG_FOLDER)}
            replayed = _state(_table(self._commits_only(files, commits)), version)
            try:
                stored = _state(_table(Files({**data, **parts})), version)
            except LakeviewError as error:  # readers have the commits, and pass over a checkpoint that is not whole
                raise Violation(f"checkpoint {version} cannot be read: {error}") from error
            if replayed != stored:
                raise Violation(f"checkpoint {version} is not what the commits come to: {stored} instead of {replayed}")
            self._rows[key] = True


def _difference_text(actual: Model, expected: Model) -> str:
    if (actual.columns, actual.properties) != (expected.columns, expected.properties):
        return f"{actual} instead of {expected}"
    more, less = list(actual.rows), list(expected.rows)
    for row in actual.rows:
        if row in less:
            less.remove(row)
            more.remove(row)
    return f"without {less} and with {more} against the model"


def _table(files: Files) -> DeltaTable:
    def ask(call: Call) -> Reply:
        return reply(files, call)

    return DeltaTable(SimulatedStorage(ask, remote=False))


def _model(table: DeltaTable, version: int | None) -> Model:
    snapshot = table.snapshot(version)
    properties = {(key, text) for key, text in snapshot.properties.items() if key in SET_BY_OPERATIONS}
    rows: Sequence[Row] = rows_of(table, version)
    return Model(tuple(rows), tuple(snapshot.schema.names), frozenset(properties))


def _changes(table: DeltaTable, version: int) -> list[tuple[str, Row]] | None:
    if table.snapshot(version).properties.get("delta.enableChangeDataFeed") != "true":
        return None
    return [
        (r[0], (r[1], r[2]))
        for r in table.changes(version, version).select("_change_type", "id", "v").collect().iter_rows()
    ]


def _state(table: DeltaTable, version: int) -> object:
    """All that a state is, in one order."""
    state = table.state(version)
    columns = ["path", "deletion_vector", "size", "stats", "modified", "base_row_id"]
    adds = sorted(map(repr, state.adds(columns).select(columns).iter_rows()))
    removes = sorted(
        repr(row) for row in state.removes(["modified"]).select("key", "deletion_vector", "modified").iter_rows()
        if row[2] >= int(NOW.timestamp() * 1000) - 7 * 86_400_000
    )  # fmt: skip
    txns = sorted(map(repr, state.transactions().iter_rows()))
    domains = sorted(map(repr, state.domain_metadata().iter_rows()))
    return adds, removes, txns, domains, repr(state.protocol), repr(state.metadata)
