"""The actions of a Delta log, as the protocol spells them (delta protocol, Actions). Unknown fields are skipped."""

from typing import Annotated, Any, ClassVar

import msgspec

from lakeview.delta.features import LEGACY_WRITER_FEATURES, MAX_WRITER_VERSION
from lakeview.model.table_metadata import TableProtocol

Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""The protocol's Long. JSON has larger numbers; one of those is an error in its line, not later in a frame."""


# What a log has most of is kept out of the garbage collector's books: it walks a million young structs again and again,
# and none is in a cycle.


class DeletionVectorDescriptor(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Which rows of a file are deleted (today's protocol, Deletion Vectors)."""

    storage_type: str
    path_or_inline_dv: str = msgspec.field(name="pathOrInlineDv")
    size_in_bytes: Long
    cardinality: Long
    offset: Long | None = None

    @property
    def unique_id(self) -> str:
        """storageType + pathOrInlineDv, with `@offset` if there is one: half of a file action's key."""
        tail = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{tail}"


class AddFile(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A file that is part of the table from this version on. `size` in bytes, times in milliseconds since 1970.

    `path` as recorded: a URI, percent-encoded. `stats` is JSON text.
    """

    added: ClassVar[bool] = True  # what the other kind has, so that columns are made of both kinds alike
    extended_file_metadata: ClassVar[None] = None

    path: str
    size: Long
    partition_values: dict[str, str | None] | None = None
    modification_time: Long | None = None
    data_change: bool = True
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None
    clustering_provider: str | None = None


class RemoveFile(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A file that is no longer part of the table; the action stays as a tombstone until it expires."""

    added: ClassVar[bool] = False
    stats: ClassVar[None] = None
    clustering_provider: ClassVar[None] = None

    path: str
    deletion_timestamp: Long | None = None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: dict[str, str | None] | None = None
    size: Long | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None


class AddCDCFile(msgspec.Struct, frozen=True, rename="camel"):
    """A file that holds what its version changed, row by row (today's protocol, Add CDC File). No part of the table."""

    path: str
    partition_values: dict[str, str | None] | None = None
    size: Long | None = None
    data_change: bool = False
    tags: dict[str, str | None] | None = None


class Format(msgspec.Struct, frozen=True):
    """The encoding of data files."""

    provider: str = "parquet"
    options: dict[str, str | None] | None = msgspec.field(default_factory=dict)


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The table's identity, schema, partitioning and properties. A later one replaces it whole."""

    id: str | None = None
    name: str | None = None
    description: str | None = None
    format: Format = Format()
    schema_string: str | None = None
    partition_columns: list[str] | None = None
    created_time: Long | None = None
    configuration: dict[str, str | None] | None = None

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties; one recorded as null is not set."""
        return {k: v for k, v in (self.configuration or {}).items() if v is not None}


class Protocol(msgspec.Struct, frozen=True, rename="camel"):
    """What readers and writers must implement."""

    min_reader_version: int
    min_writer_version: int
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class Txn(msgspec.Struct, frozen=True, rename="camel"):
    """How far an application has got."""

    app_id: str
    version: Long
    last_updated: Long | None = None


class DomainMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """A named configuration that some feature owns."""

    domain: str
    configuration: str = ""
    removed: bool = False


class Action(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One line of a commit: exactly one of these is there; anything else on the line is unknown and skipped.

    `commit_info` is free-form: kept as raw JSON, empty if it is not there. So is `cdc`: only who asks for changes reads
    it. `cdc`, `sidecar` and `checkpointMetadata` never touch the file set.
    """

    add: AddFile | None = None
    remove: RemoveFile | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    txn: Txn | None = None
    commit_info: msgspec.Raw = msgspec.Raw(b"")
    domain_metadata: DomainMetadata | None = None
    cdc: msgspec.Raw = msgspec.Raw(b"")


def table_protocol(protocol: Protocol) -> TableProtocol:
    """A protocol action as the neutral value a Snapshot holds."""
    reader, writer = (None if f is None else tuple(f) for f in (protocol.reader_features, protocol.writer_features))
    return TableProtocol(protocol.min_reader_version, protocol.min_writer_version, reader, writer)


def version_text(protocol: Protocol) -> str:
    """`reader 3, writer 7`."""
    return f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"


def supported_features(protocol: Protocol) -> frozenset[str]:
    """The features that a protocol names, or implies by its legacy version."""
    version = protocol.min_writer_version
    implicit = {f for v, names in LEGACY_WRITER_FEATURES.items() if v <= version < MAX_WRITER_VERSION for f in names}
    # "it is not allowed to list a feature only in readerFeatures": one that is there alone is one of writers too
    return frozenset(implicit | set(protocol.writer_features or ()) | set(protocol.reader_features or ()))


def metadata_of(action: dict[str, Any]) -> Metadata:
    """A metaData action of a checkpoint, its maps in any encoding of Parquet."""
    if "format" in action:
        shape = {name: value for name, value in action["format"].items() if value is not None}
        action["format"] = {**shape, "options": _as_dict(shape.get("options"))}
    action["configuration"] = _as_dict(action.get("configuration"))
    return msgspec.convert(action, Metadata)


def _as_dict(value: object) -> dict[str, str | None]:
    """A Parquet map in any of its encodings as a dict: Arrow gives pairs, or a list of key-value structs."""
    if not value:
        return {}
    if isinstance(value, dict):
        return {str(k): v for k, v in value.items()}
    if isinstance(value, list):
        pairs = (e if isinstance(e, tuple) else (e["key"], e["value"]) for e in value)
        return {str(key): text for key, text in pairs}
    raise TypeError(f"a map was expected, found {type(value).__name__}")
