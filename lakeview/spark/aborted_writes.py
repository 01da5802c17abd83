"""What writers of all formats do with files that are not committed: those of tasks that failed, of tasks that Spark
ended before they reported them, and of tasks that it ran again."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lakeview.model.errors import LakeviewError
from lakeview.storage import Storage

_PAGES = 500
"""Pages of a remote store that are looked through: of objects half a million, for a minute at most."""

_NAMES = 10
"""Files that a warning names."""

_LOG = logging.getLogger(__name__)


@dataclass
class FilesWritten(WriterCommitMessage):
    """The files of one task and its number of rows, for the driver; `definition`: what a Delta table was to the task;
    `is_repeated`: as the function."""

    files: list[Any]
    rows: int = 0
    definition: str = ""
    is_repeated: bool = False


class FilesWriter(DataSourceArrowWriter, ABC):
    """Made on the driver, copied to each task for `write`, and asked on the driver to `commit` or `abort`."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove the files of the tasks that ended well, and of those that Spark ended before they could report them;
        the failed ones have removed theirs.

        Where every task ended well a commit was tried, which has removed them itself, or must leave them: a store that
        did not answer may have taken it. A file that a task writes after this is named by no commit: no reader reads
        it, and the log doctor lists it.
        """
        if any(message is None for message in messages):
            self._discard([file for message in files_written(messages) for file in message.files])
            self._remove_others([])

    def _remove_first_runs(self, messages: Sequence[FilesWritten]) -> None:
        """Remove what tasks that Spark ran again wrote before."""
        if any(message.is_repeated for message in messages):
            self._remove_others([file for message in messages for file in message.files])

    @abstractmethod
    def _discard(self, files: Sequence[Any]) -> None:
        """Remove these files."""

    @abstractmethod
    def _remove_others(self, files: Sequence[Any]) -> None:
        """Remove the files of this write but for these."""


def files_written(messages: Sequence[WriterCommitMessage | None]) -> list[FilesWritten]:
    """The messages of the tasks that succeeded."""
    return [message for message in messages if isinstance(message, FilesWritten)]


def is_repeated() -> bool:
    """True in a task that Spark has run before: what it wrote then may be there."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def remove_files(storage: Storage, prefix: str, *, one_folder: bool, besides: Iterable[str] = ()) -> None:
    """Remove the files of a write, whose names have `prefix` in them, and their temporary files. A warning names those
    that the store does not remove, or the prefix where it cannot list them.

    `besides`: paths of files that stay; `one_folder`: they lie in the root of the store. Files in folders of a remote
    store are found by a listing of all its files, up to _PAGES: where it has more, a warning says what may be left.
    """
    try:
        # a dot comes before it in a temporary file's name, and a hash where Iceberg spreads files without folders
        names = _names(storage, prefix, one_folder=one_folder)
        bases = {_base(path) for path in besides}  # which an id of its own makes unlike those of all other files
        leftovers = storage.delete_each(n for n in names if prefix in _base(n) and _base(n) not in bases)
    except (LakeviewError, OSError) as error:
        _LOG.warning(
            "the files of %s could not be listed (%s): files of the write that failed may be left, with %s in their "
            "names; vacuum removes them",
            storage.root,
            error,
            prefix,
        )
        return
    if leftovers:
        more = f" and {len(leftovers) - _NAMES:,} more with {prefix} in their names" * (len(leftovers) > _NAMES)
        _LOG.warning(
            "files that failed tasks wrote are left in %s: %s%s; vacuum removes them",
            storage.root,
            ", ".join(leftovers[:_NAMES]),
            more,
        )


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _names(storage: Storage, prefix: str, *, one_folder: bool) -> Iterator[str]:
    if not storage.remote:
        yield from storage.names()
    elif one_folder:
        yield from storage.list_from("", prefix)["name"]
    else:
        pages = storage.name_pages()
        yield from chain.from_iterable(islice(pages, _PAGES))
        if next(pages, None) is not None:
            _LOG.warning(
                "%s has so many files that not all were looked through: files of the write that failed may be left, "
                "with %s in their names; vacuum removes them",
                storage.root,
                prefix,
            )
