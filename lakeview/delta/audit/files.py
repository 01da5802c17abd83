"""Laws of the file set: which files a commit may add and remove, what deletion vectors may do, and what an append, an
overwrite and a restore promise by their names."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

import polars as pl

from lakeview.delta.audit.records import CommitRecord
from lakeview.delta.audit.run import Run, live_files
from lakeview.delta.log.actions import Metadata
from lakeview.delta.log.commit_info import whole
from lakeview.delta.log.file_actions import IDENTITY
from lakeview.delta.properties import is_true
from lakeview.model.audit_cases import Case, each_commit, proven, unknowable, violated
from lakeview.model.laws import Verdict

_MAKES_FILES = frozenset(
    {"WRITE", "STREAMING UPDATE", "DELETE", "UPDATE", "MERGE", "OPTIMIZE", "CREATE TABLE AS SELECT",
     "REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT"}
)  # fmt: skip
"""Operations that write each file under a new name; others may register files that lie there."""


def removes_name_live_files(run: Run) -> Iterator[Case]:
    """remove-names-live-file."""
    never = pl.col("was_live").is_null()
    wrong = ~pl.col("was_live") if run.base is None else never | ~pl.col("was_live")
    unknown = never if run.base is None else None
    claim = "that the commit removes are not live at the version before"
    for case in each_commit(run.removals, wrong, claim, unknown, run.unknown_past):
        by_hand = case.verdict is Verdict.VIOLATED and run.by_version[case.version].is_manual
        yield unknowable(case.version, f"{case.reason}, in a manual update", case.path) if by_hand else case


def one_action_per_file(run: Run) -> Iterator[Case]:
    """one-action-per-file."""
    hashes = pl.struct("version", *IDENTITY).hash()
    numbers = run.events.select("version", "key", "deletion_vector", hashes.alias("hash"))
    twice = numbers["hash"].is_duplicated()
    exact = numbers.filter(twice).filter(pl.struct("version", *IDENTITY).is_duplicated())
    wrong = _files_of(exact)
    for version in run.sums["version"]:
        if version in wrong:
            number, path = wrong[version]
            yield violated(
                version, f"{number:,} actions are about a file that another action is about", 0, number, path
            )
        else:
            yield proven(version)


def removed_files_stay_removed(run: Run) -> Iterator[Case]:
    """removed-file-stays-removed, of commits that add files which the log has named before."""
    operations = [
        v for v, record in run.by_version.items() if record.info.operation in _MAKES_FILES and not record.restores_files
    ]
    keys = run.story.with_columns(
        pl.col("version").min().over("key").alias("first"),
        # a new deletion vector is added in the commit that removes the old entry of the path
        (~pl.col("added")).any().over("version", "key").alias("replaced"),
    )
    back = keys.filter(
        pl.col("added")
        & (pl.col("version") > pl.col("first"))
        & ~pl.col("replaced")
        & ~pl.col("was_live").fill_null(value=False)
        & pl.col("version").is_in(operations)
    )
    # a path that is live with another vector is judged by the law of one vector
    back = back.join(_live_elsewhere(run, back), on=["version", "key"], how="anti")
    adds = run.events.filter("added").select("version").unique().filter(pl.col("version").is_in(operations))
    from_before = _added_after_tombstone(run).filter(pl.col("version").is_in(operations))
    returns = _files_of(pl.concat([back.select("version", "key"), from_before]))
    for version in adds["version"].sort():
        if version not in returns:
            yield proven(version)
            continue
        number, path = returns[version]
        before = run.events.filter((pl.col("key") == path) & ~pl.col("added") & (pl.col("version") < version))
        if before.height and run.by_version[before["version"][-1]].info.operation is None:
            reason = "files are added again that a commit without an operation removed: it may be the one that is wrong"
            yield unknowable(version, reason, path)
        else:
            yield violated(version, "files that were removed before are added again", 0, number, path)


def _added_after_tombstone(run: Run) -> pl.DataFrame:
    """`version` and `key` of the files whose first action is an add, and which the checkpoint has as removed."""
    if run.tombstones.is_empty():
        return pl.DataFrame(schema={"version": pl.Int64(), "key": pl.String()})
    events = run.events.filter(pl.col("key").is_in(run.tombstones.implode()))
    return events.unique("key", keep="first", maintain_order=True).filter("added").select("version", "key")


def _files_of(actions: pl.DataFrame) -> dict[int, tuple[int, str]]:
    """How many of these actions a version has, and the first one's file."""
    counts = actions.group_by("version").agg(pl.len(), pl.col("key").first())
    return {version: (number, key) for version, number, key in counts.iter_rows()}


def _live_elsewhere(run: Run, adds: pl.DataFrame) -> pl.DataFrame:
    """`version` and `key` of those of these adds whose path is live at the version before, with any vector."""
    lives = run.lives.select("key", pl.col("version").alias("from"), pl.col("after").alias("to"))
    pairs = adds.select("version", "key").join(lives, on="key")
    return pairs.filter((pl.col("from") < pl.col("version")) & (pl.col("to") >= pl.col("version"))).select(
        "version", "key"
    )


