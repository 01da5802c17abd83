"""An address to the metadata file that is current: an explicit one, the version hint's, or the listing's newest
(iceberg spec, File System Tables and Metastore Tables)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl

from lakeview.iceberg.metadata.table_metadata import Metadata, parse_metadata
from lakeview.model import limits
from lakeview.model.addresses import normalise
from lakeview.model.errors import CorruptTableError, LakeviewError, NotATableError, UnsupportedTableError
from lakeview.storage import NO_LISTING, Storage

FOLDER = "metadata"
HINT = "version-hint.text"

_ANY = re.compile(r"\.metadata\.json(?:\.gz)?$")
_HADOOP = re.compile(r"^v(\d{1,18})(?:\.gz)?\.metadata\.json(?:\.gz)?$")
_NUMBERED = re.compile(r"^(\d{1,18})-.*\.metadata\.json(?:\.gz)?$")
_VIEW_BYTES = 1 << 20
"""So much of a metadata file is read to tell a view from a table: a view's is small."""
_SUFFIXES = ("", ".metadata.json", ".gz.metadata.json", ".metadata.json.gz")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table lies. `root`: the table's folder; `folder`: of its metadata files, relative to it;
    `explicit`: the one file asked for, None where the current one is to be found."""

    root: str
    folder: str = FOLDER
    explicit: str | None = None


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """A metadata file, relative to the table's folder, and how it was found: explicit, version-hint or listing."""

    path: str
    how: str


class Pointer(Protocol):
    """What else than a listing knows a table's current metadata file: a catalog."""

    @property
    def address(self) -> str:
        """How the table is named there, for people; without credentials."""

    def current(self) -> tuple[Storage, Place]:
        """The store, with the newest credentials, and the explicit place of the metadata file that is current."""

    @property
    def takes_commits(self) -> bool:
        """Whether it can be asked to change the table."""

    def commit(self, requirements: Sequence[Mapping[str, Any]], updates: Sequence[Mapping[str, Any]]) -> bool:
        """Ask it once to change the table, in the words of the REST catalog specification; false if a requirement is
        not met. StoreUnavailableError if the change may have been made or not."""


def is_metadata_name(name: str) -> bool:
    """Whether a file's name is one that metadata files have."""
    return _ANY.search(name) is not None


def metadata_number(name: str) -> int | None:
    """The number in a metadata file's name; None where it has none."""
    match = _HADOOP.match(name) or _NUMBERED.match(name)
    return None if match is None else int(match[1])


def is_numbered_alone(name: str) -> bool:
    """Whether its number alone names a metadata file, as in folders without a catalog (File System Tables)."""
    return _HADOOP.match(name) is not None


def place_of(address: str) -> Place:
    """The table an address means: its folder, the metadata folder in it, or one metadata file.

    A folder called `metadata` is taken for the one in a table; whether it is a table itself, only its store knows.
    """
    address = normalise(address)
    if is_metadata_name(address):
        above, _, name = address.rpartition("/")
        root, _, folder = above.rpartition("/")
        return Place(root, FOLDER, name) if folder == FOLDER else Place(above, "", name)
    root, _, folder = address.rpartition("/")
    # a bucket may be called metadata too, and has nothing above it
    return Place(root) if folder == FOLDER and root and not root.endswith(":/") else Place(address)


def locate(storage: Storage, place: Place) -> MetadataFile:
    """The current metadata file: one listing, the hint if there is one, and files only to settle a tie.

    NotATableError if there is none, CorruptTableError where the listing holds heads of several tables.
    """
    if place.explicit is not None:
        return MetadataFile(_join(place.folder, place.explicit), "explicit")
    try:
        listing = storage.list_from(place.folder)
    except UnsupportedTableError as error:
        if error.kind != NO_LISTING:
            raise
        return _locate_without_listing(storage, place)
    names = [n for n in listing["name"] if is_metadata_name(n)]
    if not names:
        raise _no_metadata(storage)
    if HINT in listing["name"]:
        hint = _hint_target(_hint(storage, _join(place.folder, HINT)), set(names))
        if hint is not None:
            return MetadataFile(_join(place.folder, hint), "version-hint")
    heads = _heads(names)
    name = heads[0] if len(heads) == 1 else _newest(storage, place.folder, heads, listing)
    return MetadataFile(_join(place.folder, name), "listing")


