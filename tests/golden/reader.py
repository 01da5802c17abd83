"""A golden table, read through the public interface, to what differs from what must be found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

import lakeview as lv
from lakeview.model.errors import (
    CorruptTableError,
    DataFileMissingError,
    LakeviewError,
    NotATableError,
    UnsupportedTableError,
)
from lakeview.model.frames import FILES
from lakeview.model.snapshot import Snapshot
from lakeview.model.table import Table
from tests.golden.conformance import Expected, GoldenTable, Latest, Refusal, Version
from tests.golden.rows import differences, read_rows

REFUSALS: dict[str, tuple[type[LakeviewError], frozenset[str]]] = {
    "not-a-table": (NotATableError, frozenset({"not-a-table"})),
    "missing-metadata": (CorruptTableError, frozenset({"missing-metadata"})),
    "missing-protocol": (CorruptTableError, frozenset({"missing-protocol"})),
    "versions-not-contiguous": (CorruptTableError, frozenset({"versions-not-contiguous"})),
    "catalog-managed": (UnsupportedTableError, frozenset({"catalog-managed"})),
    "unsupported-reader-feature": (UnsupportedTableError, frozenset({"unsupported-reader-feature"})),
    "unsupported-reader-version": (UnsupportedTableError, frozenset({"unsupported-reader-version"})),
    # a strict reader may refuse these; they are only two of the ways a log can be corrupt
    "missing-schema": (CorruptTableError, frozenset({"missing-schema", "corrupt-table"})),
    "malformed-commit": (CorruptTableError, frozenset({"malformed-commit", "corrupt-table"})),
}
"""What expected.json calls a refusal, to the error class and the values of its `kind` that fit."""

LOG_STILL_SHOWN = frozenset({"catalog-managed", "unsupported-reader-feature", "unsupported-reader-version"})
"""Refusals of tables whose log is sound: their history must be there all the same."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One difference. `refusal`: the error, where the reader refused instead of answering."""

    text: str
    refusal: LakeviewError | None = None


def problems(golden: GoldenTable) -> list[Problem]:
    """Everything that is not as it must be; empty for a table that reads right (or is refused as it must be)."""
    return list(_problems(golden))


def _problems(golden: GoldenTable) -> Iterator[Problem]:
    expected = golden.expected
    try:
        table = lv.open_table(golden.path)
    except LakeviewError as error:
        yield from _refused(error, expected)
        return
    try:
        snapshot = table.snapshot()
    except LakeviewError as error:
        yield from _refused(error, expected)
        refusal = expected.error or expected.may_error
        if refusal is None or refusal.kind in LOG_STILL_SHOWN:
            yield from _history(table, expected)
        return
    if expected.error is not None:
        yield from _opened_all_the_same(snapshot, expected.error)
        return
    assert expected.latest is not None, "a table without an error has a latest version"
    yield from _latest(golden, table, snapshot, expected.latest)
    yield from _history(table, expected)
    yield from _readable_versions(table, expected)
    for number, version in (expected.versions or {}).items():
        if int(number) != expected.latest.version:
            yield from _version(golden, table, int(number), version)


def _refused(error: LakeviewError, expected: Expected) -> Iterator[Problem]:
    refusal = expected.error or expected.may_error
    if refusal is None:
        yield Problem(f"latest: refused: {error}", error)
    else:
        yield from _fits(error, refusal)


def _fits(error: LakeviewError, refusal: Refusal) -> Iterator[Problem]:
    refusal_class, kinds = REFUSALS[refusal.kind]
    if not isinstance(error, refusal_class) or error.kind not in kinds:
        yield Problem(f"refused as {type(error).__name__} {error.kind!r} ({error}), expected {refusal.kind!r}")
    if not error.fix:
        yield Problem(f"the refusal {error.kind!r} does not say what to do")


def _opened_all_the_same(snapshot: Snapshot, refusal: Refusal) -> Iterator[Problem]:
    counts = (snapshot.version, snapshot.num_files)
    if refusal.alternative is None:
        yield Problem(f"opened at version {counts[0]}, expected an error: {refusal.kind} ({refusal.detail})")
    elif counts != (refusal.alternative.version, refusal.alternative.num_files):
        yield Problem(f"opened with (version, files) {counts}, expected {refusal}")


def _latest(golden: GoldenTable, table: Table, snapshot: Snapshot, latest: Latest) -> Iterator[Problem]:
    expected = golden.expected
    files = snapshot.files
    yield from check_equal("latest: version", snapshot.version, latest.version)
    yield from check_equal("latest: num_files", snapshot.num_files, latest.num_files)
    yield from check_equal("latest: size_bytes", snapshot.size_bytes, latest.size_bytes)
    yield from check_equal("latest: partition columns", snapshot.partition_columns, latest.partition_columns)
    yield from check_equal("latest: columns", [field.name for field in snapshot.schema], latest.columns)
    yield from check_equal("latest: rows of FILES", files.height, latest.num_files)
    yield from check_equal("latest: sum of FILES.size", files["size"].sum(), latest.size_bytes)
    yield from check_equal("latest: deletion vectors", files["deletion_vector"].count(), latest.num_files_with_dv)
    yield from check_equal("latest: types of FILES", {name: files.schema.get(name) for name in FILES}, dict(FILES))
    yield from _num_records("latest", snapshot, latest.num_rows, latest.num_rows_from_stats, expected.features)
    if expected.tombstones is not None:
        counts = {expected.tombstones, expected.tombstones_full_json_replay} - {None}
        if snapshot.tombstones.height not in counts:
            yield Problem(f"latest: {snapshot.tombstones.height} tombstones, expected {counts}")
    transactions = dict(snapshot.transactions.select("app_id", "version").iter_rows())
    yield from check_equal("latest: transactions", transactions, expected.txns)
    domains = dict(snapshot.domain_metadata.select("domain", "configuration").iter_rows())
    yield from check_equal("latest: domain metadata", domains, expected.domain_metadata)
    yield from _rows(golden, table, None, latest.rows, latest.num_rows, latest.columns, latest.missing_files)


