"""Options of a stream, as text, to where it begins, how much a batch takes, and what it does about removed rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lakeview.spark.known_options import known_options
from lakeview.spark.option_values import access_of, flag, moment, number, path_of, positive, positive_bytes
from lakeview.spark.streams import both_starts
from lakeview.storage.access import NO_OPTIONS, StoreAccess

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
    starting_version: int | None = None
    starting_latest: bool = False
    starting_timestamp: datetime | None = None
    max_files: int = MOST_FILES
    max_bytes: int | None = None
    ignore_changes: bool = False
    ignore_deletes: bool = False
    skip_change_commits: bool = False
    fail_on_data_loss: bool = True
    access: StoreAccess = NO_OPTIONS

    @staticmethod
    def parse(options: Mapping[str, str]) -> "StreamOptions":
        """Raises InvalidRequestError for an unknown option and for a value or a combination that cannot be meant."""
        options = known_options(options, ("path", *NAMES), "reading as a stream")
        latest = options.get("startingversion", "").lower() == "latest"
        if "startingversion" in options and "startingtimestamp" in options:
            raise both_starts()
        return StreamOptions(
            path=path_of(options),
            starting_version=None if latest else number(options, "startingVersion"),
            starting_latest=latest,
            starting_timestamp=moment(options, "startingTimestamp"),
            max_files=positive(options, "maxFilesPerTrigger") or MOST_FILES,
            max_bytes=positive_bytes(options, "maxBytesPerTrigger"),
            ignore_changes=flag(options, "ignoreChanges", default=False),
            ignore_deletes=flag(options, "ignoreDeletes", default=False),
            skip_change_commits=flag(options, "skipChangeCommits", default=False),
            fail_on_data_loss=flag(options, "failOnDataLoss", default=True),
            access=access_of(options),
        )


def without_stream_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that a batch read has as well: Spark asks for the schema before it says that it streams."""
    names = {name.lower() for name in NAMES}
    return {name: value for name, value in options.items() if name.lower() not in names}
