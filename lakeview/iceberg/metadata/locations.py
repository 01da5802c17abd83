"""Recorded paths to where files lie now: a table that was copied keeps its old paths (iceberg spec, Paths in Metadata).

Paths are literal text: nothing in them is percent-decoded. Only whole segments match: /t is no prefix of /table2.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain

import polars as pl

from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import CorruptTableError

_ALIASES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):")


def canonical(path: str) -> str:
    """One spelling of a recorded path: schemes of the same store alike, `file:` left out, no `./` at its head."""
    path = path.removeprefix("./")
    match = _SCHEME.match(path)
    if match is None:
        return path
    scheme, rest = match[1].lower(), path[match.end() :]
    if scheme in ("file", "local"):
        return "/" + re.sub(r"^//(localhost(?=/))?", "", rest).lstrip("/")
    return f"{_ALIASES.get(scheme, scheme)}:{rest}"


class Locations:
    """Where the files of one table are. `root`: the folder it was opened from; `relocate`: the user's own rules,
    recorded prefix to where it lies now. `guessed`: its own folder is known by recorded paths, against its location."""

    def __init__(self, root: str, metadata: Metadata, relocate: Mapping[str, str] | None = None) -> None:
        self._root = root.rstrip("/")
        self._rules = _rules(relocate or {})
        location = _prefix(metadata.location) if metadata.location else ""
        paths = (canonical(p) for p in _recorded_paths(metadata))  # most often the first tells
        first = next(paths, None)
        self.is_guess = False
        if location and (first is None or any(p.startswith(location + "/") for p in chain([first], paths))):
            self._rules.append((location, self._root))
        elif folder := _common_folder([canonical(p) for p in _recorded_paths(metadata)]):
            self._rules.append((folder, self._root))
            self.is_guess = True

    def resolve(self, path: str) -> str:
        """The address of a recorded path. CorruptTableError for one that climbs, or that no file has.

        The store refuses what lies outside the table and the allowed roots.
        """
        if "\0" in path or "\\" in path or ".." in path.split("/"):
            raise CorruptTableError(
                f"the table records a path that no file of a table has: {path!r}",
                fix="do not trust this table; have its writer correct it",
                place=repr(path),
                kind="unsafe-path",
            )
        address = _by_rules(canonical(path), self._rules)
        return address if is_absolute(address) else f"{self._root}/{address}"

    def resolve_all(self, paths: pl.Series) -> pl.Series:
        """`resolve` of each path of a column; those that begin as the table's own do are settled at once."""
        old, new = self._rules[0] if self._rules else ("", "")
        own = paths.str.starts_with(old + "/") & ~paths.str.contains(r"\.\.|\\|\x00")
        if not old or not is_absolute(new) or not own.all():
            return pl.Series([self.resolve(path) for path in paths], dtype=pl.String)
        return new + "/" + paths.str.strip_prefix(old + "/").str.strip_chars_start("/")

    def resolve_each(self, paths: pl.Series) -> pl.Series:
        """`resolve_all`, null for a path that it refuses."""
        try:
            return self.resolve_all(paths)
        except CorruptTableError:
            return pl.Series([self._place(path) for path in paths], dtype=pl.String)

    def _place(self, path: str) -> str | None:
        with suppress(CorruptTableError):
            return self.resolve(path)
        return None


def relocate_path(path: str, relocate: Mapping[str, str]) -> str:
    """Where a recorded path lies now by the user's rules: the longest prefix counts, and whole segments only."""
    return _by_rules(canonical(path), _rules(relocate))


def _rules(relocate: Mapping[str, str]) -> list[tuple[str, str]]:
    prefixes = {_prefix(old): new.rstrip("/") for old, new in relocate.items()}
    return sorted(prefixes.items(), key=lambda rule: len(rule[0]), reverse=True)


def _by_rules(path: str, rules: Iterable[tuple[str, str]]) -> str:
    for old, new in rules:
        if path.startswith(old + "/"):
            return f"{new}/{path[len(old) + 1 :].lstrip('/')}"
    return path


def _prefix(address: str) -> str:
    return canonical(address).rstrip("/")


def _recorded_paths(metadata: Metadata) -> Iterable[str]:
    """Paths of metadata that the table's own writers recorded."""
    for snapshot in metadata.snapshots.values():
        if snapshot.manifest_list is not None:
            yield snapshot.manifest_list
        yield from snapshot.manifests or ()


def _common_folder(paths: list[str]) -> str | None:
    """The table's folder by where its metadata was written: what all paths share up to a `metadata` folder."""
    folders = {posixpath.dirname(p) for p in paths}
    above = {f.rpartition("/")[0] for f in folders if f.rpartition("/")[2] == "metadata"}
    return next(iter(above)) if len(above) == 1 and len(folders) == 1 else None
