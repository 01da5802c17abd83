"""Options of reads and writes: what they mean, and what is said of those that mean nothing."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.spark import table
from lakeview.spark.option_values import as_spark_options
from lakeview.spark.options import ReadOptions, WriteOptions
from lakeview.spark.stream_writer import check_options
from lakeview.spark.streams import StreamOptions
from lakeview.spark.write_contexts import context_of_new
from lakeview.storage.access import StoreAccess


def test_reading_takes_a_version_or_a_moment_whatever_the_case_of_names() -> None:
    assert ReadOptions.parse({"path": "t", "VERSION": "7", "where": "a = 1"}) == ReadOptions("t", 7, None, "a = 1")
    moment = ReadOptions.parse({"path": "t", "timestamp": "2026-01-02T03:04:05Z"}).timestamp
    assert moment == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_condition_that_depends_on_the_zone_of_another_session_is_refused(tmp_path: Path) -> None:
    """Files are skipped by values in UTC, and Spark would filter rows by those of its zone."""
    lv.create_table(str(tmp_path), pa.schema([("at", pa.timestamp("us", "UTC"))]))
    session: Any = SimpleNamespace(conf={"spark.sql.session.timeZone": "America/New_York"})
    with pytest.raises(
        InvalidRequestError, match=r"EXTRACT\(HOUR FROM .* is America/New_York in this session"
    ) as refused:
        table(session, str(tmp_path), where="EXTRACT(hour FROM at) = 7")
    assert refused.value.kind == "time-zone"


def test_options_of_delta_mean_the_same() -> None:
    assert ReadOptions.parse({"path": "t", "versionAsOf": "7"}) == ReadOptions("t", 7)
    assert ReadOptions.parse({"path": "t", "readChangeFeed": "False"}) == ReadOptions("t"), "which asks for no changes"
    moment = ReadOptions.parse({"path": "t", "timestampAsOf": "2026-01-02T03:04:05Z"}).timestamp
    assert moment == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    options_given = {"path": "t", "txnappid": "loads", "txnversion": "3", "maxrecordsperfile": "10"}
    parsed = WriteOptions.parse({**options_given, "partitionOverwriteMode": "DYNAMIC"}, overwrite=True)
    assert (parsed.app_id, parsed.app_version, parsed.max_rows, parsed.dynamic) == ("loads", 3, 10, True)


def test_writing_takes_all_its_options() -> None:
    options_given = {
        "path": "t",
        "partitionby": "month, `day`",
        "mergeschema": "TRUE",
        "operation": "WRITE",
        "username": "mara",
        "usermetadata": "note",
        "committimestamp": "2026-01-02T03:04:05+02:00",
        "statistics": "Counts",
        "delta.enableincommittimestamps": "true",
    }
    parsed = WriteOptions.parse(options_given, overwrite=False)
    assert parsed.partition_by == ("month", "`day`")
    unpartitioned = WriteOptions.parse({"path": "/lake/orders", "partitionBy": ""}, overwrite=True)
    assert unpartitioned.partition_by == ()
    assert (parsed.merge_schema, parsed.statistics, parsed.user_metadata) == (True, "counts", "note")
    assert parsed.user_name == "mara"
    assert parsed.commit_timestamp == datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)
    assert parsed.properties == {"delta.enableInCommitTimestamps": "true"}


def test_storage_options_are_read_back_as_they_were_given_and_are_never_shown() -> None:
    options_given = {
        "secret": "s3cr3t",
        "anon": False,
        "client_kwargs": {"verify": True},
        "commit_coordinator": object(),
    }
    texts = as_spark_options(StoreAccess(options_given))
    assert texts == {
        "storage.secret": "s3cr3t", "storage.anon": "false", "storage.client_kwargs": '{"verify": true}',
    }  # fmt: skip
    by_name = {"path": "t", **{name.upper(): text for name, text in texts.items()}}
    parsed = (ReadOptions.parse(by_name), WriteOptions.parse(by_name, overwrite=False), StreamOptions.parse(by_name))
    for options in parsed:
        assert options.access.options == {name: options_given[name] for name in ("secret", "anon", "client_kwargs")}
        assert "s3cr3t" not in repr(options)
    with pytest.raises(InvalidRequestError, match="storage option secret is object, which has no text"):
        as_spark_options(StoreAccess({"secret": object()}))
    with pytest.raises(InvalidRequestError, match=r"the value of storage\.headers is no JSON") as broken:
        ReadOptions.parse({"path": "t", "storage.headers": "{s3cr3t"})
    assert "s3cr3t" not in repr(broken.value)


def test_properties_get_their_case_back() -> None:
    properties = {
        "delta.appendOnly": "true", "delta.checkpoint.writeStatsAsJson": "false", "delta.targetFileSize": "64mb",
        "delta.parquet.compression.codec": "snappy", "delta.deletedFileRetentionDuration": "interval 2 days",
    }  # fmt: skip
    options_given = {"path": "t", **{name.lower(): text for name, text in properties.items()}}
    assert WriteOptions.parse(options_given, overwrite=False).properties == properties


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("delta.writePartitionColumnsToParquet", "true", True),
        ("delta.writePartitionColumnsToParquet", "false", False),
        ("delta.enableMaterializePartitionColumnsFeature", "true", True),
        ("delta.appendOnly", "true", False),
    ],
)
def test_files_of_a_new_table_hold_its_partition_columns_where_it_asks_for_them(
    tmp_path: Path, name: str, text: str, holds: bool
) -> None:
    options = WriteOptions.parse({"path": str(tmp_path / "t"), "partitionBy": "p", name: text}, overwrite=False)
    schema = Schema.from_arrow(pa.schema([("id", pa.int64()), ("p", pa.string())]))
    assert context_of_new(options, schema).materialize_partitions is holds


def test_overwrite_says_what_it_replaces() -> None:
    assert WriteOptions.parse({"path": "t", "replacewhere": "m = 1"}, overwrite=True).replace_where == "m = 1"
    files = WriteOptions.parse({"path": "t", "replacefiles": '["a", "b"]', "datachange": "false"}, overwrite=True)
    assert (files.replace_files, files.data_change) == (("a", "b"), False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no table is named"),
        ({"path": "t", "versoin": "1"}, "versoin: no such option for reading"),
        ({"path": "t", "version": "-1"}, "version is '-1', which is no whole number"),
        ({"path": "t", "version": "1", "timestamp": "2026-01-01T00:00Z"}, "version and timestamp are both given"),
        ({"path": "t", "version": "1", "versionAsOf": "1"}, "version is given twice, as versionasof too"),
        ({"path": "t", "timestamp": "yesterday"}, "timestamp is 'yesterday', which is no ISO moment"),
        (
            {"path": "t", "timestamp": "2026-01-01T00:00:00"},
            "timestamp 2026-01-01T00:00:00 has no offset, and Spark tells a Python source no time zone of the session",
        ),
    ],
    ids=["no path", "misspelt", "negative version", "two moments", "two names", "no moment", "naive moment"],
)
def test_reading_refuses(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        ReadOptions.parse(options)
    assert caught.value.message == message


@pytest.mark.parametrize("name", ["maxFilesPerTrigger", "maxBytesPerTrigger"])
def test_a_batch_without_files_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"{name} is 0"):
        StreamOptions.parse({"path": "t", name: "0"})


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("10b", 10), ("2K", 2048), ("3mb", 3 << 20), (" 1g ", 1 << 30)])
def test_bytes_are_read_as_spark_reads_sizes(text: str, size: int) -> None:
    assert StreamOptions.parse({"path": "t", "maxbytespertrigger": text}).max_bytes == size


@pytest.mark.parametrize("text", ["", "m", "1.5g", "-1", "1 m", "1gib"])
def test_what_is_no_number_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"maxBytesPerTrigger is .*, which is no number of bytes"):
        StreamOptions.parse({"path": "t", "maxbytespertrigger": text})


def test_a_stream_of_changes_is_answered_by_how_changes_are_read() -> None:
    with pytest.raises(InvalidRequestError, match="changes are read as batches"):
        StreamOptions.parse({"path": "t", "readchangefeed": "true"})


def test_a_date_without_an_offset_is_answered_by_a_moment_that_is_read() -> None:
    with pytest.raises(InvalidRequestError, match="write 2026-01-01T00:00:00Z for UTC"):
        ReadOptions.parse({"path": "t", "timestamp": "2026-01-01"})


@pytest.mark.parametrize(
    ("options", "overwrite", "message"),
    [
        ({"delta.noSuchThing": "1"}, False, "delta.nosuchthing: no such option for writing"),
        ({"versionAsOf": "3"}, False, "versionAsOf=3 names a version to read, and rows are written to the latest one"),
        ({"mergeSchema": "yes"}, False, "mergeSchema is 'yes'"),
        ({"statistics": "some"}, False, "statistics is 'some'"),
        ({"replaceWhere": "m = 1"}, False, "replaceWhere and replaceFiles say what to replace"),
        ({"replaceWhere": "m = 1", "replaceFiles": "[]"}, True, "replaceWhere and replaceFiles are both given"),
        ({"ifExists": "maybe"}, False, "ifExists is 'maybe'"),
        (
            {"ifExists": "error"},
            True,
            "ifExists error writes nothing where a table is, and mode overwrite replaces its rows",
        ),
        ({"txnAppId": "a"}, False, "txnAppId and txnVersion are of use together alone"),
        ({"partitionOverwriteMode": "some"}, True, "partitionOverwriteMode is 'some'"),
        (
            {"partitionOverwriteMode": "dynamic", "replaceWhere": "m = 1"},
            True,
            "partitionOverwriteMode dynamic and replaceWhere or replaceFiles both say what to replace",
        ),
        (
            {"overwriteSchema": "true"},
            False,
            "overwriteSchema gives the table other columns, which needs all of its rows to go",
        ),
        (
            {"dataChange": "false"},
            True,
            "dataChange=false says that the rows are the same as before, but not as in which files",
        ),
    ],
    ids=[
        "unknown property",
        "a version to read",
        "no truth value",
        "no kind of statistics",
        "replace in append",
        "two ways to replace",
        "no way to meet a table",
        "both there and not there",
        "half a transaction",
        "no mode of partitions",
        "dynamic and a condition",
        "another schema in append",
        "compaction of nothing",
    ],
)
def test_writing_refuses(options: dict[str, str], overwrite: bool, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        WriteOptions.parse({"path": "t", **options}, overwrite=overwrite)
    assert caught.value.message.lower() == message.lower()


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"storage_options": "{}"}, "give it as an option storage.<name>"),
        ({"fs.s3a.access.key": "x"}, "give it as an option storage.<name>"),
        ({"owner": "me", "provider": "lakeview", "location": "t"}, "CREATE TEMPORARY VIEW name USING lakeview"),
        ({"path": ""}, "CREATE TEMPORARY VIEW name USING lakeview"),
    ],
    ids=["access to a store", "access in the words of Hadoop", "a table of Spark's catalog", "no path"],
)
def test_what_spark_does_not_pass_on_is_refused_with_the_way_that_works(options: dict[str, str], fix: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        ReadOptions.parse({"path": "t", **options})
    assert fix in (caught.value.fix or "")


def test_a_list_of_files_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="replaceFiles is no list of paths"):
        WriteOptions.parse({"path": "t", "replaceFiles": "a,b"}, overwrite=True)


def test_options_of_iceberg_tables_are_checked_against_what_the_writer_reports() -> None:
    options_given = {"path": "t", "relocate": '{"s3://old": "/new"}', "snapshot-property.note": "late"}
    parsed = WriteOptions.parse(options_given, overwrite=False)
    assert (parsed.relocate, parsed.snapshot_properties) == ({"s3://old": "/new"}, {"note": "late"})
    for wrong in ({"relocate": "[]"}, {"snapshot-property.total-records": "1"}):
        with pytest.raises(InvalidRequestError):
            WriteOptions.parse({"path": "t", **wrong}, overwrite=False)
    with pytest.raises(InvalidRequestError, match=r"snapshot-property\.\* is an option for Iceberg tables"):
        check_options(replace(parsed, relocate={}), is_iceberg=False)
