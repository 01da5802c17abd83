"""The metadata and the protocol of a table, as a commit leaves them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from lakeview.delta.data.column_mapping import table_schema
from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.features import check_writable
from lakeview.delta.log.actions import Metadata
from lakeview.delta.log.replay import Replay, table_protocol
from lakeview.delta.write.property_checks import check_honoured
from lakeview.delta.write.rules import active_features, check_supported
from lakeview.model.schema import Field, Schema
from lakeview.model.snapshot import TableProtocol


class Definition:
    """What a table is, beside its files: as a transaction found it, and with what it changes.

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
        return self.metadata is not self._base.metadata

    @property
    def changes_protocol(self) -> bool:
        """Whether the commit holds a protocol action."""
        return self.protocol is not self._base.protocol

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
            found = table_schema(self.metadata.schema_string, self.table_protocol, self.properties)
            self._schema = self.metadata, found
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
        return self.supports(feature) and self.properties.get(name, "").lower() == "true"

    def change_metadata(self, **changes: Any) -> None:
        """Replace fields of the metaData action. UnsupportedTableError for a feature that the protocol lacks."""
        changed = msgspec.structs.replace(self.metadata, **changes)
        check_supported(self._base.metadata, changed, self.table_protocol, self._address)
        self.metadata = changed

    def adopt(self, newest: Replay) -> None:
        """Take over what another commit made of the definition, beside what ours changes."""
        if not self.changes_metadata:
            self.metadata = newest.metadata
        if not self.changes_protocol:
            self.protocol = newest.protocol
        self._base = newest

    def check_writable(self) -> None:
        """UnsupportedTableError, naming feature or property, for a table that this writer must not write."""
        check_writable(self.table_protocol, active_features(self.metadata), self._address)
        check_honoured(self.properties, self._address)

    def actions(self) -> Iterator[tuple[str, Any]]:
        """The protocol and metaData actions of the commit, as far as it changes them."""
        if self.changes_protocol:
            yield "protocol", self.protocol
        if self.changes_metadata:
            yield "metaData", self.metadata
