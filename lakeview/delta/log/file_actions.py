"""The adds and removes of commits to FILE_ACTIONS, a column for each thing that is asked for; older and newer ones to
those that count, the last of each file (delta protocol, Action Reconciliation)."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any

import polars as pl
import pyarrow as pa

from lakeview.delta.log.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from lakeview.delta.log.commits import Commit, parse_commit
from lakeview.delta.log.paths import are_keys, canonical, decode_paths
from lakeview.delta.log.record_counts import records
from lakeview.model.column_values import all_differ

PARTITION_VALUES = pl.Map(pl.String(), pl.String())

VECTOR = pl.Struct(
    {
        "storage_type": pl.String(),
        "path_or_inline_dv": pl.String(),
        "offset": pl.Int64(),
        "size_in_bytes": pl.Int64(),
        "cardinality": pl.Int64(),
    }
)
"""A deletion vector's descriptor as the log records it (today's protocol, Deletion Vectors)."""

FILE_ACTIONS = pl.Schema(
    {
        "version": pl.Int64(),
        "added": pl.Boolean(),
        "key": pl.String(),
        "path": pl.String(),
        "deletion_vector": pl.String(),
        "size": pl.Int64(),
        "modified": pl.Int64(),
        "data_change": pl.Boolean(),
        "partition_values": PARTITION_VALUES,
        "stats": pl.String(),
        "tags": pl.String(),
        "deleted_records": pl.Int64(),
        "base_row_id": pl.Int64(),
        "default_row_commit_version": pl.Int64(),
        "vector": VECTOR,
    }
)
"""One row an add or remove, in the order recorded. `key` is the canonical path: with `deletion_vector` it identifies
the file. `path` is decoded once. `modified`: an add's modificationTime, a remove's deletionTimestamp, in milliseconds.
`deleted_records`: the deletion vector's cardinality, 0 without one. `vector`: its descriptor, null without one.
`records` may be asked for beside them: physical rows by an add's statistics, null where they have none."""

IDENTITY = ["key", "deletion_vector"]
"""What identifies a file: its canonical path and the unique id of its deletion vector."""
FileAction = AddFile | RemoveFile

_BATCH = 8_192
"""Actions that are decoded before a frame is made of them: what no column needs is free again."""

COLUMN_TYPES = pl.Schema(
    {
        **FILE_ACTIONS,
        "records": pl.Int64(),
        "clustering_provider": pl.String(),
        "extended_file_metadata": pl.Boolean(),
    }
)
"""FILE_ACTIONS and the columns that may be asked for beside them; the last two are an add's and a remove's own."""

ALWAYS = ("key", "path", "deletion_vector", "deleted_records")
"""Columns that are there whatever is asked for."""


def file_actions(commits: Iterable[Commit], root: str, columns: Iterable[str] | None = None) -> pl.DataFrame:
    """FILE_ACTIONS of these commits, in their order; columns as `each_frame` gives them."""
    return pl.concat(each_frame(commits, root, columns), rechunk=False)


def each_frame(commits: Iterable[Commit], root: str, columns: Iterable[str] | None = None) -> Iterator[pl.DataFrame]:
    """FILE_ACTIONS of these commits, in their order, some thousand actions at a time; at least one frame.

    All columns, or `key`, `path`, `deletion_vector`, `deleted_records`, `added` and those of `columns` that a commit
    can tell; `records` may be asked for.
    """
    names = (
        FILE_ACTIONS.names()
        if columns is None
        else [c for c in dict.fromkeys((*ALWAYS, "added", *columns)) if c in COLUMN_TYPES]
    )
    versions: list[int] = []
    actions: list[FileAction] = []
    for commit in commits:
        files = commit.files
        actions += files
        versions += [commit.version] * len(files)
        if len(actions) >= _BATCH:
            yield _frame(versions, actions, root, names)
            versions, actions = [], []
    yield _frame(versions, actions, root, names)


