"""What a table demands of those who write it: the features that it uses, and the protocol that they need (today's
protocol, Table Features); the columns that data is clustered by (Clustered Table)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import polars as pl

from lakeview.delta.data.column_rules import CLUSTERING
from lakeview.delta.data.schemas import parse_schema
from lakeview.delta.features import (
    MAX_WRITER_VERSION,
    READER_FEATURES,
    WRITER_FEATURES,
    check_writable,
)
from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol, supported_features
from lakeview.delta.log.commits import json_text
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.target import Target
from lakeview.model.data_types import DecimalType, PrimitiveType
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.model.type_tree import nodes

_BY_FIELD = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
    "CURRENT_DEFAULT": "allowColumnDefaults",
}
_BY_PROPERTY = {
    ("delta.appendOnly", "true"): "appendOnly",
    ("delta.enableChangeDataFeed", "true"): "changeDataFeed",
    ("delta.enableInCommitTimestamps", "true"): "inCommitTimestamp",
    ("delta.enableDeletionVectors", "true"): "deletionVectors",
    ("delta.enableMaterializePartitionColumnsFeature", "true"): "materializePartitionColumns",
    ("delta.enableRowTracking", "true"): "rowTracking",
    ("delta.enableTypeWidening", "true"): "typeWidening",
    ("delta.enableIcebergCompatV1", "true"): "icebergCompatV1",
    ("delta.enableIcebergCompatV2", "true"): "icebergCompatV2",
    ("delta.enableIcebergCompatV3", "true"): "icebergCompatV3",
    ("delta.enableIcebergWriterCompatV1", "true"): "icebergWriterCompatV1",
    ("delta.checkpointPolicy", "v2"): "v2Checkpoint",
    ("delta.columnMapping.mode", "name"): "columnMapping",
    ("delta.columnMapping.mode", "id"): "columnMapping",
}
_BY_TYPE = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}

_TABLE_FEATURES = 3
"""The reader version from which a protocol names its reader features."""

_MAPPING_READER, _MAPPING_WRITER = 2, 5
"""The reader version that implies column mapping, and the writer version that it needs."""


def active_features(metadata: Metadata) -> frozenset[str]:
    """The features that this table really uses: each needs its property, its type or its column metadata."""
    return frozenset({*property_features(metadata.properties), *_of_columns(parse_schema(metadata.schema_string))})


def check_may_write(table: Target, versions: Iterable[int] = ()) -> Replay:
    """The latest version. UnsupportedTableError where its protocol, or that of one of `versions`, asks more of writers
    than is implemented."""
    latest = table.state()
    for state in (latest, *map(table.state, versions)):
        check_writable(state.table_protocol, active_features(state.metadata), table.storage.root)
    return latest


def property_features(properties: Mapping[str, str]) -> Iterator[str]:
    """The features that properties turn on."""
    for key, text in properties.items():
        if (feature := _BY_PROPERTY.get((key, text.lower()))) is not None:
            yield feature
        elif key.startswith("delta.feature."):
            yield key.removeprefix("delta.feature.")
        elif key.startswith("delta.constraints."):
            yield "checkConstraints"


def properties_of(features: Collection[str], properties: Mapping[str, str]) -> dict[str, str]:
    """Those of the properties that turn one of these features on."""
    return {n: text for n, text in properties.items() if not set(features).isdisjoint(property_features({n: text}))}


def _of_columns(schema: Schema) -> Iterator[str]:
    for _, type_, field in nodes(schema):
        if isinstance(type_, PrimitiveType) and type_.name in _BY_TYPE:
            yield _BY_TYPE[type_.name]
        if field is not None:
            yield from (feature for key, feature in _BY_FIELD.items() if key in field.metadata)


_REQUIRES: Mapping[str, tuple[str, ...]] = {
    "rowTracking": ("domainMetadata",),
    "clustering": ("domainMetadata",),
    "variantShredding": ("variantType",),
    "variantShredding-preview": ("variantType-preview",),
}
"""Features that need others (today's protocol, Valid Feature Names and the features' own sections)."""


def check_clustering(features: Collection[str], partition_columns: Sequence[str], address: str) -> None:
    """InvalidRequestError if a table with partitions would take clustering into use: "writers must not define clustered
    and partitioned table at the same time" (today's protocol, Clustered Table)."""
    if "clustering" in features and partition_columns:
        raise InvalidRequestError(
            f"{address} is partitioned by {', '.join(partition_columns)}, and a table is not clustered as well",
            fix="leave the feature clustering out, or the partitions of a new table",
            place="protocol.writerFeatures",
            kind="clustered-and-partitioned",
        )


def with_required(features: frozenset[str]) -> frozenset[str]:
    """The features and those that they need."""
    return features.union(*(_REQUIRES.get(f, ()) for f in features))