def one_vector_per_path(run: Run) -> Iterator[Case]:
    """one-vector-per-path, of commits that add a file whose path the log has named before, or with a vector."""
    lives = run.lives.sort("key", "version", "after").with_columns(
        pl.col("after").cum_max().shift(1).over("key").alias("until"),
        (pl.col("deletion_vector").n_unique() > 1).over("key").alias("several"),
    )
    is_subject = pl.col("until").is_not_null() | pl.col("deletion_vector").is_not_null()
    adds = lives.filter((pl.col("version") >= run.first) & is_subject)
    wrong = (pl.col("until") > pl.col("version")) & pl.col("several")
    yield from each_commit(adds, wrong, "are live with another deletion vector as well")


def vectors_only_grow(run: Run) -> Iterator[Case]:
    """vectors-only-grow, of commits that replace the vector of a file; a restore may take rows back."""
    old = run.removals.filter(pl.col("was_live").fill_null(value=False)).select(
        "version", "key", pl.col("deletion_vector").alias("old"), pl.col("deleted_before").alias("deletes_before")
    )
    new = run.lives.filter(pl.col("version") >= run.first)
    pairs = new.join(old, on=["version", "key"]).filter(
        pl.col("deletion_vector").is_not_null() | pl.col("old").is_not_null()
    )
    restores = [v for v, record in run.by_version.items() if record.restores_files]
    pairs = pairs.filter(~pl.col("version").is_in(restores))
    wrong = pl.col("deleted_records") < pl.col("deletes_before")
    for case in each_commit(pairs, wrong, "have fewer deleted rows than before"):
        if case.path is not None:
            row = pairs.filter((pl.col("version") == case.version) & (pl.col("key") == case.path)).row(0, named=True)
            yield violated(case.version, case.reason or "", f"at least {row['deletes_before']:,} deleted rows",
                f"{row['deleted_records']:,} deleted rows", case.path)  # fmt: skip
        else:
            yield case


def appends_remove_nothing(run: Run) -> Iterator[Case]:
    """append-removes-nothing."""
    removals = _files_of(run.events.filter(~pl.col("added")))
    appends = [version for version in run.sums["version"] if run.by_version[version].is_append]
    yield from _cases(appends, removals, "the commit says that it appends, and it removes files")


def _cases(versions: Iterable[int], files: Mapping[int, tuple[int, str]], reason: str) -> Iterator[Case]:
    """A case for each version: violated if it has such files, else proven."""
    for version in versions:
        yield violated(version, reason, 0, *files[version]) if version in files else proven(version)


def is_append_only(metadata: Metadata) -> bool:
    """True if commits may remove no rows of the table."""
    return is_true(metadata.properties, "delta.appendOnly")


def append_only(run: Run) -> Iterator[Case]:
    """append-only-table: a commit is judged by the properties in force before it."""
    in_force = {record.version: run.definitions[record.version - 1][1] for record in run.records}
    versions = [version for version, metadata in in_force.items() if metadata is not None and is_append_only(metadata)]
    removals = _files_of(run.events.filter(~pl.col("added") & pl.col("data_change")))
    yield from _cases(versions, removals, "the commit removes files of an append-only table")


def overwrites_leave_own_files(run: Run) -> Iterator[Case]:
    """overwrite-leaves-own-files, of writes that replace a whole table that is not partitioned."""
    for record in run.records:
        _, metadata = run.definitions[record.version]
        if record.info.operation != "WRITE" or record.mode != "overwrite" or record.predicate is not None:
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
    level = record.info.isolation_level or metadata.properties.get("delta.isolationLevel", "")
    return level.lower() == "serializable"


def _added_by_appends(run: Run, record: CommitRecord, files: pl.DataFrame) -> bool:
    """Whether appends may have added all these files after the operation read the table: write-serializable isolation
    lets them commit first. An operation that does not record which version it read has read the files that it removes.
    """
    read = record.info.read_version
    if read is None:
        newest = run.removals.filter((pl.col("version") == record.version) & pl.col("was_live"))["before"].max()
        read = newest if isinstance(newest, int) else -1
    adds = run.events.filter("added") if run.base is None else pl.concat([run.base, run.events.filter("added")])
    earlier = adds.filter(pl.col("version") < record.version)
    newest_adds = earlier.unique(IDENTITY, keep="last", maintain_order=True)
    versions = newest_adds.join(files, on=IDENTITY, how="semi", nulls_equal=True)["version"].unique()
    return all(read < v and (v < run.first or run.by_version[v].is_append) for v in versions)


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
    try:
        timestamp = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return timestamp if timestamp is not None and timestamp.tzinfo is not None else None
