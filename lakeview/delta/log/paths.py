"""Names in `_delta_log`, and the paths that actions record: text to what it stands for."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote
from uuid import UUID

import polars as pl

from lakeview.model.addresses import begins_with_scheme, is_absolute
from lakeview.model.column_values import moments
from lakeview.storage import Entry

LOG_FOLDER = "_delta_log"
SIDECARS = f"{LOG_FOLDER}/_sidecars"
"""The folder of the sidecar files of V2 checkpoints."""
LAST_CHECKPOINT = f"{LOG_FOLDER}/_last_checkpoint"

LOG_FILES = pl.Schema(
    {
        "kind": pl.String(),
        "version": pl.Int64(),
        "part": pl.Int64(),
        "parts": pl.Int64(),
        "name": pl.String(),
        "size": pl.Int64(),
        "modified": pl.Datetime("ms", "UTC"),
    }
)
"""One row a file that belongs to the log. `kind`: commit, checkpoint (single file), part (of a multi-part checkpoint),
v2 (checkpoint under a UUID name); and, of no consequence to what is read, crc (version checksum, JSON) and compaction
(`part` is then the last version it covers, `version` the first). Other names in the folder are not part of the protocol
and are left out."""


class LogFile(NamedTuple):
    """One file of the log; sorts by version, then name. `modified` in milliseconds since 1970. `kind` as LOG_FILES."""

    version: int
    name: str
    kind: str
    part: int | None
    parts: int | None
    size: int
    modified: int | None


_DIGITS = "([0-9]{20})"
_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_NAME = re.compile(
    rf"{_DIGITS}\.(?:(?P<commit>json)|(?P<checkpoint>checkpoint\.parquet)"
    r"|checkpoint\.(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})\.parquet"
    rf"|(?P<v2>checkpoint\.{_UUID}\.(?:json|parquet))"
    rf"|(?P<crc>crc)|(?P<compaction>[0-9]{{20}})\.compacted\.json)"
)
_LAST_VERSION = 2**63 - 1  # a number beyond 64 bits is no version anyone could have written


def commit_name(version: int) -> str:
    """`00000000000000000007.json`: "the next available version number, zero-padded to 20 digits"."""
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """The name of a single-file checkpoint."""
    return f"{version:020d}.checkpoint.parquet"


def checkpoint_part_name(version: int, part: int, parts: int) -> str:
    """The name of one file of a multi-part checkpoint; `part` from 1."""
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def v2_checkpoint_name(version: int, unique: UUID) -> str:
    """The name of the top file of a V2 checkpoint."""
    return f"{version:020d}.checkpoint.{unique}.parquet"


def checksum_name(version: int) -> str:
    """The name of the checksum file of a version."""
    return f"{version:020d}.crc"


def compaction_name(start: int, end: int) -> str:
    """The name of the compaction of the commits from one version to another."""
    return f"{start:020d}.{end:020d}.compacted.json"


def log_files(entries: Iterable[Entry]) -> list[LogFile]:
    """The files of a listing of `_delta_log` that belong to the log, by version; names that only resemble the
    protocol's are left out."""
    files = []
    for name, size, time in entries:
        match = _NAME.fullmatch(name)
        if match is None or (version := int(match[1])) > _LAST_VERSION:
            continue
        kind = str(match.lastgroup)
        part, parts = None, None
        if kind == "parts":
            kind, part, parts = "part", int(match["part"]), int(match["parts"])
        elif kind == "compaction":
            part = int(match["compaction"])
            if part > _LAST_VERSION:
                continue
        files.append(LogFile(version, name, kind, part, parts, size, time))
    files.sort()
    return files


def log_frame(files: Sequence[LogFile]) -> pl.DataFrame:
    """LOG_FILES."""
    columns = {name: [getattr(f, name) for f in files] for name in LOG_FILES}
    return pl.DataFrame(columns, schema={**LOG_FILES, "modified": pl.Int64()}).with_columns(moments("modified"))


def is_temporary(name: str) -> bool:
    """Whether a file name is that of a local file which a writer of ours had begun and was killed before the rename."""
    return _TEMPORARY.fullmatch(name) is not None


_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")


def staging_folder(write_id: str) -> str:
    """The folder in a table's own that another engine writes the files of one of our commits to."""
    return f"{write_id}.staging"


