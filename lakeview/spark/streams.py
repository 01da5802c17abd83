"""What streams of tables of all formats have in common: options, offsets in checkpoints, and what stops a stream."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from lakeview.model.errors import (
    DataFileMissingError,
    InvalidRequestError,
    LakeviewError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lakeview.rows.tasks import FileTask
from lakeview.spark.addresses import unsupported_format
from lakeview.spark.option_values import (
    access_of,
    flag,
    known_options,
    path_of,
    positive,
    positive_bytes,
    starting_point,
)
from lakeview.storage.access import NO_OPTIONS, StoreAccess


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


def no_stream_of_changes(table_format: str, address: str) -> UnsupportedTableError:
    """The error for a stream of the changes of a shared table."""
    fix = "read the changes in batches, each with startingVersion and endingVersion"
    return unsupported_format(address, table_format, "changes of Delta and Iceberg tables are streamed", fix)


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


NAMES = (
    "startingVersion", "startingTimestamp", "maxFilesPerTrigger", "maxBytesPerTrigger", "ignoreChanges",
    "ignoreDeletes", "skipChangeCommits", "failOnDataLoss",
)  # fmt: skip

MOST_FILES = 1_000
"""Files of a batch where no option says how many."""


@dataclass(frozen=True)
class StreamOptions:
    """How a stream reads a table.

    `startingVersion` (a number, or `latest`) or `startingTimestamp` (an ISO moment with its offset): the first commit
    that is read; without them all rows of the latest version come first. `maxFilesPerTrigger`, `maxBytesPerTrigger`: of
    a batch, at least one file. Of commits that take rows away, `skipChangeCommits` reads nothing, `ignoreChanges` what
    they add, and `ignoreDeletes` passes over those that only remove. `failOnDataLoss` false goes on where commits of
    the log, or data files, are gone. `access`: of options `storage.<name>`.
    """

    path: str
    start: int | datetime | None = None
    starts_latest: bool = False
    max_files: int = MOST_FILES
    max_bytes: int | None = None
    ignore_changes: bool = False
    ignore_deletes: bool = False
    skip_change_commits: bool = False
    fail_on_data_loss: bool = True
    access: StoreAccess = NO_OPTIONS

    @staticmethod
    def parse(options: Mapping[str, str]) -> StreamOptions:
        """Raises InvalidRequestError for an unknown option and for a value or a combination that cannot be meant."""
        options = known_options(options, ("path", *NAMES), "reading as a stream")
        start, starts_latest = starting_point(options)
        return StreamOptions(
            path_of(options),
            start,
            starts_latest,
            max_files=positive(options, "maxFilesPerTrigger") or MOST_FILES,
            max_bytes=positive_bytes(options, "maxBytesPerTrigger"),
            ignore_changes=flag(options, "ignoreChanges", default=False),
            ignore_deletes=flag(options, "ignoreDeletes", default=False),
            skip_change_commits=flag(options, "skipChangeCommits", default=False),
            fail_on_data_loss=flag(options, "failOnDataLoss", default=True),
            access=access_of(options),
        )

    def reads_change(self, version: str, address: str, operation: str | None, adds: bool) -> bool:
        """Whether the rows that a version adds are read, which takes others away. `adds`: it adds any.
        InvalidRequestError where no option says what to do."""
        if self.skip_change_commits:
            return False
        if self.ignore_changes or (self.ignore_deletes and not adds):
            return True
        raise InvalidRequestError(
            f"{version} of {address} takes rows away{' and adds others' if adds else ''} "
            f"({operation or 'no operation named'}), and a stream only brings rows",
            fix="set skipChangeCommits to leave such commits out, ignoreChanges to read what they add (rows that were "
            "only moved come again)" + ("" if adds else ", or ignoreDeletes to pass over commits that only remove"),
            place=version,
            kind="change-commit",
        )


def without_stream_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that a batch read has as well: Spark asks for the schema before it says that it streams."""
    names = {name.lower() for name in NAMES}
    return {name: value for name, value in options.items() if name.lower() not in names}
