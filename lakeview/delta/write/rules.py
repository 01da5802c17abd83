"""What a table demands of those who write it: the features that it uses."""

from __future__ import annotations

from lakeview.delta.data.schemas import parse_schema
from lakeview.delta.features import LEGACY_WRITER_FEATURES, MAX_WRITER_VERSION
from lakeview.delta.log.actions import Metadata
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.schema import PrimitiveType
from lakeview.model.snapshot import TableProtocol
from lakeview.model.type_tree import nodes

_BY_FIELD = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
    "CURRENT_DEFAULT": "allowColumnDefaults",
}


_BY_PROPERTY = {
    "delta.appendOnly": "appendOnly",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableRowTracking": "rowTracking",
    "delta.enableTypeWidening": "typeWidening",
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
}
_BY_TYPE = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}


def active_features(metadata: Metadata) -> frozenset[str]:
    """The features that this table really uses: each needs its property, its type or its column metadata."""
    properties = metadata.configuration or {}
    schema = parse_schema(metadata.schema_string)
    found = {feature for key, feature in _BY_PROPERTY.items() if (properties.get(key) or "").lower() == "true"}
    found |= {key.removeprefix("delta.feature.") for key in properties if key.startswith("delta.feature.")}
    if (properties.get("delta.checkpointPolicy") or "").lower() == "v2":
        found.add("v2Checkpoint")
    if any(key.startswith("delta.constraints.") for key in properties):
        found.add("checkConstraints")
    if (properties.get("delta.columnMapping.mode") or "none") != "none":
        found.add("columnMapping")
    for _, type_, field in nodes(schema):
        found |= {_BY_TYPE[type_.name]} if isinstance(type_, PrimitiveType) and type_.name in _BY_TYPE else set()
        found |= {feature for key, feature in _BY_FIELD.items() if field is not None and key in field.metadata}
    return frozenset(found)


def check_supported(old: Metadata, new: Metadata, protocol: TableProtocol, address: str) -> None:
    """UnsupportedTableError if a change of metadata takes a feature into use that the table's protocol lacks.

    Without the feature a property has no force for other writers, and some would break what it promises.
    """
    version = protocol.min_writer_version or 1
    supported = {f for v, names in LEGACY_WRITER_FEATURES.items() if v <= version < MAX_WRITER_VERSION for f in names}
    supported |= set(protocol.writer_features or ())
    lacking = sorted(active_features(new) - active_features(old) - supported)
    if lacking:
        raise UnsupportedTableError(
            f"this change needs the Delta writer feature {lacking[0]}, which the protocol of {address} does not name",
            fix="create the table with it, or upgrade its protocol with an engine that implements the feature",
            place="protocol.writerFeatures",
            kind="protocol-upgrade",
        )
    if "inCommitTimestamp" in active_features(new) - active_features(old):
        # "inCommitTimestampEnablementVersion": a table that turns them on later has to say from which version on
        raise UnsupportedTableError(
            f"{address} keeps its times in files; turning in-commit timestamps on later is not implemented",
            fix="create the table with delta.enableInCommitTimestamps, or let another engine turn them on",
            place="delta.enableInCommitTimestamps",
            kind="protocol-upgrade",
        )
