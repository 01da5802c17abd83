"""Faults put into lakeview's own source, one for each rule, fencing step and recovery step: a line of MUTANTS each."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

_WRITE = "lakeview.delta.write"
_CREATION = "lakeview.storage.exclusive"
_SNAPSHOT = "lakeview.iceberg.write.snapshot_commit"
_FOLDER = "lakeview.iceberg.write.commits"


@dataclass(frozen=True)
class Edit:
    """In a function of a module, one text in place of another that stands there once."""

    module: str
    function: str
    old: str
    new: str

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The function runs as edited, for all who have imported it."""
        module = importlib.import_module(
            self.module if self.module.startswith("lakeview.") else f"{_WRITE}.{self.module}"
        )
        target: Any = module
        for name in self.function.split("."):
            target = inspect.getattr_static(target, name)
        target = getattr(target, "func", None) or getattr(target, "fget", None) or target  # of a property
        assert isinstance(target, FunctionType), f"{self.function} is no function"
        source, before = inspect.getsource(module), inspect.getsource(target)
        assert before.count(self.old) == 1, f"{self.function} has {self.old!r} {before.count(self.old)} times"
        code = compile(source.replace(before, before.replace(self.old, self.new)), str(module.__file__), "exec")
        (code_found,) = (c for c in _codes(code) if c.co_qualname == self.function)
        original = target.__code__
        target.__code__ = code_found
        try:
            yield
        finally:
            target.__code__ = original


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


@dataclass(frozen=True)
class Mutant:
    """What is broken, where, and the scenario that shows it."""

    name: str
    scenario: str
    edits: tuple[Edit, ...]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """With all edits."""
        with ExitStack() as stack:
            for edit in self.edits:
                stack.enter_context(edit.applied())
            yield


def _of(name: str, scenario: str, *parts: str) -> Mutant:
    """`parts`: module, function, old and new text of each edit."""
    edits = [Edit(*parts[at : at + 4]) for at in range(0, len(parts), 4)]
    return Mutant(name, scenario, tuple(edits))


