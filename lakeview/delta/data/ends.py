"""Two versions of a log to the rows that only one of them has, from their live files; nothing between them is read."""

from collections.abc import Iterable
from dataclasses import replace

import polars as pl

from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.data.scan import Scan
from lakeview.delta.data.schemas import as_before
from lakeview.delta.data.type_widening import incompatibility
from lakeview.delta.log.file_actions import IDENTITY, VECTOR, rows_where
from lakeview.delta.log.replay import Replay
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.rows.difference import Difference, difference

End = tuple[Replay, Schema]
"""A version and its schema."""


def end_difference(base: End, version: End, mappings: Iterable[tuple[Schema, Schema]], root: str) -> Difference:
    """What the files of two versions do not share, read as the later version's columns; either may come first.

    `mappings`: the schemas before and after column mapping ended or began between the two, newest first.
    InvalidRequestError (kind incompatible-schema-change) where a column of both has become of another type. A column
    that the later version has no more is not compared, one that the earlier has not yet is null there.
    """
    earlier, later = sorted((base, version), key=lambda end: end[0].version)
    earlier_schema = later[1]
    for before, after in mappings:
        earlier_schema = as_before(earlier_schema, before, after)
    _check_types(earlier, (later[0], earlier_schema), root)
    schemas = {later[0].version: later[1], earlier[0].version: earlier_schema}
    scans, columns = zip(*(_scan(end, schemas[end[0].version], root) for end in (base, version)), strict=True)
    same = columns[0] if columns[0] == columns[1] else None
    adds = (_adds(base, version, same), _adds(version, base, same))
    sides = [(end[0].version, scan.tasks_of(own)) for end, scan, own in zip((base, version), scans, adds, strict=True)]
    return difference(sides[0], sides[1], later[1])


def _check_types(earlier: End, later: End, root: str) -> None:
    by_name = {field.stored_name: field for field in later[1]}
    for field in earlier[1]:
        newer = by_name.get(field.stored_name)
        if newer is None:
            continue
        same = replace(newer, name=field.name, nullable=True)
        if (why := incompatibility(Schema((field,)), Schema((same,)))) is not None:
            raise InvalidRequestError(
                f"versions {earlier[0].version} and {later[0].version} of {root} cannot be read with one schema: {why}",
                fix="compare versions that are both before or both after that change",
                place="metaData.schemaString",
                kind="incompatible-schema-change",
            )


def _scan(end: End, schema: Schema, root: str) -> tuple[Scan, list[str]]:
    """A version, read as this schema, and what its files are partitioned by: physical names of columns of both."""
    state, own = end
    fields = partition_fields(own, state.metadata.partition_columns or [])
    mine = {field.stored_name for field in fields}
    fields = partition_fields(schema, [f.name for f in schema if f.stored_name in mine])
    return Scan(state, schema, fields, root), [field.stored_name for field in fields]


def _adds(end: End, other: End, columns: list[str] | None) -> pl.DataFrame:
    """The live files of a version, those left out that the other has with the same deletes and values of `columns`.

    By frames, since tasks of a million files take ten seconds; with None nothing is left out.
    """
    names = ["size", "partition_values"]
    adds = end[0].adds(names)
    if columns is not None:
        own, others = (_identities(state.adds(names), columns) for state, _ in (end, other))
        left = own.with_row_index("row").join(others, on=others.columns, how="anti", nulls_equal=True)
        adds = adds[left["row"].sort()]
    if adds["deletion_vector"].null_count() == adds.height:  # vectors are not retained: all files' are read again
        return adds.with_columns(pl.lit(None, dtype=VECTOR).alias("vector"))
    vectors = end[0].adds([*names, "vector"])
    return rows_where(vectors, vectors["key"].is_in(adds["key"].implode()))


def _identities(adds: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    values = (pl.col("partition_values").map.get(name).alias(f"{i}") for i, name in enumerate(columns))
    return adds.select(*IDENTITY, *values)
