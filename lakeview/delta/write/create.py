"""A schema to the log of a new, empty table: version 0."""

import re
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from lakeview.delta.data.row_tracking import MATERIALIZED
from lakeview.delta.data.schemas import schema_text
from lakeview.delta.features import READER_FEATURES
from lakeview.delta.log.actions import Metadata, Protocol
from lakeview.delta.log.commits import encode_actions, json_text
from lakeview.delta.log.paths import LOG_FOLDER, commit_name
from lakeview.delta.log.times import asks_for_in_commit_times
from lakeview.delta.properties import is_true
from lakeview.delta.write.evolution import check_column_metadata, check_types, check_unique, with_column_ids
from lakeview.delta.write.property_checks import check_reserved_columns, check_settable, check_statistics_columns
from lakeview.delta.write.row_rules import check_rules
from lakeview.delta.write.rules import FEATURE as CLUSTERING_FEATURE
from lakeview.delta.write.rules import (
    active_features,
    check_clustering,
    check_columns,
    check_implemented,
    clustering_domain,
    protocol_of,
    with_required,
)
from lakeview.delta.write.writer import ENGINE
from lakeview.model.clock import Clock, system_clock
from lakeview.model.data_types import VARIANT, ArrayType, MapType, StructType
from lakeview.model.errors import (
    CommitConflictError,
    InvalidRequestError,
    LakeviewError,
    StoreUnavailableError,
    UnsupportedTableError,
)
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds
from lakeview.storage import Storage
from lakeview.storage.exclusive import ExclusivePut

_VERSION = re.compile(r"\d{20}\.")
"""How the names of commits and checkpoints begin."""

_ICEBERG = re.compile(r"(metadata/)?[^/]+\.metadata\.json(\.gz)?")
"""Files that make a folder an Iceberg table, by their paths in it or their names in its folder of metadata."""


def create_log(
    storage: Storage,
    schema: Schema,
    *,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    engine: str | None = None,
    user: str | None = None,
    clock: Clock = system_clock,
) -> None:
    """Write version 0 of a table, with the lowest protocol that its schema and properties need.

    CommitConflictError if there is a table already, InvalidRequestError for a schema, partitioning, clustering or
    properties that no table can have, UnsupportedTableError for a type or feature that is not written.
    """
    check_definition(schema, partition_by, cluster_by, properties or {})
    now = milliseconds(clock())
    configuration: dict[str, str | None] = dict(properties or {})
    schema = _prepare(schema, configuration)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        name=name,
        description=description,
        schema_string=schema_text(schema),
        partition_columns=list(partition_by),
        created_time=now,
        configuration=configuration,
    )
    parameters = creation_parameters(partition_by, cluster_by, configuration, description)
    protocol = lowest_protocol(metadata, storage.root, (CLUSTERING_FEATURE,) if cluster_by else ())
    domains = [("domainMetadata", clustering_domain(schema, cluster_by))] if cluster_by else []
    put_first(storage, "CREATE TABLE", parameters, None, protocol, metadata, now, domains, engine=engine, user=user)


def creation_parameters(
    partition_by: Sequence[str],
    cluster_by: Sequence[str],
    configuration: Mapping[str, str | None],
    description: str | None,
) -> dict[str, str | None]:
    """operationParameters of a commit that creates a table, or replaces it."""
    return {
        "partitionBy": json_text(partition_by),
        **({"clusterBy": json_text(cluster_by)} if cluster_by else {}),
        "description": description,
        "isManaged": "false",
        "properties": json_text(configuration),
    }


def check_definition(
    schema: Schema, partition_by: Sequence[str], cluster_by: Sequence[str], properties: Mapping[str, str]
) -> None:
    """InvalidRequestError or UnsupportedTableError for a definition that no table can have."""
    check_schema(schema, partition_by)
    check_columns(schema, cluster_by)
    check_settable(properties)
    check_reserved_columns(schema, properties)
    check_statistics_columns(schema, properties)
    check_rules(schema, properties, partition_by)


