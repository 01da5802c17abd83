"""Row tracking: a table's properties and add actions to an id and a commit version for each row (delta protocol)."""

from collections.abc import Mapping, Sequence, Set

from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import CorruptTableError, InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.model.table_metadata import TableProtocol
from lakeview.rows.tasks import Fallback

ROW_ID, ROW_COMMIT_VERSION = "_row_id", "_row_commit_version"

MATERIALIZED = {
    ROW_ID: "delta.rowTracking.materializedRowIdColumnName",
    ROW_COMMIT_VERSION: "delta.rowTracking.materializedRowCommitVersionColumnName",
}
"""Columns of row tracking -> the properties that name the columns of data files which keep them."""


def tracked_schema(schema: Schema, protocol: TableProtocol, properties: Mapping[str, str], address: str) -> Schema:
    """The schema with `_row_id` and `_row_commit_version` (long) behind its own columns.

    InvalidRequestError if row tracking is not enabled at this version, or a column has one of the two names;
    CorruptTableError if the table does not say in which columns rows that moved keep theirs.
    """
    # a table may support row tracking without having it enabled: then not every row has an id
    is_supported = protocol.min_writer_version == 7 and "rowTracking" in (protocol.writer_features or ())
    if not is_supported or properties.get("delta.enableRowTracking", "false").lower() != "true":
        raise InvalidRequestError(
            f"{address} does not track its rows: row tracking is not enabled at this version",
            fix="read without row_tracking, or a version where delta.enableRowTracking is true",
            kind="no-row-tracking",
        )
    if conflicts := [name for name in MATERIALIZED if name in schema]:
        raise InvalidRequestError(
            f"{address} has a column {conflicts[0]} of its own",
            fix="read without row_tracking, and select the column from the files if it is needed",
            place=conflicts[0],
            kind="column-name-taken",
        )
    return Schema((*schema.fields, *tracked_fields(schema, properties)))


def tracked_fields(schema: Schema, properties: Mapping[str, str]) -> tuple[Field, Field]:
    """`_row_id` and `_row_commit_version`, by the names they have in data files, each with as many `_` behind it as no
    column of the table has. CorruptTableError as above, and where both go by one name in files."""
    id_key, version_key = MATERIALIZED.values()
    if properties.get(id_key) and properties.get(id_key) == properties.get(version_key):
        raise _broken_properties(f"{id_key} and {version_key} are both {properties[id_key]}")
    names = {name.casefold() for name in schema.names}
    row_id, version = (_field(_unused_name(name, names), key, properties) for name, key in MATERIALIZED.items())
    return row_id, version


def _unused_name(name: str, names: Set[str]) -> str:
    while name in names:
        name += "_"
    return name


def _field(name: str, key: str, properties: Mapping[str, str]) -> Field:
    if not properties.get(key):
        raise _broken_properties(
            f"the table tracks its rows but has no property {key}, which names the column that keeps {name}"
        )
    return Field(name, PrimitiveType("long"), physical_name=properties[key])


def _broken_properties(message: str) -> CorruptTableError:
    return CorruptTableError(
        message,
        fix="the metaData action is broken; restore its commit from a backup",
        place="metaData.configuration",
        kind="corrupt-row-tracking",
    )


def tracking_fallbacks(
    fields: Sequence[Field], base_row_id: int | None, default_version: int | None
) -> dict[str, Fallback]:
    """What the columns of `tracked_fields` hold for rows whose file does not say; unknown where the add action does not
    either.

    Rows of a new file count on from its baseRowId, by their position in the file, and are of its commit.
    """
    row_id, version = (field.name for field in fields)
    return {row_id: Fallback(base_row_id, plus_position=True), version: Fallback(default_version)}
