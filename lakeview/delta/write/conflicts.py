"""A winning commit and what we meant to do: can ours be placed after it, or not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

import polars as pl

from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.delta.data.scan import may_hold
from lakeview.delta.log.actions import Metadata, Protocol, supported_features
from lakeview.delta.log.commits import Commit, only
from lakeview.delta.log.file_actions import FILE_ACTIONS, file_actions
from lakeview.delta.write.row_ids import DOMAIN
from lakeview.delta.write.rules import active_features
from lakeview.model.data_types import Field
from lakeview.model.errors import CommitConflictError
from lakeview.model.schema import Schema
from lakeview.storage import Storage

_HARMLESS_PROPERTIES = (
    "delta.columnMapping.", "delta.checkpointPolicy", "delta.enableDeletionVectors", "delta.enableInCommitTimestamps",
    "delta.enableRowTracking", "delta.inCommitTimestampEnablement", "delta.rowTracking.",
)  # fmt: skip
"""What a change of metadata may turn on under a commit that adopts it: its files are as right as before."""

_DELETING = frozenset({"DELETE", "UPDATE", "MERGE"})
"""Operations, in the words of every engine, whose deletion vectors only grow."""

VACUUM_START, VACUUM_END = VACUUMS = ("VACUUM START", "VACUUM END")
"""The operations of the commits before and after a vacuum deletes files."""

VACUUM_TIME = timedelta(hours=1)
"""A vacuum that has not ended after it was killed, as a rule."""

SERIALIZABLE, WRITE_SERIALIZABLE, SNAPSHOT = "Serializable", "WriteSerializable", "SnapshotIsolation"
_LEVELS = {level.lower(): level for level in (SERIALIZABLE, WRITE_SERIALIZABLE, SNAPSHOT)}


def isolation_level(properties: Mapping[str, str]) -> str:
    """`delta.isolationLevel`, Serializable where it is not set or no level."""
    return _LEVELS.get(properties.get("delta.isolationLevel", "").lower(), SERIALIZABLE)


@dataclass
class Intent:
    """What a transaction read and changes, as far as it can collide. Its operations note what they read.

    `reads`: the condition whose files were read; None when nothing was; `removes`: canonical paths; `vectors`: those
    of them that stay, with more rows deleted; `reads_metadata`: what ours does depends on the whole definition, as that
    of a restore does; `brings_back`: files of earlier versions become live again; `drops_domains`: the protocol goes
    without domains, none of which may be set meanwhile; `row_by_row`: what becomes of a row depends on that row alone,
    so that rows which others delete make no difference; `only_deletes`: nor do rows that both delete; `rearranges`:
    only dataChange=false actions, which read nothing but the files they remove; `level`: the isolation level of the
    table.
    """

    reads: pl.Expr | None = None
    removes: frozenset[str] = frozenset()
    vectors: frozenset[str] = frozenset()
    app_ids: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    changes_metadata: bool = False
    changes_protocol: bool = False
    reads_metadata: bool = False
    brings_back: bool = False
    drops_domains: bool = False
    rearranges: bool = False
    row_by_row: bool = True
    only_deletes: bool = True
    level: str = SERIALIZABLE
    schema: Schema = field(default_factory=Schema)
    partitions: tuple[Field, ...] = ()


class Winner:
    """A commit that was made before ours. `file_changes`: its FILE_ACTIONS."""

    def __init__(self, commit: Commit, storage: Storage) -> None:
        self.commit = commit
        self.storage = storage

    @cached_property
    def file_changes(self) -> pl.DataFrame:
        """FILE_ACTIONS of the commit, and `clustering_provider`."""
        return file_actions([self.commit], self.storage.root, [*FILE_ACTIONS, "clustering_provider"])

    @property
    def added_files(self) -> pl.DataFrame:
        """Files that it added."""
        return self.file_changes.filter("added")

    @property
    def removed_files(self) -> pl.DataFrame:
        """Files that it removed."""
        return self.file_changes.filter(~pl.col("added"))

    @property
    def added_again(self) -> frozenset[str]:
        """Paths that it removed and added: their deletion vectors changed."""
        return frozenset(self.removed_files["key"]) & frozenset(self.added_files["key"])

    @property
    def deleted_from(self) -> frozenset[str]:
        """Paths that it removed and added with more rows deleted, and none brought back: a restore may do both."""
        before = self.removed_files.select("key", before="vector")
        both = self.added_files.select("key", after="vector").join(before, on="key")
        return frozenset(row["key"] for row in both.iter_rows(named=True) if self._only_deletes(row))

    def _only_deletes(self, row: Mapping[str, Any]) -> bool:
        before, after = DeletionVector.of(row["before"]), DeletionVector.of(row["after"])
        if before is None or after is None or after.cardinality <= before.cardinality:
            return before is None and after is not None
        if self.commit.info.operation in _DELETING:
            return True
        return before.bitmap(self.storage).issubset(after.bitmap(self.storage))

    def conflict(self, what: str, kind: str) -> CommitConflictError:
        """The error that names the commit and what collided."""
        info = self.commit.info
        who = "" if info.user is None else f" by {info.user}"
        return CommitConflictError(
            f"version {self.commit.version} ({info.operation or 'unknown operation'}{who}) was committed meanwhile: "
            f"{what}",
            fix="refresh the table and do it again on what is there now",
            kind=kind,
            version=self.commit.version,
            operation=info.operation,
            user=info.user,
        )


def check_conflict(winner: Winner, ours: Intent, base: Metadata, protocol: Protocol) -> None:
    """CommitConflictError if our actions cannot follow the winner's; appends nearly always can.

    `base`, `protocol`: the metadata and the protocol that ours was made for. Files of which both changed rows by
    deletion vectors are left to `lakeview.delta.write.deletion_vectors`.
    """
    _check_definition(winner, ours, base, protocol)
    app_ids = ours.app_ids & {txn.app_id for _, txn in only("txn", [winner.commit])}
    if app_ids:
        raise winner.conflict(f"both record the progress of application {min(app_ids)}", "concurrent-transaction")
    changed_domains = {d.domain for _, d in only("domain_metadata", [winner.commit])} - {DOMAIN}
    domains = changed_domains if ours.drops_domains else ours.domains & changed_domains
    if domains:
        raise winner.conflict(f"both change the domain {min(domains)}", "concurrent-domain")
    if ours.brings_back and winner.commit.info.operation in VACUUMS:
        raise winner.conflict("it deletes files, and ours brings some back", "concurrent-vacuum")
    if ours.removes:  # an append, which removes nothing, is placed without a look at the winner's files
        joined_vectors = ours.vectors & winner.added_again
        both = (ours.removes & frozenset(winner.removed_files["key"])) - joined_vectors
        if both:
            raise winner.conflict(f"both remove the file {min(both)}", "concurrent-delete-delete")
    # a change of the definition that rows were checked against is serializable at every level
    forgives = ours.level == SNAPSHOT and not (ours.changes_metadata or ours.reads_metadata)
    if not ours.rearranges and ours.reads is not None and not forgives:
        _check_reads(winner, ours)


def _check_definition(winner: Winner, ours: Intent, base: Metadata, protocol: Protocol) -> None:
    later, metadata = winner.commit.definition
    if later is not None and ours.changes_protocol:
        raise winner.conflict("both change the protocol", "protocol-changed")
    if later is not None:
        # what ours has written may need what the protocol names, and its metadata what an older one implies
        lost_features = active_features(base) | set(protocol.writer_features or ())
        if lost_features := lost_features - supported_features(later):
            raise winner.conflict(f"it dropped the feature {min(lost_features)}", "protocol-changed")
    strict = ours.changes_metadata or ours.reads_metadata
    if metadata is not None and (strict or not _harmless(base, metadata, ours)):
        raise winner.conflict("it changed the table's metadata", "metadata-changed")


def _harmless(before: Metadata, after: Metadata, ours: Intent) -> bool:
    """Whether columns stay as they are, and only properties change that ask nothing of files already written."""
    # vectors are written only where they are enabled, and rows that moved have brought no ids along
    needs = {"delta.enableDeletionVectors": ours.vectors, "delta.enableRowTracking": ours.removes}
    old, new = before.properties, after.properties
    keys = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    return (
        before.schema_string == after.schema_string
        and before.partition_columns == after.partition_columns
        and all(key.startswith(_HARMLESS_PROPERTIES) for key in keys)
        and not any(needs.get(key) for key in keys)
    )


def _check_reads(winner: Winner, ours: Intent) -> None:
    again = winner.added_again
    # rows that others only deleted are no rows that ours had to read; those that a restore brought back are
    new = winner.added_files.filter(pl.col("data_change") & ~pl.col("key").is_in(list(winner.deleted_from)))
    blind = winner.commit.info.is_blind_append is True and winner.removed_files.is_empty()
    if not (blind and ours.level == WRITE_SERIALIZABLE and not ours.changes_metadata):
        added_files = _matching(new, ours)
        if added_files.height:
            raise winner.conflict(
                f"it added {added_files['path'][0]}, which ours would have had to read", "concurrent-append"
            )
    if ours.row_by_row:
        return
    removals = winner.removed_files.filter("data_change")
    # a remove has no statistics, and the add that follows it has
    files = pl.concat([
        removals.filter(~pl.col("key").is_in(list(again))), winner.added_files.filter(pl.col("key").is_in(list(again))),
    ])  # fmt: skip
    removed_files = _matching(files, ours)
    if removed_files.height:
        raise winner.conflict(f"it removed {removed_files['path'][0]}, which ours read", "concurrent-delete-read")


def _matching(actions: pl.DataFrame, ours: Intent) -> pl.DataFrame:
    """The files that hold rows which ours may have read."""
    if ours.reads is None or not actions.height:
        return actions
    return actions.filter(may_hold(actions, ours.reads, ours.schema, ours.partitions))
