"""The types of columns: one small tree, named as Delta names them (`long`, `integer`, `timestamp_ntz`); other formats
translate theirs to these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lakeview.model.errors import UnsupportedTableError

OTHER_ENGINE = "its log can be shown; read the rows with an engine that knows the type"

_WELL_KNOWN_BINARY = ("geometry", "geography")
"""Types with parameters, `geometry(OGC:CRS84)`, whose values Parquet holds as well-known binary."""

_T = TypeVar("_T")


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

VARIANT = PrimitiveType("variant")
"""Its values are JSON text."""

VOID = PrimitiveType("void")
"""Every value is null, and Delta's files hold none."""

VARIANT_BINARIES = PrimitiveType("variant binaries")
"""A variant whose values are the bytes that data files hold, for rows that are written again. No table declares it."""


@dataclass(frozen=True, slots=True)
class Field:
    """One column, or one field of a struct.

    `id`: the field id where the format records one. `physical_name`: the name used in data files, partition values
    and statistics when it is not `name`. `metadata`: what else the format records, JSON values by key.
    """

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    id: int | None = None
    physical_name: str | None = None

    @property
    def stored_name(self) -> str:
        """The name in data files, partition values and statistics."""
        return self.physical_name or self.name

    @property
    def comment(self) -> str | None:
        """The comment people wrote for this column, if any."""
        text = self.metadata.get("comment")
        return text if isinstance(text, str) else None


def named_type(types: Mapping[str, _T], name: str) -> _T:
    """What a primitive type of this name is among `types`; UnsupportedTableError names one that is not there."""
    type_ = types.get("binary" if name.partition("(")[0].strip() in _WELL_KNOWN_BINARY else name)
    if type_ is None:
        raise UnsupportedTableError(f"values of type {name} cannot be read", fix=OTHER_ENGINE, kind="unsupported-type")
    return type_
