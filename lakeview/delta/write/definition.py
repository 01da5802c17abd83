"""The metadata and the protocol of a table, as a commit leaves them."""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.data.row_tracking import MATERIALIZED
from lakeview.delta.data.schemas import schema_text, table_schema
from lakeview.delta.features import check_writable, column_mapping_mode
from lakeview.delta.log.actions import Metadata, table_protocol
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.times import in_commit_start
from lakeview.delta.properties import PROTECTED_BEFORE, is_true
from lakeview.delta.write.evolution import with_column_ids
from lakeview.delta.write.property_checks import check_honoured, check_reserved_columns
from lakeview.delta.write.rules import (
    active_features,
    check_clustering,
    property_features,
    upgrade_protocol,
    with_required,
)
from lakeview.model.data_types import Field
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds
from lakeview.model.table_metadata import TableProtocol
from lakeview.model.type_tree import map_fields

_MAPPING_MODE = "delta.columnMapping.mode"
ROW_TRACKING, SUSPENDED = "delta.enableRowTracking", "delta.rowTrackingSuspended"
_ENABLED_FROM, _ENABLED_AT = "delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp"

_STAYS = (
    "delta.columnMapping.", "delta.enableInCommitTimestamps", "delta.inCommitTimestamp", *MATERIALIZED.values(),
    PROTECTED_BEFORE,
)  # fmt: skip
"""Properties that a table keeps when it is replaced: ids and names in files are never given twice, commits go on being
timed as they are, and checkpoints of the log stay protected."""