def _version(golden: GoldenTable, table: Table, number: int, version: Version) -> Iterator[Problem]:
    place = f"version {number}"
    try:
        snapshot = table.snapshot(number)
        yield from check_equal(f"{place}: version", snapshot.version, number)
        yield from check_equal(f"{place}: num_files", snapshot.num_files, version.num_files)
        yield from _num_records(place, snapshot, version.num_rows, None, [])
    except LakeviewError as error:
        if version.may_error is None:
            yield Problem(f"{place}: refused: {error}", error)
        else:
            yield from _fits(error, Refusal(version.may_error, ""))
        return
    if version.columns is not None:
        yield from check_equal(f"{place}: columns", [field.name for field in snapshot.schema], version.columns)
    yield from _rows(golden, table, number, version.rows, version.num_rows, version.columns, 0)


def _num_records(
    place: str, snapshot: Snapshot, rows: int | None, from_statistics: int | None, features: list[str]
) -> Iterator[Problem]:
    """Live rows as the log knows them. The stored figure leaves statistics out that exist as a struct only."""
    count = snapshot.num_records
    if from_statistics is not None or "stats-parsed" in features:
        yield from check_equal(f"{place}: num_records", count, rows if from_statistics is None else from_statistics)
    elif count is not None and rows is not None:
        yield from check_equal(f"{place}: num_records", count, rows)


def _rows(
    golden: GoldenTable,
    table: Table,
    number: int | None,
    rows: str | None,
    num_rows: int | None,
    columns: list[str] | None,
    missing_files: int,
) -> Iterator[Problem]:
    place = "latest" if number is None else f"version {number}"
    if rows is None and num_rows is None and not missing_files:
        return
    try:
        rows_read = table.scan(number).collect()
    except DataFileMissingError as error:
        if not missing_files:
            yield Problem(f"{place}: scan: {error}", error)
        return
    except LakeviewError as error:
        yield Problem(f"{place}: scan: {error}", error)
        return
    if missing_files:
        yield Problem(f"{place}: scan gave {rows_read.height} rows, but {missing_files} data files are missing")
        return
    yield from check_rows(place, rows_read, columns, num_rows, None if rows is None else golden.folder / rows)


def _history(table: Table, expected: Expected) -> Iterator[Problem]:
    writer_features = (expected.protocol and expected.protocol.writer_features) or ()
    commits = {row["version"]: row for row in table.history().iter_rows(named=True)}
    for commit in expected.history:
        place = f"history of version {commit.version}"
        row = commits.get(commit.version)
        if row is None:
            yield Problem(f"{place}: not there")
            continue
        if commit.operation is not None:
            yield from check_equal(f"{place}: operation", row["operation"], commit.operation)
        if commit.timestamp is not None:
            yield from check_equal(f"{place}: recorded_timestamp", row["recorded_timestamp"], _moment(commit.timestamp))
        if commit.in_commit_timestamp is not None and "inCommitTimestamp" in writer_features:
            yield from check_equal(f"{place}: timestamp", row["timestamp"], _moment(commit.in_commit_timestamp))


def _readable_versions(table: Table, expected: Expected) -> Iterator[Problem]:
    if expected.versions_reconstructable is None:
        return
    first, last = expected.versions_reconstructable
    possible = set(range(first, last + 1))
    # where the stored rows are unknown, data files are gone (or the schema is): the log alone does not make it readable
    optional = {int(number) for number, v in (expected.versions or {}).items() if v.num_rows is None or v.may_error}
    unreadable = {last} if expected.latest and expected.latest.missing_files else set()
    versions = table.versions()
    readable = set(versions.filter("readable")["version"])
    if not possible - optional - unreadable <= readable <= possible - unreadable:
        whole = sorted(possible - unreadable)
        yield Problem(f"readable versions {sorted(readable)}, expected {whole}, maybe not {sorted(optional)}")
    if versions.filter(~versions["readable"])["reason"].has_nulls():
        yield Problem("a version that cannot be read does not say why")


def check_rows(
    place: str, rows: pl.DataFrame, columns: list[str] | None, num_rows: int | None, expected_rows: Path | None
) -> Iterator[Problem]:
    """What is wrong with rows that were read, by what is recorded of them: names of columns, how many rows, and the
    file that has them all."""
    if columns is not None:
        yield from check_equal(f"{place}: columns of scan", rows.columns, columns)
    if num_rows is not None:
        yield from check_equal(f"{place}: rows of scan", rows.height, num_rows)
    if expected_rows is not None:
        for difference in differences(read_rows(expected_rows), rows):
            yield Problem(f"{place}: {difference}")


def check_equal(place: str, actual: object, expected: object) -> Iterator[Problem]:
    if actual != expected:
        yield Problem(f"{place} is {actual!r}, expected {expected!r}")


def _moment(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
