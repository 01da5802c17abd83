"""What commits record of the rows that they changed: the cdc actions of a change data feed, and merges of nothing."""

from collections.abc import Iterable, Iterator

import msgspec

from lakeview.delta.log.actions import AddCDCFile
from lakeview.delta.log.commit_info import json_object
from lakeview.delta.log.commits import Commit
from lakeview.delta.log.paths import commit_name
from lakeview.model.errors import CorruptTableError

_UNCHANGED_MERGE = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


def recorded_files(commit: Commit) -> list[AddCDCFile] | None:
    """The change data files of a commit, none of a MERGE that changed nothing; None where its adds and removes are the
    changes. Errors as `cdc_actions`."""
    files = list(cdc_actions(commit))
    return files if files or merged_nothing(commit) else None


def cdc_actions(commit: Commit) -> Iterator[AddCDCFile]:
    """The change data files of a commit. CorruptTableError for an action that cannot be read."""
    return decode_cdc((bytes(action.cdc) for action in commit.actions), commit.version)


def decode_cdc(raws: Iterable[bytes], version: int) -> Iterator[AddCDCFile]:
    """The change data files of a commit's `cdc` keys; none of one that is empty or null. Errors as of `cdc_actions`."""
    for raw in raws:
        if raw and raw != b"null":
            try:
                yield msgspec.json.decode(raw, type=AddCDCFile)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                name = commit_name(version)
                raise CorruptTableError(
                    f"commit {name} has a cdc action that cannot be read: {error}",
                    fix="restore the file from a backup; versions can be read all the same, only changes cannot",
                    place=name,
                    kind="corrupt-commit",
                ) from error


def merged_nothing(commit: Commit) -> bool:
    """A MERGE that says it changed no row rewrote its files all the same: its adds and removes are no changes."""
    info = commit.info
    metrics = json_object(bytes(info.operation_metrics)) if info.operation == "MERGE" else {}
    return all(str(metrics.get(name)) == "0" for name in _UNCHANGED_MERGE)
