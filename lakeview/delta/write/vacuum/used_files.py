"""The files that a table needs: of its versions, of its retained history, and of commits that may still come."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

import polars as pl

from lakeview.delta.data.deletion_vectors import vector_keys
from lakeview.delta.log.change_actions import decode_cdc
from lakeview.delta.log.commits import RAW_LINES, mentions, parse_lines
from lakeview.delta.log.file_actions import IDENTITY, newest_actions
from lakeview.delta.log.paths import LOG_FOLDER, canonical, commit_name, decode_paths
from lakeview.delta.properties import retention, value
from lakeview.delta.write.target import Target
from lakeview.model.addresses import below, is_local
from lakeview.model.snapshot import milliseconds

_CHANGE_DATA = "delta.enableChangeDataFeed"


def needed_files(table: Target, versions: Iterable[int], cutoff: datetime, now: datetime) -> pl.Series:
    """The keys of the files that these versions read, that tombstones and change data younger than `cutoff` name, and
    of their deletion vectors.

    CorruptTableError for a vector that names no file: then nothing can be said of those that look unused.
    """
    state = table.state()
    at = milliseconds(cutoff)
    adds, removes = state.adds_and_removes()
    frames = [adds.select(IDENTITY), removes.filter(pl.col("modified") >= at).select(IDENTITY)]
    frames += [table.state(version).adds([]).select(IDENTITY) for version in versions]
    # a week of a log may be ten thousand commits: read only where they may tell more than the state does
    longer = cutoff < now - retention(state.properties)
    has_more = longer or value(state.properties, _CHANGE_DATA)
    commits = table.log.commit_list() if has_more else []
    recent = [f.version for f in commits if f.modified is None or f.modified >= at]
    root = table.storage.root
    if recent:  # checkpoints have dropped some of the tombstones
        actions = newest_actions(table.log.each_piece(recent), root, [])
        frames.append(actions.filter(~pl.col("added")).select(IDENTITY))
    files = pl.concat(frames)
    keys = pl.concat([files["key"], vector_keys(files["deletion_vector"], root), _change_files(table, recent)])
    return _by_place(keys.unique(), root)


def expired_files(table: Target, cutoff: datetime) -> pl.DataFrame:
    """`key`, `size` and `modified` (when it was removed) of what the log alone says is no longer needed: files that
    tombstones older than `cutoff` name, and their deletion vectors; of the latter no size is known."""
    state = table.state()
    columns = ["size", "modified"]
    of_commits = newest_actions(table.log.each_piece(table.log.versions()), table.storage.root, columns)
    removes = pl.concat([state.removes(columns), of_commits.filter(~pl.col("added"))], how="diagonal")
    # one without a timestamp has expired
    old = removes.filter((pl.col("modified") < milliseconds(cutoff)).fill_null(value=True))
    vectors = vector_keys(old["deletion_vector"], table.storage.root).alias("key").to_frame()
    return pl.concat([old.select("key", *columns), vectors], how="diagonal").unique("key", keep="last")


def added_since(table: Target, version: int) -> set[str]:
    """The keys of the files that commits after a version add, and of their deletion vectors: what a restore or another
    writer has brought back since."""
    table.refresh()
    later = [v for v in table.log.versions() if v > version]
    if not later:
        return set()
    actions = newest_actions(table.log.each_piece(later), table.storage.root, [])
    if actions.is_empty():
        return set()
    keys = pl.concat([actions["key"], vector_keys(actions["deletion_vector"], table.storage.root)])
    return set(_by_place(keys, table.storage.root))


def _by_place(keys: pl.Series, root: str) -> pl.Series:
    """The keys, and those of the table's own files that are recorded by an absolute path through a link, or under the
    name that its folder has without one."""
    absolute = keys.filter(keys.str.starts_with("/"))
    if not is_local(root) or absolute.is_empty():
        return keys
    real = os.path.realpath(root)
    places = [place for key in absolute if below(place := os.path.realpath(key), real)]
    return keys.extend(pl.Series([os.path.relpath(place, real) for place in places], dtype=pl.String))


def _change_files(table: Target, versions: Sequence[int]) -> pl.Series:
    paths: list[str] = []
    for version, data in table.log.each_piece(versions):
        if mentions(data, "cdc"):
            lines = parse_lines(RAW_LINES, data, commit_name(version))
            paths += [file.path for file in decode_cdc((bytes(line.get("cdc", b"")) for line in lines), version)]
    return canonical(decode_paths(pl.Series("key", paths, dtype=pl.String)), table.storage.root)


_MOST_LINKS = 40
"""Links that Linux follows for one path."""


def without_linked(files: pl.DataFrame, needed_keys: pl.Series, root: str) -> pl.DataFrame:
    """The rows of LISTING to which no link leads: that of the log's folder, of a folder of needed files or of a file
    beside them. `needed_keys`: theirs. Costs one listing of each of these folders."""
    if files.is_empty() or not is_local(root):
        return files
    folders = {"", LOG_FOLDER, *needed_keys.str.extract("^(.*)/").drop_nulls()}
    real = os.path.realpath(root)
    places = {os.path.relpath(place, real) for place in _targets(root, real, folders) if below(place, real)} - {"."}
    if not places:
        return files

    def is_linked(name: str) -> bool:
        parts = name.split("/")
        return any("/".join(parts[:end]) in places for end in range(1, len(parts) + 1))

    return files.filter(pl.Series([not is_linked(name) for name in files["name"]], dtype=pl.Boolean))


def _targets(root: str, real: str, folders: Iterable[str]) -> Iterator[str]:
    """Where folders lie that are reached by a link, and what the links in all of them lead to."""
    for folder in folders:
        links: list[str] = []
        with suppress(OSError, ValueError):  # a folder that is gone, or that cannot be there
            place = os.path.realpath(os.path.join(root, folder))
            if place != os.path.normpath(os.path.join(real, folder)):
                yield place
            with os.scandir(place) as entries:
                links += [entry.path for entry in entries if entry.is_symlink()]
        for link in links:
            yield from _steps(link)


def _steps(link: str) -> Iterator[str]:
    """What a link leads to, and each link on the way there: a vacuum would leave the file and delete the way."""
    path = link
    with suppress(OSError):  # a link that is gone
        for _ in range(_MOST_LINKS):
            folder, name = os.path.split(os.path.join(os.path.dirname(path), os.readlink(path)))
            path = os.path.join(os.path.realpath(folder), name)
            yield path
            if not os.path.islink(path):
                return
