"""A table and a retention to the files that a vacuum deletes (delta protocol, Add File and Remove File; today's
protocol, VACUUM Protocol Check)."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache

import polars as pl

from lakeview.delta.data.schemas import table_schema
from lakeview.delta.log.paths import LOG_FOLDER, decode_path, is_staged, is_temporary
from lakeview.delta.log.replay import Replay
from lakeview.delta.properties import retention as table_retention
from lakeview.delta.write.commit_loop import commit_info
from lakeview.delta.write.conflicts import VACUUM_END, VACUUM_START
from lakeview.delta.write.rules import check_may_write
from lakeview.delta.write.target import Progress, Target
from lakeview.delta.write.vacuum.used_files import added_since, expired_files, needed_files, without_linked
from lakeview.model.addresses import is_absolute
from lakeview.model.clock import Clock, system_clock
from lakeview.model.column_values import moments
from lakeview.model.errors import AccessDeniedError, InvalidRequestError, LakeviewError
from lakeview.model.frames import UTC_MILLIS

VACUUM = pl.Schema({"path": pl.String(), "size": pl.Int64(), "modified": UTC_MILLIS, "deleted": pl.Boolean()})
"""One row a file that no version within the retention needs, by path, relative to the table's root. `size` in bytes and
`modified` as the store lists them; by a lite vacuum as the log records them (the time of the removal), null where it
does not. `deleted`: false in a dry run, and for a file that came into use again meanwhile."""

BATCH = 1_000
"""Files that are deleted between two looks at the log."""

_VISIBLE = ("_change_data", "_delta_index")


def vacuum(
    table: Target,
    retention: timedelta | None = None,
    *,
    dry_run: bool = True,
    keep_versions: Sequence[int] = (),
    allow_short_retention: bool = False,
    lite: bool = False,
    record: bool = True,
    progress: Progress | None = None,
    user: str | None = None,
    clock: Clock = system_clock,
) -> pl.DataFrame:
    """VACUUM: the files that nothing needs, deleted unless it is a dry run.

    Needed are those of the latest version and of `keep_versions`, of tombstones and change data younger than the
    retention (`delta.deletedFileRetentionDuration` without one), their deletion vectors, and whatever was written
    within it: a writer may be about to commit it. `lite`: only what tombstones of the log name, without a listing of
    the folder. A run that deletes writes VACUUM START and VACUUM END commits, by `user`, unless `record` is false:
    a restore at the same time does not see such a run, and may bring back files that it deletes.

    InvalidRequestError (kind short-retention) for a retention below the table's unless `allow_short_retention`,
    VersionNotFoundError or CorruptTableError for a version to keep that cannot be read, UnsupportedTableError for a
    table that must not be written, or that a catalog manages. An error on the way leaves the rest for the next run.
    """
    table.refresh()
    # "writers that only support vacuum ... should check the writer protocol as well"
    state = check_may_write(table)
    own = table_retention(state.properties)
    keeps = own if retention is None else retention
    _check_retention(keeps, own, allow_short_retention)
    plan = _plan(table, clock(), keeps, keep_versions, lite=lite)
    if dry_run or plan.is_empty():
        return plan
    if record:
        parameters = {
            "retentionCheckEnabled": not allow_short_retention,
            "defaultRetentionMillis": _milliseconds(own),
            **({} if retention is None else {"specifiedRetentionMillis": _milliseconds(keeps)}),
        }
        sizes = {"numFilesToDelete": plan.height, "sizeOfDataToDelete": int(plan["size"].sum())}
        commit_info(table, VACUUM_START, parameters, sizes, clock, user)
    folders = plan["path"].str.extract("^(.*)/").n_unique()
    outcomes: list[bool] = []
    try:
        for outcome in _deletions(table, plan["path"], state.version):
            outcomes += outcome
            if progress is not None:
                progress(len(outcomes), plan.height)
    except (LakeviewError, OSError):
        if record:
            with suppress(LakeviewError):  # what failed is worth more to the caller
                _end(table, "FAILED", outcomes.count(True), folders, clock, user)
        raise
    if record:
        _end(table, "COMPLETED", outcomes.count(True), folders, clock, user)
    return plan.with_columns(pl.Series("deleted", outcomes, dtype=pl.Boolean))


def _check_retention(keeps: timedelta, own: timedelta, allow_short: bool) -> None:
    if keeps < timedelta(0):
        raise InvalidRequestError(
            f"a retention of {keeps} lies in the future", fix="give how long to retain files", kind="short-retention"
        )
    if keeps < own and not allow_short:
        raise InvalidRequestError(
            f"a retention of {keeps} is shorter than the {own} of the table: files that readers still use, or that a "
            "writer is about to commit, would be deleted",
            fix="retain files for longer, lower delta.deletedFileRetentionDuration, or allow a short retention if no "
            "reader and no writer is at work",
            kind="short-retention",
        )


def _plan(table: Target, now: datetime, keeps: timedelta, keep_versions: Sequence[int], *, lite: bool) -> pl.DataFrame:
    """VACUUM of what may be deleted, nothing deleted yet."""
    cutoff = now - keeps
    keys = needed_files(table, dict.fromkeys(keep_versions), cutoff, now)
    if lite:
        candidates = expired_files(table, cutoff).rename({"key": "name"}).with_columns(moments("modified"))
        inside = [not (is_absolute(name) or name.startswith("../")) for name in candidates["name"]]
        candidates = candidates.filter(pl.Series(inside, dtype=pl.Boolean))
    else:
        candidates = table.storage.walk().filter(pl.col("modified") < cutoff)  # of an unknown time: it may be young
    files = candidate_files(candidates, table.state())
    files = files.join(keys.alias("name").to_frame(), on="name", how="anti").sort("name")
    files = without_linked(files, keys, table.storage.root)
    return files.select(pl.col("name").alias("path"), "size", "modified", deleted=False).cast(VACUUM)


def _deletions(table: Target, paths: pl.Series, base: int) -> Iterator[list[bool]]:
    """Delete files batch by batch; yields which of each were. Before each batch the log is asked for files that came
    into use again: a restore may have added them."""

    def delete(path: str) -> bool:
        if path in additions:
            return False
        try:
            table.storage.delete(path)
        except AccessDeniedError as error:
            if error.kind != "outside-roots":
                raise
            return False  # a link that leads out of the table
        return True

    for start in range(0, paths.len(), BATCH):
        additions = added_since(table, base)
        yield list(table.storage.each_ahead(delete, paths.slice(start, BATCH)))


def _end(table: Target, status: str, files: int, folders: int, clock: Clock, user: str | None) -> None:
    metrics = {"numDeletedFiles": files, "numVacuumedDirectories": folders}
    commit_info(table, VACUUM_END, {"status": status}, metrics, clock, user)


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def candidate_files(listing: pl.DataFrame, state: Replay) -> pl.DataFrame:
    """LISTING without what a vacuum leaves alone: names that begin with `_` or `.` at any level (but change data,
    `_delta_index`, partition folders, and temporary and staged files of lakeview), tables below the table, and the
    metadata of Iceberg readers where the table is read as Iceberg too."""
    columns = _partition_names(state)
    nested_tables = _nested_tables(listing["name"])
    is_uniform = "iceberg" in state.properties.get("delta.universalFormat.enabledFormats", "").lower()
    metadata = "metadata" if is_uniform else None

    @cache  # folders are few beside their files
    def hides(folder: str) -> bool:
        parts = folder.split("/")
        if parts[0] == metadata or any("/".join(parts[:end]) in nested_tables for end in range(1, len(parts) + 1)):
            return True
        return any(_hidden_folder(part, columns) for part in parts)

    def visible(path: str) -> bool:
        if is_staged(path):
            return True
        folder, slash, name = path.rpartition("/")
        if slash and hides(folder):
            return False
        return not name.startswith(("_", ".")) or is_temporary(name)

    mask = [visible(name) for name in listing["name"]]
    return listing.filter(pl.Series(mask, dtype=pl.Boolean))


def _hidden_folder(name: str, partition_columns: frozenset[str]) -> bool:
    if not name.startswith(("_", ".")) or name in _VISIBLE:
        return False
    column, equals, _ = name.partition("=")
    return not equals or decode_path(column) not in partition_columns


def _partition_names(state: Replay) -> frozenset[str]:
    """The partition columns by all names that folders may have."""
    names = state.metadata.partition_columns or []
    schema = table_schema(state.metadata.schema_string, state.table_protocol, state.properties)
    physical = {schema[name].physical_name for name in names if name in schema}
    return frozenset(names) | {name for name in physical if name is not None}


def _nested_tables(names: pl.Series) -> set[str]:
    """Folders below the root that hold a log of their own."""
    logs = names.filter(names.str.contains(f"/{LOG_FOLDER}/", literal=True))
    return {name.partition(f"/{LOG_FOLDER}/")[0] for name in logs}
