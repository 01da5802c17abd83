"""The columns of a table, and their translation to Arrow and polars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from lakeview.model.data_types import (
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    named_type,
)
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.printable import choices

if TYPE_CHECKING:
    import pyarrow as pa


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
                    fix=choices(name, self.names),
                    place=place or name,
                    kind="unknown-column",
                )

    def resolve_names(self, names: Iterable[str], place: str | None = None) -> list[str]:
        """The columns that are meant by these names, whose case means nothing where no column is called exactly so.

        InvalidRequestError as `require`.
        """
        by_folded_name: dict[str, list[str]] = {}
        for own in self.names:
            by_folded_name.setdefault(own.casefold(), []).append(own)
        alike = [(name, by_folded_name.get(name.casefold(), [])) for name in names]
        spellings = [same[0] if len(same) == 1 else name for name, same in alike]
        self.require(spellings, place)
        return spellings

    def leaves(self) -> Iterator[tuple[tuple[str, ...], Field]]:
        """Every leaf reached through structs only, with its path; lists and maps count as leaves."""
        yield from _leaves(self.fields, ())

    def as_nullable(self) -> Schema:
        """The same columns, everything nullable: what rows are read as."""
        return Schema(tuple(_relaxed_field(f) for f in self.fields))

    def to_arrow(self) -> pa.Schema:
        """The Arrow schema rows are conformed to: strings `string`, timestamps in microseconds.

        UnsupportedTableError names a column that no rows can have, and its type.
        """
        import pyarrow as pa

        from lakeview.model.arrow_types import arrow_field  # pyarrow is loaded when rows are read or written

        return pa.schema([_of_column(f, arrow_field) for f in self.fields])

    def to_polars(self) -> pl.Schema:
        """The polars schema rows have (decimal exact, timestamps in microseconds with zone UTC or none).

        UnsupportedTableError names a column that no rows can have, and its type.
        """
        return pl.Schema({f.name: _of_column(f, lambda field: polars_type(field.type)) for f in self.fields})

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The columns whose values cannot be read, since they are, or hold, a type unknown here."""
        return tuple(f.name for f in self.fields if readable_type(f.type) is None)

    @staticmethod
    def from_arrow(schema: pa.Schema) -> Schema:
        """A schema from Arrow's; UnsupportedTableError for a type no table can hold."""
        from lakeview.model.arrow_types import field_from_arrow

        return Schema(tuple(field_from_arrow(f) for f in schema))


_T = TypeVar("_T")


def _of_column(f: Field, convert: Callable[[Field], _T]) -> _T:
    try:
        return convert(f)
    except UnsupportedTableError as error:
        raise UnsupportedTableError(
            f"in column {f.name} {error.message}", fix=error.fix, place=f.name, kind=error.kind
        ) from None


def _relaxed_field(f: Field) -> Field:
    return replace(f, nullable=True, type=_relax(f.type))


def _relax(type_: DataType) -> DataType:
    match type_:
        case StructType(fields):
            return StructType(tuple(_relaxed_field(f) for f in fields))
        case ArrayType(element):
            return ArrayType(_relax(element))
        case MapType(key, value):
            return MapType(_relax(key), _relax(value))
    return type_


def _leaves(fields: tuple[Field, ...], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for f in fields:
        if isinstance(f.type, StructType):
            yield from _leaves(f.type.fields, (*above, f.name))
        else:
            yield (*above, f.name), f


def find_field(fields: Sequence[Field], name: str) -> Field | None:
    """The first field called exactly so, else the only one that is but for case; None without one."""
    exact = next((field for field in fields if field.name == name), None)
    others = [field for field in fields if field.name.casefold() == name.casefold()]
    return others[0] if exact is None and len(others) == 1 else exact


def quote_name(name: str) -> str:
    """A name in back-quotes, which Spark and polars take for nothing but a name."""
    return f"`{name.replace('`', '``')}`"


def leaf_name(path: tuple[str, ...]) -> str:
    """A leaf's path as one name: `a.b`; a part with a dot or back-quote is back-quoted, back-quotes doubled.

    So is a column called as STATISTICS calls one of its own.
    """
    own = len(path) == 1 and path[0] in ("_path", "_deletion_vector")
    return ".".join(quote_name(part) if own or "." in part or "`" in part else part for part in path)


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


def polars_type(type_: DataType) -> pl.DataType:
    """The polars type of a column; UnsupportedTableError names a type that has none."""
    match type_:
        case DecimalType(precision, scale):
            return pl.Decimal(precision, scale)
        case ArrayType(element):
            return pl.List(polars_type(element))
        case MapType(key, value):
            return pl.Null() if key == VOID else pl.Map(polars_type(key), polars_type(value))
        case StructType(fields):
            return pl.Struct({f.name: polars_type(f.type) for f in fields})
        case PrimitiveType(name):
            return named_type(POLARS_TYPES, name)


def readable_type(type_: DataType) -> pl.DataType | None:
    """The polars type of a column; None for a type that has none."""
    try:
        return polars_type(type_)
    except UnsupportedTableError:
        return None
