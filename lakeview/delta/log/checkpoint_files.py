"""Leaves of the add or remove column of a Parquet file to columns of FILE_ACTIONS."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import polars as pl
import pyarrow as pa

from lakeview.delta.log.checkpoint_parquet import Arrays, ParquetActions, Piece
from lakeview.delta.log.commits import FILE_ACTIONS, PARTITION_VALUES, VECTOR, with_keys
from lakeview.delta.log.file_lines import RECORDS
from lakeview.delta.log.record_counts import MOST_ROWS, records
from lakeview.delta.log.statistics_reader import StatisticsReader
from lakeview.model.frames import formatted

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
}
_REMOVE_LEAVES = {n: leaf for n, leaf in _ADD_LEAVES.items() if n != "stats"} | {"modified": "deletionTimestamp"}
"""Column of FILE_ACTIONS to leaf of the action."""

_VECTOR_LEAVES = {
    "storage_type": "storageType",
    "path_or_inline_dv": "pathOrInlineDv",
    "offset": "offset",
    "size_in_bytes": "sizeInBytes",
    "cardinality": "cardinality",
}
_PARSED = {"stats_parsed": "stats_parsed", "parsed_records": "stats_parsed.numRecords"}
_COUNT = "stats_parsed.numRecords"


def file_actions_of(
    file: ParquetActions, kind: str, columns: Sequence[str], root: str, statistics: StatisticsReader | None = None
) -> pl.DataFrame:
    """FILE_ACTIONS of the actions of one kind (add, remove) with a path: `key`, `path`, `deletion_vector`,
    `deleted_records` and these columns, as `Checkpoint.adds` says. Statistics read only for their counts, or by
    `statistics`, are never held: each batch's are read and dropped."""
    names = _ADD_LEAVES if kind == "add" else _REMOVE_LEAVES
    wanted = {c: names[c] for c in ("path", *columns) if c in names}
    extra = {c: leaf for c, leaf in _PARSED.items() if c in columns and kind == "add"}
    counts = "records" in columns and kind == "add"
    leaves = list(dict.fromkeys([*wanted.values(), *extra.values()]))
    counted = _count_leaves(file, kind) if counts else []
    leaves += counted
    has_vectors = file.has_values(f"{kind}.deletionVector.storageType")
    if has_vectors:
        leaves += [f"deletionVector.{leaf}" for leaf in _VECTOR_LEAVES.values()]
    reading = None if statistics is None or kind != "add" else _Statistics(file, statistics)
    leaves += reading.leaves if reading is not None else ()
    leaves = list(dict.fromkeys(leaves))
    kept = {*wanted.values(), *extra.values()}

    spelled = _Spelling()

    def consume(arrays: dict[str, pa.Array]) -> dict[str, Piece]:
        spelled.look(arrays["path"])
        found: dict[str, Piece] = {name: array for name, array in arrays.items() if name not in _TEXTS or name in kept}
        if reading is not None:
            found["statistics"] = reading.column(arrays)
        if "stats" in counted:
            stats = pl.Series("stats", arrays["stats"])
            found["records"] = records(stats, None) if reading is None else _counted(found["statistics"], stats)
        return found

    narrowed = {"stats_parsed": reading.parts} if reading is not None and "stats_parsed" not in kept else {}
    leaves = [leaf for leaf in leaves if leaf == "path" or file.has_values(f"{kind}.{leaf}")]
    found, rows = file.leaves(kind, leaves, consume, narrowed)
    frame = _Columns(found, rows)
    series = [frame.conformed(column, leaf) for column, leaf in wanted.items()]
    series += frame.vectors(whole="vector" in columns, present=has_vectors)
    if "parsed_records" in extra:
        series.append(frame.whole_numbers("parsed_records", _COUNT))
    if "stats_parsed" in extra and "stats_parsed" in found:
        series.append(frame.raw("stats_parsed", "stats_parsed"))
    if counts:
        series.append(frame.first_known("records", "records", _COUNT))
    if "statistics" in found:
        series.append(frame.raw("statistics", "statistics"))
    there = series[0].is_not_null()
    if not there.all():
        series = [s.filter(there) for s in series]
    if spelled.plain:
        return pl.DataFrame([*series, series[0].alias("key")])
    return with_keys(pl.DataFrame(series), root)


class _Spelling:
    """Whether every path met is its own key. Safe to use from several threads: what one finds odd stays odd."""

    def __init__(self) -> None:
        self.plain = True

    def look(self, paths: pa.Array) -> None:
        """Take notice of a batch of recorded paths."""
        if self.plain and not _all_plain(paths):
            self.plain = False


def _all_plain(paths: pa.Array) -> bool:
    """Looked for in Arrow's buffers, a fifth of the time of a pattern a row."""
    if not pa.types.is_string(paths.type):
        return False
    _, offsets, texts = paths.buffers()
    if texts is None:
        return True
    first, last = (int.from_bytes(offsets[4 * i : 4 * i + 4], "little") for i in (paths.offset, _end(paths)))
    data = bytes(memoryview(texts)[first:last])
    return not pl.Series(paths).str.contains("^[./]").any() and not any(odd in data for odd in _ODD_BYTES)


_ODD_BYTES = (b"%", b":", b"//", b"/.")


def _end(array: pa.Array) -> int:
    return int(array.offset) + len(array)


def _count_leaves(file: ParquetActions, kind: str) -> list[str]:
    """What tells the number of rows: `stats_parsed`, and the documents where it does not for every file."""
    found = [_COUNT] if file.has_values(f"{kind}.{_COUNT}") else []
    complete = file.covers(f"{kind}.{_COUNT}", f"{kind}.path")
    return [*found, "stats"] if not complete and file.has_values(f"{kind}.stats") else found


