"""Checkpoints to the actions they hold: one file or several parts (V1), or a top file with sidecars (V2).

A V2 checkpoint is known by what it holds, not by its name: it occurs under a UUID name, as Parquet or JSON, and under
the classic name as well. So sidecars are looked for in every single-file checkpoint.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import polars as pl

from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol, Txn, metadata_of
from lakeview.delta.log.checkpoint_batches import readable
from lakeview.delta.log.checkpoint_files import (
    ActionsFile,
    CheckpointPiece,
    each_file_actions,
    file_actions_of,
    open_actions,
)
from lakeview.delta.log.checkpoint_footer import DELETABLE, UNTRUSTED, corrupt_checkpoint
from lakeview.delta.log.checkpoint_json import JsonActions
from lakeview.delta.log.checkpoint_parquet import ParquetActions
from lakeview.delta.log.file_actions import columns_of
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.paths import LOG_FOLDER, SIDECARS, decode_path
from lakeview.delta.log.state import LastListing, StatisticsReader, with_statistics
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import AccessDeniedError, CorruptTableError, UnsupportedTableError
from lakeview.storage import Storage
from lakeview.storage.byte_cache import SmallFiles

UNREADABLE = (CorruptTableError, UnsupportedTableError, AccessDeniedError)
"""What keeps one checkpoint from being read, while the rest of a log still can be: broken files, files made to inflate,
and files that lie where none may be opened."""
_THREADS = 8

_T = TypeVar("_T")


_ALWAYS = ("key", "path", "deletion_vector", "deleted_records")
_CACHED_COLUMNS = frozenset({"size", "modified", "data_change", "partition_values", "records", "tags"})
"""The columns of a listing of files. Statistics are most of a log, and are not cached."""
_FEW_PATHS = 4_096
"""Of so many files statistics are retained once they were read."""


class Checkpoint:
    """One complete checkpoint, read by column. Nothing is read before it is asked for."""

    def __init__(
        self,
        storage: Storage,
        files: CheckpointFiles,
        last: LastListing | None = None,
        small_files: SmallFiles | None = None,
    ) -> None:
        self._storage = storage
        self._small_files = small_files
        self._last = LastListing() if last is None else last
        self.files = files
        self.version = files.version
        self._tops: list[ActionsFile] = list(map(self._top, files.names, files.sizes))

    def _top(self, name: str, size: int) -> ActionsFile:
        return open_actions(self._storage, f"{LOG_FOLDER}/{name}", size, self.version, self._small_files)

    def protocol_and_metadata(self) -> tuple[Protocol | None, Metadata | None]:
        """The protocol and metaData actions; None for one that is not there. Read once."""
        return self._state

    @cached_property
    def _state(self) -> tuple[Protocol | None, Metadata | None]:
        protocol: Protocol | None = None
        metadata: Metadata | None = None
        for top in self._tops:
            actions = top.structs(_STATE, first=True)
            with readable(top.name):
                for action in actions["protocol"]:
                    protocol = protocol or msgspec.convert(action, Protocol)
                for action in actions["metaData"]:
                    metadata = metadata or metadata_of(action)
            if protocol is not None and metadata is not None:
                break
        return protocol, metadata

    def txns(self) -> list[Txn]:
        """Every txn action."""
        return [txn for top in self._tops for txn in _convert(top, "txn", "appId", Txn)]

    def domains(self) -> list[DomainMetadata]:
        """Every domainMetadata action."""
        return [d for top in self._tops for d in _convert(top, "domainMetadata", "domain", DomainMetadata)]

    def adds(
        self,
        columns: Sequence[str],
        statistics: StatisticsReader | None = None,
        later_paths: pl.Series | None = None,
    ) -> pl.DataFrame:
        """FILE_ACTIONS of the live files: `key`, `path`, `deletion_vector`, `deleted_records` and these columns, only
        they are read.

        Beside FILE_ACTIONS' own: `records` (physical rows by either kind of statistics) and `stats_parsed` (the struct
        as it is, absent if the checkpoint has none) may be asked for. `statistics` adds what it reads as a column of
        that name. `later_paths`: those that commits after the checkpoint add or remove, for `adds_of`: where documents
        are read to count rows, those of few files are retained.
        """
        if statistics is not None:
            return self._adds_with_statistics(columns, statistics)
        if not _CACHED_COLUMNS.issuperset(columns):
            return self._files("add", columns)
        names = list(dict.fromkeys([*_ALWAYS, *columns]))
        listing = self._last.of(self.files)
        missing = [name for name in names if listing is None or name not in listing.columns]
        if listing is None or missing:
            more = [name for name in missing if name not in _ALWAYS]
            listing = _extend(listing, self._listing(more, later_paths))
            if not set(names) <= set(listing.columns):  # the file was written again meanwhile
                listing = self._listing(columns, later_paths)
            self._last.set(self.files, listing)
        return columns_of(listing, names)

    def _adds_with_statistics(self, columns: Sequence[str], statistics: StatisticsReader) -> pl.DataFrame:
        adds = self._files("add", list(dict.fromkeys([*columns, "records"])), statistics)
        listing = self._last.of(self.files)
        if listing is None or "records" not in listing.columns:  # else the documents were read again to count rows
            names = [name for name in adds.columns if name in _ALWAYS or name in _CACHED_COLUMNS]
            self._last.set(self.files, _extend(listing, columns_of(adds, names)))
        return adds if "records" in columns else columns_of(adds, [n for n in adds.columns if n != "records"])

    def _listing(self, columns: Sequence[str], later_paths: pl.Series | None) -> pl.DataFrame:
        """`adds` as they are read, and the documents at `later_paths` retained."""
        if later_paths is None or "records" not in columns or not 0 < later_paths.len() <= _FEW_PATHS:
            return self._files("add", columns)
        frames = self._frames("add", columns, documents_of=later_paths)
        if all("stats" in frame.columns for frame in frames):
            adds = [frame.select(*_ALWAYS, "stats").filter(pl.col("stats").is_not_null()) for frame in frames]
            self._last.set_documents(self.files, later_paths, _whole(adds))
        return _whole(frames).drop("stats", strict=False)

    def adds_of(self, paths: pl.Series, statistics: StatisticsReader) -> pl.DataFrame:
        """`adds([], statistics)` of the files with these paths: the statistics of others are not decoded.
        Without the column `statistics` where there are none."""
        adds = self._last.documents(self.files, paths)
        if adds is None:
            return self._files("add", [], statistics, paths)
        return adds.select(*_ALWAYS, statistics.read(adds["stats"], None, adds.height))

    def removes(self, columns: Sequence[str] = ("size", "modified", "data_change")) -> pl.DataFrame:
        """FILE_ACTIONS of the tombstones: `key`, `path`, `deletion_vector`, `deleted_records` and these columns."""
        return self._files("remove", columns)

    def each_action(self, kind: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """What `adds` or `removes` (by `kind`: add, remove) gives, some thousand at a time; nothing is retained."""
        for file in self._all():
            yield from each_file_actions(file, kind, columns, self._storage.root)

    def pieces(self) -> list[CheckpointPiece]:
        """The files that may hold file actions: those of the checkpoint, and its sidecars."""
        tops = zip(self.files.names, self.files.sizes, strict=True)
        pieces = [CheckpointPiece(f"{LOG_FOLDER}/{name}", size, self.version) for name, size in tops]
        for path, size in self._sidecar_sizes.items():
            place = path if is_absolute(path) else f"{SIDECARS}/{path}"
            pieces.append(CheckpointPiece(place, size, self.version, self.files.names[0]))
        return pieces

    def count_actions(self) -> int | None:
        """How many actions its files hold, by their footers; None for one that may have sidecars, or is no Parquet."""
        footers = [top.footer for top in self._tops if isinstance(top, ParquetActions)]
        if len(footers) < len(self._tops) or any(footer.has("sidecar") for footer in footers):
            return None
        return sum(footer.num_rows for footer in footers)

    def problem(self) -> str | None:
        """Why this checkpoint cannot be a base, as far as its footers (of a JSON file: all of it) tell; None if it can.

        The sidecars are named, not opened.
        """
        try:
            self._each(lambda top: top.check(), self._tops)
            _ = self.sidecars
        except UNREADABLE as error:
            return error.message
        return None

    @property
    def sidecars(self) -> tuple[str, ...]:
        """The paths of the files beside that hold the file actions (today's protocol, Sidecar Files), decoded, each
        once, in the order recorded; those in `_sidecars` by their names."""
        return tuple(self._sidecar_sizes)

    @cached_property
    def _sidecar_sizes(self) -> dict[str, int]:
        """Each path of `sidecars`, and the bytes that are recorded of it, 0 where none are."""
        sizes: dict[str, int] = {}
        actions = self._each(lambda top: top.structs({"sidecar": ["path", "sizeInBytes"]})["sidecar"], self._tops)
        for top, sidecars in zip(self._tops, actions, strict=True):
            for action in sidecars:
                size = action.get("sizeInBytes")
                sizes[self._sidecar_path(action.get("path"), top.name)] = size if isinstance(size, int) else 0
        if sizes and len(self._tops) > 1:
            parts = f"checkpoint {self.version} is in {len(self._tops)} parts"
            claim = f"{parts} and names sidecars: one excludes the other"
            raise corrupt_checkpoint(claim, self._tops[0].name, DELETABLE)
        return sizes

    def _sidecar_path(self, value: Any, top: str) -> str:
        path = decode_path(value) if isinstance(value, str) else ""
        # "sidecar files must always reside in the table's own _delta_log/_sidecars directory"; absolute paths occur,
        # and are opened like every absolute path: within the table and the allowed roots
        if not path or (not is_absolute(path) and ("/" in path or path in (".", ".."))):
            claim = f"checkpoint {top} names the sidecar {value!r}, which lies outside _delta_log/_sidecars"
            raise corrupt_checkpoint(claim, top, UNTRUSTED)
        return path

    def _files(
        self,
        kind: str,
        columns: Sequence[str],
        statistics: StatisticsReader | None = None,
        paths: pl.Series | None = None,
    ) -> pl.DataFrame:
        return _whole(self._frames(kind, columns, statistics, paths))

    def _frames(
        self,
        kind: str,
        columns: Sequence[str],
        statistics: StatisticsReader | None = None,
        paths: pl.Series | None = None,
        documents_of: pl.Series | None = None,
    ) -> list[pl.DataFrame]:
        """What `file_actions_of` gives of each file."""
        root = self._storage.root

        def read(file: ActionsFile) -> pl.DataFrame:
            if isinstance(file, JsonActions):
                return with_statistics(lambda more: _of_paths(file.files(kind, more), paths), columns, statistics)
            with readable(file.name, file.parent):
                return file_actions_of(file, kind, columns, root, statistics, paths, documents_of)

        return self._each(read, self._all())

    def _all(self) -> list[ActionsFile]:
        return [*self._tops, *(self._sidecar(*sidecar) for sidecar in self._sidecar_sizes.items())]

    def _each(self, read: Callable[[ActionsFile], _T], files: Sequence[ActionsFile]) -> list[_T]:
        """What is read of each file, in their order."""
        return list(self._storage.each_ahead(read, files, _THREADS))

    def _sidecar(self, path: str, size: int) -> ActionsFile:
        place = path if is_absolute(path) else f"{SIDECARS}/{path}"
        return open_actions(self._storage, place, size, self.version, parent=self._tops[0].name)


def _whole(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The actions of all files."""
    full = [frame for frame in frames if frame.height]
    if len(full) == 1:
        return full[0]
    return pl.concat(full or frames[:1], how="diagonal_relaxed", rechunk=False)


def _of_paths(frame: pl.DataFrame, paths: pl.Series | None) -> pl.DataFrame:
    return frame if paths is None else frame.filter(pl.col("path").is_in(paths.implode()))


def _extend(frame: pl.DataFrame | None, more: pl.DataFrame) -> pl.DataFrame:
    """A listing with further columns of the same files: what counts rows is most of a checkpoint, and is read once."""
    if frame is None or not more["path"].equals(frame["path"]):
        return more
    return frame.hstack(more.select(name for name in more.columns if name not in frame.columns))


_STATE = {"protocol": ("minReaderVersion", "minWriterVersion"), "metaData": ("id", "schemaString")}


def _convert(top: ActionsFile, kind: str, key: str, type_: type[_T]) -> list[_T]:
    with readable(top.name):
        return [msgspec.convert(action, type_) for action in top.structs({kind: [key]})[kind]]
