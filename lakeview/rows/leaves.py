"""Columns of rows to the leaves that are reached through structs only, null where a struct above them is null."""

from collections.abc import Iterator, Sequence

import polars as pl


def struct_leaves(
    columns: Sequence[pl.Series], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], pl.Series]]:
    """Every leaf with its path, in order; lists and maps count as leaves."""
    for series in columns:
        path = (*above, series.name)
        if isinstance(series.dtype, pl.Struct):
            # a null struct makes its leaves null
            inner = series.struct.unnest()
            valid = series.alias("values").is_not_null()  # a name such as ^x$ would be a pattern to polars
            yield from struct_leaves(
                [c.set(~valid, None) if series.null_count() else c for c in inner.get_columns()], path
            )
        else:
            yield path, series
