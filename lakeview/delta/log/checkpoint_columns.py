"""The arrays of a checkpoint's leaves to columns of FILE_ACTIONS."""

import json

import polars as pl
import pyarrow as pa

from lakeview.delta.log.checkpoint_batches import Arrays
from lakeview.delta.log.file_actions import COLUMN_TYPES, VECTOR, as_map
from lakeview.model import limits
from lakeview.model.column_values import format_expression

VECTOR_LEAVES = {
    "storage_type": "storageType",
    "path_or_inline_dv": "pathOrInlineDv",
    "offset": "offset",
    "size_in_bytes": "sizeInBytes",
    "cardinality": "cardinality",
}


class CheckpointColumns:
    """Lists of arrays to series; a leaf that was not read is null."""

    def __init__(self, arrays: Arrays, rows: int) -> None:
        self._arrays = arrays
        self._rows = rows

    def __contains__(self, leaf: str) -> bool:
        return leaf in self._arrays

    def raw(self, name: str, leaf: str) -> pl.Series:
        """A leaf as it is."""
        pieces = self._arrays[leaf]
        if isinstance(pieces[0], pl.Series):
            return pl.concat(pieces, rechunk=False).alias(name)
        series = pl.from_arrow(pa.chunked_array(pieces), rechunk=False)
        assert isinstance(series, pl.Series)
        return series.alias(name)

    def _nulls(self, name: str, type_: pl.DataType) -> pl.Series:
        return pl.Series(name, [None], dtype=type_).new_from_index(0, self._rows)

    def conform(self, name: str, leaf: str) -> pl.Series:
        """A leaf as the column that it is."""
        if leaf not in self._arrays:
            return self._nulls(name, COLUMN_TYPES[name])
        series = self.raw(name, leaf)
        if name == "partition_values":
            return as_map(series)
        if name == "tags":
            if series.null_count() == series.len():
                return self._nulls(name, pl.String())
            maps = as_map(series).to_list()
            texts = [None if m is None else json.dumps(m if isinstance(m, dict) else dict(m)) for m in maps]
            return pl.Series(name, texts, dtype=pl.String)
        return series if series.dtype == COLUMN_TYPES[name] else series.cast(COLUMN_TYPES[name])

    def whole_numbers(self, name: str, leaf: str) -> pl.Series:
        """A leaf as 64-bit numbers; one of a type from which there is no way is null."""
        series = self.raw(name, leaf) if leaf in self._arrays else None
        if series is None or series.dtype.is_nested():
            return self._nulls(name, pl.Int64())
        return series.cast(pl.Int64())

    def first_known(self, name: str, *leaves: str) -> pl.Series:
        """The first of these leaves that is known, row by row, as a count of rows: null where no file has so many."""
        counts = [self.whole_numbers(name, leaf) for leaf in leaves if leaf in self]
        if not counts:
            return self._nulls(name, pl.Int64())
        first = pl.select(pl.coalesce(*counts).alias(name)).to_series() if len(counts) > 1 else counts[0]
        return first.set(~first.is_between(0, limits.FILE_ROWS), None)

    def vectors(self, *, whole: bool, present: bool) -> list[pl.Series]:
        """`deletion_vector` and `deleted_records`, and `vector` if the whole is asked for."""
        if not present or "deletionVector.storageType" not in self._arrays:
            zero = pl.Series("deleted_records", [0], dtype=pl.Int64).new_from_index(0, self._rows)
            absent = [self._nulls("deletion_vector", pl.String()), zero]
            return [*absent, self._nulls("vector", VECTOR)] if whole else absent
        types = pl.Schema(VECTOR.to_schema())
        parts = []
        for name, leaf in VECTOR_LEAVES.items():
            place = f"deletionVector.{leaf}"
            parts.append(self.raw(name, place).cast(types[name]) if place in self else self._nulls(name, types[name]))
        frame = pl.DataFrame(parts)
        columns = frame.select(
            pl.concat_str(
                "storage_type",
                "path_or_inline_dv",
                pl.when(pl.col("offset").is_null()).then(pl.lit("")).otherwise(format_expression("@{}", "offset")),
            ).alias("deletion_vector"),
            pl.col("cardinality").fill_null(0).alias("deleted_records"),
        ).get_columns()
        if whole:
            columns.append(frame.to_struct("vector").set(frame["storage_type"].is_null(), None))
        return columns
