"""Errors of Spark jobs to errors of lakeview: the one that a task raised, or what Spark's text means."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it says nothing of its types
from pyspark.errors import PySparkException

from lakeview.model import errors
from lakeview.model.errors import DataFileMissingError, InvalidRequestError, LakeviewError, StoreUnavailableError

_OURS = re.compile(r"lakeview\.model\.errors\.(\w+): (.+?)(?:\n\s+fix: (.+))?$", re.MULTILINE)
_MISSING_FILE = re.compile(r"FAILED_READ_FILE\.FILE_NOT_EXIST\].*?file (?P<path>\S+?)\.?\s", re.DOTALL)
_MALFORMED = re.compile(r"\[MALFORMED_RECORD_IN_PARSING[^\]]*\] (.+)")
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_SLOW_WORKER = re.compile(r"Python worker failed to connect back|Timed out while waiting for the Python worker")
_LOST_EXECUTOR = re.compile(r"ExecutorLostFailure|Checkpoint block \S+ not found|Python worker exited unexpectedly")
_UPDATE_MODE = re.compile(r"lakeview does not support Update mode")


@contextmanager
def lakeview_errors() -> Iterator[None]:
    """Raises, in place of Spark's error, that of lakeview which made a job fail; other errors pass as they are.

    An action on rows, such as `collect` of a frame or `awaitTermination` of a stream, otherwise raises Spark's own,
    with ours in the middle of its text.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:  # a write that fails gives the second
        ours = lakeview_error(str(error))
        if ours is None:
            raise
        raise ours from error


def lakeview_error(text: str) -> LakeviewError | None:
    """The error of lakeview that the text of Spark's error holds, or describes in other words; None for others."""
    if ours := _OURS.search(text):
        kind = getattr(errors, ours[1], None)
        if isinstance(kind, type) and issubclass(kind, LakeviewError):
            return kind(ours[2], fix=ours[3])
    for pattern, make in _MEANINGS:
        if match := pattern.search(text):
            return make(match)
    return None


def _data_file_missing(match: re.Match[str]) -> LakeviewError:
    return DataFileMissingError(
        f"data file {match['path']} was planned and is no longer there",
        fix="read the latest version again: a vacuum, or another process, deleted the file while the job ran",
        place=match["path"],
    )


def _malformed_row(match: re.Match[str]) -> LakeviewError:
    return InvalidRequestError(
        f"a row of the source is not what its schema says, and its mode is FAILFAST: {match[1]}",
        fix="correct the source, or read it with mode PERMISSIVE and a column _corrupt_record: nothing was committed",
        kind="malformed-row",
    )


def _full(match: re.Match[str]) -> LakeviewError:
    return StoreUnavailableError(
        f"a task could not write: {match[0]}",
        fix="free space on the table's disk, or on Spark's (spark.local.dir), and run it again: nothing was committed",
        kind="disk-full",
    )


def _slow_worker(_: re.Match[str]) -> LakeviewError:
    return StoreUnavailableError(
        "a Python worker did not connect to Spark within the ten seconds that Spark gives it: the machine is busy",
        fix="start the stream again; give the machine fewer streams and jobs at a time (Spark has no setting for this)",
        kind="slow-python-worker",
    )


def _executor_lost(match: re.Match[str]) -> LakeviewError:
    return StoreUnavailableError(
        f"Spark lost a process that worked on the job: {match[0]}",
        fix="run it again: nothing was committed; if it happens again, give executors more memory",
        kind="executor-lost",
    )


def _update_mode(_: re.Match[str]) -> LakeviewError:
    return InvalidRequestError(
        "a stream to a table has output mode append, or complete, which replaces all rows: Spark does not say which "
        "rows an update replaces",
        fix='merge each batch: writeStream.outputMode("update").foreachBatch(merge_batch), where merge_batch(rows, '
        "number) calls merge of lakeview.spark.DeltaTable on the columns that are grouped by",
        place="outputMode",
        kind="output-mode",
    )


_MEANINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], LakeviewError]], ...] = (
    (_MISSING_FILE, _data_file_missing),
    (_MALFORMED, _malformed_row),
    (_FULL, _full),
    (_SLOW_WORKER, _slow_worker),
    (_LOST_EXECUTOR, _executor_lost),
    (_UPDATE_MODE, _update_mode),
)
