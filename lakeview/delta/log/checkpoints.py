"""Checkpoints to the actions they hold: one file or several parts (V1), or a top file with sidecars (V2).

A V2 checkpoint is known by what it holds, not by its name: it occurs under a UUID name, as Parquet or JSON, and under
the classic name as well. So sidecars are looked for in every single-file checkpoint.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

import msgspec
import polars as pl

from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol, Txn, metadata_of
from lakeview.delta.log.checkpoint_batches import readable
from lakeview.delta.log.checkpoint_files import ActionsFile, CheckpointPiece, each_file_actions, file_actions_of
from lakeview.delta.log.checkpoint_footer import DELETABLE, UNTRUSTED, corrupt_checkpoint
from lakeview.delta.log.checkpoint_parquet import ParquetActions
from lakeview.delta.log.file_actions import ALWAYS, columns_of
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.paths import LOG_FOLDER, SIDECARS, decode_path
from lakeview.delta.log.state import LastListing, StatisticsReader
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import AccessDeniedError, CorruptTableError, UnsupportedTableError
from lakeview.storage import Storage
from lakeview.storage.byte_cache import SmallFiles

UNREADABLE = (CorruptTableError, UnsupportedTableError, AccessDeniedError)
"""What keeps one checkpoint from being read, while the rest of a log still can be: broken files, files made to inflate,
and files that lie where none may be opened."""
_THREADS = 8

_T = TypeVar("_T")


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
        self._last = LastListing() if last is None else last
        self.files = files
        self.version = files.version
        places = zip(files.names, files.sizes, strict=True)
        self._pieces = [CheckpointPiece(f"{LOG_FOLDER}/{name}", size, self.version) for name, size in places]
        self._tops = [piece.open(storage, small_files) for piece in self._pieces]

    @cached_property
    def definition(self) -> tuple[Protocol | None, Metadata | None]:
        """The protocol and metaData actions; None for one that is not there."""
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

    @property
    def is_small(self) -> bool:
        """Whether it is one Parquet file of few rows. Reads its footer."""
        top, *others = self._tops
        return isinstance(top, ParquetActions) and not others and not self.sidecars and top.footer.is_small

    def txns(self) -> list[Txn]:
        """Every txn action."""
        return [txn for top in self._tops for txn in _convert(top, "txn", "appId", Txn)]

    def domains(self) -> list[DomainMetadata]:
        """Every domainMetadata action."""
        return [d for top in self._tops for d in _convert(top, "domainMetadata", "domain", DomainMetadata)]

    def adds(self, columns: Sequence[str], later_paths: pl.Series | None = None) -> pl.DataFrame:
        """FILE_ACTIONS of the live files: `key`, `path`, `deletion_vector`, `deleted_records` and these columns, only
        they are read.

        Beside FILE_ACTIONS' own: `records` (physical rows by either kind of statistics) and `stats_parsed` (the struct
        as it is, absent if the checkpoint has none) may be asked for. `later_paths`: those that commits after the
        checkpoint add or remove, for `adds_of`: where documents are read to count rows, those of few files are
        retained.
        """
        if not _CACHED_COLUMNS.issuperset(columns):
            return self._files("add", columns)
        names = list(dict.fromkeys([*ALWAYS, *columns]))
        listing = self._last.of(self.files)
        missing = [name for name in names if listing is None or name not in listing.columns]
        if listing is None or missing:
            is_few = later_paths is not None and 0 < later_paths.len() <= _FEW_PATHS
            documents_of = later_paths if is_few and "records" in missing else None
            more = self._files("add", [n for n in missing if n not in ALWAYS], documents_of=documents_of)
            if documents_of is not None and "stats" in more.columns:
                self._last.set_documents(self.files, documents_of, more.select(*ALWAYS, "stats"))
                more = more.drop("stats")
            listing = _extend(listing, more)
            if not set(names) <= set(listing.columns):  # the file was written again meanwhile
                listing = self._files("add", columns)
            self._last.set(self.files, listing)
        return columns_of(listing, names)

    def adds_with_statistics(self, columns: Sequence[str], reader: StatisticsReader) -> pl.DataFrame:
        """`adds`, those of a sample alone, and what the reader reads of them as the column `statistics`."""
        adds = self._files("add", list(dict.fromkeys([*columns, "records"])), reader)
        listing = self._last.of(self.files)
        if listing is None or "records" not in listing.columns:  # else the documents were read again to count rows
            names = [name for name in adds.columns if name in ALWAYS or name in _CACHED_COLUMNS]
            self._last.set(self.files, _extend(listing, columns_of(adds, names)))
        if "statistics" not in adds.columns:  # of no rows
            adds = adds.with_columns(reader.read(None, None, adds.height))
        if reader.is_sample:
            adds = adds.filter(pl.col("statistics").is_not_null())
        return adds if "records" in columns else adds.drop("records")

    def adds_of(self, paths: pl.Series, statistics: StatisticsReader) -> pl.DataFrame:
        """`adds_with_statistics` of the files with these paths: the statistics of others are not decoded.
        Without the column `statistics` where there are none."""
        adds = self._last.documents(self.files, paths)
        if adds is None:
            return self._files("add", [], statistics, paths)
        return adds.select(*ALWAYS, statistics.read(adds["stats"], None, adds.height))

    def removes(self, columns: Sequence[str] = ("size", "modified", "data_change")) -> pl.DataFrame:
        """FILE_ACTIONS of the tombstones: `key`, `path`, `deletion_vector`, `deleted_records` and these columns."""
        return self._files("remove", columns)

    def each_action(self, kind: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """What `adds` or `removes` (by `kind`: add, remove) gives, some thousand at a time; nothing is retained."""
        for file in self._all():
            yield from each_file_actions(file, kind, columns, self._storage.root)

    def pieces(self) -> list[CheckpointPiece]:
        """The files that may hold file actions: those of the checkpoint, and its sidecars."""
        return [*self._pieces, *self._sidecar_pieces()]

    def _sidecar_pieces(self) -> list[CheckpointPiece]:
        return [
            CheckpointPiece(path if is_absolute(path) else f"{SIDECARS}/{path}", size, self.version, self._tops[0].name)
            for path, size in self.sidecar_sizes.items()
        ]

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
            for _ in self._storage.each_ahead(lambda top: top.check(), self._tops, _THREADS):
                pass
            _ = self.sidecars
        except UNREADABLE as error:
            return error.message
        return None

    def described_versions(self) -> list[Any]:
        """What each checkpointMetadata action says its version is (today's protocol, Checkpoint Metadata)."""
        kind = "checkpointMetadata"
        return [action.get("version") for top in self._tops for action in top.structs({kind: ["version"]})[kind]]

    @property
    def sidecars(self) -> tuple[str, ...]:
        """The paths of the files beside that hold the file actions (today's protocol, Sidecar Files), decoded, each
        once, in the order recorded; those in `_sidecars` by their names."""
        return tuple(self.sidecar_sizes)

    @cached_property
    def sidecar_sizes(self) -> dict[str, int]:
        """Each path of `sidecars`, and the bytes that are recorded of it, 0 where none are."""
        sizes: dict[str, int] = {}
        kinds = {"sidecar": ["path", "sizeInBytes"]}
        actions = self._storage.each_ahead(lambda top: top.structs(kinds), self._tops, _THREADS)
        for top, structs in zip(self._tops, actions, strict=True):
            for action in structs["sidecar"]:
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
        documents_of: pl.Series | None = None,
    ) -> pl.DataFrame:
        """What `file_actions_of` gives of all files."""
        read = partial(
            file_actions_of, kind=kind, columns=columns, root=self._storage.root, statistics=statistics, paths=paths,
            documents_of=documents_of,
        )  # fmt: skip
        frames = list(self._storage.each_ahead(read, self._all(), _THREADS))
        full = [frame for frame in frames if frame.height]
        if len(full) == 1:
            return full[0]
        return pl.concat(full or frames[:1], how="diagonal_relaxed", rechunk=False)

    def _all(self) -> list[ActionsFile]:
        return [*self._tops, *(piece.open(self._storage) for piece in self._sidecar_pieces())]


def _extend(frame: pl.DataFrame | None, more: pl.DataFrame) -> pl.DataFrame:
    """A listing with further columns of the same files: what counts rows is most of a checkpoint, and is read once."""
    if frame is None or not more["path"].equals(frame["path"]):
        return more
    return frame.hstack([column for column in more if column.name not in frame.columns])


_STATE = {"protocol": ("minReaderVersion", "minWriterVersion"), "metaData": ("id", "schemaString")}


def _convert(top: ActionsFile, kind: str, key: str, type_: type[_T]) -> list[_T]:
    with readable(top.name):
        return [msgspec.convert(action, type_) for action in top.structs({kind: [key]})[kind]]
