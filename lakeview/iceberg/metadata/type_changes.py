"""Types that a column had to what follows from them: whether values and recorded bounds of one are read as another."""

from collections.abc import Iterable

from lakeview.iceberg.metadata.types import struct_fields
from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.schema import Schema

_PROMOTIONS = {("integer", "long"), ("float", "double")}
_PROMOTIONS_OF_VERSION_3 = {("date", "timestamp_ntz"), ("date", "timestamp_ns")}


def may_become(before: DataType, after: DataType, version: int) -> bool:
    """Whether values of one type are read as another; the fields of structs outside lists and maps are left out."""
    match before, after:
        case (StructType(), StructType()):
            return True
        case (ArrayType(old), ArrayType(new)):
            return _inner(old, new, version)
        case (MapType(old_key, old), MapType(key, new)):
            return _inner(old_key, key, version) and _inner(old, new, version)
        case (DecimalType(old_precision, old_scale), DecimalType(precision, scale)):
            return old_scale == scale and old_precision <= precision
        case (PrimitiveType(old_name), PrimitiveType(name)) if old_name != "void":
            promotions = _PROMOTIONS | (_PROMOTIONS_OF_VERSION_3 if version >= 3 else set())
            return old_name == name or (old_name, name) in promotions
    return before == PrimitiveType("void") and version >= 3


def _inner(before: DataType, after: DataType, version: int) -> bool:
    if isinstance(before, StructType) and isinstance(after, StructType):
        types = {f.id: f.type for f in before.fields}
        return all(_inner(types.get(f.id, f.type), f.type, version) for f in after.fields)
    return may_become(before, after, version)


def unreadable_bounds(schemas: Iterable[Schema]) -> frozenset[int]:
    """The ids of columns whose types do not become one another, whichever came first: bounds that were recorded of one
    are bytes of another meaning to the other.

    No schema may change a type so; readers of a table that did it all the same would lose rows by such bounds.
    """
    types: dict[int, set[DataType]] = {}
    for schema in schemas:
        for field_id, (_, field) in struct_fields(schema).items():
            if not isinstance(field.type, StructType):
                types.setdefault(field_id, set()).add(field.type)
    return frozenset(i for i, several in types.items() if len(several) > 1 and not _one_line(several))


def _one_line(types: Iterable[DataType]) -> bool:
    return all(may_become(a, b, 3) or may_become(b, a, 3) for a in types for b in types)


def hashes_alike(types: Iterable[DataType]) -> bool:
    """Whether every type of a column puts a value into the same bucket: a date and the moment that it becomes do not.
    An unknown type has no values.

    "Type promotion is not allowed for a field that is referenced by source-id [...] of a partition field if the
    partition transform would produce a different value after promoting the type"  iceberg spec, Schema Evolution
    """
    return len({_hashed_as(type_) for type_ in types if type_ != PrimitiveType("void")}) <= 1


def _hashed_as(type_: DataType) -> str:
    match type_:
        case DecimalType(_, scale):
            return f"digits at {scale}"
        case PrimitiveType("integer"):
            return "long"
    return str(type_)


def lengths(field: Field) -> object:
    """How long values of `fixed` are; None of other types."""
    return field.metadata.get("length")
