"""The schemas a table had to the files that were written before a column existed: there it is wholly null.

A file without a column gives null for it (Delta, "Column Mapping"; Iceberg, "Column Projection"), and its statistics do
not mention the column: without the schemas of the log the nulls of such files would not be counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from lakeview.model.schema import Field, Schema, StructType, leaf_name

Identity = tuple[str | int, ...]
"""What names a leaf column for good: its field ids, or the names it has in data files, without regard to case."""

NEVER = (1 << 63) - 1
"""The position of a schema that is not yet that of any version."""
BEFORE_ALL = -1


def births(schemas: Sequence[tuple[int, Schema | None]]) -> dict[Identity, int]:
    """The position of the first version whose schema has a column, from the positions of schema changes, oldest first.

    A schema that cannot be read is None: from its position on nothing is known of columns that later schemas have.
    """
    first: dict[Identity, int] = {}
    unknown: int | None = None
    for position, schema in schemas:
        if schema is None:
            unknown = position if unknown is None else unknown
            continue
        for way in _leaves(schema.fields, ()):
            first.setdefault(_identity(way), position if unknown is None else unknown)
    return first


def late_columns(schema: Schema, first: Mapping[Identity, int], start: int) -> dict[str, tuple[int, bool]]:
    """The leaf columns that later versions than `start` brought: the position of that version, and whether the column's
    identity is never used again, so that files of any age before lack it. Columns with a default are left out."""
    late: dict[str, tuple[int, bool]] = {}
    for way in _leaves(schema.fields, ()):
        position = first.get(_identity(way), NEVER)
        if position > start and all(f.metadata.get("initial-default") is None for f in way):
            late[leaf_name(tuple(f.name for f in way))] = (position, way[-1].id is not None)
    return late


def with_absent_columns(
    statistics: pl.DataFrame, late: Mapping[str, tuple[int, bool]], arrived: pl.Series, rows: pl.Series
) -> pl.DataFrame:
    """STATISTICS whose null counts include files that were written before a column: all their `rows`.

    `arrived`: for each row the position of the version that first added the file, BEFORE_ALL for one that was there
    before the oldest version, null where it is unknown. A count that a writer recorded stays.
    """
    columns = []
    yes = pl.Series([True]).new_from_index(0, statistics.height)
    for name in late.keys() & set(statistics.columns):
        position, lasting = late[name]
        absent = (arrived < position) & (lasting | (arrived > BEFORE_ALL))
        column = statistics[name]
        fields = column.struct.unnest()
        absent = absent.fill_null(value=False) & fields["null_count"].is_null() & rows.is_not_null()
        filled = fields.with_columns(
            rows.zip_with(absent, fields["null_count"]).cast(fields.schema["null_count"]).alias("null_count"),
            yes.zip_with(absent, fields["null_count_exact"]).alias("null_count_exact"),
        )
        columns.append(filled.to_struct(name))
    return statistics.with_columns(columns)


def with_absent_shares(
    tree: pl.DataFrame, late: Iterable[str], recorded: pl.DataFrame, counted: pl.DataFrame, rows: int | None
) -> pl.DataFrame:
    """SCHEMA_TREE with the `absent_share` of the late columns: of `rows` rows those that are among the nulls of the
    `counted` STATISTICS, and not of the `recorded` ones."""
    shares = {}
    for name in set(late) & set(counted.columns):
        nulls = counted[name].struct.field("null_count")
        absent = nulls.filter(recorded[name].struct.field("null_count").is_null()).sum()
        shares[name] = min(absent / rows, 1.0) if rows else None
    absent_shares = pl.DataFrame(
        list(shares.items()), schema={"path": pl.String(), "absent_share": pl.Float64()}, orient="row"
    )
    return tree.update(absent_shares, on="path")


def _leaves(fields: Sequence[Field], above: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    """The fields on the way to each leaf, the outermost first."""
    for f in fields:
        way = (*above, f)
        if isinstance(f.type, StructType):
            yield from _leaves(f.type.fields, way)
        else:
            yield way


def _identity(way: Sequence[Field]) -> Identity:
    return tuple(
        f.id if f.id is not None and not f.physical_name else (f.physical_name or f.name).casefold() for f in way
    )
