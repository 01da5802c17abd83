"""Arrow's arrays: made of values of NumPy and Python and back by way of polars; without the wrappings that a file may
ask for (extension types, dictionaries, views, longer arrays); and the leaves of columns that are structs.

`pa.array`, `pa.scalar` and `to_numpy` import pandas where it is installed, a quarter of a second for the first commit
of a process."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

_BY_POLARS = (
    (t.is_integer, pl.Int64()), (t.is_string, pl.String()), (t.is_boolean, pl.Boolean()), (t.is_date32, pl.Date()),
)  # fmt: skip


def numpy_to_arrow(values: npt.NDArray[Any]) -> pa.Array:
    """An array of numbers or booleans."""
    return pl.Series(values).to_arrow()


def arrow_to_numpy(values: pa.Array) -> npt.NDArray[Any]:
    """The numbers of an array without nulls."""
    return pl.Series(values).to_numpy()


def values_to_arrow(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """`pa.array`; of the types that polars converts as Arrow does, without it."""
    for is_type, dtype in _BY_POLARS:
        if is_type(type_):
            return pl.Series(values, dtype=dtype).to_arrow().cast(type_)
    return pa.array(values, type_)


def plain(array: pa.Array) -> pa.Array:
    """Without the wrappings a file may ask for: extension types, dictionaries, other kinds of lists."""
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage)
    source_type = array.type
    if pa.types.is_dictionary(source_type):
        return array.dictionary_decode()
    if pa.types.is_list_view(source_type) or pa.types.is_large_list_view(source_type):
        return _list_of_views(array)
    if pa.types.is_large_list(source_type) or pa.types.is_fixed_size_list(source_type):
        return array.cast(pa.list_(source_type.value_field))
    return array


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with text and bytes in place of their views, which files of delta-rs ask for: Arrow (pyarrow 26.0)
    filters no views."""
    schema = pa.schema(map(_field_without_views, batch.schema), batch.schema.metadata)
    return batch if schema == batch.schema else batch.cast(schema)


def _field_without_views(field: pa.Field) -> pa.Field:
    return field.with_type(_type_without_views(field.type))


def _type_without_views(type_: pa.DataType) -> pa.DataType:
    if t.is_string_view(type_):
        return pa.string()
    return pa.binary() if t.is_binary_view(type_) else map_child_fields(type_, _field_without_views)


# large lists come of polars, and delta-rs writes them as they come
_LISTS = (
    (t.is_list, pa.list_), (t.is_large_list, pa.large_list), (t.is_list_view, pa.list_view),
    (t.is_large_list_view, pa.large_list_view),
)  # fmt: skip


def map_child_fields(type_: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """A type with other fields: those of a struct, the elements of a list, or keys and values of a map, in this order;
    any other type as it is."""
    if t.is_struct(type_):
        return pa.struct([change(field) for field in type_])
    if t.is_map(type_):
        return pa.map_(change(type_.key_field), change(type_.item_field))
    if t.is_fixed_size_list(type_):
        return pa.list_(change(type_.value_field), type_.list_size)
    return next((of(change(type_.value_field)) for is_list, of in _LISTS if is_list(type_)), type_)


def _list_of_views(array: pa.Array) -> pa.Array:
    """A list view as a list. Arrow's own cast (pyarrow 26.0) loses elements that follow a null."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    ends = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)]).cast(pa.int32())
    lists = pa.ListArray.from_arrays(ends, array.flatten(), type=pa.list_(array.type.value_field))
    return pc.if_else(array.is_valid(), lists, pa.scalar(None, lists.type)) if array.null_count else lists


def whole(array: pa.Array) -> pa.Array:
    """The same values, not a part of a longer array, and no more: buffers and children begin where it begins.

    Of lists and maps, children hold the elements of those that are not null, and no others.
    """
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    if pa.types.is_list(array.type) or pa.types.is_map(array.type):
        lengths = pc.subtract(array.offsets.slice(1), array.offsets.slice(0, len(array)))
        count = pc.sum(lengths.filter(array.is_valid()) if array.null_count else lengths).as_py() or 0
        if count != len(array.values):
            return array.cast(_type_without_views(array.type)).take(pa.arange(0, len(array)))
    return array


def rebuilt(array: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or map with another child, its nulls and offsets as they were."""
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], array.null_count, children=[child])


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
