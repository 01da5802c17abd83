"""Files that a commit removes to what they were when added: in the commits before it, then in a checkpoint."""

import re
from collections.abc import Iterator, Sequence

import polars as pl

from lakeview.delta.log.checkpoints import UNREADABLE
from lakeview.delta.log.commits import readable
from lakeview.delta.log.file_actions import IDENTITY, file_actions
from lakeview.delta.log.file_events import ACTIONS, events_of
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.table_log import TableLog
from lakeview.model.column_values import live_records, sizes

KNOWN_FILES = pl.Schema(
    {"key": pl.String(), "deletion_vector": pl.String(), "size_before": pl.Int64(), "records_before": pl.Int64()}
)
"""One row a file that was found: its bytes and live rows, null where nothing is known of them."""

_PLAIN = re.compile(r"[A-Za-z0-9_]+")
_FIRST_CHUNK, _CHUNK = 8, 256
"""Commits that are searched at once."""


def in_checkpoint(
    log: TableLog, places: CheckpointFiles, files: pl.DataFrame, later_paths: pl.Series | None = None
) -> pl.DataFrame:
    """KNOWN_FILES of those of `files` (`key`, `deletion_vector`) that a checkpoint has; none if it cannot be read.
    `later_paths`: as `Checkpoint.adds`."""
    try:
        adds = log.read_checkpoint(places, lambda c: c.adds(["size", "records"], later_paths=later_paths))
    except UNREADABLE:
        return pl.DataFrame(schema=KNOWN_FILES)
    near = adds[adds["key"].is_in(files["key"].implode()).arg_true()].with_columns(sizes(), live_records())
    return _known_files(near.join(files, on=IDENTITY, how="semi", nulls_equal=True).unique(IDENTITY, keep="last"))


def before(log: TableLog, version: int, files: pl.DataFrame) -> pl.DataFrame:
    """KNOWN_FILES of these files (`key`, `deletion_vector`), live just before a version: found newest first, in as few
    files of the log as will do.

    The cost is the commits back to the newest checkpoint, and that checkpoint's paths, sizes and counts; commits before
    it only for a file whose rows the checkpoint does not count.
    """
    missing = files.select(IDENTITY).unique()
    frames, from_checkpoint = [pl.DataFrame(schema=KNOWN_FILES)], pl.DataFrame(schema=KNOWN_FILES)
    bases = {c.version: c for c in log.checkpoints() if c.version < version}
    for places in _backwards(log, version, bases):
        if not missing.height:
            break
        if isinstance(places, CheckpointFiles):
            from_checkpoint = in_checkpoint(log, places, missing)
            here = from_checkpoint.filter(pl.col("records_before").is_not_null())
        else:
            here = _in_commits(log, places, missing)
        frames.append(here)
        missing = missing.join(here, on=IDENTITY, how="anti", nulls_equal=True)
    return pl.concat([*frames, from_checkpoint]).unique(IDENTITY, keep="first")


def _backwards(log: TableLog, version: int, bases: dict[int, CheckpointFiles]) -> Iterator[list[int] | CheckpointFiles]:
    """The unbroken run of commits before a version, newest first, and the newest checkpoint in its place among them."""
    there = set(log.versions())
    newest = max(bases, default=None)
    commits: list[int] = []
    at = version - 1
    while at in there and at != newest:
        commits.append(at)
        at -= 1
    yield commits
    if newest is not None and at == newest:
        yield bases[newest]
        commits = []
        while at in there:
            commits.append(at)
            at -= 1
        yield commits


def _in_commits(log: TableLog, versions: Sequence[int], files: pl.DataFrame) -> pl.DataFrame:
    """KNOWN_FILES by the newest word of these commits, newest first, on these files; none is read after the last is
    found."""
    frames = [pl.DataFrame(schema=KNOWN_FILES)]
    missing, at, size = files, 0, _FIRST_CHUNK
    while missing.height and at < len(versions):
        # what a commit without escapes that names a file holds for certain: the longest plain word of its path
        words = {max(_PLAIN.findall(key), key=len, default="").encode() for key in missing["key"]}
        # escapes may spell a name otherwise: then the commit is parsed whatever it holds
        commits = [
            (version, data)
            for version, data in log.each_bytes(versions[at : at + size])
            if b"%" in data or b"\\u" in data or any(word in data for word in words)
        ]
        actions = file_actions(readable(reversed(commits)), log.storage.root, ACTIONS)
        newest = events_of(actions).unique(IDENTITY, keep="last", maintain_order=True)
        here = newest.join(missing, on=IDENTITY, how="semi", nulls_equal=True)
        frames.append(
            _known_files(here.with_columns(pl.when("added").then(name).alias(name) for name in ("size", "records")))
        )
        missing = missing.join(here, on=IDENTITY, how="anti", nulls_equal=True)
        at, size = at + size, min(2 * size, _CHUNK)
    return pl.concat(frames)


def _known_files(files: pl.DataFrame) -> pl.DataFrame:
    return files.select(*IDENTITY, size_before="size", records_before="records")
