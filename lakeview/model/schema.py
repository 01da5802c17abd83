"""The types of a table: one small tree, and its translation to Arrow and polars.

Type names are Delta's (`long`, `integer`, `timestamp_ntz`); other formats translate theirs to these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from lakeview.model.errors import InvalidRequestError, UnsupportedTableError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parts: `string`, `long`, `timestamp`, ..."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType:
    """An exact number of `precision` digits (1 to 38), `scale` of them behind the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of `element`s."""

    element: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """Keys to values; keys are never null."""

    key: DataType
    value: DataType
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class StructType:
    """Named fields in order."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{f.name}: {f.type}' for f in self.fields)}>"


DataType = PrimitiveType | DecimalType | ArrayType | MapType | StructType


@dataclass(frozen=True, slots=True)
class Field:
    """One column, or one field of a struct.

    `id`: the field id where the format records one. `physical_name`: the name used in data files, partition values
    and statistics when it is not `name`. `metadata`: what the format records beside, JSON values by key.
    """

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    id: int | None = None
    physical_name: str | None = None

    @property
    def comment(self) -> str | None:
        """The comment people wrote for this column, if any."""
        text = self.metadata.get("comment")
        return text if isinstance(text, str) else None


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in order. Asking for one by name costs the same for any width."""

    fields: tuple[Field, ...] = ()
    _by_name: dict[str, Field] = field(init=False, repr=False, compare=False, hash=False, default_factory=dict)

    def __post_init__(self) -> None:
        for f in reversed(self.fields):  # of two columns of one name the first counts
            self._by_name[f.name] = f

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Field:
        return self._by_name[name]

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [f.name for f in self.fields]

    def select(self, names: Sequence[str]) -> Schema:
        """The columns of that name, in the order asked for; InvalidRequestError as `require`."""
        self.require(names)
        return Schema(tuple(self[name] for name in names))

    def require(self, names: Sequence[str], place: str | None = None) -> None:
        """InvalidRequestError (kind unknown-column) at `place`, else at the name, if a column is not there."""
        for name in names:
            if name not in self:
                raise InvalidRequestError(
                    f"there is no column {name}",
                    fix=f"choose from {', '.join(self.names[:20])}",
                    place=place or name,
                    kind="unknown-column",
                )

    def leaves(self) -> Iterator[tuple[tuple[str, ...], Field]]:
        """Every leaf reached through structs only, with its path; lists and maps count as leaves."""
        yield from _leaves(self.fields, ())

    def relaxed(self) -> Schema:
        """The same columns, everything nullable: what rows are read as."""
        return Schema(tuple(_relaxed_field(f) for f in self.fields))

    def to_arrow(self) -> pa.Schema:
        """The Arrow schema rows are conformed to: strings `string`, timestamps in microseconds.

        UnsupportedTableError names a column that no rows can have, and its type.
        """
        import pyarrow as pa

        return pa.schema([_of_column(f, _arrow_field) for f in self.fields])

    def to_polars(self) -> pl.Schema:
        """The polars schema rows have (decimal exact, timestamps in microseconds with zone UTC or none).

        UnsupportedTableError names a column that no rows can have, and its type.
        """
        return pl.Schema({f.name: _of_column(f, lambda field: polars_type(field.type)) for f in self.fields})

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The columns whose values cannot be read, since they are, or hold, a type unknown here."""
        return tuple(f.name for f in self.fields if _unreadable(f))

    @staticmethod
    def from_arrow(schema: pa.Schema) -> Schema:
        """A schema from Arrow's; UnsupportedTableError for a type no table can hold."""
        return Schema(tuple(_field_from_arrow(f) for f in schema))


def _unreadable(f: Field) -> bool:
    try:
        polars_type(f.type)
    except UnsupportedTableError:
        return True
    return False


_T = TypeVar("_T")


def _of_column(f: Field, converted: Callable[[Field], _T]) -> _T:
    try:
        return converted(f)
    except UnsupportedTableError as error:
        raise UnsupportedTableError(
            f"in column {f.name} {error.message}", fix=error.fix, place=f.name, kind=error.kind
        ) from None


def _relaxed_field(f: Field) -> Field:
    return replace(f, nullable=True, type=_relaxed(f.type))


def _relaxed(type_: DataType) -> DataType:
    match type_:
        case StructType(fields):
            return StructType(tuple(_relaxed_field(f) for f in fields))
        case ArrayType(element):
            return ArrayType(_relaxed(element))
        case MapType(key, value):
            return MapType(_relaxed(key), _relaxed(value))
    return type_


