"""A table's log to the files of it that no version within the log's retention needs (today's protocol, Metadata
Cleanup); and a run of commits to one file that holds what they add up to (Log Compaction Files)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec
import polars as pl

from lakeview.delta.log.actions import DeletionVectorDescriptor
from lakeview.delta.log.checkpoints import UNREADABLE
from lakeview.delta.log.commits import RAW_LINES, parse_commit, parse_lines
from lakeview.delta.log.log_segment import CheckpointFiles, checkpoint_hint, checkpoints_of
from lakeview.delta.log.paths import (
    LAST_CHECKPOINT,
    LOG_FILES,
    LOG_FOLDER,
    SIDECARS,
    canonical_path,
    commit_name,
    compaction_name,
    decode_path,
    is_temporary,
    log_files,
    log_frame,
)
from lakeview.delta.log.times import CommitTimes, in_commit_start
from lakeview.delta.properties import PROTECTED_BEFORE, value
from lakeview.delta.write.checkpoint.plan import is_whole
from lakeview.delta.write.conflicts import VACUUM_TIME
from lakeview.delta.write.rules import check_may_write
from lakeview.delta.write.target import Target
from lakeview.model.clock import Clock, system_clock
from lakeview.model.errors import InvalidRequestError

LOG_CLEANUP = pl.Schema(
    {**{c: LOG_FILES[c] for c in ("name", "kind", "version", "size", "modified")}, "deleted": pl.Boolean()}
)
"""One row a file of the log that is no longer needed, in the order of deletion; `name` below `_delta_log`. `kind`:
commit, checkpoint, part, v2, crc, compaction; without a version sidecar, temporary (what a killed writer of ours left)
and hint (`_last_checkpoint` where it names what goes). `deleted`: false in a dry run."""

_RETENTION = timedelta(days=30)
_BATCH = 1_000


def clean_log(
    table: Target,
    retention: timedelta | None = None,
    *,
    dry_run: bool = True,
    keep_versions: Sequence[int] = (),
    allow_short_retention: bool = False,
    clock: Clock = system_clock,
) -> pl.DataFrame:
    """LOG_CLEANUP: what lies before the newest checkpoint that is older than the retention, deleted unless it is a dry
    run.

    The retention is `delta.logRetentionDuration` without one, back to midnight UTC. The checkpoint and every version
    from it on stay readable, and so do `keep_versions`; where no whole checkpoint is old enough nothing is deleted.
    Sidecars that no remaining checkpoint names go once they are a day old.

    InvalidRequestError for a table that keeps its log (`delta.enableExpiredLogCleanup`), and (kind short-retention) for
    a retention below the table's unless `allow_short_retention`; UnsupportedTableError as `vacuum`.
    """
    table.refresh()
    state = check_may_write(table)
    if value(state.properties, "delta.enableExpiredLogCleanup") is False:
        raise InvalidRequestError(
            f"{table.storage.root} keeps its whole log (delta.enableExpiredLogCleanup is false)",
            fix="set the property to true if old versions may go",
            place="delta.enableExpiredLogCleanup",
            kind="log-cleanup-disabled",
        )
    now = clock()
    cutoff = _cutoff(now, retention, state.properties, allow_short=allow_short_retention)
    return _clean(table, cutoff, now, keep_versions, dry_run=dry_run)


def truncate_log(table: Target, retention: timedelta, *, clock: Clock = system_clock) -> pl.DataFrame:
    """LOG_CLEANUP: what lay before the newest checkpoint that is older than a retention to the minute, deleted; how
    long the table says to keep its log makes no difference. UnsupportedTableError as `vacuum`."""
    table.refresh()
    check_may_write(table)
    now = clock()
    return _clean(table, now - max(retention, VACUUM_TIME), now, (), dry_run=False)


def _clean(
    table: Target, cutoff: datetime, now: datetime, keep_versions: Sequence[int], *, dry_run: bool
) -> pl.DataFrame:
    # the table's own listing grows at its end: a checkpoint of an older version, written since, is not in it
    listing = table.storage.list_from(LOG_FOLDER)
    files = log_files(listing.with_columns(pl.col("modified").dt.epoch("ms")).iter_rows())
    checkpoints = checkpoints_of(files)
    base = _base(table, checkpoints, cutoff, keep_versions)
    old = _nothing()
    if base is not None and not _is_protected(table, base):
        old = pl.concat([_stale_hint(table, listing, base), _before(log_frame(files), base)])
    remaining = [c for c in checkpoints if set(old["name"]).isdisjoint(c.names)]
    plan = pl.concat([old, _unused_sidecars(table, remaining, now), _temporary_files(listing, now)])
    if not dry_run:
        _delete(table, plan)
        table.log.forget(old["name"].to_list())
    return plan.with_columns(deleted=pl.lit(value=not dry_run)).cast(LOG_CLEANUP)


def _nothing() -> pl.DataFrame:
    return pl.DataFrame(schema=LOG_CLEANUP).drop("deleted")


def _cutoff(now: datetime, retention: timedelta | None, properties: dict[str, str], *, allow_short: bool) -> datetime:
    """The time before which commits are old: "truncated to midnight UTC". The commit of a vacuum that may still delete
    files is not: without it a restore would bring back files that go."""
    setting: timedelta | None = value(properties, "delta.logRetentionDuration")
    own = _RETENTION if setting is None else setting
    keeps = own if retention is None else retention
    if keeps < timedelta(0) or (keeps < own and not allow_short):
        raise InvalidRequestError(
            f"a retention of {keeps} is shorter than the {own} of the table's log",
            fix="retain the log for longer, lower delta.logRetentionDuration, or allow a short retention",
            kind="short-retention",
        )
    return min(_midnight(now - keeps), now - VACUUM_TIME)


def _midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def _base(
    table: Target, checkpoints: Sequence[CheckpointFiles], cutoff: datetime, keep_versions: Sequence[int]
) -> CheckpointFiles | None:
    """The newest checkpoint that is old enough and whole, as far as is known without decoding all of it: what all that
    remains is read from."""
    state = table.state()
    times = CommitTimes(table.log, in_commit_start(state.table_protocol, state.properties))
    commits = table.log.versions()

    def is_new(version: int) -> bool:
        at = times.of(version)
        return at is None or at > cutoff  # times rise with the versions: a search by halves asks for few

    last_old = bisect_right(commits, False, key=is_new) - 1
    if last_old < 0:
        return None
    limit = min([commits[last_old], *keep_versions])
    for files in reversed(checkpoints):
        is_usable = files.version <= limit and not table.log.is_damaged(files)
        if is_usable and is_whole(table.storage, table.log.checkpoint(files)):
            return files
    return None


def _is_protected(table: Target, base: CheckpointFiles) -> bool:
    """Whether `checkpointProtection` forbids to clean up to this checkpoint: what lies before the version that
    `delta.requireCheckpointProtectionBeforeVersion` names may go all at once, or not at all."""
    state = table.state()
    if "checkpointProtection" not in (state.protocol.writer_features or ()):
        return False
    before: int | None = value(state.properties, PROTECTED_BEFORE)
    return before is not None and base.version < before


def _stale_hint(table: Target, listed_files: pl.DataFrame, base: CheckpointFiles) -> pl.DataFrame:
    """`_last_checkpoint` where it names a checkpoint that will be gone: a reader that follows it looks in vain."""
    try:
        hint = checkpoint_hint(table.storage.read(LAST_CHECKPOINT))
    except (FileNotFoundError, *UNREADABLE):
        return _nothing()
    if hint is None or hint >= base.version:
        return _nothing()
    name = LAST_CHECKPOINT.rpartition("/")[2]
    return _without_version(listed_files.filter(pl.col("name") == name), "hint")


def _before(log: pl.DataFrame, base: CheckpointFiles) -> pl.DataFrame:
    """The files of the log before a checkpoint, and compactions that begin at it or before."""
    version = pl.col("version")
    old = (version < base.version) | ((pl.col("kind") == "compaction") & (version <= base.version))
    # oldest first: what a crash leaves is a log that begins later
    return log.filter(old).sort("version", "name").select(_nothing().columns)


def _unused_sidecars(table: Target, remaining: Sequence[CheckpointFiles], now: datetime) -> pl.DataFrame:
    """The sidecars older than a day that none of the remaining checkpoints names; none where one of them cannot be
    read."""
    listing = table.storage.list_from(SIDECARS)
    # "preserve files that are less than a day old as of midnight": a checkpoint that names them may be on its way
    old = listing.filter(pl.col("modified") < _midnight(now) - timedelta(days=1))
    if old.is_empty():
        return _nothing()
    names: set[str] = set()
    for files in remaining:
        try:
            names.update(name.rpartition("/")[2] for name in table.log.checkpoint(files).sidecars)
        except UNREADABLE:
            return _nothing()
    sidecars = old.filter(~pl.col("name").is_in(names))
    return _without_version(sidecars.with_columns(pl.concat_str(pl.lit("_sidecars/"), "name").alias("name")), "sidecar")


def _temporary_files(listed_files: pl.DataFrame, now: datetime) -> pl.DataFrame:
    old = listed_files.filter(pl.col("modified") < _midnight(now) - timedelta(days=1))
    mask = pl.Series([is_temporary(name) for name in old["name"]], dtype=pl.Boolean)
    return _without_version(old.filter(mask), "temporary")


def _without_version(files: pl.DataFrame, kind: str) -> pl.DataFrame:
    version = pl.lit(None, pl.Int64).alias("version")
    return files.select("name", pl.lit(kind).alias("kind"), version, "size", "modified")


def _delete(table: Target, plan: pl.DataFrame) -> None:
    """Delete the files in their order, some at once; one that is gone already does not matter."""
    paths = [f"{LOG_FOLDER}/{name}" for name in plan["name"]]
    for start in range(0, len(paths), _BATCH):
        for _ in table.storage.each_ahead(table.storage.delete, paths[start : start + _BATCH]):
            pass


class _Subject(msgspec.Struct, frozen=True, rename="camel"):
    """What tells an action from another of its kind."""

    path: str = ""
    deletion_vector: DeletionVectorDescriptor | None = None
    app_id: str = ""
    domain: str = ""


_SUBJECT = msgspec.json.Decoder(_Subject | None)
_FILES = ("add", "remove")
_RECONCILED = (*_FILES, "protocol", "metaData", "txn", "domainMetadata")
"""Kinds of actions that a state is made of; provenance and change data stay with their commits."""


def compact_log(table: Target, start: int, end: int) -> str:
    """Write `<start>.<end>.compacted.json`: the newest action of each file, application and domain among these commits,
    the newest protocol and metaData, each as it is recorded. Tombstones and removed domains stay, since earlier
    versions may have what they remove. Returns the name.

    A file of that name is left as it is. InvalidRequestError for a range of less than two commits, or one with a commit
    that is not in the log; CorruptTableError for a commit that cannot be read; UnsupportedTableError as `vacuum`, and
    where a version of the range asks more of writers than is implemented: what a feature that is not known here
    records would be lost.
    """
    check_may_write(table)
    versions = table.log.versions()
    if not 0 <= start < end or bisect_right(versions, end) - bisect_left(versions, start) != end - start + 1:
        raise InvalidRequestError(
            f"commits {start} to {end} of {table.storage.root} cannot be compacted: two or more are needed, and all of "
            "them have to be in the log",
            fix="choose a range among the versions that the table lists",
            kind="log-compaction-range",
        )
    changes = table.log.definitions(range(start + 1, end + 1))
    check_may_write(table, [start, *(version for version, definition in changes if definition and definition[0])])
    name = compaction_name(start, end)
    newest = dict[tuple[str, ...], bytes]()
    for key, line in _actions(table, range(start, end + 1)):
        newest.pop(key, None)  # the newest comes last, as in the commits
        newest[key] = line
    with suppress(FileExistsError):
        table.storage.put_if_absent(f"{LOG_FOLDER}/{name}", b"".join(newest.values()))
    return name


def _actions(table: Target, versions: range) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """What each action is about, and its line, oldest first."""
    with table.log.whole_lines():
        for version, data in table.log.each_piece(versions):
            parse_commit(data, version)  # raises for what no reader can read
            for line in parse_lines(RAW_LINES, data, commit_name(version)):
                for kind in _RECONCILED:
                    if kind in line and (subject := _SUBJECT.decode(line[kind])) is not None:
                        yield _key(kind, subject, table.storage.root), b'{"%s":%s}\n' % (kind.encode(), line[kind])


def _key(kind: str, subject: _Subject, root: str) -> tuple[str, ...]:
    if kind in _FILES:
        vector = subject.deletion_vector
        return "file", canonical_path(decode_path(subject.path), root), "" if vector is None else vector.unique_id
    return kind, subject.app_id, subject.domain
