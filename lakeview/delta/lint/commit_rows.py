"""Commits to the rows and file events that the log doctor's checks look at."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.audit.records import json_object, whole
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
    infos = [i for i, a in enumerate(commit.actions) if _is_recorded(a.commit_info)]
    body = json_object(bytes(commit.actions[infos[0]].commit_info)) if infos else {}
    return {
        "protocols": sum(a.protocol is not None for a in commit.actions),
        "metadatas": sum(a.meta_data is not None for a in commit.actions),
        "infos": len(infos),
        "txn_twice": _twice([a.txn.app_id for a in commit.actions if a.txn is not None]),
        "domain_twice": _twice([a.domain_metadata.domain for a in commit.actions if a.domain_metadata is not None]),
        "info_first": infos[:1] == [0],
        "cdcs": sum(_is_recorded(a.cdc) for a in commit.actions),
        "in_commit": whole(body.get("inCommitTimestamp")),
        "read_version": whole(body.get("readVersion")),
        "operation": body["operation"] if isinstance(body.get("operation"), str) else None,
        "parameters": body["operationParameters"] if isinstance(body.get("operationParameters"), dict) else None,
        "metrics": body["operationMetrics"] if isinstance(body.get("operationMetrics"), dict) else None,
    }


def _is_recorded(raw: msgspec.Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _twice(values: Sequence[str]) -> str | None:
    earlier: set[str] = set()
    for value in values:
        if value in earlier:
            return value
        earlier.add(value)
    return None


def file_events(commits: Sequence[Commit], root: str) -> pl.DataFrame:
    """EVENTS of these commits, in the order recorded."""
    actions = file_actions(commits, root)
    inside = ~pl.col("key").str.contains(r"^/|^[A-Za-z][A-Za-z0-9+.-]*:|(^|/)\.\.(/|$)")
    return actions.with_columns(records(actions["stats"], None), inside.alias("inside")).select(EVENTS.names())
