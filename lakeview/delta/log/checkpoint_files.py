"""Leaves of the add or remove column of a Parquet file to columns of FILE_ACTIONS, and one file of a
checkpoint as a value: what another process needs to read its file actions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from lakeview.delta.log.checkpoint_batches import Piece, readable
from lakeview.delta.log.checkpoint_columns import VECTOR_LEAVES, CheckpointColumns
from lakeview.delta.log.checkpoint_json import JsonActions
from lakeview.delta.log.checkpoint_parquet import ParquetActions
from lakeview.delta.log.file_actions import text_maps_of_values, with_keys
from lakeview.delta.log.paths import are_keys, decode_paths
from lakeview.delta.log.record_counts import records, row_counts
from lakeview.delta.log.state import StatisticsReader, with_statistics
from lakeview.storage import Storage
from lakeview.storage.byte_cache import SmallFiles

_ADD_LEAVES = {
    "path": "path",
    "size": "size",
    "modified": "modificationTime",
    "data_change": "dataChange",
    "partition_values": "partitionValues",
    "stats": "stats",
    "tags": "tags",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
    "clustering_provider": "clusteringProvider",
}
_REMOVE_LEAVES = {n: leaf for n, leaf in _ADD_LEAVES.items() if n not in ("stats", "clustering_provider")} | {
    "modified": "deletionTimestamp",
    "extended_file_metadata": "extendedFileMetadata",
}
_LEAVES = {"add": _ADD_LEAVES, "remove": _REMOVE_LEAVES}
"""Column of FILE_ACTIONS to leaf of the action, by kind."""

_STRUCTS = "stats_parsed"
_COUNT = "stats_parsed.numRecords"
_FEW_LEAVES = 26  # of six columns: their documents are decoded one by one (`delta/data/documents.py`)
_TYPED_VALUES = "partitionValues_parsed"


ActionsFile = ParquetActions | JsonActions


def file_actions_of(
    file: ActionsFile,
    kind: str,
    columns: Sequence[str],
    root: str,
    statistics: StatisticsReader | None = None,
    paths: pl.Series | None = None,
    documents_of: pl.Series | None = None,
) -> pl.DataFrame:
    """FILE_ACTIONS of the actions of one kind (add, remove) with a path: `key`, `path`, `deletion_vector`,
    `deleted_records` and these columns, as `Checkpoint.adds` says. Statistics read only for their counts, or by
    `statistics`, are never retained: each batch's are read and dropped. `paths`: of the actions with these alone.
    `documents_of`: `stats` of the adds with these paths too, null for others; left out where a file has structs, and of
    few rows, which are read again in the time that it takes to find them."""
    if isinstance(file, JsonActions):
        actions = file.files(kind, columns if statistics is None else list(dict.fromkeys([*columns, "stats"])))
        actions = actions if paths is None else actions.filter(pl.col("path").is_in(paths.implode()))
        return actions if statistics is None else with_statistics(actions, columns, statistics)
    with readable(file.name, file.parent):
        if file.footer.is_small or file.footer.has_values(f"{kind}.stats_parsed"):
            documents_of = None
        columns = columns if documents_of is None else [*columns, "stats"]
        selection = _Selection(file, kind, columns, statistics, documents_of)
        is_wide = statistics is not None and len(statistics.leaves) > _FEW_LEAVES

        def consume(arrays: dict[str, pa.Array]) -> Mapping[str, Piece]:
            rows = arrays if paths is None else of_paths(arrays, paths)
            return selection.reduce(rows) if rows else {}

        arrays, rows = file.leaves(kind, selection.leaves, consume, selection.struct_parts, is_wide=is_wide)
        return _with_key(selection.series(CheckpointColumns(arrays, rows)), selection.spelling.plain, root)


def each_file_actions(file: ActionsFile, kind: str, columns: Sequence[str], root: str) -> Iterator[pl.DataFrame]:
    """`file_actions_of`, some thousand rows at a time, in the order of the file; nothing of the rest is retained."""
    if isinstance(file, JsonActions):
        yield file.files(kind, columns)
        return
    with readable(file.name, file.parent):
        selection = _Selection(file, kind, columns, None)
        for batch in file.each_batch(kind, selection.leaves):
            arrays = {leaf: [array] for leaf, array in selection.reduce(batch).items()}
            rows = len(batch["path"])
            yield _with_key(selection.series(CheckpointColumns(arrays, rows)), False, root)


def _with_key(series: list[pl.Series], plain: bool, root: str) -> pl.DataFrame:
    """The rows that have a path, with `key`; `plain`: each path is its own key."""
    if series[0].null_count():
        has_path = series[0].is_not_null()
        series = [s.filter(has_path) for s in series]
    if plain:
        return pl.DataFrame([*series, series[0].alias("key")])
    return with_keys(pl.DataFrame(series), root)


class _Selection:
    """The leaves of a file that some columns of FILE_ACTIONS need, and how batches of them become these columns."""

    def __init__(
        self,
        file: ParquetActions,
        kind: str,
        columns: Sequence[str],
        statistics: StatisticsReader | None,
        documents_of: pl.Series | None = None,
    ) -> None:
        is_add = kind == "add"
        self._documents_of = documents_of
        self.spelling = Spelling()
        self._whole_vectors = "vector" in columns
        self._has_vectors = file.footer.has_values(f"{kind}.deletionVector.storageType")
        self._columns = {c: leaf for c in ("path", *columns) if (leaf := _LEAVES[kind].get(c)) is not None}
        self._structs = [_STRUCTS] if _STRUCTS in columns and is_add else []
        self._counts = _count_leaves(file, kind) if "records" in columns and is_add else None
        self._typed_values = is_add and "partition_values" in columns and _has_typed_values_alone(file)
        self._statistics = _Statistics(file, statistics) if statistics is not None and is_add else None
        self._spare_texts = _TEXTS.difference(self._columns.values(), self._structs)
        self.leaves = [
            leaf for leaf in self._leaves_needed() if leaf == "path" or file.footer.has_values(f"{kind}.{leaf}")
        ]

    def _leaves_needed(self) -> Iterable[str]:
        """Every leaf that a column needs, each once."""
        vectors = [f"deletionVector.{leaf}" for leaf in VECTOR_LEAVES.values()] if self._has_vectors else []
        statistics = [] if self._statistics is None else self._statistics.leaves
        columns = [*self._columns.values(), *self._structs, *([_TYPED_VALUES] if self._typed_values else [])]
        return dict.fromkeys([*columns, *(self._counts or ()), *vectors, *statistics])

    @property
    def struct_parts(self) -> dict[str, Sequence[str]]:
        """The parts to read of a struct that is no column itself."""
        if self._statistics is None or "stats_parsed" not in self._spare_texts:
            return {}
        return {"stats_parsed": self._statistics.parts}

    def reduce(self, arrays: dict[str, pa.Array]) -> dict[str, Piece]:
        """A batch without the texts that are no column themselves, and what was read of them."""
        self.spelling.look(arrays["path"])
        pieces: dict[str, Piece] = {name: array for name, array in arrays.items() if name not in self._spare_texts}
        if self._statistics is not None:
            pieces["statistics"] = self._statistics.column(arrays)
        if "stats" in (self._counts or ()):
            stats = pl.Series("stats", arrays["stats"])
            by_statistics = pieces.get("statistics")
            if isinstance(by_statistics, pl.Series):
                pieces["records"] = row_counts(by_statistics, stats)
            else:
                pieces["records"] = records(stats, None)
        if self._documents_of is not None:
            pieces["stats"] = documents_at(arrays, self._documents_of)
        return pieces

    def series(self, columns: CheckpointColumns) -> list[pl.Series]:
        """The columns, `path` first."""
        series = [columns.conform(column, leaf) for column, leaf in self._columns.items()]
        if self._typed_values:
            place = list(self._columns).index("partition_values")
            series[place] = text_maps_of_values(columns.raw("partition_values", _TYPED_VALUES))
        series += columns.vectors(whole=self._whole_vectors, present=self._has_vectors)
        if self._structs and _STRUCTS in columns:
            series.append(columns.raw(_STRUCTS, _STRUCTS))
        if self._counts is not None:
            series.append(columns.first_known("records", "records", _COUNT))
        if "statistics" in columns:
            series.append(columns.raw("statistics", "statistics"))
        return series


def _has_typed_values_alone(file: ParquetActions) -> bool:
    return not file.footer.is_null(f"add.{_TYPED_VALUES}") and file.footer.is_null("add.partitionValues")


def _count_leaves(file: ParquetActions, kind: str) -> list[str]:
    """The leaves that hold row counts: `stats_parsed`, and the documents where it does not have one for every file."""
    count_leaf = [_COUNT] if file.footer.has_values(f"{kind}.{_COUNT}") else []
    complete = file.footer.covers(f"{kind}.{_COUNT}", f"{kind}.path")
    return [*count_leaf, "stats"] if not complete and file.footer.has_values(f"{kind}.stats") else count_leaf


_TEXTS = frozenset({"stats", "stats_parsed"})


class _Statistics:
    """The statistics of a file that a reader needs: structs where every file has them, else documents as well."""

    def __init__(self, file: ParquetActions, reader: StatisticsReader) -> None:
        self._reader = reader
        self.parts = [leaf for leaf in reader.leaves if file.footer.has_values(f"add.stats_parsed.{leaf}")]
        complete = any("." in leaf for leaf in self.parts) and file.footer.covers(f"add.{_COUNT}", "add.path")
        self.leaves = [*(["stats_parsed"] if self.parts else []), *([] if complete else ["stats"])]

    def column(self, arrays: Mapping[str, pa.Array]) -> pl.Series:
        """One struct a row of a batch."""
        stats, structs = (
            pl.Series(name, arrays[name]) if name in arrays and name in self.leaves else None
            for name in ("stats", "stats_parsed")
        )
        return self._reader.read(stats, structs, len(arrays["path"]))


def of_paths(arrays: dict[str, pa.Array], paths: pl.Series) -> dict[str, pa.Array]:
    """The rows of a batch with these paths; nothing where there are none."""
    rows = _has_path(arrays, paths)
    return {leaf: array.filter(rows.to_arrow()) for leaf, array in arrays.items()} if rows.any() else {}


def documents_at(arrays: dict[str, pa.Array], paths: pl.Series) -> pl.Series:
    """The documents of the rows of a batch with these paths, empty where there is none, null for the others."""
    rows = _has_path(arrays, paths)
    documents = pl.Series("stats", [None], dtype=pl.String).new_from_index(0, rows.len())
    if not rows.any():
        return documents
    # as texts of their own: a part of a column holds the whole of it
    texts = pl.Series(arrays["stats"]).filter(rows).to_list() if "stats" in arrays else [""]
    return documents.scatter(rows.arg_true(), pl.Series([text or "" for text in texts], dtype=pl.String))


def _has_path(arrays: dict[str, pa.Array], paths: pl.Series) -> pl.Series:
    return decode_paths(pl.Series(arrays["path"]).cast(pl.String)).is_in(paths.implode())


class Spelling:
    """Whether every path so far is its own key. Safe to use from several threads: once false, it stays false."""

    def __init__(self) -> None:
        self.plain = True

    def look(self, paths: pa.Array) -> None:
        """Note a batch of recorded paths."""
        if self.plain and not _all_plain(paths):
            self.plain = False


def _all_plain(paths: pa.Array) -> bool:
    """Searches Arrow's buffers, of more than a few paths: a fifth of the time of a pattern a row."""
    if not pa.types.is_string(paths.type):
        return False
    if len(paths) <= _FEW_PATHS:
        return are_keys(filter(None, paths.to_pylist()))
    _, offsets, texts = paths.buffers()
    if texts is None:
        return True
    first, last = (int.from_bytes(offsets[4 * i : 4 * i + 4], "little") for i in (paths.offset, _end(paths)))
    data = bytes(memoryview(texts)[first:last])
    odd = b"%" in data or b":" in data or _ODD_SLASH.search(data) is not None
    return not odd and not pl.Series(paths).str.contains("^[./]").any()


_ODD_SLASH = re.compile(rb"/[/.]")
_FEW_PATHS = 256


def _end(array: pa.Array) -> int:
    return int(array.offset) + len(array)


@dataclass(frozen=True, slots=True)
class CheckpointPiece:
    """One file of a checkpoint that may hold file actions, as a value that can travel to another process: where it is,
    its bytes (0 where unknown), and the top file that names a sidecar."""

    path: str
    size: int
    version: int
    parent: str | None = None

    def open(self, storage: Storage, cache: SmallFiles | None = None) -> ActionsFile:
        """The file's reader; `cache` as of ParquetActions."""
        if self.parent is None and self.path.endswith(".json"):
            return JsonActions(storage, self.path, self.version)
        return ParquetActions(storage, self.path, self.size, cache, self.parent)

    def each_action(self, storage: Storage, kind: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """As `Checkpoint.each_action`, of this file."""
        return each_file_actions(self.open(storage), kind, columns, storage.root)
