"""Errors of Spark jobs to errors of lakeview: the one that a task raised, or what Spark's text means."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it says nothing of its types
from pyspark.errors import PySparkException

from lakeview.model import errors
from lakeview.model.errors import DataFileMissingError, InvalidRequestError, LakeviewError, StoreUnavailableError

_OURS = re.compile(r"lakeview\.model\.errors\.(\w+): (.+?)(?:\n\s+fix: (.+))?$", re.MULTILINE)


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
    for pattern, error, details, message, fix in _MEANINGS:
        if match := re.search(pattern, text):
            subject = match["subject"]
            return error(message.format(subject), fix=fix, **{name: d.format(subject) for name, d in details.items()})
    return None


_MEANINGS: tuple[tuple[str, type[LakeviewError], Mapping[str, str], str, str], ...] = (
    (
        r"(?s:FAILED_READ_FILE\.FILE_NOT_EXIST\].*?file (?P<subject>\S+?)\.?\s)",
        DataFileMissingError, {"place": "{}"}, "data file {} was planned and is no longer there",
        "read the latest version again: a vacuum, or another process, deleted the file while the job ran",
    ),
    (
        r"\[MALFORMED_RECORD_IN_PARSING[^\]]*\] (?P<subject>.+)",
        InvalidRequestError, {"kind": "malformed-row"},
        "a row of the source is not what its schema says, and its mode is FAILFAST: {}",
        "correct the source, or read it with mode PERMISSIVE and a column _corrupt_record: nothing was committed",
    ),
    (
        r"(?P<subject>No space left on device|Disk quota exceeded)",
        StoreUnavailableError, {"kind": "disk-full"}, "a task could not write: {}",
        "free space on the table's disk, or on Spark's (spark.local.dir), and run it again: nothing was committed",
    ),
    (
        r"(?P<subject>Python worker failed to connect back|Timed out while waiting for the Python worker)",
        StoreUnavailableError, {"kind": "slow-python-worker"},
        "a Python worker did not connect to Spark within the ten seconds that Spark gives it: the machine is busy",
        "start the stream again; give the machine fewer streams and jobs at a time (Spark has no setting for this)",
    ),
    (
        r"(?P<subject>ExecutorLostFailure|Checkpoint block \S+ not found|Python worker exited unexpectedly)",
        StoreUnavailableError, {"kind": "executor-lost"}, "Spark lost a process that worked on the job: {}",
        "run it again: nothing was committed; if it happens again, give executors more memory",
    ),
    (
        r"lakeview does not support (?P<subject>Update mode)",
        InvalidRequestError, {"kind": "output-mode", "place": "outputMode"},
        ("a stream to a table has output mode append, or complete, which replaces all rows: Spark does not say which "
        "rows an update replaces"),
        ('merge each batch: writeStream.outputMode("update").foreachBatch(merge_batch), where merge_batch(rows, '
        "number) calls merge of lakeview.spark.DeltaTable on the columns that are grouped by"),
    ),
)  # fmt: skip
"""What stands in Spark's text, to the class, kind and place, message and fix of our error about the subject."""