def upgrade_protocol(protocol: Protocol, features: Collection[str], address: str) -> Protocol:
    """The lowest protocol that supports what the old one does, and these features; the old one if it does already.

    A legacy version becomes the list of features that it implies. UnsupportedTableError for a feature not written here.
    """
    current = supported_features(protocol)
    additions = with_required(frozenset(features)) - current
    if not additions:
        return protocol
    check_implemented(additions, "this change needs", f"make the change to {address} with an engine that implements it")
    features = current | additions
    readers = features & READER_FEATURES | set(protocol.reader_features or ())
    return protocol_of(features, readers, protocol.min_reader_version)


def check_implemented(features: Collection[str], subject: str, fix: str) -> None:
    """UnsupportedTableError if one of the features, which `subject` says what needs, is not written here."""
    if missing := sorted(set(features) - WRITER_FEATURES):
        raise UnsupportedTableError(
            f"{subject} the Delta writer feature {missing[0]}, which this writer does not implement",
            fix=fix,
            place="protocol.writerFeatures",
            kind="unsupported-writer-feature",
        )


def protocol_of(features: Collection[str], readers: Collection[str], reader_version: int = 1) -> Protocol:
    """The protocol that names these features, and those that `readers` need; else it has this reader version."""
    if readers:
        return Protocol(_TABLE_FEATURES, MAX_WRITER_VERSION, sorted(readers), sorted(features))
    return Protocol(reader_version, MAX_WRITER_VERSION, None, sorted(features))


def with_versions(protocol: Protocol, reader: int, writer: int, address: str) -> Protocol:
    """The protocol with higher versions; table features are those that the old versions imply, where the new ones are
    of protocols that name them.

    InvalidRequestError for versions that no protocol has together, and for lower ones than it has.
    """
    is_pair = 1 <= reader <= _TABLE_FEATURES and 1 <= writer <= MAX_WRITER_VERSION
    is_pair = is_pair and (reader < _TABLE_FEATURES or writer == MAX_WRITER_VERSION)
    if not is_pair or (reader == _MAPPING_READER and writer < _MAPPING_WRITER):
        raise InvalidRequestError(
            f"there is no protocol of reader version {reader} and writer version {writer}",
            fix="give (1, 2) to (1, 7), (2, 5) to (2, 7), or (3, 7)",
            place="protocol",
            kind="protocol-version",
        )
    own = (protocol.min_reader_version, protocol.min_writer_version)
    if reader < own[0] or writer < own[1]:
        raise InvalidRequestError(
            f"{address} has reader version {own[0]} and writer version {own[1]}, which never go down",
            fix="copy the rows into a new table, which gets the lowest protocol that it needs",
            place="protocol",
            kind="protocol-downgrade",
        )
    if (reader, writer) == own:
        return protocol
    if writer < MAX_WRITER_VERSION:
        return Protocol(reader, writer)
    features = supported_features(protocol)
    if own[0] < _MAPPING_READER:  # the feature needs readers as well
        features -= {"columnMapping"}
    readers = sorted(features & READER_FEATURES) if reader == _TABLE_FEATURES else None
    return Protocol(reader, writer, readers, sorted(features))


FEATURE = "clustering"

_MOST = 4
_TYPES = frozenset(
    {"string", "long", "integer", "short", "byte", "float", "double", "date", "timestamp", "timestamp_ntz"}
)
"""Types whose bounds skip files: statistics of the columns are what clustering is for."""


def check_columns(schema: Schema, columns: Sequence[str]) -> None:
    """InvalidRequestError for columns that a table with this schema is not clustered by."""
    if len(set(columns)) > _MOST or len(set(columns)) < len(columns):
        raise _refusal(f"clustered by {', '.join(columns)}", f"name one to {_MOST} columns, each once", "cluster_by")
    for name in columns:
        if name not in schema:
            raise _refusal(f"clustered by {name}, which is not in the schema", "name its columns", name)
        type_ = schema[name].type
        if not isinstance(type_, DecimalType) and not (isinstance(type_, PrimitiveType) and type_.name in _TYPES):
            raise _refusal(f"clustered by {name}, a {type_}, whose bounds skip no files", "choose another column", name)


def clustering_domain(schema: Schema, columns: Sequence[str]) -> DomainMetadata:
    """What records the columns: by the names that they have in data files."""
    # "clusteringColumns: ... a list of physical column paths"
    paths = [[schema[name].stored_name] for name in columns]
    return DomainMetadata(CLUSTERING, json_text({"clusteringColumns": paths, "domainName": CLUSTERING}))


def changed_domain(schema: Schema, columns: Sequence[str], domains: pl.DataFrame) -> DomainMetadata | None:
    """What makes the columns those of a table with these domains; None where there is nothing to record."""
    if columns:
        return clustering_domain(schema, columns)
    for text in domains.filter(domains["domain"] == CLUSTERING)["configuration"]:
        return DomainMetadata(CLUSTERING, text, removed=True)
    return None


def _refusal(what: str, fix: str, place: str) -> InvalidRequestError:
    return InvalidRequestError(f"the table would be {what}", fix=fix, place=place, kind="clustering-columns")
