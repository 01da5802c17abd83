"""A table's schema and properties to what writing its files takes."""

import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

from lakeview.delta.data.file_statistics import STRING_PREFIX
from lakeview.delta.data.statistics import physical_leaves
from lakeview.delta.properties import INDEXED, value
from lakeview.delta.write.property_checks import codec, page_version
from lakeview.delta.write.row_rules import RowRules, row_rules
from lakeview.model.data_types import Field
from lakeview.model.schema import Schema, leaf_name
from lakeview.rows.open_files import ROWS_PER_FILE

_INDEXED_COLUMNS = 32


MATERIALIZE_PARTITIONS = "materializePartitionColumns"
"""The feature under which data files hold the partition columns; a property asks for the same."""


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What writing files of a table takes, as a value that can travel to another process.

    `root`: the table's address; `schema`: what rows are written as, with the names and ids of column mapping where it
    is on; `rules`: what rows have to keep; `indexed_columns`: the leaves that get statistics, by their names in files,
    strings cut to `string_prefix`; `compression`: as Arrow calls it; `target_bytes`: about how large a file may get;
    `random_prefix`: so many random characters name its folder, instead of partition values; `fill_missing`: fields of
    structs that the rows lack are null. `tracked_fields`: the columns that keep ids of rows that move (row tracking).
    `change_data`: the rows are what a commit changes, not part of the table. `page_version`: of Parquet's data pages.
    `write_id`: in the names of all files of one write. `materialize_partitions`: files hold the partition columns too.
    `vectors`: rows may go by deletion vectors; `feed`: changes of rows are recorded as change data.
    """

    root: str
    schema: Schema
    partition_columns: tuple[str, ...] = ()
    rows_per_file: int = ROWS_PER_FILE
    compression: str = field(default="zstd")
    fill_missing: bool = False
    indexed_columns: frozenset[tuple[str, ...]] = frozenset()
    string_prefix: int = STRING_PREFIX
    target_bytes: int | None = None
    random_prefix: int = 0
    rules: RowRules | None = None
    tracked_fields: tuple[Field, ...] = ()
    change_data: bool = False
    page_version: Literal["1.0", "2.0"] = "1.0"
    write_id: str = ""
    materialize_partitions: bool = False
    vectors: bool = False
    feed: bool = False

    def folder_prefix(self) -> str:
        """So many random letters and digits as begin a file's path; empty where partition values do."""
        return uuid.uuid4().hex[: self.random_prefix]

    @property
    def one_folder(self) -> bool:
        """True if data files lie in the table's own folder, and not in others inside it."""
        return not self.partition_columns and not self.random_prefix


def write_context(
    root: str,
    schema: Schema,
    partition_columns: Sequence[str],
    properties: Mapping[str, str],
    clustering: Sequence[str] = (),
) -> WriteContext:
    """How the files of a table with these properties are written; `clustering` columns get statistics in any case.

    UnsupportedTableError for a codec that is not written, and for a rule that cannot be evaluated.
    """
    has_mapping = any(f.physical_name is not None for f in schema)
    prefix: int | None = value(properties, "delta.dataSkippingStringPrefixLength")
    length: int = value(properties, "delta.randomPrefixLength") or 2
    return WriteContext(
        root,
        schema,
        tuple(partition_columns),
        indexed_columns=indexed_leaves(schema, partition_columns, properties, clustering),
        string_prefix=STRING_PREFIX if prefix is None else prefix,
        compression=codec(properties),
        page_version=page_version(properties),
        target_bytes=value(properties, "delta.targetFileSize"),
        random_prefix=min(length, 12) if has_mapping or value(properties, "delta.randomizeFilePrefixes") else 0,
        rules=row_rules(schema, properties, partition_columns),
        materialize_partitions=value(properties, "delta.writePartitionColumnsToParquet") is True,
    )


def indexed_leaves(
    schema: Schema, partition_columns: Sequence[str], properties: Mapping[str, str], clustering: Sequence[str]
) -> frozenset[tuple[str, ...]]:
    """The leaves that get statistics, by their names in files: those that `delta.dataSkippingStatsColumns` names, else
    the first of the schema, and the columns that data is clustered by."""
    leaves = physical_leaves(schema, None, partition_columns)
    paths: tuple[tuple[str, ...], ...] | None = value(properties, INDEXED)
    number: int | None = value(properties, "delta.dataSkippingNumIndexedCols")
    if paths is not None:
        prefixes = {tuple(part.casefold() for part in path) for path in paths}
        selection = [leaf for leaf in leaves if _below(leaf[0], prefixes)]
    else:
        number = _INDEXED_COLUMNS if number is None else number
        selection = leaves if number < 0 else leaves[:number]
    cluster_leaves = [leaf for leaf in leaves if leaf_name(leaf[0]) in clustering]
    return frozenset(physical for _, physical, _ in (*selection, *cluster_leaves))


def _below(path: tuple[str, ...], prefixes: Set[tuple[str, ...]]) -> bool:
    key = tuple(part.casefold() for part in path)
    return any(key[:end] in prefixes for end in range(1, len(key) + 1))
