"""The schema that Parquet files have in common, from their footers: columns of the widest type of any."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.delta.data.type_widening import widens_unasked
from lakeview.delta.write.schema_changes import Path, record_widening
from lakeview.model.data_types import DataType, DecimalType, PrimitiveType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema, leaf_name
from lakeview.model.type_tree import nodes
from lakeview.rows.arrays import map_child_fields

_INT96 = "INT96"

Shape: TypeAlias = Mapping[Path, DataType | str]
"""The type at each path; only its kind where it holds others, which have paths of their own."""


def common_schema(footers: Mapping[str, pq.FileMetaData]) -> Schema:
    """The schema of all files, by name; everything is nullable, columns are in the order of the first file.

    Numbers of which one type holds the others' values have that one, and the narrower types are recorded as those that
    it was widened from. InvalidRequestError names two files that differ otherwise, and the column.
    """
    schemas = {name: Schema.from_arrow(_arrow_schema(footer)).as_nullable() for name, footer in footers.items()}
    (first, schema), *rest = schemas.items()
    shapes = {schema: (first, _shape(schema))}
    for name, other in rest:
        if other not in shapes:
            shapes[other] = name, _shape(other)
            _check_alike(shapes[schema], shapes[other])
    files: dict[Path, dict[DataType, str]] = {}
    for name, shape in shapes.values():
        for path, type_ in shape.items():
            if not isinstance(type_, str):
                files.setdefault(path, {}).setdefault(type_, name)
    for path, types in files.items():
        if len(types) > 1:
            schema = record_widening(schema, path, _narrowest_first(path, types))
    return schema


def _arrow_schema(footer: pq.FileMetaData) -> pa.Schema:
    """The columns, INT96 among them as moments: Arrow takes it for local times, which no engine writes so."""
    schema = footer.schema.to_arrow_schema()
    physical_types = [footer.schema.column(i).physical_type for i in range(footer.num_columns)]
    if _INT96 not in physical_types:
        return schema
    leaves = iter(physical_types)
    return pa.schema([_with_moments(field, leaves) for field in schema])


def _with_moments(field: pa.Field, leaves: Iterator[str]) -> pa.Field:
    """The field, its parts in the order of the leaves, each of which has a physical type."""
    if pa.types.is_nested(field.type):
        return field.with_type(map_child_fields(field.type, lambda part: _with_moments(part, leaves)))
    return field.with_type(pa.timestamp("us", "UTC")) if next(leaves) == _INT96 else field


def _shape(schema: Schema) -> Shape:
    return {
        node.path: node.type if isinstance(node.type, PrimitiveType | DecimalType) else str(node.type).partition("<")[0]
        for node in nodes(schema)
    }


def _check_alike(one: tuple[str, Shape], other: tuple[str, Shape]) -> None:
    """InvalidRequestError unless two files have the same paths, those of structs, lists and maps the same ones."""
    for path in dict.fromkeys([*one[1], *other[1]]):
        kinds = [shape.get(path, "not there") for _, shape in (one, other)]
        if any(isinstance(kind, str) for kind in kinds) and kinds[0] != kinds[1]:
            raise _mismatch(path, (kinds[0], one[0]), (kinds[1], other[0]))


def _narrowest_first(path: Path, files: Mapping[DataType, str]) -> list[DataType]:
    """The types of one column, each holding the values of those before. `files`: one that has it, by type."""
    types = sorted(files, key=lambda type_: sum(widens_unasked(other, type_) for other in files))
    for pair in pairwise(types):
        if not widens_unasked(*pair):
            one, other = (item for item in files.items() if item[0] in pair)
            raise _mismatch(path, one, other)
    return types


def _mismatch(path: Path, one: tuple[object, str], other: tuple[object, str]) -> InvalidRequestError:
    return InvalidRequestError(
        f"column {leaf_name(path)} is {one[0]} in {one[1]} and {other[0]} in {other[1]}",
        fix="convert files of one schema, or write the others again first",
        place=other[1],
        kind="schema-mismatch",
    )
