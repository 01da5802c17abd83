"""The schemas a table had to the files that were written before a column existed: there it is wholly null.

A file without a column gives null for it (Delta, "Column Mapping"; Iceberg, "Column Projection"), and its statistics do
not mention the column: without the schemas of the log the nulls of such files would not be counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from lakeview.model.schema import Field, Schema, StructType, leaf_name

Identity = tuple[str | int, ...]
"""What names a leaf column for good: its field ids, or the names it has in data files, without regard to case."""

NEVER = (1 << 63) - 1
"""The position of a schema that is not yet that of any version."""
BEFORE_ALL = -1
"""The position of the versions before the oldest one that the log records."""


class Absence(NamedTuple):
    """The positions of the versions whose new files lack a column: from `since` on, before `until`."""

    since: int
    until: int


def births(schemas: Sequence[tuple[int, Schema | None]]) -> dict[Identity, int]:
    """The position of the first version whose schema has a column, from the positions of schema changes, oldest first.

    A schema that cannot be read is None: it may have had any column, so later columns count from its position on.
    """
    first: dict[Identity, int] = {}
    unreadable: int | None = None
    for position, schema in schemas:
        if schema is None:
            unreadable = position if unreadable is None else unreadable
            continue
        for way in _leaves(schema.fields, ()):
            first.setdefault(_identity(way), position if unreadable is None else unreadable)
    return first


def absences(
    schema: Schema, first: Mapping[Identity, int], start: int, default_key: str | None = None
) -> dict[str, Absence]:
    """The Absence of each leaf column that came after the oldest schema of the log, at the position `start`.

    Names may have been those of earlier columns: of files from before `start` nothing is proved. Field ids are never
    used again, so that files of any age lack the column. A column with a default (`default_key` of its metadata) is
    left out: files that lack it give the default.
    """
    late: dict[str, Absence] = {}
    for way in _leaves(schema.fields, ()):
        until = first.get(_identity(way), NEVER)
        if until > start and (default_key is None or all(f.metadata.get(default_key) is None for f in way)):
            has_lasting_id = way[-1].id is not None and way[-1].physical_name is None
            late[leaf_name(tuple(f.name for f in way))] = Absence(BEFORE_ALL if has_lasting_id else start, until)
    return late


def with_absent_columns(
    statistics: pl.DataFrame, absent: Mapping[str, Absence], arrived: pl.Series, rows: pl.Series
) -> pl.DataFrame:
    """STATISTICS whose null counts include files that were written before a column: all their `rows`.

    `arrived`: for each row the position of the version that first added the file, BEFORE_ALL for one that was there
    before the oldest version, null where it is unknown. A count that a writer recorded stays.
    """
    columns = []
    yes = pl.Series([True]).new_from_index(0, statistics.height)
    for name in absent.keys() & set(statistics.columns):
        since, until = absent[name]
        fields = statistics[name].struct.unnest()
        lacks = ((arrived >= since) & (arrived < until)).fill_null(value=False)
        lacks = lacks & fields["null_count"].is_null() & rows.is_not_null()
        counted = fields.with_columns(
            rows.zip_with(lacks, fields["null_count"]).cast(fields.schema["null_count"]).alias("null_count"),
            yes.zip_with(lacks, fields["null_count_exact"]).alias("null_count_exact"),
        )
        columns.append(counted.to_struct(name))
    return statistics.with_columns(columns)


def with_absent_shares(
    tree: pl.DataFrame, absent: Iterable[str], recorded: pl.DataFrame, counted: pl.DataFrame, rows: int | None
) -> pl.DataFrame:
    """SCHEMA_TREE with the `absent_share` of these columns: of `rows` rows those that are among the nulls of the
    `counted` STATISTICS, and not of the `recorded` ones."""
    shares = {}
    for name in set(absent) & set(counted.columns):
        nulls = counted[name].struct.field("null_count")
        lacking = nulls.filter(recorded[name].struct.field("null_count").is_null()).sum()
        shares[name] = min(lacking / rows, 1.0) if rows else None
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