def _leaves(fields: tuple[Field, ...], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for f in fields:
        if isinstance(f.type, StructType):
            yield from _leaves(f.type.fields, (*above, f.name))
        else:
            yield (*above, f.name), f


def leaf_name(path: tuple[str, ...]) -> str:
    """A leaf's path as one name: `a.b`; a part with a dot or back-quote is back-quoted, back-quotes doubled.

    So is a column called as STATISTICS calls one of its own.
    """
    own = len(path) == 1 and path[0] in ("_path", "_deletion_vector")
    return ".".join(f"`{part.replace('`', '``')}`" if own or "." in part or "`" in part else part for part in path)


_VOID = PrimitiveType("void")  # nothing but nulls, whatever the schema says of them

_OTHER_ENGINE = "its log can be shown; read the rows with an engine that knows the type"

POLARS_TYPES: Mapping[str, pl.DataType] = {
    "string": pl.String(),
    "long": pl.Int64(),
    "integer": pl.Int32(),
    "short": pl.Int16(),
    "byte": pl.Int8(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "boolean": pl.Boolean(),
    "binary": pl.Binary(),
    "date": pl.Date(),
    "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
    "timestamp_ns": pl.Datetime("ns"),
    "timestamptz_ns": pl.Datetime("ns", "UTC"),
    "time": pl.Time(),
    "uuid": pl.Binary(),
    "fixed": pl.Binary(),
    "void": pl.Null(),
    "variant": pl.String(),
}

_WELL_KNOWN_BINARY = ("geometry", "geography")
"""Types with parameters, `geometry(OGC:CRS84)`, whose values Parquet holds as well-known binary."""


def _plain_name(name: str) -> str:
    return "binary" if name.partition("(")[0].strip() in _WELL_KNOWN_BINARY else name


def polars_type(type_: DataType) -> pl.DataType:
    """The polars type of a column; UnsupportedTableError names a type that has none."""
    match type_:
        case DecimalType(precision, scale):
            return pl.Decimal(precision, scale)
        case ArrayType(element):
            return pl.List(polars_type(element))
        case MapType(key, value):
            return pl.Map(polars_type(key), polars_type(value))
        case StructType(fields):
            return pl.Struct({f.name: polars_type(f.type) for f in fields})
        case PrimitiveType(name):
            known = POLARS_TYPES.get(_plain_name(name))
            if known is None:
                raise UnsupportedTableError(
                    f"values of type {name} cannot be read", fix=_OTHER_ENGINE, kind="unsupported-type"
                )
            return known


def _arrow_field(f: Field) -> pa.Field:
    import pyarrow as pa

    return pa.field(f.name, arrow_type(f.type), f.nullable or f.type == _VOID)


def arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type of a column; UnsupportedTableError names a type that has none."""
    import pyarrow as pa

    match type_:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element, contains_null):
            return pa.list_(pa.field("element", arrow_type(element), contains_null or element == _VOID))
        case MapType(key, value, value_contains_null):
            if key == _VOID:
                raise UnsupportedTableError(
                    "a map with void keys holds no values", fix=_OTHER_ENGINE, kind="unsupported-type"
                )
            return pa.map_(arrow_type(key), pa.field("value", arrow_type(value), value_contains_null or value == _VOID))
        case StructType(fields):
            return pa.struct([_arrow_field(f) for f in fields])
        case PrimitiveType(name):
            make = {
                "string": pa.string,
                "long": pa.int64,
                "integer": pa.int32,
                "short": pa.int16,
                "byte": pa.int8,
                "float": pa.float32,
                "double": pa.float64,
                "boolean": pa.bool_,
                "binary": pa.binary,
                "date": pa.date32,
                "timestamp": lambda: pa.timestamp("us", "UTC"),
                "timestamp_ntz": lambda: pa.timestamp("us"),
                "timestamp_ns": lambda: pa.timestamp("ns"),
                "timestamptz_ns": lambda: pa.timestamp("ns", "UTC"),
                "time": lambda: pa.time64("us"),
                "uuid": lambda: pa.binary(16),
                "fixed": pa.binary,
                "void": pa.null,
                "variant": pa.string,
            }.get(_plain_name(name))
            if make is None:
                raise UnsupportedTableError(
                    f"values of type {name} cannot be read", fix=_OTHER_ENGINE, kind="unsupported-type"
                )
            return make()


def _field_from_arrow(f: pa.Field) -> Field:
    return Field(f.name, _type_from_arrow(f.type, f.name), f.nullable)


def _type_from_arrow(arrow: pa.DataType, name: str) -> DataType:
    import pyarrow as pa

    t = pa.types
    simple: list[tuple[Any, str]] = [
        (t.is_string, "string"), (t.is_large_string, "string"), (t.is_string_view, "string"),
        (t.is_int64, "long"), (t.is_int32, "integer"), (t.is_int16, "short"), (t.is_int8, "byte"),
        (t.is_uint32, "long"), (t.is_uint16, "integer"), (t.is_uint8, "short"),
        (t.is_float32, "float"), (t.is_float64, "double"), (t.is_boolean, "boolean"),
        (t.is_binary, "binary"), (t.is_large_binary, "binary"), (t.is_binary_view, "binary"),
        (t.is_fixed_size_binary, "binary"),
        (t.is_date, "date"), (t.is_null, "void"),
    ]  # fmt: skip
    for test, word in simple:
        if test(arrow):
            return PrimitiveType(word)
    if t.is_timestamp(arrow):
        return PrimitiveType("timestamp" if arrow.tz is not None else "timestamp_ntz")
    if t.is_decimal(arrow):
        return DecimalType(arrow.precision, arrow.scale)
    if t.is_dictionary(arrow):
        return _type_from_arrow(arrow.value_type, name)
    if t.is_list(arrow) or t.is_large_list(arrow) or t.is_fixed_size_list(arrow):
        return ArrayType(_type_from_arrow(arrow.value_type, name), arrow.value_field.nullable)
    if t.is_map(arrow):
        return MapType(
            _type_from_arrow(arrow.key_type, name), _type_from_arrow(arrow.item_type, name), arrow.item_field.nullable
        )
    if t.is_struct(arrow):
        return StructType(tuple(_field_from_arrow(arrow.field(i)) for i in range(arrow.num_fields)))
    raise UnsupportedTableError(
        f"column {name} has the Arrow type {arrow}, which a table cannot hold",
        fix="cast the column before writing",
        place=name,
        kind="unsupported-type",
    )
