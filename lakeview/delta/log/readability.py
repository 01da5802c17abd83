"""The log and one listing of the data to VERSIONS: which versions can still be read, and why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import polars as pl

from lakeview.delta.features import check_readable
from lakeview.delta.log.history import History
from lakeview.delta.log.paths import canonical
from lakeview.delta.log.replay import table_protocol
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.vector_paths import file_of, names_a_place
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import CorruptTableError, LakeviewError
from lakeview.model.frames import VERSIONS
from lakeview.model.snapshot import TableProtocol

_UNDATED = {name: kind for name, kind in VERSIONS.items() if name != "timestamp"}


def readable_versions(log: TableLog, history: History, times: pl.DataFrame) -> pl.DataFrame:
    """VERSIONS, newest first.

    A version is readable if a base (commit 0 or a complete checkpoint) and an unbroken run of commits reach it, the
    newest checkpoint at or below it is whole as far as its footer tells, its protocol is one we implement, and its data
    files and deletion vectors are there. Files are looked up in one listing of the table's folder; files recorded
    outside it are taken to be there.
    """
    bases = {c.version for c in log.checkpoints()}
    every = _every(log)
    broken = history.broken()
    troubles = log.broken_checkpoints()
    with ThreadPoolExecutor(1, thread_name_prefix="lakeview-names") as beside:  # each takes seconds of a million files
        listed = beside.submit(log.storage.names)
        lives = history.lifetimes()  # reads the oldest checkpoint whole, and so may find that it cannot be read
        names = listed.result()
    oldest = history.base_actions()
    if oldest is not None and history.base_trouble is not None:
        troubles.setdefault(oldest[0], history.base_trouble)
    bases -= troubles.keys()
    broken |= troubles
    reasons = _broken_runs(every, bases, broken)
    for version, reason in _refused(history, every).items():
        reasons.setdefault(version, reason)
    for version, reason in _missing_files(lives, names, log.storage.root, every).items():
        reasons.setdefault(version, reason)
    return _told(every, [v not in reasons for v in every], [reasons.get(v) for v in every], times)


def listed_versions(log: TableLog, times: pl.DataFrame) -> pl.DataFrame:
    """VERSIONS, newest first, of which nobody looked whether they can be read."""
    every = _every(log)
    return _told(every, [None] * len(every), [None] * len(every), times)


def _every(log: TableLog) -> list[int]:
    """Versions with a commit or a complete checkpoint, oldest first."""
    return sorted({*log.versions(), *(c.version for c in log.checkpoints())})


def _told(
    versions: list[int], readable: Sequence[bool | None], reasons: Sequence[str | None], times: pl.DataFrame
) -> pl.DataFrame:
    frame = pl.DataFrame({"version": versions, "readable": readable, "reason": reasons}, schema=_UNDATED)
    return frame.reverse().join(times, on="version", how="left", maintain_order="left").select(VERSIONS.names())


def _broken_runs(versions: list[int], bases: set[int], broken: Mapping[int, str]) -> dict[int, str]:
    """Versions that no unbroken run of commits from a base reaches."""
    reasons: dict[int, str] = {}
    trouble: str | None = None
    previous: int | None = None
    for version in versions:
        if version in bases:
            trouble = None
        elif version in broken:
            trouble = trouble or broken[version]
        elif previous is None and version > 0:
            trouble = f"the log starts at version {version}, and no checkpoint lies at or below it"
        elif previous is not None and version != previous + 1:
            trouble = f"commit {previous + 1} is missing from the log"
        if trouble is not None:
            reasons[version] = trouble
        previous = version
    return reasons


def _refused(history: History, versions: list[int]) -> dict[int, str]:
    """Versions whose protocol this reader does not implement."""
    protocols, metadata = history.protocols(), history.properties()
    base = history.base_actions()
    if base is not None:  # what came before is in the checkpoint
        protocols |= {} if base[1] is None else {base[0]: base[1]}
        metadata |= {} if base[2] is None else {base[0]: base[2]}
    reasons: dict[int, str] = {}
    reason: str | None = None
    properties: dict[str, str] = {}
    protocol: TableProtocol | None = None
    for version in versions:
        if version not in protocols and version not in metadata:
            if reason is not None:
                reasons[version] = reason
            continue
        if version in metadata:
            properties = metadata[version].properties
        if version in protocols:
            protocol = table_protocol(protocols[version])
        reason = None if protocol is None else _refusal(protocol, properties)
        if reason is not None:
            reasons[version] = reason
    return reasons


def _refusal(protocol: TableProtocol, properties: Mapping[str, str]) -> str | None:
    try:
        check_readable(protocol, properties, "it", by_number=True)
    except LakeviewError as error:
        return error.message
    return None


def _vector_files(lives: pl.DataFrame) -> pl.DataFrame:
    """LIFETIMES with the deletion vector's file as `path`, for each stay of a data file that has one."""
    known: dict[str, str | None] = {}
    for vector in lives["deletion_vector"].drop_nulls().unique():
        try:
            known[vector] = file_of(vector)
        except CorruptTableError:  # no such file can be there
            known[vector] = vector
    return lives.select(
        pl.col("deletion_vector").replace_strict(known, default=None, return_dtype=pl.String).alias("path"),
        "added",
        "removed",
    ).filter(pl.col("path").is_not_null())


def _missing_files(lives: pl.DataFrame, names: pl.Series, root: str, versions: list[int]) -> dict[int, str]:
    """Versions that name a data file or a deletion vector which is not in the table's folder, by LIFETIMES and the
    names of all files there."""
    lives = lives.select("path", "deletion_vector", "added", "removed")
    vectors = _vector_files(lives)
    lives = pl.concat([lives.select(vectors.columns), vectors])
    keys = canonical(lives["path"], root)
    maybe = (keys.str.starts_with("/") | keys.str.contains(":", literal=True)).arg_true()
    places = [is_absolute(key) and names_a_place(key) for key in keys.gather(maybe)]
    outside = pl.Series([False], dtype=pl.Boolean).new_from_index(0, keys.len())
    keep = ~outside.scatter(maybe, pl.Series(places, dtype=pl.Boolean))
    inside = lives.filter(keep)
    keyed = inside.with_columns(keys.filter(keep).alias("key"))
    gone = keyed.join(names.to_frame("key"), on="key", how="anti")
    if not gone.height:
        return {}
    masked = gone.join(vectors, on="path", how="semi").height > 0
    what = "data files and deletion vectors" if masked else "data files"
    start = pl.col("added").fill_null(versions[0])
    steps = pl.concat(
        [
            gone.select(start.alias("version"), pl.lit(1).alias("step"), "path"),
            gone.filter(pl.col("removed").is_not_null()).select(
                pl.col("removed").alias("version"), pl.lit(-1).alias("step"), pl.lit(None, pl.String).alias("path")
            ),
        ]
    )
    counted = (
        steps.group_by("version")
        .agg(pl.col("step").sum(), pl.col("path").drop_nulls().first())
        .sort("version")
        .with_columns(pl.col("step").cum_sum().alias("missing"))
    )
    every = pl.DataFrame({"version": versions}, schema={"version": pl.Int64()})
    at = every.join_asof(counted.set_sorted("version"), on="version").filter(pl.col("missing") > 0)
    return {
        version: f"{missing:,} of its {what} {'is' if missing == 1 else 'are'} missing from the store"
        for version, missing in at.select("version", "missing").iter_rows()
    }