def _counted(statistics: Piece, stats: pl.Series) -> pl.Series:
    """Row counts as `records` tells them, from documents that were just read for all they say."""
    assert isinstance(statistics, pl.Series)
    found = statistics.struct.field("records")
    found = found.set(found > MOST_ROWS, None)
    rest = (found.is_null() & stats.is_not_null()).arg_true()
    return (found.scatter(rest, records(stats.gather(rest), None)) if rest.len() else found).alias("records")


_TEXTS = frozenset({"stats", "stats_parsed"})


class _Statistics:
    """What of a file's statistics a reader needs: structs where they say it for every file, else documents as well."""

    def __init__(self, file: ParquetActions, reader: StatisticsReader) -> None:
        self._reader = reader
        self.parts = [leaf for leaf in reader.leaves if file.has_values(f"add.stats_parsed.{leaf}")]
        told = any("." in leaf for leaf in self.parts) and file.covers(f"add.{_COUNT}", "add.path")
        self.leaves = [*(["stats_parsed"] if self.parts else []), *([] if told else ["stats"])]

    def column(self, arrays: Mapping[str, pa.Array]) -> pl.Series:
        """One struct a row of a batch."""
        stats, parsed = (
            pl.Series(name, arrays[name]) if name in arrays and name in self.leaves else None
            for name in ("stats", "stats_parsed")
        )
        return self._reader.read(stats, parsed, len(arrays["path"]))


class _Columns:
    """Lists of arrays to series; a leaf that was not read is null."""

    def __init__(self, arrays: Arrays, rows: int) -> None:
        self._arrays = arrays
        self._rows = rows

    def raw(self, name: str, leaf: str) -> pl.Series:
        """A leaf as it is."""
        pieces = self._arrays[leaf]
        if isinstance(pieces[0], pl.Series):
            return pl.concat(pieces, rechunk=False).alias(name)
        found = pl.from_arrow(pa.chunked_array(pieces), rechunk=False)
        assert isinstance(found, pl.Series)
        return found.alias(name)

    def _nulls(self, name: str, type_: pl.DataType) -> pl.Series:
        return pl.Series(name, [None], dtype=type_).new_from_index(0, self._rows)

    def conformed(self, name: str, leaf: str) -> pl.Series:
        """A leaf as the column of FILE_ACTIONS that it is."""
        if leaf not in self._arrays:
            return self._nulls(name, FILE_ACTIONS[name])
        series = self.raw(name, leaf)
        if name == "partition_values":
            return _as_map(series)
        if name == "tags":
            if series.null_count() == series.len():
                return self._nulls(name, pl.String())
            maps = _as_map(series).to_list()
            texts = [None if m is None else json.dumps(m if isinstance(m, dict) else dict(m)) for m in maps]
            return pl.Series(name, texts, dtype=pl.String)
        return series if series.dtype == FILE_ACTIONS[name] else series.cast(FILE_ACTIONS[name])

    def whole_numbers(self, name: str, leaf: str) -> pl.Series:
        """A leaf as 64-bit numbers; one of a type from which there is no way is null."""
        series = self.raw(name, leaf) if leaf in self._arrays else None
        if series is None or series.dtype.is_nested():
            return self._nulls(name, pl.Int64())
        return series.cast(pl.Int64())

    def first_known(self, name: str, *leaves: str) -> pl.Series:
        """The first of these leaves that is known, row by row, as a count of rows: null where no file has so many."""
        known = [self.whole_numbers(name, leaf) for leaf in leaves if leaf in self._arrays]
        if not known:
            return self._nulls(name, RECORDS["records"])
        found = pl.select(pl.coalesce(*known).alias(name)).to_series() if len(known) > 1 else known[0]
        return found.set(~found.is_between(0, MOST_ROWS), None)

    def vectors(self, *, whole: bool, present: bool) -> list[pl.Series]:
        """`deletion_vector` and `deleted_records`, and `vector` if the whole is asked for."""
        if not present or "deletionVector.storageType" not in self._arrays:
            zero = pl.Series("deleted_records", [0], dtype=pl.Int64).new_from_index(0, self._rows)
            found = [self._nulls("deletion_vector", pl.String()), zero]
            return [*found, self._nulls("vector", VECTOR)] if whole else found
        types = pl.Schema(VECTOR.to_schema())
        parts = []
        for name, leaf in _VECTOR_LEAVES.items():
            place = f"deletionVector.{leaf}"
            known = place in self._arrays
            parts.append(self.raw(name, place).cast(types[name]) if known else self._nulls(name, types[name]))
        frame = pl.DataFrame(parts)
        found = frame.select(
            pl.concat_str(
                "storage_type",
                "path_or_inline_dv",
                pl.when(pl.col("offset").is_null()).then(pl.lit("")).otherwise(formatted("@{}", "offset")),
            ).alias("deletion_vector"),
            pl.col("cardinality").fill_null(0).alias("deleted_records"),
        ).get_columns()
        if whole:
            found.append(frame.to_struct("vector").set(frame["storage_type"].is_null(), None))
        return found


def _as_map(series: pl.Series) -> pl.Series:
    if series.dtype == PARTITION_VALUES:
        return series
    if isinstance(series.dtype, pl.Map):
        return series.cast(PARTITION_VALUES)
    if isinstance(series.dtype, pl.List):  # a two-level or renamed encoding of a map
        return series.cast(pl.List(pl.Struct({"key": pl.String(), "value": pl.String()}))).cast(PARTITION_VALUES)
    if series.dtype == pl.Null:
        return series.cast(PARTITION_VALUES)
    raise TypeError(f"{series.name} is {series.dtype}, a map was expected")