class Definition:
    """What a table is, without its files: as a transaction found it, and with what it changes.

    `metadata` and `protocol` are the actions in force after the commit; `address` names the table in errors.
    """

    def __init__(self, base: Replay, address: str) -> None:
        self._base = base
        self._address = address
        self.metadata: Metadata = base.metadata
        self.protocol = base.protocol
        self._schema: tuple[Metadata, Schema] | None = None

    @property
    def changes_metadata(self) -> bool:
        """Whether the commit holds a metaData action."""
        return self.metadata != self._base.metadata  # the same again would collide with what other writers do

    @property
    def changes_protocol(self) -> bool:
        """Whether the commit holds a protocol action."""
        return self.protocol is not self._base.protocol

    @property
    def is_changed(self) -> bool:
        """Whether the commit holds a metaData or a protocol action."""
        return self.changes_metadata or self.changes_protocol

    @property
    def table_protocol(self) -> TableProtocol:
        """The protocol as the neutral value."""
        return table_protocol(self.protocol)

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return self.metadata.properties

    @property
    def schema(self) -> Schema:
        """The columns, with the names and ids of column mapping where it is on."""
        if self._schema is None or self._schema[0] is not self.metadata:
            schema = table_schema(self.metadata.schema_string, self.table_protocol, self.properties)
            self._schema = self.metadata, schema
        return self._schema[1]

    @property
    def partition_columns(self) -> list[str]:
        """The names of the partition columns, in order."""
        return self.metadata.partition_columns or []

    @property
    def partitions(self) -> list[Field]:
        """The partition columns."""
        return partition_fields(self.schema, self.partition_columns)

    def supports(self, feature: str) -> bool:
        """Whether the protocol names a table feature. Legacy versions imply theirs: ask `features` for those."""
        return feature in (self.protocol.writer_features or ())

    def enables(self, feature: str, name: str) -> bool:
        """Whether a feature is supported and the property that turns it on is true."""
        return self.supports(feature) and is_true(self.properties, name)

    @property
    def widens_types(self) -> bool:
        """Whether columns may get wider types."""
        features = ("typeWidening", "typeWidening-preview")
        return any(self.enables(feature, "delta.enableTypeWidening") for feature in features)

    def change_metadata(self, *, features: Collection[str] = (), **changes: Any) -> None:
        """Replace fields of the metaData action; the protocol is upgraded to what the change needs, and `features`.

        UnsupportedTableError for a feature that is not written here.
        """
        metadata = msgspec.structs.replace(self.metadata, **changes)
        new_features = active_features(metadata) - active_features(self._base.metadata)
        self.support(new_features | set(features))
        self.metadata = metadata

    def support(self, features: Collection[str]) -> None:
        """Let the protocol name these features too, and those that they need.

        UnsupportedTableError for one that is not written here, InvalidRequestError for clustering beside partitions.
        """
        check_clustering(features, self.partition_columns, self._address)
        self.protocol = upgrade_protocol(self.protocol, features, self._address)

    def support_dependencies(self) -> None:
        """Let the protocol name the features that those which it names depend on; other writers may have left them
        out."""
        self.support(with_required(frozenset(self.protocol.writer_features or ())))

    def change_schema(self, schema: Schema) -> None:
        """Replace the schema; columns that have no id and no physical name get them where columns are mapped."""
        configuration = dict(self.metadata.configuration or {})
        if column_mapping_mode(self.table_protocol, self.properties) != "none":
            schema = with_column_ids(schema, configuration)
        self.change_metadata(schema_string=schema_text(schema), configuration=configuration)

    def change_partitions(self, names: Sequence[str]) -> None:
        """Replace the partition columns. InvalidRequestError for a table that is clustered."""
        check_clustering(self.protocol.writer_features or (), names, self._address)
        self.change_metadata(partition_columns=list(names))

    def replace(
        self,
        schema: Schema,
        partition_by: Sequence[str],
        properties: Mapping[str, str],
        description: str | None,
        features: Collection[str],
    ) -> None:
        """Make it that of another table: of the properties stay those that files, ids and times of commits need.

        InvalidRequestError for another way of mapping columns, and for clustering beside partitions.
        """
        own = self.metadata.configuration or {}
        configuration = {key: text for key, text in own.items() if key.startswith(_STAYS)} | dict(properties)
        mode = column_mapping_mode(self.table_protocol, self.properties, self._address)
        self._check_mapping(mode, _mode(configuration))
        if _mode(configuration) != "none":
            schema = with_column_ids(schema, configuration)
        if is_true(configuration, ROW_TRACKING):
            self._start_row_tracking(configuration)
        check_clustering(self.protocol.writer_features or (), partition_by, self._address)
        # before the features: clustering is checked against the partitions that the table gets
        self.metadata = msgspec.structs.replace(self.metadata, partition_columns=list(partition_by))
        self.change_metadata(
            features=features, schema_string=schema_text(schema), configuration=configuration, description=description
        )

    def change_properties(self, properties: Mapping[str, str | None]) -> None:
        """Set properties, or unset those that are None; what their features keep in others is set as well.

        InvalidRequestError for a change of column mapping that would leave files unreadable.
        """
        before = self.properties
        configuration = {**(self.metadata.configuration or {}), **properties}
        configuration = {key: text for key, text in configuration.items() if text is not None}
        schema = self.schema
        # a property that is there without its feature has no force: who sets it again, or the feature, means it
        features = frozenset(property_features({k: v for k, v in properties.items() if v is not None}))
        mode = column_mapping_mode(self.table_protocol, before, self._address)
        if _MAPPING_MODE in properties or "columnMapping" in features:
            self._check_mapping(mode, _mode(configuration))
            if _mode(configuration) != "none" and mode == "none":
                schema = with_column_ids(schema, configuration, keep_names=True)
        starts = "rowTracking" in features and not self.enables("rowTracking", ROW_TRACKING)
        if starts and is_true(configuration, ROW_TRACKING):
            self._start_row_tracking(configuration)
        self.change_metadata(features=features, schema_string=schema_text(schema), configuration=configuration)

    def remove_column_metadata(self, prefix: str) -> None:
        """Take what begins so out of the metadata of columns and fields, and out of the properties."""

        def without(field: Field) -> Field:
            metadata = {key: value for key, value in field.metadata.items() if not key.startswith(prefix)}
            return replace(field, metadata=metadata, type=map_fields(field.type, without))

        own = self.metadata.configuration or {}
        configuration = {key: text for key, text in own.items() if not key.startswith(prefix)}
        schema = Schema(tuple(map(without, self.schema)))
        self.change_metadata(schema_string=schema_text(schema), configuration=configuration)

    def _start_row_tracking(self, configuration: dict[str, str | None]) -> None:
        if is_true(configuration, SUSPENDED):
            raise InvalidRequestError(
                f"row tracking of {self._address} is suspended ({SUSPENDED}): files get no row ids, which it needs",
                fix=f"set {SUSPENDED} to false with it",
                place=SUSPENDED,
                kind="row-tracking-suspended",
            )
        for key in MATERIALIZED.values():
            configuration.setdefault(key, f"_row-{uuid.uuid4()}")

    def _check_mapping(self, old: str, new: str) -> None:
        if old != new and (old, new) != ("none", "name"):
            raise InvalidRequestError(
                f"columns of {self._address} are mapped by {old}, which cannot become {new}",
                fix="set it to name, from none alone; id is chosen when a table is created",
                place=_MAPPING_MODE,
                kind="column-mapping-change",
            )

    def starts_row_tracking(self) -> bool:
        """Whether the commit turns row tracking on: every live file needs ids then."""
        is_old = "rowTracking" in (self._base.protocol.writer_features or ()) and is_true(
            self._base.properties, ROW_TRACKING
        )
        return not is_old and self.enables("rowTracking", ROW_TRACKING)

    def adopt(self, newest: Replay) -> None:
        """Take over what another commit made of the definition, except for what ours changes."""
        if not self.changes_metadata:
            self.metadata = newest.metadata
        if not self.changes_protocol:
            self.protocol = newest.protocol
        self._base = newest

    def check_writable(self) -> None:
        """UnsupportedTableError, naming feature or property, for a table that this writer must not write."""
        check_writable(self.table_protocol, active_features(self.metadata), self._address)
        check_honoured(self.properties, self._address)
        check_reserved_columns(self.schema, self.properties)

    def actions(self, version: int, in_commit: datetime | None) -> Iterator[tuple[str, Any]]:
        """The protocol and metaData actions of the commit, as far as it changes them.

        A commit that turns in-commit timestamps on says from which version and moment on they count.
        """
        if self.changes_protocol:
            yield "protocol", self.protocol
        metadata = self.metadata
        base = self._base
        if in_commit is not None and in_commit_start(table_protocol(base.protocol), base.properties) is None:
            enablement = {_ENABLED_FROM: str(version), _ENABLED_AT: str(milliseconds(in_commit))}
            metadata = msgspec.structs.replace(metadata, configuration={**(metadata.configuration or {}), **enablement})
        if metadata is not base.metadata:
            yield "metaData", metadata


def _mode(properties: Mapping[str, str | None]) -> str:
    return (properties.get(_MAPPING_MODE) or "none").lower()
