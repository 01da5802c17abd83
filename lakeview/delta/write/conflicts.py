"""A winning commit and what we meant to do: can ours be placed after it, or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from lakeview.delta.data.scan import may_hold
from lakeview.delta.log.actions import Metadata
from lakeview.delta.log.commits import Commit, only
from lakeview.delta.log.file_actions import file_actions
from lakeview.delta.write.row_ids import DOMAIN
from lakeview.model.errors import CommitConflictError
from lakeview.model.schema import Field, Schema

_HARMLESS_PROPERTIES = (
    "delta.columnMapping.", "delta.checkpointPolicy", "delta.enableDeletionVectors", "delta.enableInCommitTimestamps",
    "delta.enableRowTracking", "delta.inCommitTimestampEnablement", "delta.rowTracking.",
)  # fmt: skip
"""What a change of metadata may turn on under a commit that adopts it: its files are as right as before."""

SERIALIZABLE, WRITE_SERIALIZABLE, SNAPSHOT = "Serializable", "WriteSerializable", "SnapshotIsolation"
_LEVELS = {level.lower(): level for level in (SERIALIZABLE, WRITE_SERIALIZABLE, SNAPSHOT)}


def isolation_level(properties: Mapping[str, str]) -> str:
    """`delta.isolationLevel`, Serializable where it is not set or no level."""
    return _LEVELS.get(properties.get("delta.isolationLevel", "").lower(), SERIALIZABLE)


@dataclass(frozen=True)
class Intent:
    """What a transaction read and changes, as far as it can collide.

    `reads`: the condition whose files were read; None when nothing was; `removes`: canonical paths; `vectors`: those
    of them that stay, with more rows deleted; `reads_metadata`: what ours does depends on the whole definition, as that
    of a restore does; `row_by_row`: what becomes of a row depends on that row alone, so that
    rows which others delete make no difference; `rearranges`: only dataChange=false actions, which read nothing but the
    files they remove; `level`: the isolation level of the table.
    """

    reads: pl.Expr | None = None
    removes: frozenset[str] = frozenset()
    vectors: frozenset[str] = frozenset()
    app_ids: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    changes_metadata: bool = False
    changes_protocol: bool = False
    reads_metadata: bool = False
    rearranges: bool = False
    row_by_row: bool = False
    level: str = SERIALIZABLE
    schema: Schema = field(default_factory=Schema)
    partitions: tuple[Field, ...] = ()


class Winner:
    """A commit that was made before ours. `file_changes`: its FILE_ACTIONS."""

    def __init__(self, commit: Commit, root: str) -> None:
        self.commit = commit
        self._root = root

    @cached_property
    def file_changes(self) -> pl.DataFrame:
        """FILE_ACTIONS of the commit."""
        return file_actions([self.commit], self._root)

    @property
    def added(self) -> pl.DataFrame:
        """Files that it added."""
        return self.file_changes.filter("added")

    @property
    def removed(self) -> pl.DataFrame:
        """Files that it removed."""
        return self.file_changes.filter(~pl.col("added"))

    @property
    def added_again(self) -> frozenset[str]:
        """Paths that it removed and added: their deletion vectors changed."""
        return frozenset(self.removed["key"]) & frozenset(self.added["key"])

    @property
    def deleted_from(self) -> frozenset[str]:
        """Paths that it removed and added with more rows deleted."""
        cardinality = pl.col("vector").struct.field("cardinality").fill_null(0)
        before = self.removed.select("key", cardinality.alias("before"))
        after = self.added.select("key", cardinality.alias("after")).join(before, on="key")
        return frozenset(after.filter(pl.col("after") > pl.col("before"))["key"])

    def metadata(self) -> Metadata | None:
        """Its metaData action."""
        found = only("meta_data", [self.commit])
        return found[-1][1] if found else None

    def changes_protocol(self) -> bool:
        """Whether it holds a protocol action."""
        return bool(only("protocol", [self.commit]))

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


def check_conflict(winner: Winner, ours: Intent, base: Metadata) -> None:
    """CommitConflictError if our actions cannot follow the winner's; appends nearly always can.

    `base`: the metadata that ours was made for. Files of which both changed rows by deletion vectors are left to
    `lakeview.delta.write.reconcile`.
    """
    _check_definition(winner, ours, base)
    shared = ours.app_ids & {txn.app_id for _, txn in only("txn", [winner.commit])}
    if shared:
        raise winner.conflict(f"both record the progress of application {min(shared)}", "concurrent-transaction")
    domains = ours.domains & {d.domain for _, d in only("domain_metadata", [winner.commit])} - {DOMAIN}
    if domains:
        raise winner.conflict(f"both change the domain {min(domains)}", "concurrent-domain")
    joined = ours.vectors & winner.added_again
    both = (ours.removes & frozenset(winner.removed["key"])) - joined
    if both:
        raise winner.conflict(f"both remove the file {min(both)}", "concurrent-delete-delete")
    if not ours.rearranges and ours.reads is not None and ours.level != SNAPSHOT:
        _check_reads(winner, ours)


def _check_definition(winner: Winner, ours: Intent, base: Metadata) -> None:
    if winner.changes_protocol() and ours.changes_protocol:
        raise winner.conflict("both change the protocol", "protocol-changed")
    metadata = winner.metadata()
    strict = ours.changes_metadata or ours.reads_metadata
    if metadata is not None and (strict or not _harmless(base, metadata)):
        raise winner.conflict("it changed the table's metadata", "metadata-changed")


def _harmless(before: Metadata, after: Metadata) -> bool:
    """Whether columns stay as they are, and only properties change that ask nothing of files already written."""
    old, new = before.properties, after.properties
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    return (
        before.schema_string == after.schema_string
        and before.partition_columns == after.partition_columns
        and all(key.startswith(_HARMLESS_PROPERTIES) for key in changed)
    )


def _check_reads(winner: Winner, ours: Intent) -> None:
    again = winner.added_again
    # rows that others only deleted are no rows that ours had to read; those that a restore brought back are
    new = winner.added.filter(pl.col("data_change") & ~pl.col("key").is_in(list(winner.deleted_from)))
    blind = winner.commit.info.is_blind_append is True and winner.removed.is_empty()
    if not (blind and ours.level == WRITE_SERIALIZABLE and not ours.changes_metadata):
        held = _matching(new, ours)
        if held.height:
            raise winner.conflict(f"it added {held['path'][0]}, which ours would have had to read", "concurrent-append")
    if ours.row_by_row:
        return
    gone = winner.removed.filter("data_change")
    # a remove has no statistics, and the add that follows it has
    known = pl.concat([
        gone.filter(~pl.col("key").is_in(list(again))), winner.added.filter(pl.col("key").is_in(list(again))),
    ])  # fmt: skip
    lost = _matching(known, ours)
    if lost.height:
        raise winner.conflict(f"it removed {lost['path'][0]}, which ours read", "concurrent-delete-read")


def _matching(actions: pl.DataFrame, ours: Intent) -> pl.DataFrame:
    """The files that hold rows which ours may have read."""
    if ours.reads is None or not actions.height:
        return actions
    return actions.filter(may_hold(actions, ours.reads, ours.schema, ours.partitions))