MUTANTS = [
    # -- conflict rules
    _of("one sender's progress is recorded twice", "ingest+ingest@plain!0",
        "conflicts", "check_conflict", "    if app_ids:", "    if False:"),
    _of("two commits remove one file", "optimize+optimize@plain!0",
        "conflicts", "check_conflict", "    if both:", "    if False:"),
    _of("a file with a new vector counts as joined for all", "overwrite+delete@vectors!0",
        "conflicts", "check_conflict", "joined_vectors = ours.vectors & winner.added_again",
        "joined_vectors = winner.added_again"),
    _of("what was read is not checked", "prune+append@plain!0",
        "conflicts", "check_conflict", "if not ours.rearranges and ours.reads is not None", "if False"),
    _of("rows that others add are not looked at", "prune+append@plain!0",
        "conflicts", "_check_reads", "        if added_files.height:", "        if False:"),
    _of("rows that others remove are not looked at", "fill+delete@vectors!0",
        "conflicts", "_check_reads", "    if removed_files.height:", "    if False:"),
    _of("a merge counts as row by row", "fill+delete@vectors!0",
        "transaction", "Transaction.begin_merge", "self.intent.row_by_row = self.intent.only_deletes = False",
        "self.intent.only_deletes = False"),
    _of("blind appends may always be passed over", "prune+append@plain!0",
        "conflicts", "_check_reads", "blind and ours.level == WRITE_SERIALIZABLE and", "blind and"),
    _of("every commit counts as one that only rearranges", "prune+append@plain!0",
        "pending_commit", "PendingCommit._intent", "and changes == {False}", ""),
    _of("paths that were added or removed count as added again", "optimize+optimize@vectors!0",
        "conflicts", "Winner.added_again", ') & frozenset(self.added_files["key"])',
        ') | frozenset(self.added_files["key"])'),
    _of("two changes of metadata replace each other", "policy+unvector@vectors!0",
        "conflicts", "_check_definition", "ours.changes_metadata or ours", "ours"),
    _of("a property is set under a delete", "delete+protect@plain!0",
        "conflicts", "_check_definition", "or not _harmless(base, metadata, ours)", ""),
    _of("every property counts as harmless", "delete+protect@plain!0",
        "conflicts", "_harmless", "all(key.startswith(_HARMLESS_PROPERTIES) for key in keys)", "True"),
    # -- vectors joined, rows moved
    _of("rows that both change are not looked at", "update+delete@vectors!0",
        "deletion_vectors", "_join_vectors", "    if twice and not overlap:", "    if False:"),
    _of("an update counts as a delete", "update+delete@vectors!0",
        "pending_commit", "PendingCommit._follow", "overlap = self.intent.only_deletes and", "overlap = True or"),
    _of("a join forgets what the winner deleted", "delete+merge@vectors!0",
        "deletion_vectors", "_join_vectors", "VectorChange(file, theirs, change.positions - theirs,",
        "VectorChange(file, change.before, change.positions,"),
    _of("a join keeps the file as it was read", "delete+merge@vectors!0",
        "deletion_vectors", "_files_after", "{**file.row, **rows[file.key]}", "file.row"),
    _of("a join adds the file again beside the first time", "delete+merge@vectors!0",
        "pending_commit", "PendingCommit._replace_vectors",
        "self.files.withdraw({change.file.key for change in self._vector_changes})", "pass"),
    _of("vectors are not joined", "delete+merge@vectors!0",
        "pending_commit", "PendingCommit._follow", "if joined_vectors is not None:", "if False:"),
    _of("a vector that was joined later is left behind", "delete+merge@vectors!0",
        "pending_commit", "PendingCommit.commit", "self.files.discard_unused()", "pass"),
    _of("rows that were moved come back", "optimize+delete@vectors!0",
        "deletion_vectors", "follow_deletes", "if any(file.key in later", "if False and any(file.key in later"),
    _of("rows before a moved one are counted with the deleted", "optimize+delete@vectors!0",
        "deletion_vectors", "_places", "position - before.rank(position)", "position"),
    _of("files before that of a moved row are counted whole", "optimize+prune@vectors!0",
        "deletion_vectors", "_places", "start += rows - len(before)", "start += rows"),
    _of("rows in another order are followed like others", "order+delete@vectors!0",
        "pending_commit", "PendingCommit._intent", "if move.is_ordered for file", "for file",
        "deletion_vectors", "_follow", "if not move.is_ordered:", "if False:"),
    # -- commits
    _of("the commit replaces another's", "append+append@plain!0",
        _CREATION, "ExclusivePut.put", "self._storage.put_if_absent(", "self._storage.put("),
    _of("a commit that is there counts as ours", "append+append@plain!0",
        _CREATION, "ExclusivePut._is_ours", "and self._holds_ours(path)", ""),
    _of("our own commit is not known again", "append+append@plain!1",
        _CREATION, "ExclusivePut.put", "return self._is_ours(path)  #", "return False  #"),
    _of("a lost reply is not looked into", "append+append@plain/local!1",
        _CREATION, "ExclusivePut.put", "if self._is_ours(path):  #", "if False:  #"),
    _of("a request under way counts as over", "append+append@plain!1",
        _CREATION, "ExclusivePut.put", "self.unsure = self._storage.remote", "self.unsure = False"),
    _of("a table of ours counts as another's", "create+clone@empty!1",
        "create", "put_first", "storage.read(path) == data", "False"),
    _of("a table of another's counts as ours", "convert+convert@parquet!0",
        "create", "put_first", "storage.read(path) == data", "True"),
    _of("files of a commit that may be there are deleted", "append@plain!3",
        "pending_commit", "PendingCommit.commit", "if not loop.unsure:", "if True:"),
    _of("files of a commit that lost are left behind", "protect+delete@plain!0",
        "pending_commit", "PendingCommit.commit", "self.files.discard()\n            raise", "pass\n            raise"),
    _of("winners are not followed", "delete+delete@plain!0",
        "commit_loop", "CommitLoop._follow", "follow(self._table.log.commit(version))", "pass"),
    _of("only the newest winner is followed", "merge+rework@plain!0",
        "commit_loop", "CommitLoop._follow", "range(first, latest + 1)", "range(latest, latest + 1)"),
    _of("data files are written after the commit", "append@plain!0",
        "writer", "DataFile.close", "self._file.publish()",
        "self._writer.storage.__dict__.setdefault('later', []).append(self._file.publish)",
        "pending_commit", "PendingCommit.commit", "self.files.discard_unused()",
        "[publish() for publish in self._storage.__dict__.pop('later', [])]"),
    _of("row ids are given twice", "append+append@tracked!0",
        "pending_commit", "PendingCommit._follow", "self._row_id_mark = later_mark(commit, self._row_id_mark)", "pass"),
    _of("commits have one time", "append+append@tracked!0",
        "entry", "next_in_commit_time", "max(now, previous + timedelta(milliseconds=1))", "now"),
    # -- checkpoints
    _of("_last_checkpoint comes before its checkpoint", "checkpoint@plain!0",
        "checkpoint.files", "write_checkpoint", "files = list(",
        "replace_hint(table.storage, LastCheckpoint(plan.state.version, 1, 1, 1)); files = list("),
    _of("a checkpoint drops tombstones", "delete+checkpoint@vectors!0",
        "checkpoint.order", "SortedActions._drop_expired",
        'removes.filter(pl.col("modified") >= self._expired_before)', "removes.clear()"),
    _of("a checkpoint comes before its sidecars", "checkpoint@tracked!0",
        "checkpoint.parts", "PartWork.write_file", "storage.put(", "self.names and storage.put("),
    _of("a checkpoint that fails fails the commit", "append+append@due!1",
        "commit_loop", "follow_up", "return str(error)", "raise"),
    # -- cleanup
    _of("a vacuum deletes what was just written", "append+vacuum@plain!0",
        "vacuum.run", "_plan", 'pl.col("modified") < cutoff', 'pl.col("modified") >= 0'),
    _of("a vacuum deletes what was removed just now", "delete+vacuum@plain!0",
        "vacuum.used_files", "needed_files", 'removes.filter(pl.col("modified") >= at)', "removes.clear()"),
    _of("log cleanup takes the checkpoint that readers begin with", "clean@due!0",
        "log_cleanup", "_before", "(version < base.version)", "(version <= base.version)"),
    _of("a restore follows a vacuum that began meanwhile", "rewind+vacuum@plain!0",
        "conflicts", "check_conflict", "if ours.brings_back and", "if False and"),
    _of("a restore begins while a vacuum deletes", "rewind+vacuum@plain!0",
        "transaction", "Transaction.restore", "check_no_vacuum(self", "(lambda *_: None)(self"),
    # -- Iceberg's commits
    _of("a metadata file replaces another's", "append+append@iceberg!0",
        _CREATION, "ExclusivePut.put", "self._storage.put_if_absent(", "self._storage.put("),
    _of("what an Iceberg table was read for is not checked against winners", "delete+overwrite@iceberg!0",
        _SNAPSHOT, "SnapshotCommit._change", "self._removal.check(state, self._table.address)", "pass"),
    _of("files of a snapshot that may be there are deleted", "append@iceberg!3",
        _SNAPSHOT, "SnapshotCommit._discard_all", "if self._commits.unsure:", "if False:"),
    _of("a batch of a stream is written twice", "ingest+ingest@iceberg!0",
        _SNAPSHOT, "SnapshotCommit._commit", "if self._is_repeated():", "if False:"),
    _of("files of a batch that was there are left behind", "ingest+ingest@iceberg!0",
        _SNAPSHOT, "SnapshotCommit.run", "if not is_committed:\n            self._discard_all()",
        "if not is_committed:\n            pass"),
    _of("our own snapshot is not known again", "append@iceberg!1",
        _FOLDER, "FolderCommits._holds_ours", "return any(", "return False and any(",
        _SNAPSHOT, "SnapshotCommit._attempt", "if self._snapshot_id in state.metadata.snapshots:", "if False:"),
    _of("a manifest is written again for the first attempt alone", "delete+prune@iceberg-deletes!0",
        _SNAPSHOT, "SnapshotCommit._rewrite",
        'key = str(touched_manifest.manifest["manifest_path"]), touched_manifest.keys',
        'key = str(touched_manifest.manifest["manifest_path"]), frozenset()'),
    _of("a sequence number is that of the first attempt", "append+append@iceberg!0",
        _SNAPSHOT, "SnapshotCommit._manifest_list", "metadata.last_sequence_number + 1",
        "self.__dict__.setdefault('first', metadata.last_sequence_number + 1)"),
    _of("manifest lists of lost attempts are left behind", "append+append@iceberg!0",
        _SNAPSHOT, "SnapshotCommit._attempt", "self._storage.delete_each(o for", "(lambda *_: [])(o for"),
    _of("files of a refused snapshot are left behind", "delete+overwrite@iceberg!0",
        _SNAPSHOT, "SnapshotCommit._discard_all", "return self._storage.delete_each([*(file",
        "return (lambda *_: [])([*(file"),
    _of("a catalog is not asked whether main is where it was", "append+append@iceberg-catalog!0",
        _FOLDER, "CatalogCommits.commit", "requirements = _requirements(state, snapshot)",
        "requirements = _requirements(state, snapshot)[:1]"),
    _of("a catalog's refusal counts as a commit", "append+append@iceberg-catalog!0",
        _FOLDER, "CatalogCommits.commit", "if self._pointer.commit(requirements, updates):",
        "if self._pointer.commit(requirements, updates) or True:"),
    _of("files of a change that a catalog may have made are deleted", "append@iceberg-catalog!3",
        _FOLDER, "CatalogCommits.commit", "self.unsure = True", "self.unsure = False"),
    _of("the version hint comes before its metadata file", "append+append@iceberg!0",
        _FOLDER, "FolderCommits.commit", "if not self._creation.put(",
        'self._storage.put(f"{FOLDER}/{HINT}", str(metadata_number(name)).encode())\n'
        "        if not self._creation.put("),
]  # fmt: skip