def put_first(
    storage: Storage,
    operation: str,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, str] | None,
    protocol: Protocol,
    metadata: Metadata,
    now: int,
    actions: Sequence[tuple[str, Any]],
    *,
    engine: str | None = None,
    user: str | None = None,
) -> None:
    """Commit version 0; `now` in milliseconds. CommitConflictError if there is a table already."""
    with suppress(UnsupportedTableError):  # a store without listings: `put_if_absent` says what it cannot do
        check_no_table(storage)
    info: dict[str, Any] = {
        "timestamp": now,
        "operation": operation,
        "operationParameters": parameters,
        "engineInfo": engine or ENGINE,
        "txnId": str(uuid.uuid4()),
    }
    info |= {k: v for k, v in (("userName", user), ("operationMetrics", metrics)) if v is not None}
    if asks_for_in_commit_times(metadata.properties):
        info["inCommitTimestamp"] = now
    data = encode_actions([("commitInfo", info), ("protocol", protocol), ("metaData", metadata), *actions])

    def unknown_outcome(path: str, error: LakeviewError) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"whether a table was made at {storage.root} is not known: {error.message}",
            fix=f"open it: it was, if version 0 carries txnId {info['txnId']}", place=path, kind="outcome-unknown",
        )  # fmt: skip

    # the store may try again by itself, or its reply be lost: the file that is there may be ours
    creation = ExclusivePut(storage, lambda path: storage.read(path) == data, unknown_outcome)
    path = f"{LOG_FOLDER}/{commit_name(0)}"
    if not creation.put(path, data):
        raise _table_exists(storage) if storage.exists(path) else _table_was_deleted(storage)


def check_no_table(storage: Storage) -> None:
    """CommitConflictError if there is a table: the log of an old one begins with a checkpoint, and has no version 0."""
    if any(_VERSION.match(name) for name, _, _ in storage.entries_from(LOG_FOLDER, commit_name(0))):
        raise _table_exists(storage)


def check_no_files(storage: Storage) -> None:
    """InvalidRequestError where files of others lie, hidden ones aside: the table's vacuum would delete them. It may
    delete the copies of a deep clone that was killed.
    CommitConflictError where they are those of a table, in Iceberg's format too."""
    names: list[str] = []
    with suppress(UnsupportedTableError):  # a store without listings: `put_if_absent` says what it cannot do
        if storage.holds_files():
            check_no_table(storage)  # before a listing of its folder, which may hold a million files
            names = [*(name for name, *_ in storage.entries_from("")), *storage.folders("")]
            if has_marker(names):
                names = [name.partition("/")[0] for name in without_copies(storage.walk()["name"].to_list())]
    # a folder of a partition is never hidden: the new table may have a column of its name
    if all(name.startswith(("_", ".")) and "=" not in name for name in names):
        return
    check_no_table(storage)  # once more: one that another writer made meanwhile has files
    if "metadata" in names:
        check_no_iceberg_table(storage, (name for name, *_ in storage.entries_from("metadata")))
    raise InvalidRequestError(
        f"{storage.root} has files and no table, of which a vacuum would delete them",
        fix="make a table of Parquet files by convert_to_delta (Spark: convertToDelta), or choose another address",
        place=storage.root, kind="files-without-table",
    )  # fmt: skip


def check_no_iceberg_table(storage: Storage, names: Iterable[str]) -> None:
    """CommitConflictError where one of the names is that of an Iceberg table's metadata."""
    if any(map(_ICEBERG.fullmatch, names)):
        raise _table_exists(storage)


def _table_exists(storage: Storage) -> CommitConflictError:
    return CommitConflictError(
        f"{storage.root} holds a table already",
        fix="open it, or choose another address",
        kind="table-exists",
        version=0,
    )


