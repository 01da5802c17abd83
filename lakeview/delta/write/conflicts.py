"""A winning commit and what we meant to do: can ours be placed after it, or not."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from lakeview.delta.data.partition_values import partition_columns
from lakeview.delta.log.commits import Commit, only
from lakeview.delta.log.file_actions import file_actions
from lakeview.model.errors import CommitConflictError
from lakeview.model.schema import Field


@dataclass(frozen=True, slots=True)
class Intent:
    """What a transaction read and changes, as far as it can collide.

    `reads`: the partition predicate whose files were read; None when nothing was; `removes`: canonical paths;
    `rearranges`: only dataChange=false actions, which read nothing but the files they remove.
    """

    reads: pl.Expr | None = None
    removes: frozenset[str] = frozenset()
    app_ids: frozenset[str] = frozenset()
    changes_metadata: bool = False
    changes_protocol: bool = False
    rearranges: bool = False
    partitions: tuple[Field, ...] = field(default=())


def check_conflict(winner: Commit, ours: Intent, root: str) -> None:
    """CommitConflictError if our actions cannot follow the winner's; appends always can."""
    if only("meta_data", [winner]):
        raise _conflict(winner, "it changed the table's metadata", "metadata-changed")
    if only("protocol", [winner]) and ours.changes_protocol:
        raise _conflict(winner, "both change the protocol", "protocol-changed")
    shared = ours.app_ids & {txn.app_id for _, txn in only("txn", [winner])}
    if shared:
        raise _conflict(winner, f"both record the progress of application {min(shared)}", "concurrent-transaction")
    actions = file_actions([winner], root)
    gone = actions.filter(~pl.col("added"))
    both = ours.removes & set(gone["key"])
    if both:
        raise _conflict(winner, f"both remove the file {min(both)}", "concurrent-delete-delete")
    if ours.rearranges or ours.reads is None:
        return
    added = _matching(actions.filter(pl.col("added") & pl.col("data_change")), ours)
    if added.height:
        raise _conflict(winner, f"it added {added['path'][0]}, which ours would have had to read", "concurrent-append")
    removed = _matching(gone, ours)
    if removed.height:
        raise _conflict(winner, f"it removed {removed['path'][0]}, which ours read", "concurrent-delete-read")


def _matching(actions: pl.DataFrame, ours: Intent) -> pl.DataFrame:
    if ours.reads is None or not actions.height or not ours.partitions:
        return actions
    values = pl.DataFrame(partition_columns(actions["partition_values"], ours.partitions))
    return actions.filter(values.select(ours.reads.alias("m")).to_series().fill_null(value=True))


def _conflict(winner: Commit, what: str, kind: str) -> CommitConflictError:
    info = winner.info
    who = "" if info.user is None else f" by {info.user}"
    return CommitConflictError(
        f"version {winner.version} ({info.operation or 'unknown operation'}{who}) was committed meanwhile: {what}",
        fix="refresh the table and do it again on what is there now",
        kind=kind,
        version=winner.version,
        operation=info.operation,
        user=info.user,
    )
