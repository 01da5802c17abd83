"""Values of NumPy and Python to Arrow's arrays and back by way of polars: `pa.array`, `pa.scalar` and
`to_numpy` import pandas where it is installed, a quarter of a second for the first commit of a process."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import polars as pl
import pyarrow as pa
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
