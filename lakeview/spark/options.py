"""Options: what Spark hands over as text, with names in lower case, to typed reading and writing options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from lakeview.delta.properties import SPELLINGS
from lakeview.delta.write.property_checks import check_settable
from lakeview.model.clock import Clock, system_clock
from lakeview.model.errors import InvalidRequestError
from lakeview.model.table import Table
from lakeview.spark.option_values import (
    access_of,
    choice,
    flag,
    known_options,
    moment,
    number,
    path_of,
    paths,
    relocations,
    snapshot_properties,
)
from lakeview.storage.access import NO_OPTIONS, StoreAccess

_READING = ("path", "version", "timestamp", "where", "versionAsOf", "timestampAsOf", "files", "currentSchema")
_WRITING = (
    "path", "partitionBy", "replaceWhere", "replaceFiles", "mergeSchema", "operation", "userName", "userMetadata",
    "commitTimestamp", "dataChange", "statistics", "txnAppId", "txnVersion", "partitionOverwriteMode",
    "overwriteSchema", "maxRecordsPerFile", "ifExists", "withoutCatalog", "relocate",
)  # fmt: skip

_PINS = {name.lower(): name for name in ("version", "timestamp", "versionAsOf", "timestampAsOf")}
"""Options that a temporary view of one version hands to an INSERT as well, in lower case, to their spelling."""


class Statistics(StrEnum):
    """How much the log records about each file: bounds and null counts of columns, the number of rows, or nothing."""

    FULL = "full"
    COUNTS = "counts"
    NONE = "none"


class IfExists(StrEnum):
    """What a write does where a table is already: modes that Spark passes to no Python source."""

    WRITE = "write"
    ERROR = "error"
    IGNORE = "ignore"


@dataclass(frozen=True)
class ReadOptions:
    """`path`, one of `version` and `timestamp` (an ISO moment with its offset), and `where` (SQL) to skip files by.

    `versionAsOf` and `timestampAsOf`, as Delta's own source calls them, are the same as `version` and `timestamp`.
    `files`: a JSON list of the paths of data files (as the log has them, decoded) to read, and no others.
    `currentSchema`: the version is read with the columns that the table has now, while it is the latest.
    `access`: of options `storage.<name>`.
    """

    path: str
    version: int | None = None
    timestamp: datetime | None = None
    where: str | None = None
    files: tuple[str, ...] | None = None
    current_schema: bool = False
    access: StoreAccess = NO_OPTIONS

    def version_of(self, table: Table, pinned_version: int) -> int | None:
        """What reads a pinned version: None for the latest one, where none was asked for. The columns of an Iceberg
        table may be newer than its current snapshot."""
        is_explicit = not self.current_schema and (self.version is not None or self.timestamp is not None)
        return pinned_version if is_explicit or table.latest_version != pinned_version else None

    @staticmethod
    def parse(options: Mapping[str, str], near: Sequence[str] = ()) -> "ReadOptions":
        """Raises InvalidRequestError for an unknown option, with the nearest one, of `near` too, and for a value that
        cannot be meant."""
        no_feed = {
            name for name, value in options.items() if (name.lower(), value.lower()) == ("readchangefeed", "false")
        }
        options = known_options({n: v for n, v in options.items() if n not in no_feed}, _READING, "reading", near)
        for name, other in (("version", "versionasof"), ("timestamp", "timestampasof")):
            if other in options:
                if name in options:
                    raise InvalidRequestError(f"{name} is given twice, as {other} too", fix="give one of them")
                options[name] = options.pop(other)
        if "version" in options and "timestamp" in options:
            raise InvalidRequestError("version and timestamp are both given", fix="give one of them")
        return ReadOptions(
            path=path_of(options),
            version=number(options, "version"),
            timestamp=moment(options, "timestamp"),
            where=options.get("where"),
            files=paths(options, "files"),
            current_schema=flag(options, "currentSchema", default=False),
            access=access_of(options),
        )


@dataclass(frozen=True)
class WriteOptions:
    """How a write becomes a commit.

    `partitionBy`: comma list, when the table is created, or is given other columns by `overwriteSchema`;
    `replaceWhere`: with mode overwrite, the condition of the rows that go; `partitionOverwriteMode` dynamic:
    with mode overwrite, only partitions that rows fall into are replaced;
    `overwriteSchema`: with mode overwrite, the table gets the columns of the rows; `txnAppId` and `txnVersion`: a write
    that names a version which the table has of this application changes nothing (for foreachBatch);
    `maxRecordsPerFile`: rows of a file at most; `mergeSchema`: new columns are added to the table; `operation`,
    `userName`, `userMetadata`: for the commit;
    `commitTimestamp`: the commit's time (ISO with offset; else the clock's); `replaceFiles`: with mode overwrite, a
    JSON list of the paths that are replaced, and nothing else; `dataChange` false: their rows stay, in other files;
    `statistics`: of the files, full, counts (rows only) or none; `delta.*`: properties, when the table is created.
    `mergeSchema` adds fields to structs as well, at any depth, makes fields that the rows lack null, and widens numbers
    of a table with `delta.enableTypeWidening`. `ifExists`: with mode append, error where a table is there, or ignore,
    which then writes nothing. `withoutCatalog`: no catalog owns the Iceberg table, although its metadata files are
    named as catalogs name them; `relocate`: of an Iceberg table, a JSON object of recorded prefixes to where they lie
    now; `snapshot-property.<name>`: for the summary of its snapshot. `access`: of options `storage.<name>`.
    """

    path: str
    partition_by: tuple[str, ...] | None = None
    replace_where: str | None = None
    merge_schema: bool = False
    operation: str = "WRITE"
    user_name: str | None = None
    user_metadata: str | None = None
    commit_timestamp: datetime | None = None
    data_change: bool = True
    replace_files: tuple[str, ...] | None = None
    statistics: Statistics = Statistics.FULL
    properties: Mapping[str, str] = field(default_factory=dict)
    app_id: str | None = None
    app_version: int | None = None
    dynamic: bool = False
    overwrite_schema: bool = False
    max_rows: int | None = None
    if_exists: IfExists = IfExists.WRITE
    without_catalog: bool = False
    relocate: Mapping[str, str] = field(default_factory=dict)
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    access: StoreAccess = NO_OPTIONS

    @property
    def clock(self) -> Clock:
        """What dates the commit: a clock that stands still at `commitTimestamp`, or the system's."""
        timestamp = self.commit_timestamp
        return system_clock if timestamp is None else lambda: timestamp

    def is_ignored(self) -> bool:
        """Whether rows are not written where a table is. InvalidRequestError where there must be none."""
        if self.if_exists is IfExists.ERROR:
            raise InvalidRequestError(
                f"there is a table at {self.path}, and ifExists is error",
                fix="leave ifExists out to append or overwrite, or write to another address",
                place=self.path,
                kind="table-exists",
            )
        return self.if_exists is IfExists.IGNORE

    @staticmethod
    def parse(options: Mapping[str, str], *, overwrite: bool) -> "WriteOptions":
        """Raises InvalidRequestError for an unknown option and for a value or a combination that cannot be meant,
        UnsupportedTableError for a property that the writer would not honour."""
        _refuse_pins(options)
        options = known_options(options, _WRITING, "writing")
        names = options.get("partitionby")
        write_options = WriteOptions(
            path=path_of(options),
            partition_by=None if names is None else tuple(name.strip() for name in names.split(",") if name.strip()),
            replace_where=options.get("replacewhere"),
            merge_schema=flag(options, "mergeSchema", default=False),
            operation=options.get("operation", "WRITE"),
            user_name=options.get("username"),
            user_metadata=options.get("usermetadata"),
            commit_timestamp=moment(options, "commitTimestamp"),
            data_change=flag(options, "dataChange", default=True),
            replace_files=paths(options, "replaceFiles"),
            statistics=choice(options, "statistics", Statistics, Statistics.FULL),
            properties={SPELLINGS[name]: value for name, value in options.items() if name in SPELLINGS},
            app_id=options.get("txnappid"),
            app_version=number(options, "txnVersion"),
            dynamic=overwrite and _is_dynamic(options),
            overwrite_schema=flag(options, "overwriteSchema", default=False),
            max_rows=number(options, "maxRecordsPerFile") or None,
            if_exists=choice(options, "ifExists", IfExists, IfExists.WRITE),
            without_catalog=flag(options, "withoutCatalog", default=False),
            relocate=relocations(options),
            snapshot_properties=snapshot_properties(options),
            access=access_of(options),
        )
        check_settable(write_options.properties)
        write_options._refuse_contradictions(overwrite)
        return write_options

    def _refuse_contradictions(self, overwrite: bool) -> None:
        replaces_part = self.replace_where is not None or self.replace_files is not None
        keeps_rows = not overwrite or self.merge_schema or self.dynamic or bool(self.replace_where)
        contradictions = (
            ((self.app_id is None) != (self.app_version is None),
             "txnAppId and txnVersion are of use together alone",
             "give both: an application's name, and a number that grows with each batch"),
            (replaces_part and not overwrite,
             "replaceWhere and replaceFiles say what to replace", 'use mode("overwrite")'),
            (self.replace_where is not None and self.replace_files is not None,
             "replaceWhere and replaceFiles are both given", "give one of them"),
            (replaces_part and self.dynamic,
             "partitionOverwriteMode dynamic and replaceWhere or replaceFiles both say what to replace",
             "give one of them"),
            (overwrite and self.if_exists is not IfExists.WRITE,
             f"ifExists {self.if_exists} writes nothing where a table is, and mode overwrite replaces its rows",
             'use mode("append") with ifExists'),
            (self.overwrite_schema and keeps_rows,
             "overwriteSchema gives the table other columns, which needs all of its rows to go",
             'use mode("overwrite"), without mergeSchema, replaceWhere and dynamic partition overwrite'),
            # Otherwise rows that were appended since they were read would be removed without a trace.
            (not self.data_change and self.replace_files is None,
             "dataChange=false says that the rows are the same as before, but not as in which files",
             "give replaceFiles, the files the rows were read from"),
        )  # fmt: skip
        for is_given, problem, fix in contradictions:
            if is_given:
                raise InvalidRequestError(problem, fix=fix, place=problem.split()[0])


def _refuse_pins(options: Mapping[str, str]) -> None:
    for name, value in options.items():
        if pin := _PINS.get(name.lower()):
            raise InvalidRequestError(
                f"{pin}={value} names a version to read, and rows are written to the latest one",
                fix=f"leave {pin} out: INSERT INTO a view that was created without it, or save to the table's address",
                place=pin,
                kind="pinned-version",
            )


def _is_dynamic(options: Mapping[str, str]) -> bool:
    text = options.get("partitionoverwritemode", "static").lower()
    if text not in ("static", "dynamic"):
        raise InvalidRequestError(f"partitionOverwriteMode is {text!r}", fix="give static or dynamic")
    return text == "dynamic"
