"""What streams of tables of all formats have in common: offsets in checkpoints, and what stops a stream."""

import logging
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from lakeview.model.errors import (
    DataFileMissingError,
    InvalidRequestError,
    LakeviewError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lakeview.rows.tasks import FileTask

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Start: TypeAlias = list[Any]
"""Version or snapshot, index and initial of an offset, as JSON gives them."""


def no_offset(value: Mapping[str, Any]) -> InvalidRequestError:
    """The error for an offset in a checkpoint that a stream of such a table did not write."""
    return InvalidRequestError(
        f"{dict(value)!r} is no offset of a lakeview stream",
        fix="give the query a checkpoint location of its own",
        place="checkpointLocation",
    )


def other_columns(version: str, address: str) -> InvalidRequestError:
    """The error for a version that changes the columns."""
    return InvalidRequestError(
        f"{version} of {address} has other columns than the stream",
        fix="load the table and start the query again: it goes on from its checkpoint with the new columns",
        place=version,
        kind="schema-change",
    )


def removed_rows(version: str, address: str, operation: str | None, *, adds: bool) -> InvalidRequestError:
    """The error for a version that removes rows; `adds`: and adds others."""
    return InvalidRequestError(
        f"{version} of {address} takes rows away"
        f"{' and adds others' if adds else ''} ({operation or 'no operation named'}), and a stream only brings rows",
        fix="set skipChangeCommits to leave such commits out, ignoreChanges to read what they add (rows that were "
        "only moved come again)" + ("" if adds else ", or ignoreDeletes to pass over commits that only remove"),
        place=version,
        kind="change-commit",
    )


def both_starts() -> InvalidRequestError:
    """The error for options that name two commits at which a stream begins."""
    return InvalidRequestError("startingVersion and startingTimestamp are both given", fix="give one of them")


def no_stream_of_changes(table_format: str, address: str) -> UnsupportedTableError:
    """The error for a stream of the changes of a shared table."""
    return UnsupportedTableError(
        f"the table is {table_format}, and only changes of Delta and Iceberg tables are streamed",
        fix="read the changes in batches, each with startingVersion and endingVersion",
        place=address,
        kind="unsupported-format",
    )


def no_version(address: str, version: int, latest: int) -> VersionNotFoundError:
    """The error for a stream that is to start behind the version that comes next."""
    return VersionNotFoundError(
        f"{address} has no version {version}: it is at {latest}",
        fix=f"start at a version up to {latest + 1}",
        place="startingVersion",
    )


def taken_back(address: str, last: int, latest: int) -> VersionNotFoundError:
    """The error for a table whose log ends before the version `last` that a stream has read."""
    return VersionNotFoundError(
        f"{address} is at version {latest}, and the stream has read version {last}: commits were taken back",
        fix="start again with a new checkpoint location, or set failOnDataLoss to false to go on with later versions",
        place=f"version {last}",
    )


def deleted_file(error: DataFileMissingError, task: FileTask) -> DataFileMissingError:
    """The error for a data file that is not there when a stream comes to it, or whose deletes are not."""
    deletes = "" if error.place == task.path else f"{error.place} with the deletes of "
    loss = DataFileMissingError(
        f"{deletes}data file {task.path} of {task.root} was deleted before the stream has read it",
        fix="restore the file, or set failOnDataLoss to false to go on without its rows; vacuum with a "
        "retention that is longer than the stream lags behind",
        place=error.place,
    )
    loss.__cause__ = error
    return loss


def raise_or_log(loss: LakeviewError, *, fail_on_data_loss: bool) -> None:
    """Raise what a stream cannot read any more; where its option failOnDataLoss is false, log it as a warning."""
    if fail_on_data_loss:
        raise loss
    _log_loss(loss.message)


@lru_cache(1000)
def _log_loss(message: str) -> None:
    """Once in a process: a stream looks for new versions many times a second."""
    logging.getLogger(__name__).warning("passed over, as failOnDataLoss is false: %s", message)


def other_table(address: str, before: str, now: str) -> InvalidRequestError:
    """The error for a table that took the place of the one that a stream began with."""
    return InvalidRequestError(
        f"{address} is another table ({now}) than the one that the stream began with ({before})",
        fix="start again with a new checkpoint location",
        place=address,
        kind="other-table",
    )


def is_start(rest: Mapping[str, Any]) -> bool:
    """Whether the other keys of an offset say where its stream began, or nothing."""
    match rest:
        case {"first": [int(), int(), bool()]} if len(rest) == 1:
            return True
    return not rest


def offset_json(offset: "DataclassInstance") -> dict[str, Any]:
    """An offset as a checkpoint records it: one that says no beginning stays as it was."""
    return {name: value for name, value in asdict(offset).items() if value is not None}