def _table_was_deleted(storage: Storage) -> CommitConflictError:
    return CommitConflictError(
        f"{storage.root} held a table, whose versions stay claimed in the commit coordinator though its log is gone",
        fix="delete its claims, from the coordinator if no writer is at work, or choose another address",
        kind="claimed",
        version=0,
    )


def _prepare(schema: Schema, configuration: dict[str, str | None]) -> Schema:
    """The schema and the properties of a new table with what their features keep in them."""
    if (configuration.get("delta.columnMapping.mode") or "none").lower() != "none":
        schema = with_column_ids(schema, configuration)
        check_unique(schema)
    if is_true(configuration, "delta.enableRowTracking"):
        for key in MATERIALIZED.values():
            configuration.setdefault(key, f"_row-{uuid.uuid4()}")
    return schema


def check_creatable(schema: Schema, partition_by: Sequence[str], properties: Mapping[str, str], address: str) -> None:
    """Raises what `create_log` would, before rows are written for a table that their commit creates."""
    check_definition(schema, partition_by, (), properties)
    configuration: dict[str, str | None] = dict(properties)
    metadata = Metadata(
        id="", schema_string=schema_text(schema), partition_columns=list(partition_by), configuration=configuration
    )
    lowest_protocol(metadata, address)


def check_schema(schema: Schema, partition_by: Sequence[str]) -> None:
    """InvalidRequestError or UnsupportedTableError for columns and partitions that no table can have."""
    check_types(schema)
    check_column_metadata(schema)
    unknown = [c for c in partition_by if c not in schema]
    if unknown:
        raise InvalidRequestError(
            f"partition column {unknown[0]} is not in the schema", place=unknown[0], kind="unknown-column"
        )
    for name in partition_by:
        if not name:
            raise InvalidRequestError(
                "a partition column has an empty name, which its folders could not bear", fix="give the column a name",
                place="partition_by", kind="empty-name",
            )  # fmt: skip
        if isinstance(schema[name].type, StructType | ArrayType | MapType) or schema[name].type == VARIANT:
            raise InvalidRequestError(f"{name} is {schema[name].type}, which cannot be a partition column", place=name)
        if partition_by.count(name) > 1:
            raise InvalidRequestError(f"partition column {name} is named twice", place=name, kind="duplicate-column")
    if len(schema) and len(set(partition_by)) == len(schema):
        raise InvalidRequestError(
            "every column is a partition column: files would hold nothing", kind="no-data-columns"
        )


def lowest_protocol(metadata: Metadata, address: str, more: Collection[str] = ()) -> Protocol:
    """The lowest protocol: (1, 2), or exactly the table features needed (today's protocol, Table Features); `more`:
    features that the metadata does not show."""
    features = with_required(active_features(metadata) | set(more))
    check_clustering(features, metadata.partition_columns or (), address)
    fix = "create the table without it, or with an engine that implements it"
    check_implemented(features, f"writing {address} would need", fix)
    return Protocol(1, 2) if features <= {"appendOnly"} else protocol_of(features, features & READER_FEATURES)


_MARKER = re.compile(r"\.clone\.([0-9a-f]{32})\.tmp")


def marker_name(clone: uuid.UUID) -> str:
    """The name of the marker of a clone under way, each of whose copies has the clone's id in its path: a hidden file.

    A clone that was killed leaves copies in a folder without a table, which a second attempt has to tell from the files
    of others. The second one's vacuum deletes them, and the marker, as it does all that its table does not name.
    """
    return f".clone.{clone.hex}.tmp"


def has_marker(names: Sequence[str]) -> bool:
    """Whether one of the names in a folder is that of a marker."""
    return any(map(_MARKER.fullmatch, names))


def without_copies(names: Sequence[str]) -> list[str]:
    """Those of the names of all files below a folder that are not copies of a clone whose marker is among them."""
    clones = [str(uuid.UUID(match[1])) for match in map(_MARKER.fullmatch, names) if match is not None]
    return [name for name in names if not any(clone in name for clone in clones)]
