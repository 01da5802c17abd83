"""Laws of operations: what an append, an overwrite and a restore promise by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import polars as pl

from lakeview.delta.audit.records import CommitRecord, whole
from lakeview.delta.audit.run import Run, live_files
from lakeview.delta.log.actions import Metadata
from lakeview.delta.log.file_events import IDENTITY
from lakeview.model.audit_cases import Case, proven, unknowable, violated


def appends_remove_nothing(run: Run) -> Iterator[Case]:
    """append-removes-nothing."""
    removals = run.events.filter(~pl.col("added"))
    paths = {v: (n, key) for v, n, key in removals.group_by("version").agg(pl.len(), pl.col("key").first()).iter_rows()}
    for version in run.sums["version"]:
        if not run.by_version[version].is_append:
            continue
        if version in paths:
            number, path = paths[version]
            yield violated(version, "the commit says that it appends, and it removes files", 0, number, path)
        else:
            yield proven(version)


def append_only(run: Run) -> Iterator[Case]:
    """append-only-table: a commit is judged by the properties in force before it."""
    metadata: Metadata | None = run.metadata
    lossy = run.events.filter(~pl.col("added") & pl.col("data_change"))
    paths = {v: (n, key) for v, n, key in lossy.group_by("version").agg(pl.len(), pl.col("key").first()).iter_rows()}
    for record in run.records:
        if metadata is not None and metadata.properties.get("delta.appendOnly", "").lower() == "true":
            if record.version in paths:
                number, path = paths[record.version]
                yield violated(record.version, "the commit removes files of an append-only table", 0, number, path)
            else:
                yield proven(record.version)
        metadata = record.metadata or metadata


def overwrites_leave_own_files(run: Run) -> Iterator[Case]:
    """overwrite-leaves-own-files, of writes that replace a whole table that is not partitioned."""
    metadata: Metadata | None = run.metadata
    for record in run.records:
        metadata = record.metadata or metadata
        if record.operation != "WRITE" or record.mode != "overwrite" or record.predicate is not None:
            continue
        if metadata is None or metadata.partition_columns or record.version == 0:
            continue  # engines do not record whether they overwrite partitions dynamically
        live = run.live_at(record.version)
        if live is None:
            yield unknowable(record.version, run.unknown_past)
            continue
        own = run.events.filter((pl.col("version") == record.version) & pl.col("added"))
        others = live.join(own, on=IDENTITY, how="anti", nulls_equal=True)
        if others.is_empty():
            yield proven(record.version)
        elif not _is_serializable(record, metadata) and _added_by_appends(run, record, others):
            yield unknowable(
                record.version,
                "files of appends are live as well, which is sound if these came after the overwrite read the table",
                others["key"][0],
            )
        else:
            yield violated(
                record.version, "files of earlier commits are live after the overwrite", 0, others.height,
                others["key"][0],
            )  # fmt: skip


def _is_serializable(record: CommitRecord, metadata: Metadata) -> bool:
    """Whether the commit, or else the table, says that commits are as if made one after another in their order."""
    level = record.isolation or metadata.properties.get("delta.isolationLevel", "")
    return level.lower() == "serializable"


def _added_by_appends(run: Run, record: CommitRecord, files: pl.DataFrame) -> bool:
    """Whether appends may have added all these files after the operation read the table: write-serializable isolation
    lets them commit first. An operation that does not record which version it read has read the files that it removes.
    """
    read = record.read_version
    if read is None:
        newest = run.removals.filter((pl.col("version") == record.version) & pl.col("was_live"))["before"].max()
        read = newest if isinstance(newest, int) else -1
    adds = run.events.filter("added") if run.base is None else pl.concat([run.base, run.events.filter("added")])
    earlier = adds.filter(pl.col("version") < record.version)
    newest_adds = earlier.unique(IDENTITY, keep="last", maintain_order=True)
    added = newest_adds.join(files, on=IDENTITY, how="semi", nulls_equal=True)["version"].unique()
    return all(read < v and (v < run.first or run.by_version[v].is_append) for v in added)


def restores_equal_target(run: Run, times: Callable[[], pl.DataFrame]) -> Iterator[Case]:
    """restore-equals-target. `times`: TIMES of the log, for a restore to a timestamp."""
    for record in run.records:
        if not record.is_restore:
            continue
        target = _target(record, times)
        if target is None:
            yield unknowable(record.version, "the commit does not record the version that it restores")
            continue
        before = _files_at(run, target) if target < record.version else None
        after = _files_at(run, record.version)
        if before is None or after is None:
            unknown = target if before is None else record.version
            yield unknowable(record.version, f"the log no longer shows the files of version {unknown}")
            continue
        missing = before.join(after, on=IDENTITY, how="anti", nulls_equal=True)
        extra = after.join(before, on=IDENTITY, how="anti", nulls_equal=True)
        if missing.is_empty() and extra.is_empty():
            yield proven(record.version)
            continue
        yield violated(
            record.version,
            f"{missing.height:,} files of version {target} are missing, {extra.height:,} others are live",
            before.height, after.height, pl.concat([missing, extra])["key"][0],
        )  # fmt: skip


def _files_at(run: Run, version: int) -> pl.DataFrame | None:
    live = run.live_at(version)
    return live_files(run.log, version) if live is None else live


def _target(record: CommitRecord, times: Callable[[], pl.DataFrame]) -> int | None:
    version = whole(record.parameters.get("version"))
    if version is not None:
        return version
    text = record.parameters.get("timestamp", record.parameters.get("datetime"))
    at = _moment(text)
    if at is None:
        return None
    earlier = times().filter((pl.col("timestamp") <= at) & (pl.col("version") < record.version))
    return int(earlier["version"][-1]) if earlier.height else None


def _moment(text: object) -> datetime | None:
    """An aware timestamp of a parameter; None for a text without a zone, whose zone the log does not record."""
    number = whole(text)
    if number is not None:
        return None
    try:
        timestamp = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return timestamp if timestamp is not None and timestamp.tzinfo is not None else None