def columns_of(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """The columns of these names, without a query of polars."""
    return pl.DataFrame([frame[name] for name in names])


def newest_actions(pieces: Iterable[tuple[int, bytes]], root: str, columns: Iterable[str]) -> pl.DataFrame:
    """The newest action of each file in (version, bytes) of commits, oldest first, in the order recorded.

    Columns as `each_frame`; one that no commit can tell (`stats_parsed`) is left out. CorruptTableError says which
    line of which commit cannot be read.
    """
    commits = (parse_commit(data, version) for version, data in pieces)
    actions = pl.concat(each_frame(commits, root, columns), rechunk=False)
    if all_differ(actions["key"]):
        return actions
    return actions.unique(IDENTITY, keep="last", maintain_order=True)


def _frame(versions: list[int], actions: Sequence[FileAction], root: str, columns: Sequence[str]) -> pl.DataFrame:
    if not actions:
        return pl.DataFrame(schema={name: COLUMN_TYPES[name] for name in columns})
    texts = [a.path for a in actions]
    path = pl.Series("path", texts, dtype=pl.String())
    path = path if (plain := are_keys(texts)) else decode_paths(path)
    paths = {"path": path, "key": (path if plain else canonical(path, root)).alias("key")}
    series: list[pl.Series] = []
    for name in columns:
        match name:
            case "path" | "key":
                series.append(paths[name])
            case "version":
                series.append(pl.Series(name, versions, dtype=pl.Int64()))
            case "partition_values":
                series.append(text_maps([a.partition_values for a in actions]).alias(name))
            case "records":
                stats = pl.Series("stats", list(map(attrgetter("stats"), actions)), dtype=pl.String())
                series.append(records(stats, None))
            case _ if name in _PLAIN:
                series.append(pl.Series(name, list(map(attrgetter(name), actions)), dtype=COLUMN_TYPES[name]))
            case _:
                series.append(pl.Series(name, _VALUES[name](actions), dtype=COLUMN_TYPES[name]))
    return pl.DataFrame(series)


_PLAIN = frozenset(
    {"added", "size", "data_change", "stats", "base_row_id", "default_row_commit_version", "clustering_provider",
     "extended_file_metadata"}
)  # fmt: skip

# of all actions at once: a call for each of them took a tenth of a history
_VALUES: Mapping[str, Callable[[Sequence[FileAction]], list[Any]]] = {
    "deletion_vector": lambda actions: [
        None if (vector := a.deletion_vector) is None else vector.unique_id for a in actions
    ],
    "modified": lambda actions: [
        a.modification_time if isinstance(a, AddFile) else a.deletion_timestamp for a in actions
    ],
    "tags": lambda actions: [None if a.tags is None else json.dumps(a.tags) for a in actions],
    "deleted_records": lambda actions: [
        0 if (vector := a.deletion_vector) is None else vector.cardinality for a in actions
    ],
    "vector": lambda actions: [vector_value(a.deletion_vector) for a in actions],
}


def vector_value(descriptor: DeletionVectorDescriptor | None) -> dict[str, Any] | None:
    """A value of VECTOR."""
    return None if descriptor is None else {name: getattr(descriptor, name) for name in VECTOR.to_schema()}


def text_maps(maps: Sequence[dict[str, str | None] | None]) -> pl.Series:
    """Dicts to a column of maps, by way of Arrow's buffers: polars alone takes sixty times as long over dicts."""
    entries = [m or {} for m in maps]
    offsets = pl.Series([0, *accumulate(map(len, entries))], dtype=pl.Int32)
    keys = pl.Series(list(chain.from_iterable(entries)), dtype=pl.String)
    values = pl.Series([v for m in entries for v in m.values()], dtype=pl.String)
    absent = pa.array([m is None for m in maps]) if None in maps else None
    array = pa.MapArray.from_arrays(offsets.to_arrow(), keys.to_arrow(), values.to_arrow(), mask=absent)
    return pl.Series(array).cast(PARTITION_VALUES)


def as_map(series: pl.Series) -> pl.Series:
    """Partition values in any encoding of a map, as PARTITION_VALUES."""
    if series.dtype == PARTITION_VALUES:
        return series
    if isinstance(series.dtype, pl.Map):
        return series.cast(PARTITION_VALUES)
    if isinstance(series.dtype, pl.List):  # a two-level or renamed encoding of a map
        return series.cast(pl.List(pl.Struct({"key": pl.String(), "value": pl.String()}))).cast(PARTITION_VALUES)
    if series.dtype == pl.Null:
        return series.cast(PARTITION_VALUES)
    raise TypeError(f"{series.name} is {series.dtype}, a map was expected")


def text_maps_of_values(values: pl.Series) -> pl.Series:
    """Typed partition values as the maps of texts that an add has (delta protocol, Partition Value Serialization)."""
    return text_maps(pl.DataFrame([_text(value) for value in values.struct.unnest()]).to_dicts()).alias(values.name)


def _text(values: pl.Series) -> pl.Series:
    if not isinstance(values.dtype, pl.Datetime):
        return values.cast(pl.String)
    if values.dtype.time_zone is None:
        return values.dt.to_string("%Y-%m-%d %H:%M:%S%.6f")
    return values.dt.convert_time_zone("UTC").dt.to_string("%Y-%m-%dT%H:%M:%S%.6fZ")


def with_keys(frame: pl.DataFrame, root: str) -> pl.DataFrame:
    """Decode `path` once and add `key`, its canonical spelling."""
    path = decode_paths(frame["path"])
    return frame.with_columns(path, canonical(path, root).alias("key"))


def backwards(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame from its last row to its first, gathered: polars 2 panics when it reverses a map column of nulls."""
    return frame[pl.int_range(frame.height - 1, -1, -1, eager=True)]


def unseen(actions: pl.DataFrame, keys: set[bytes]) -> pl.Series:
    """Which of these actions are of files not seen before; all are seen after this. Digests: a path takes tenfold."""
    is_new = []
    for key, vector in actions.select(IDENTITY).iter_rows():
        digest = blake2b(f"{vector or ''}\n{key}".encode(errors="surrogateescape"), digest_size=16).digest()
        is_new.append(digest not in keys)
        keys.add(digest)
    return pl.Series(is_new, dtype=pl.Boolean)


def once(adds: pl.DataFrame) -> pl.DataFrame:
    """What a checkpoint holds twice, as none should, is one file (Action Reconciliation: a snapshot is a set)."""
    return adds if all_differ(adds["key"]) else adds.unique(IDENTITY, keep="last", maintain_order=True)


def with_newer(old: pl.DataFrame | None, tail: pl.DataFrame, live: pl.DataFrame | None = None) -> pl.DataFrame:
    """The live files after the newest actions of commits, of those that were live before. `live`: the adds of these
    actions, as they are without it, with columns that actions lack."""
    live = adds_among(tail) if live is None else live
    if old is None:
        return live
    if not tail.height:
        return old
    return pl.concat([not_replaced(old, tail), live], how="diagonal", rechunk=False)


def not_replaced(old: pl.DataFrame, tail: pl.DataFrame) -> pl.DataFrame:
    """The older actions, those left out whose file (key and deletion vector) a newer action names."""
    # few of many files: the keys first, and both halves of the identity only where a key is met and there are vectors
    met = old["key"].is_in(pl.Series([tail["key"]]))
    if not met.any():
        return old
    if all(vectors.null_count() == vectors.len() for vectors in (old["deletion_vector"], tail["deletion_vector"])):
        return rows_where(old, ~met)
    newer = set(zip(tail["key"], tail["deletion_vector"], strict=True))
    where = met.arg_true()
    both = zip(old["key"].gather(where), old["deletion_vector"].gather(where), strict=True)
    has_newer = pl.Series([identity in newer for identity in both], dtype=pl.Boolean)
    mask = pl.Series([True], dtype=pl.Boolean).new_from_index(0, old.height)
    return rows_where(old, mask.scatter(where.filter(has_newer), False))


def adds_among(actions: pl.DataFrame) -> pl.DataFrame:
    """The adds, without `added`."""
    columns = [name for name in actions.columns if name != "added"]
    return rows_where(columns_of(actions, columns), actions["added"])


def rows_where(frame: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
    """The rows where a mask is true."""
    return frame if mask.all() else pl.DataFrame([s.filter(mask) for s in frame.get_columns()])