def _no_metadata(storage: Storage) -> NotATableError:
    return NotATableError(
        f"{storage.root} is no Iceberg table: its {FOLDER} folder holds no metadata file",
        fix="give the folder that holds metadata/, or one *.metadata.json file",
        place=storage.root,
    )


def _locate_without_listing(storage: Storage, place: Place) -> MetadataFile:
    """The file that the version hint means, in a store that shows no folders."""
    hint = _hint(storage, _join(place.folder, HINT))
    name = f"v{hint}.metadata.json" if hint.isascii() and hint.isdigit() else hint.rpartition("/")[2]
    path = _join(place.folder, name if is_metadata_name(name) else f"{name}.metadata.json")
    if not hint or len(hint) > limits.PATH_CHARACTERS or not storage.exists(path):
        raise _no_metadata(storage)
    return MetadataFile(path, "version-hint")


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _hint(storage: Storage, path: str) -> str:
    try:
        return storage.read_range(path, 0, 4096).decode(errors="replace").strip()
    except (FileNotFoundError, LakeviewError):  # a hint is only a hint
        return ""


def _hint_target(hint: str, names: set[str]) -> str | None:
    """The file a hint means; None for one that dangles, is empty or says nothing."""
    digits = hint.removeprefix("v")
    if digits.isascii() and digits.isdigit() and len(digits) <= 18:
        return _of_version(int(digits), names)
    base = hint.rpartition("/")[2]
    tries = [base + suffix for suffix in _SUFFIXES] + [f"v{base}{suffix}" for suffix in _SUFFIXES]
    return next((name for name in tries if base and name in names), None)


def _of_version(number: int, names: set[str]) -> str | None:
    name = _version(number, names)
    if name is None:
        candidates = [n for n in names if (m := _NUMBERED.match(n)) and int(m[1]) == number]
        name = candidates[0] if len(candidates) == 1 else None
    # the hint of a folder is written after the file, so there may be newer ones; other writers keep it current
    while name is not None and (following := _version(number + 1, names)) is not None:
        name, number = following, number + 1
    return name


def _version(number: int, names: set[str]) -> str | None:
    return next((n for suffix in _SUFFIXES[1:] if (n := f"v{number}{suffix}") in names), None)


def _heads(names: list[str]) -> list[str]:
    """The names with the highest number; all of them where none has a number."""
    numbers = {n: number for n in names if (number := metadata_number(n)) is not None}
    if not numbers:
        return sorted(names)
    return sorted(n for n, number in numbers.items() if number == max(numbers.values()))


def _newest(storage: Storage, folder: str, heads: list[str], listing: pl.DataFrame) -> str:
    """Of files that share the highest number, the one updated last by its own word, then by the store's."""
    times = dict(zip(listing["name"], listing["modified"].dt.epoch("ms"), strict=True))
    by_name: dict[str, Metadata] = {}
    trouble: LakeviewError | None = None
    for name in sorted(heads, key=lambda n: times[n] or 0, reverse=True)[: limits.METADATA_TIES]:
        try:
            by_name[name] = parse_metadata(read_metadata(storage, _join(folder, name)), _join(folder, name))
        except LakeviewError as error:
            trouble = error
    if not by_name:
        assert trouble is not None, "there is at least one head, and none could be read"
        raise trouble
    if len({m.table_uuid for m in by_name.values()}) > 1:
        raise CorruptTableError(
            f"{storage.root} holds the metadata of several tables: {', '.join(sorted(by_name))}",
            fix="open one of these files by its own address",
            place=folder,
            kind="several-tables",
        )
    return max(by_name, key=lambda n: (by_name[n].last_updated_ms or 0, times[n] or 0))


def read_metadata(storage: Storage, path: str) -> bytes:
    """The bytes of a metadata file; NotATableError if it is not there."""
    try:
        return storage.read(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise NotATableError(
            f"{storage.root} has no metadata file {path}",
            fix="give the folder that holds metadata/, or a metadata file that is there",
            place=path,
        ) from error


def describes_view(storage: Storage, path: str) -> bool:
    """Whether a metadata file, one of small size, is that of a view: they have the names of a table's."""
    try:
        parse_metadata(storage.read_range(path, 0, _VIEW_BYTES), path)
    except UnsupportedTableError as error:
        return error.kind == "view"
    except (FileNotFoundError, LakeviewError):
        return False
    return False
