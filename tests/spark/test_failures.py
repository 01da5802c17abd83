"""What Spark says of a job that failed, to the error of lakeview: texts as Spark 4.3 words them."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException

from lakeview.model.errors import DataFileMissingError, InvalidRequestError, LakeviewError, StoreUnavailableError
from lakeview.spark.failures import lakeview_error, lakeview_errors

PATH = "file:///lake/a%20b/part-59f4.c000.zstd.parquet"
CASES: dict[str, tuple[str, type[LakeviewError], str, str]] = {
    "an error of a task": (
        ("[PYTHON_DATA_SOURCE_ERROR] Failed: Traceback (most recent call last):\n"
        '  File "reader.py", line 60, in read\n    raise NotFound(\n'
        "lakeview.model.errors.DataFileMissingError: data file part-1 is in the log of /lake but not in the store\n"
        "  fix: restore it, or read another version\n SQLSTATE: 38000\n\tat org.apache.spark.Some.thing(Some.scala:1)"),
        DataFileMissingError, "data file part-1 is in the log of /lake but not in the store",
        "restore it, or read another version",
    ),
    "a file that is gone": (
        (f"org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error reading file {PATH}."
        " File does not exist. It is possible the underlying files have been updated.\n\tat org.apache"),
        DataFileMissingError, f"data file {PATH} was planned and is no longer there", "read the latest version again",
    ),
    "a malformed row": (
        ("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///rows.csv.  SQLSTATE: KD001\n"
        "Caused by: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected: [null].\n\tat"),
        InvalidRequestError, "its mode is FAILFAST: Malformed records are detected: [null].", "nothing was committed",
    ),
    "a full disk of Spark's": (
        "java.io.IOException: No space left on device\n\tat java.base/sun.nio", StoreUnavailableError,
        "a task could not write: No space left on device", "free space",
    ),
    "a slow worker": (
        "org.apache.spark.SparkException: Python worker failed to connect back.\n\tat org", StoreUnavailableError,
        "did not connect to Spark within the ten seconds", "start the stream again",
    ),
    "a stream that updates": (
        "requirement failed: lakeview does not support Update mode.", InvalidRequestError,
        "output mode append, or complete", "foreachBatch",
    ),
    "a lost executor": (
        "Job aborted: Task 0.3 failed: ExecutorLostFailure (executor 1 exited)", StoreUnavailableError,
        "Spark lost a process that worked on the job: ExecutorLostFailure", "run it again",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_job_fails_with_an_error_of_lakeview(case: tuple[str, type[LakeviewError], str, str]) -> None:
    text, kind, message, fix = case
    spark_error = SparkRuntimeException(text)
    with pytest.raises(kind) as caught, lakeview_errors():
        raise spark_error
    assert message in caught.value.message
    assert fix in (caught.value.fix or "")
    assert caught.value.__cause__ is spark_error


def test_other_errors_of_spark_pass_as_they_are() -> None:
    assert lakeview_error("[DIVIDE_BY_ZERO] Division by zero.") is None
    assert lakeview_error("lakeview.model.errors.Unknown: text") is None
    with pytest.raises(AnalysisException, match="UNRESOLVED"), lakeview_errors():
        raise AnalysisException("[UNRESOLVED_COLUMN] no column x")
