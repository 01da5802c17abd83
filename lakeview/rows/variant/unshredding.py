"""Shredded variant columns to variant binaries (Parquet, Variant Shredding)."""

import struct
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.model.arrow_types import STORED_VARIANT
from lakeview.rows.variant.builder import container, decimal, dictionary, pack, text, unscaled_integer
from lakeview.rows.variant.encoding import Names, object_parts
from lakeview.rows.variant.shredding import ShreddedColumn, children_of, is_binary, is_text, shredding_error

NULL = b"\x00"
"""The variant null."""

_INTEGERS = {8: 3, 16: 4, 32: 5, 64: 6}
_TICKS = {"ms": (1000, 12), "us": (1, 12), "ns": (1, 18)}
"""Bits of a whole number to its type id; unit of an instant to microseconds or nanoseconds in it, and its type id."""


class Binaries(ShreddedColumn[bytes]):
    """Variants as pairs of metadata and value.

    A value that is not shredded keeps its bytes, a shredded one has its column's type. Metadata stays as it is, but for
    names of fields that it lacks, which are added at its end.
    """

    def __init__(self, array: pa.StructArray, column: str) -> None:
        super().__init__(array, column)
        self._places: dict[bytes, dict[bytes, int]] = {}
        self._more: dict[int, list[bytes]] = {}

    def pairs(self) -> list[dict[str, bytes] | None]:
        """Metadata and value of each row, None for a null one. CorruptTableError as `variant_text`."""
        values = self.rows(NULL)
        return [
            None if value is None else {"metadata": self._extend_dictionary(row), "value": value}
            for row, value in enumerate(values)
        ]

    def _extend_dictionary(self, row: int) -> bytes:
        metadata, more = self._metadata[row], self._more.get(row)
        if metadata is None:
            raise shredding_error(self._column, "a value in it has no metadata")
        if not more:
            return metadata
        names = self._names(row)
        return dictionary([*(names[i][0] for i in range(len(names))), *more], is_sorted=False)

    def _whole(self, row: int, value: bytes) -> bytes:  # noqa: ARG002 (bytes need no names)
        return value

    def _field(self, name: str) -> Callable[[bytes], bytes]:  # noqa: ARG002
        return lambda value: value

    def _other_fields(self, row: int, value: bytes) -> list[tuple[bytes, bytes]] | None:
        return self._at(row, object_parts, value)

    def _object(self, row: int, parts: list[tuple[bytes, bytes]]) -> bytes:
        ids = self._at(row, lambda _, names, __: self._ids(row, names, [name for name, _ in parts]), b"")
        return container(2, [value for _, value in parts], ids)

    def _ids(self, row: int, names: Names, fields: Sequence[bytes]) -> list[int]:
        """The places of names in the metadata of a row."""
        metadata = self._metadata[row] or b""
        if metadata not in self._places:
            self._places[metadata] = {names[i][0]: i for i in range(len(names))}
        places, more = self._places[metadata], self._more.setdefault(row, [])
        for name in fields:
            if name not in places and name not in more:
                more.append(name)
        return [places[name] if name in places else len(names) + more.index(name) for name in fields]

    def _list(self, row: int, elements: Sequence[bytes | None]) -> bytes:  # noqa: ARG002
        return container(3, [NULL if value is None else value for value in elements], None)

    def _encoder(self, typed_values: pa.Array) -> tuple[Callable[..., bytes] | None, pa.Array]:
        t, type_ = pa.types, typed_values.type
        if t.is_signed_integer(type_):
            return _fixed_encoder(_INTEGERS[type_.bit_width], type_.bit_width // 8), typed_values
        if t.is_timestamp(type_) and type_.unit in _TICKS:
            factor, kind = _TICKS[type_.unit]
            encode = _fixed_encoder(kind if type_.tz is not None else kind + 1, 8)
            return (lambda ticks: encode(ticks * factor)), typed_values.view(pa.int64())
        if t.is_date32(type_):
            return _fixed_encoder(11, 4), typed_values.view(pa.int32())
        if t.is_time(type_):
            return _fixed_encoder(17, 8), typed_values.cast(pa.time64("us"), safe=False).view(pa.int64())
        if t.is_decimal(type_) and type_.precision <= 38:
            # Arrow gives as many digits after the point as the type has
            return (lambda value: decimal(unscaled_integer(value), type_.precision, type_.scale)), typed_values
        if t.is_fixed_size_binary(type_) and type_.byte_width == 16:
            return (lambda value: bytes([20 << 2]) + value), typed_values
        simple: list[tuple[Callable[[pa.DataType], bool], Callable[..., bytes]]] = [
            (t.is_boolean, lambda value: bytes([(1 if value else 2) << 2])),
            (t.is_float32, lambda value: bytes([14 << 2]) + struct.pack("<f", value)),
            (t.is_float64, lambda value: bytes([7 << 2]) + struct.pack("<d", value)),
            (is_text, lambda value: text(value.encode())),
            (is_binary, lambda value: bytes([15 << 2]) + pack([len(value)], 4) + value),
        ]
        return next((encode for test, encode in simple if test(type_)), None), typed_values


def _fixed_encoder(kind: int, size: int) -> Callable[[int], bytes]:
    return lambda number: bytes([kind << 2]) + number.to_bytes(size, "little", signed=True)


def stored_variants(array: pa.StructArray, column: str) -> pa.StructArray:
    """The variants of a file's array as STORED_VARIANT. Values that are not shredded keep their bytes, and are not
    decoded; shredded ones are put together again.

    CorruptTableError for a value without metadata, and for one that is no variant where it is put together.
    """
    there, children = array.is_valid(), children_of(array)
    typed_values = children.get("typed_value")
    if typed_values is not None and typed_values.null_count < len(typed_values):
        return pa.array(Binaries(array, column).pairs(), STORED_VARIANT)
    metadata = children["metadata"].cast(pa.binary())
    if metadata.filter(there).null_count:
        raise shredding_error(column, "a value in it has no metadata")
    # "If a Variant is missing in a context where a value is required, readers must return a Variant null"
    value = children.get("value", pa.nulls(len(array), pa.binary())).cast(pa.binary())
    parts = [pc.fill_null(metadata, b""), pc.fill_null(value, NULL)]
    return pa.StructArray.from_arrays(parts, fields=list(STORED_VARIANT), mask=pc.invert(there))
