"""Columns of what Avro files hold, by the ids of their fields, in the types that are declared for them."""

from functools import cache

import polars as pl

from lakeview.iceberg.manifests.avro_container import corrupt

SPELLED = {
    "added_data_files_count": 504, "existing_data_files_count": 505, "deleted_data_files_count": 506,
    "contains_null": 509, "contains_nan": 518, "lower_bound": 510, "upper_bound": 511,
    "data_file": 2, "file_path": 100, "file_format": 101, "partition": 102, "record_count": 103,
    "file_size_in_bytes": 104, "content_size_in_bytes": 145,
}  # fmt: skip
"""Ids by name, for files whose fields carry none: names of both kinds of files, some of which writers have spelled in
two ways."""


def require(frame: pl.DataFrame, columns: tuple[str, ...], path: str) -> None:
    """CorruptTableError for a file that lacks one of these fields."""
    if missing := [c for c in columns if c not in frame.columns]:
        raise corrupt(path, f"it lacks the field {missing[0].removeprefix('f')}, which every such file has")


def column(frame: pl.DataFrame, field_name: str, name: str, dtype: pl.DataType, path: str) -> pl.Series:
    """A column by its id in the declared type; nulls where the file does not have it. CorruptTableError for a column of
    a type from which there is no way."""
    if field_name not in frame.columns:
        return _nothing(name, dtype=dtype).clear(frame.height)
    series = frame[field_name].alias(name)
    if series.dtype == dtype:
        return series
    try:
        return _cast_series(series, dtype)
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise corrupt(path, f"its field {field_name.removeprefix('f')} is {series.dtype}, not {dtype}") from error


_nothing = cache(pl.Series)
"""An empty column, to be made as many nulls as it takes: small manifests are mostly these."""


def _cast_series(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A series in a declared type; fields of structs that it lacks are null."""
    if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct) and isinstance(series.dtype, pl.List):
        inner = series.dtype.inner
        if isinstance(inner, pl.Struct):
            names = {f.name for f in inner.fields}
            parts = [
                (pl.element().struct.field(f.name) if f.name in names else pl.lit(None)).cast(f.dtype).alias(f.name)
                for f in dtype.inner.fields
            ]
            return series.list.eval(pl.struct(parts))
    return series.cast(dtype)
