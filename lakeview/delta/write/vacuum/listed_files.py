"""A listing of a table's folder to the files that a vacuum may look at."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import polars as pl

from lakeview.delta.data.column_mapping import table_schema
from lakeview.delta.log.paths import LOG_FOLDER, decode_path, is_temporary
from lakeview.delta.log.replay import Replay

_VISIBLE = ("_change_data", "_delta_index")


def candidate_files(listing: pl.DataFrame, state: Replay) -> pl.DataFrame:
    """LISTING without what a vacuum leaves alone: names that begin with `_` or `.` at any level (but change data,
    `_delta_index`, partition folders, and temporary files of lakeview), tables below the table, and the metadata of
    Iceberg readers where the table is read as Iceberg too."""
    columns = _partition_names(state)
    nested = _nested_tables(listing["name"])
    metadata = "metadata" if _is_uniform(state.properties) else None

    @cache  # folders are few beside their files
    def hides(folder: str) -> bool:
        parts = folder.split("/")
        if parts[0] == metadata or any("/".join(parts[:end]) in nested for end in range(1, len(parts) + 1)):
            return True
        return any(_hidden_folder(part, columns) for part in parts)

    def visible(path: str) -> bool:
        folder, slash, name = path.rpartition("/")
        if slash and hides(folder):
            return False
        return not name.startswith(("_", ".")) or is_temporary(name)

    mask = [visible(name) for name in listing["name"]]
    return listing.filter(pl.Series(mask, dtype=pl.Boolean))


def _hidden_folder(name: str, partition_columns: frozenset[str]) -> bool:
    if not name.startswith(("_", ".")) or name in _VISIBLE:
        return False
    column, equals, _ = name.partition("=")
    return not equals or decode_path(column) not in partition_columns


def _partition_names(state: Replay) -> frozenset[str]:
    """The partition columns by all names that folders may have."""
    names = state.metadata.partition_columns or []
    schema = table_schema(state.metadata.schema_string, state.table_protocol, state.properties)
    physical = {schema[name].physical_name for name in names if name in schema}
    return frozenset(names) | {name for name in physical if name is not None}


def _nested_tables(names: pl.Series) -> set[str]:
    """Folders below the root that hold a log of their own."""
    logs = names.filter(names.str.contains(f"/{LOG_FOLDER}/", literal=True))
    return {name.partition(f"/{LOG_FOLDER}/")[0] for name in logs}


def _is_uniform(properties: Mapping[str, str]) -> bool:
    return "iceberg" in properties.get("delta.universalFormat.enabledFormats", "").lower()