def is_staged(path: str) -> bool:
    """Whether a file lies in such a folder: the writer ended before it took the file over. Names in it are of any
    kind."""
    return _STAGED.match(path) is not None


_STAGED = re.compile(r"[0-9a-f]{32}\.staging/")


def decode_path(path: str) -> str:
    """A recorded path as a path: percent-decoded exactly once, `+` left alone.

    One that does not decode to UTF-8 stays as it is: it names no file, and two such paths must not become one.
    """
    if "%" not in path:
        return path
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        return path


def encode_path(path: str) -> str:
    """A path as an action records it: `decode_path` gives it back."""
    text = quote(path, safe="/=:@!$&'()*,;~+", errors="surrogateescape")
    # what ends the scheme of a URI is escaped where there is none
    return text if is_absolute(path) or not begins_with_scheme(path) else text.replace(":", "%3A", 1)


def encode_paths(paths: pl.Series) -> pl.Series:
    """`encode_path` over a column; only values with a character that is escaped are touched."""
    where = paths.str.contains(_ESCAPED).arg_true()
    if not where.len():
        return paths
    texts = [encode_path(path) for path in paths.gather(where)]
    return paths.clone().scatter(where, pl.Series(texts, dtype=pl.String))


_ESCAPED = r"[^A-Za-z0-9_.~/=:@!$&'()*,;+-]|^[A-Za-z][A-Za-z0-9+.-]*:[^/]"


def decode_paths(paths: pl.Series) -> pl.Series:
    """`decode_path` over a column; only values with a `%` are touched, and each folder is decoded once."""
    is_encoded = paths.str.contains("%", literal=True)
    if not is_encoded.any():
        return paths
    where = is_encoded.arg_true()
    folders: dict[str, str | None] = {}
    texts = []
    for path in paths.gather(where):
        folder, slash, name = path.rpartition("/")  # partitioned tables repeat few folders
        if folder not in folders:
            plain = decode_path(folder)
            folders[folder] = None if plain == folder and "%" in folder else plain  # None: decode the path as a whole
        parent = folders[folder]
        texts.append(decode_path(path) if parent is None or "%" in name else parent + slash + name)
    return paths.clone().scatter(where, pl.Series(texts, dtype=pl.String))


def canonical(paths: pl.Series, root: str) -> pl.Series:
    """Decoded paths as keys: every spelling of one file becomes one text.

    Relative paths stay as they are; an absolute one below the root becomes relative, `file:/p`, `file:///p` and `/p`
    become `/p`. Two spellings of one file in one log do occur: a raw comparison leaves a removed file alive.
    """
    is_odd = paths.str.contains(_ODD)
    if not is_odd.any():
        return paths
    where = is_odd.arg_true()
    prefix = root.rstrip("/") + "/"
    keys = [_canonical(p, prefix) if _SPELLED_OTHERWISE.search(p) else p for p in paths.gather(where)]
    return paths.clone().scatter(where, pl.Series(keys, dtype=pl.String))


def are_keys(paths: Iterable[str]) -> bool:
    """Whether each of these recorded paths is its own key: there is nothing to decode, and no other spelling.

    They are searched as one text, which takes a sixth of the time of polars' queries (benches/bench_logs.py, list).
    """
    text = "\0" + "\0".join(paths)
    return not ("%" in text or ":" in text or _ODD_SLASH.search(text) or _ODD_BEGIN.search(text))


# apart, each with one character to look for: together they take seven times as long
_ODD_SLASH, _ODD_BEGIN = re.compile("/[/.]"), re.compile("\0[/.]")


def canonical_path(path: str, root: str) -> str:
    """`canonical` of one decoded path."""
    return _canonical(path, root.rstrip("/") + "/") if _SPELLED_OTHERWISE.search(path) else path


_ODD = r"/[/.]|:|^[./]"
_SPELLED_OTHERWISE = re.compile(r"^/|^[A-Za-z][A-Za-z0-9+.-]*:|(?:^|/)\.\.?(?:/|$)|//")


def _canonical(path: str, prefix: str) -> str:
    path = re.sub(r"^file:(//localhost(?=/))?/+", "/", path, flags=re.IGNORECASE)
    path = re.sub(r"(?<!:)/{2,}", "/", path)
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] not in ("", ".."):
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts).removeprefix(prefix)
