"""Laws of the file set: which files a commit may add and remove, and what deletion vectors may do."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from lakeview.delta.audit.run import Run
from lakeview.delta.log.file_events import IDENTITY
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
    wrong = {v: (n, path) for v, n, path in exact.group_by("version").agg(pl.len(), pl.col("key").first()).iter_rows()}
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
        v for v, record in run.by_version.items() if record.operation in _MAKES_FILES and not record.restores_files
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
    returned = {
        v: (n, path) for v, n, path in _first_paths(pl.concat([back.select("version", "key"), from_before])).iter_rows()
    }
    for version in adds["version"].sort():
        if version not in returned:
            yield proven(version)
            continue
        number, path = returned[version]
        before = run.events.filter((pl.col("key") == path) & ~pl.col("added") & (pl.col("version") < version))
        if before.height and run.by_version[before["version"][-1]].operation is None:
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


def _first_paths(actions: pl.DataFrame) -> pl.DataFrame:
    return actions.group_by("version").agg(pl.len(), pl.col("key").first())


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
