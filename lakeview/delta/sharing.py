"""The facade of Delta for Delta Sharing: the only module of this reader that `lakeview.sharing` imports.

The server takes a table's actions as its log records them (`ChangeLog`, `file_features`, `vector_path`). The client
gets actions without a log: `read_head` checks a table's protocol and metadata, and `listed_files` and `change_scan`
make file listings, statistics and rows of its actions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from lakeview.delta.change_log import ChangedFile, ChangeLog, CommitChanges, FileAction
from lakeview.delta.data.change_range import Layout, mapping_turns, scan_of, schema_seen_from
from lakeview.delta.data.changes import ChangeScan, change_files
from lakeview.delta.data.deletion_vectors import vector_file
from lakeview.delta.data.files import VersionFiles
from lakeview.delta.data.partition_values import parse_values, partition_fields
from lakeview.delta.data.schemas import schema_text, table_schema
from lakeview.delta.data.type_widening import check_type_changes, incompatibility, type_changes
from lakeview.delta.features import READER_FEATURES, check_readable, column_mapping_mode
from lakeview.delta.log.actions import (
    Action,
    AddCDCFile,
    AddFile,
    DeletionVectorDescriptor,
    Format,
    Long,
    Metadata,
    Protocol,
    RemoveFile,
    table_protocol,
)
from lakeview.delta.log.commits import Commit, without_nulls
from lakeview.delta.log.file_actions import FILE_ACTIONS, file_actions, vector_value
from lakeview.delta.log.paths import LOG_FOLDER, decode_path, encode_path
from lakeview.delta.log.record_counts import records
from lakeview.delta.log.state import StatisticsReader, with_statistics
from lakeview.delta.maintenance import delete_old, maintain
from lakeview.delta.properties import is_true
from lakeview.delta.table import DeltaTable
from lakeview.model.column_values import moments
from lakeview.model.data_types import Field
from lakeview.model.errors import InvalidRequestError
from lakeview.model.frames import DOMAIN_METADATA, TRANSACTIONS
from lakeview.model.schema import Schema
from lakeview.model.table import Table
from lakeview.model.table_metadata import TableProtocol
from lakeview.model.type_tree import fields_below, nodes

__all__ = [
    "CLIENT_FEATURES", "LOG_FOLDER", "Action", "AddCDCFile", "AddFile", "ChangeLog", "ChangeScan", "ChangedFile",
    "CommitChanges", "DeletionVectorDescriptor", "DeltaTable", "FileAction", "Format", "Long", "Metadata",
    "Protocol", "RemoveFile", "TableHead", "VersionFiles", "change_scan", "check_type_changes", "decode_path",
    "delete_old", "encode_path", "file_features", "is_replaced", "is_true", "listed_files", "listing",
    "live_lifetimes", "maintain", "parse_values", "read_head", "schema_text", "vector_path", "vector_value",
    "without_nulls",
]  # fmt: skip

CLIENT_FEATURES = frozenset(name for name in READER_FEATURES if name not in ("v2Checkpoint", "vacuumProtocolCheck"))
"""The reader features of ours that concern files: a client of a share reads no checkpoints."""

_LISTING = pl.Schema({**FILE_ACTIONS, "records": pl.Int64()})

# -- for the server: a table's actions as recorded

_LOG_FEATURES = frozenset({"v2Checkpoint", "vacuumProtocolCheck", "catalogManaged", "catalogOwned-preview"})
"""Reader features that concern readers of the log only, not readers of its files."""

_TYPES_OF_FEATURES = {
    "timestampNtz": ("timestamp_ntz",), "variantType": ("variant",), "variantType-preview": ("variant",),
    "variantShredding": ("variant",), "variantShredding-preview": ("variant",), "geospatial": ("geometry", "geography"),
}  # fmt: skip
"""Reader features that matter only where a column has such a type."""


def is_replaced(table: Table) -> bool:
    """True if another Delta table lies at the address since this one was opened, as its last refresh saw it."""
    return isinstance(table, DeltaTable) and table.log.is_replaced


def file_features(
    protocol: TableProtocol, properties: Mapping[str, str], schema: Schema, *, vectors: bool
) -> frozenset[str]:
    """What a reader of the data files must implement beyond plain Parquet, in lower case.

    `vectors`: whether any of the files has a deletion vector, whatever the protocol allows.
    """
    features = set(protocol.reader_features or ()) - _LOG_FEATURES - {"columnMapping", "deletionVectors"}
    if column_mapping_mode(protocol, properties) != "none":
        features.add("columnMapping")
    if vectors:
        features.add("deletionVectors")
    types = {str(node.type).partition("(")[0] for node in nodes(schema)}
    features = {f for f in features if f not in _TYPES_OF_FEATURES or not types.isdisjoint(_TYPES_OF_FEATURES[f])}
    if not any(type_changes(f) for _, f in fields_below(schema)):
        features -= {"typeWidening", "typeWidening-preview"}
    return frozenset(f.removesuffix("-preview").lower() for f in features)


def vector_path(vector: Mapping[str, str]) -> str | None:
    """The path of the file that holds a deletion vector, a value of VECTOR; None for an inline one."""
    return vector_file(vector["storage_type"], vector["path_or_inline_dv"])


# -- for the client: actions without a log


@dataclass(frozen=True, slots=True)
class TableHead:
    """The definition of a table at one version. `partitions`: the partition columns of `schema`."""

    address: str
    metadata: Metadata
    protocol: TableProtocol
    schema: Schema
    partitions: list[Field]

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties


def read_head(protocol: Protocol, metadata: Metadata, address: str, max_depth: int, *, of_log: bool) -> TableHead:
    """The definition that two actions give. `of_log`: they are the log's own; else only the version is known.

    UnsupportedTableError for a protocol that this reader does not implement, CorruptTableError for a broken schema.
    """
    neutral = table_protocol(protocol) if of_log else TableProtocol(min_reader_version=protocol.min_reader_version)
    if of_log:
        check_readable(neutral, metadata.properties, address, by_number=True)
    schema = table_schema(metadata.schema_string, neutral, metadata.properties, max_depth=max_depth)
    return TableHead(address, metadata, neutral, schema, partition_fields(schema, metadata.partition_columns or []))


def listing(actions: Iterable[tuple[int, Action]], root: str) -> pl.DataFrame:
    """FILE_ACTIONS, with `records`, of (version, action) pairs."""
    files = file_actions(_commits(actions), root)
    return files.with_columns(records(files["stats"], None))


def listed_files(head: TableHead, load: Callable[[], pl.DataFrame]) -> VersionFiles:
    """The files of a table that another source than its log lists. `load` gives them as `listing` does, and is called
    each time that they are needed."""
    return VersionFiles(_ListedActions(head, load), head.schema, head.partitions, head.address)


class _ListedActions:
    """Implements `delta.log.state.TableState`; arguments as of `listed_files`."""

    def __init__(self, head: TableHead, load: Callable[[], pl.DataFrame]) -> None:
        self._load = load
        self.properties = head.properties
        self.table_protocol = head.protocol

    def adds(self, columns: Sequence[str]) -> pl.DataFrame:
        names = dict.fromkeys(["key", "path", "deletion_vector", "deleted_records", *columns])
        return self._load().select([c for c in names if c in _LISTING])

    def adds_with_statistics(self, columns: Sequence[str], reader: StatisticsReader) -> pl.DataFrame:
        return with_statistics(self.adds(list(dict.fromkeys([*columns, "stats"]))), columns, reader)

    def removes(self) -> pl.DataFrame:
        return pl.DataFrame(schema=FILE_ACTIONS)  # a list of live files has no tombstones

    def transactions(self) -> pl.DataFrame:
        return pl.DataFrame(schema=TRANSACTIONS)

    def domain_metadata(self) -> pl.DataFrame:
        return pl.DataFrame(schema=DOMAIN_METADATA)


def live_lifetimes(files: pl.DataFrame, statistics: pl.DataFrame | None) -> pl.DataFrame:
    """LIFETIMES of live files, FILES of one version, with their STATISTICS where given: since when each is part of the
    table is unknown."""
    unknown = pl.lit(None, pl.Int64)
    lives = files.select(
        "path",
        "deletion_vector",
        unknown.alias("added"),
        unknown.alias("removed"),
        "size",
        (pl.col("records") - pl.col("deleted_records")).alias("records"),
    )
    if statistics is None or statistics.width <= 2:
        return lives
    each = statistics.select(
        pl.col("_path").alias("path"), pl.col("_deletion_vector").alias("deletion_vector")
    ).with_columns(statistics.drop("_path", "_deletion_vector").to_struct("statistics"))
    return lives.join(each, on=["path", "deletion_vector"], how="left", nulls_equal=True, maintain_order="left")


def change_scan(
    head: TableHead,
    schemas: Sequence[tuple[int, Metadata]],
    actions: Sequence[tuple[int, Action]],
    times: Mapping[int, int | None],
    max_depth: int,
) -> ChangeScan:
    """The changes that actions make, each with its version; rows are read with the schema of the last version.

    `schemas`: later metaData actions by version, of `head` alone if there are none; `times`: milliseconds since 1970 by
    version. InvalidRequestError (kind incompatible-schema-change) if rows of a version cannot be read with the schema.
    """
    layouts = _layouts(head, schemas, max_depth)
    timestamps = pl.DataFrame(
        {"version": list(times), "timestamp": list(times.values())},
        schema={"version": pl.Int64(), "timestamp": pl.Int64()},
    ).with_columns(moments("timestamp"))
    files = (
        change_files(_commits(actions), head.address)
        .join(timestamps, on="version", how="left", maintain_order="left")
        .with_columns(pl.lit(value=True).alias("feed"))
    )
    return scan_of(files, layouts, layouts[-1], head.address)


def _layouts(head: TableHead, schemas: Sequence[tuple[int, Metadata]], max_depth: int) -> list[Layout]:
    """What holds from which version on, oldest first."""
    layouts: list[Layout] = []
    for version, metadata in sorted(schemas, key=lambda pair: pair[0]) or [(0, head.metadata)]:
        protocol = head.protocol
        if metadata != head.metadata:  # an answer has the first protocol only: a later mapping came with another
            protocol = replace(protocol, min_reader_version=2)
        schema = table_schema(metadata.schema_string, protocol, metadata.properties, max_depth=max_depth)
        mode = column_mapping_mode(protocol, metadata.properties)
        layouts.append(Layout(version, schema, mode, bool(metadata.partition_columns), feed=True))
    last, turns = layouts[-1], mapping_turns(layouts)
    for i, layout in enumerate(layouts[:-1]):
        own = schema_seen_from(layouts, turns, i, len(layouts) - 1, last.schema)
        if (why := incompatibility(layout.schema, own)) is not None:
            raise InvalidRequestError(
                f"these changes of {head.address} cannot be read with one schema: after version {layout.version} {why}",
                fix=f"ask for changes up to version {last.version - 1}, and then for the rest",
                place="metaData.schemaString",
                kind="incompatible-schema-change",
            )
    return layouts


def _commits(actions: Iterable[tuple[int, Action]]) -> list[Commit]:
    """Actions by version, in ascending order of versions."""
    by_version: dict[int, list[Action]] = {}
    for version, action in actions:
        by_version.setdefault(version, []).append(action)
    return [Commit(version, tuple(by_version[version])) for version in sorted(by_version)]
