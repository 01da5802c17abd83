"""Two versions of a log to the rows that only one of them has, from their live files; nothing between them is read."""

from __future__ import annotations

from dataclasses import replace

from lakeview.delta.data.change_schema import incompatibility
from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.data.scan import Scan
from lakeview.delta.log.replay import Replay
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.rows.difference import Difference, difference
from lakeview.rows.tasks import FileTask

End = tuple[Replay, Schema]
"""A version and its schema."""


def end_difference(base: End, version: End, root: str) -> Difference:
    """What the files of two versions do not share, read as the later version's columns; either may come first.

    InvalidRequestError (kind incompatible-schema-change) where a column of both has become of another type. A column
    that the later version has no more is not compared, one that the earlier has not yet is null there.
    """
    earlier, later = sorted((base, version), key=lambda end: end[0].version)
    _check_types(earlier, later, root)
    sides = [(end[0].version, _tasks(end, later[1], root)) for end in (base, version)]
    return difference(sides[0], sides[1], later[1])


def _check_types(earlier: End, later: End, root: str) -> None:
    by_name = {field.physical_name or field.name: field for field in later[1]}
    for field in earlier[1]:
        newer = by_name.get(field.physical_name or field.name)
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


def _tasks(end: End, schema: Schema, root: str) -> list[FileTask]:
    """The live files of a version, read as this schema. What a file was partitioned by, its own version says."""
    state, own = end
    fields = partition_fields(own, state.metadata.partition_columns or [])
    mine = {field.physical_name or field.name for field in fields}
    names = [field.name for field in schema if (field.physical_name or field.name) in mine]
    return Scan(state, schema, partition_fields(schema, names), root).tasks(None)
