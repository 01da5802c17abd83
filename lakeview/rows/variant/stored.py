"""Variant columns as Parquet files hold them to binaries in one layout, for rows that are written again."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.model.arrow_types import STORED_VARIANT
from lakeview.model.errors import CorruptTableError
from lakeview.rows.variant.shredding import children_of
from lakeview.rows.variant.unshredding import NULL, Binaries


def stored_variants(array: pa.StructArray, column: str) -> pa.StructArray:
    """The variants of a file's array as STORED_VARIANT. Values that are not shredded keep their bytes, and are not
    decoded; shredded ones are put together again.

    CorruptTableError for a value without metadata, and for one that is no variant where it is put together.
    """
    there, children = array.is_valid(), children_of(array)
    typed = children.get("typed_value")
    if typed is not None and typed.null_count < len(typed):
        return pa.array(Binaries(array, column).pairs(), STORED_VARIANT)
    metadata = children["metadata"].cast(pa.binary())
    if metadata.filter(there).null_count:
        raise CorruptTableError(
            f"variant column {column} cannot be read: a value in it has no metadata",
            fix="restore the file from a backup, or read the other columns",
            place=column,
            kind="corrupt-variant",
        )
    # "If a Variant is missing in a context where a value is required, readers must return a Variant null"
    value = children.get("value", pa.nulls(len(array), pa.binary())).cast(pa.binary())
    parts = [pc.fill_null(metadata, b""), pc.fill_null(value, NULL)]
    return pa.StructArray.from_arrays(parts, fields=list(STORED_VARIANT), mask=pc.invert(there))
