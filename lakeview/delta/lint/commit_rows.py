"""Commits to the rows and file events that the log doctor's checks look at."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.audit.records import commit_record, whole
from lakeview.delta.data.changes import cdc_actions
from lakeview.delta.log.commits import Commit
from lakeview.delta.log.file_actions import FILE_ACTIONS, file_actions
from lakeview.delta.log.paths import decode_path
from lakeview.delta.log.record_counts import records
from lakeview.model.errors import CorruptTableError

COMMITS_READ = pl.Schema(
    {
        "version": pl.Int64(),
        "modified": pl.Int64(),
        "trouble": pl.String(),
        "protocols": pl.Int64(),
        "metadatas": pl.Int64(),
        "infos": pl.Int64(),
        "txn_twice": pl.String(),
        "domain_twice": pl.String(),
        "info_first": pl.Boolean(),
        "cdcs": pl.Int64(),
        "in_commit": pl.Int64(),
        "read_version": pl.Int64(),
        "operation": pl.String(),
        "parameters": pl.Object(),
        "metrics": pl.Object(),
    }
)
"""One row a commit file, oldest first. `modified`: its file's time in milliseconds; `trouble`: why it cannot be read;
then how many actions of a kind it holds, an appId or domain it names twice, and what its commitInfo says.
`parameters` and `metrics` are dicts, null where there are none."""

EVENTS = pl.Schema(
    {c: FILE_ACTIONS[c] for c in ("version", "added", "key", "path", "deletion_vector", "size", "data_change")}
    | {"records": pl.Int64(), "deleted_records": pl.Int64(), "inside": pl.Boolean()}
)
"""One row a file action of the commits; `records` are physical rows, `deleted_records` the vector's cardinality."""


def change_file_paths(commits: Sequence[Commit]) -> Iterator[str]:
    """Paths of cdc actions, decoded; a commit with one that cannot be read names none."""
    for commit in commits:
        with suppress(CorruptTableError):
            yield from (decode_path(action.path) for action in cdc_actions(commit))


def commit_row(commit: Commit) -> dict[str, Any]:
    """The row of COMMITS_READ of one commit, without its version and time."""
    record = commit_record(commit)
    infos = [i for i, action in enumerate(commit.actions) if _is_recorded(action.commit_info)]
    return {
        "protocols": sum(a.protocol is not None for a in commit.actions),
        "metadatas": sum(a.meta_data is not None for a in commit.actions),
        "infos": len(infos),
        "txn_twice": _twice([txn.app_id for txn in record.txns]),
        "domain_twice": _twice([domain.domain for domain in record.domains]),
        "info_first": infos[:1] == [0],
        "cdcs": record.change_files,
        "in_commit": whole(record.info.get("inCommitTimestamp")),
        "read_version": record.read_version,
        "operation": record.operation,
        "parameters": record.parameters or None,
        "metrics": record.metrics,
    }


def _is_recorded(raw: msgspec.Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _twice(values: Sequence[str]) -> str | None:
    return next((value for value, number in Counter(values).items() if number > 1), None)


def file_events(commits: Sequence[Commit], root: str) -> pl.DataFrame:
    """EVENTS of these commits, in the order recorded."""
    actions = file_actions(commits, root)
    inside = ~pl.col("key").str.contains(r"^/|^[A-Za-z][A-Za-z0-9+.-]*:|(^|/)\.\.(/|$)")
    return actions.with_columns(records(actions["stats"], None), inside.alias("inside")).select(EVENTS.names())
