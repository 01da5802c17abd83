"""Commit files: bytes to actions, and actions to frames; and back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
import polars as pl
import pyarrow as pa

from lakeview.delta.log.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    RemoveFile,
    parse_commit_info,
)
from lakeview.delta.log.paths import canonical, canonical_paths, decoded, decoded_paths
from lakeview.model.errors import CorruptTableError

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
`deleted_records`: the deletion vector's cardinality, 0 without one. `vector`: its descriptor, null without one."""

RECORDS = pl.Schema({"records": pl.Int64()})
"""Beside FILE_ACTIONS: physical rows by an add's statistics, null where they have none."""

T = TypeVar("T")

_DECODER = msgspec.json.Decoder(Action)


class _Path(msgspec.Struct, frozen=True):
    path: str | None = None


_PATH = msgspec.json.Decoder(_Path)
RAW_LINES = msgspec.json.Decoder(dict[str, msgspec.Raw])
"""Lines of which only the kinds of actions are decoded."""
_JSON = json.JSONDecoder(parse_int=str)  # only to find where a value ends: int() refuses numbers of 4,300 digits
_BLANK = re.compile(r"[ \t\r\n]*")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, parsed."""

    version: int
    actions: tuple[Action, ...]

    @property
    def info(self) -> CommitInfo:
        """What the commit says about itself; empty when it says nothing."""
        for action in self.actions:
            raw = bytes(action.commit_info)
            if raw and raw != b"null":
                return parse_commit_info(raw)
        return CommitInfo()


def parse_commit(data: bytes, version: int, name: str) -> Commit:
    """The actions of a commit file. CorruptTableError says which line cannot be read, and why.

    Each line is one JSON object. Blank lines and a byte-order mark are let pass, and so are commits that some hand
    or tool has pretty-printed: objects one after the other.
    """
    return Commit(version, tuple(parse_lines(_DECODER, data, name)))


def parse_lines(decoder: msgspec.json.Decoder[T], data: bytes, name: str) -> list[T]:
    """The lines of a commit file, each by this decoder; errors and tolerance as `parse_commit`."""
    data = data.removeprefix(_BOM)
    try:
        return decoder.decode_lines(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        actions = _parse_stream(decoder, data)
        if actions is None:
            line, reason = _first_bad_line(decoder, data, error)
            raise CorruptTableError(
                f"commit {name} cannot be read at line {line}: {reason}",
                fix="restore the file from a backup or another copy of the table; versions before it still open",
                place=f"{name}:{line}",
                kind="corrupt-commit",
            ) from error
        return actions


def _parse_stream(decoder: msgspec.json.Decoder[T], data: bytes) -> list[T] | None:
    """Objects one after the other, with any white space between them; None if that is not what this is."""
    try:
        return [decoder.decode(part) for part in _parts(data)]
    except (ValueError, RecursionError):  # msgspec's and json's errors are ValueErrors
        return None


def _parts(data: bytes) -> Iterator[str]:
    """The JSON values that stand one after the other, each as it is written."""
    text, at = data.decode(), 0
    while (at := _BLANK.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # it matches nothing as well
        _, end = _JSON.raw_decode(text, at)
        yield text[at:end]
        at = end


def _first_bad_line(decoder: msgspec.json.Decoder[T], data: bytes, error: Exception) -> tuple[int, str]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
                return number, str(bad)
    return 1, str(error)


def raw_actions(data: bytes, version: int, name: str) -> list[tuple[str, str | None, str]]:
    """(kind, path or None, JSON text) of each action of a commit, in the order recorded; CorruptTableError as above."""
    parse_commit(data, version, name)
    # what a reader skips may be no UTF-8; it is shown all the same
    lines = parse_lines(RAW_LINES, data.decode(errors="replace").encode(), name)
    return [(kind, _path(body), bytes(body).decode()) for line in lines for kind, body in line.items()]


def _path(body: msgspec.Raw) -> str | None:
    try:
        return _PATH.decode(body).path
    except (msgspec.DecodeError, UnicodeDecodeError):  # an action without a path, or one whose path is no text
        return None


def file_actions(commits: Iterable[Commit], root: str) -> pl.DataFrame:
    """FILE_ACTIONS of these commits, in their order."""
    versions: list[int] = []
    actions: list[AddFile | RemoveFile] = []
    for commit in commits:
        files = [f for a in commit.actions for f in (a.remove, a.add) if f is not None]
        actions.extend(files)
        versions.extend([commit.version] * len(files))
    columns: dict[str, list[Any]] = {name: [value(a) for a in actions] for name, value in _VALUES.items()}
    paths = decoded_paths(columns["path"])
    columns |= {"version": versions, "path": paths, "key": canonical_paths(paths, root)}
    return action_frame(columns).select(FILE_ACTIONS.names())


_VALUES: Mapping[str, Callable[[AddFile | RemoveFile], Any]] = {
    "added": lambda a: isinstance(a, AddFile),
    "deletion_vector": lambda a: None if a.deletion_vector is None else a.deletion_vector.unique_id,
    "modified": lambda a: a.modification_time if isinstance(a, AddFile) else a.deletion_timestamp,
    "stats": lambda a: a.stats if isinstance(a, AddFile) else None,
    "tags": lambda a: None if a.tags is None else json.dumps(a.tags),
    "deleted_records": lambda a: 0 if a.deletion_vector is None else a.deletion_vector.cardinality,
    "vector": lambda a: vector_value(a.deletion_vector),
    **{
        name: attrgetter(name)
        for name in ("path", "size", "data_change", "partition_values", "base_row_id", "default_row_commit_version")
    },
}


def action_frame(columns: Mapping[str, list[Any]]) -> pl.DataFrame:
    """FILE_ACTIONS with these columns, of their values in Python, and `records` if it is among them."""
    types = {**FILE_ACTIONS, **RECORDS}
    return pl.DataFrame(
        [
            text_maps(values).alias(name) if name == "partition_values" else pl.Series(name, values, dtype=types[name])
            for name, values in columns.items()
        ]
    )


def vector_value(descriptor: DeletionVectorDescriptor | None) -> dict[str, Any] | None:
    """A value of VECTOR."""
    return None if descriptor is None else {name: getattr(descriptor, name) for name in VECTOR.to_schema()}


def text_maps(maps: Sequence[dict[str, str | None] | None]) -> pl.Series:
    """Dicts to a column of maps, by way of Arrow's buffers: polars alone takes sixty times as long over dicts."""
    offsets = [0, *accumulate(0 if m is None else len(m) for m in maps)]
    keys = pl.Series([k for m in maps if m for k in m], dtype=pl.String)
    values = pl.Series([v for m in maps if m for v in m.values()], dtype=pl.String)
    absent = pl.Series([m is None for m in maps], dtype=pl.Boolean)
    found = pa.MapArray.from_arrays(
        pl.Series(offsets, dtype=pl.Int32).to_arrow(), keys.to_arrow(), values.to_arrow(), mask=absent.to_arrow()
    )
    return pl.Series(found).cast(PARTITION_VALUES)


def with_keys(frame: pl.DataFrame, root: str) -> pl.DataFrame:
    """Decode `path` once and add `key`, its canonical spelling."""
    path = decoded(frame["path"])
    return frame.with_columns(path, canonical(path, root).alias("key"))


_ALWAYS: dict[str, dict[str, Any]] = {
    "metaData": {"partitionColumns": [], "configuration": {}},
    "add": {"partitionValues": {}},
}


def encode_actions(actions: Iterable[tuple[str, Any]]) -> bytes:
    """(kind, action) pairs to the bytes of a commit file: one JSON object a line, what is null left out."""
    lines = []
    for kind, action in actions:
        body = {k: v for k, v in msgspec.to_builtins(action).items() if v is not None}
        lines.append(msgspec.json.encode({kind: {**_ALWAYS.get(kind, {}), **body}}) + b"\n")
    return b"".join(lines)


def only(kind: str, commits: Iterable[Commit]) -> list[tuple[int, Any]]:
    """(version, action) of every action of one kind, by the attribute's name in Action."""
    pairs = [(c.version, getattr(a, kind)) for c in commits for a in c.actions]
    return list(compress(pairs, (action is not None for _, action in pairs)))
