"""A metadata file to values: schemas, partition specs, sort orders, snapshots, refs and logs, of versions 1 to 3
(iceberg spec, Table Metadata). Unknown fields are skipped; what a reader does not need may be missing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from lakeview.iceberg.metadata.documents import corrupt, inflate, invalid
from lakeview.iceberg.metadata.partition_fields import PartitionSpec, is_id, parse_spec
from lakeview.iceberg.metadata.snapshots import (
    NO_SNAPSHOT,
    Int,
    Long,
    MetadataLogEntry,
    SnapshotEntry,
    SnapshotLogEntry,
    SnapshotReference,
)
from lakeview.iceberg.metadata.type_changes import unreadable_bounds
from lakeview.iceberg.metadata.types import parse_schema
from lakeview.model.errors import LakeviewError, UnsupportedTableError
from lakeview.model.schema import Schema

NEWEST_VERSION = 3


class _MetadataDocument(msgspec.Struct, frozen=True, rename="kebab"):
    format_version: Long
    location: str | None = None
    table_uuid: str | None = None
    view_uuid: Any = None
    last_updated_ms: Long | None = None
    last_sequence_number: Long = 0
    last_column_id: Long | None = None
    last_partition_id: Long | None = None
    next_row_id: Long | None = None
    schema: msgspec.Raw = msgspec.Raw(b"")
    schemas: list[msgspec.Raw] | None = None
    current_schema_id: Int | None = None
    partition_spec: list[dict[str, Any]] | None = None
    partition_specs: list[dict[str, Any]] | None = None
    default_spec_id: Int | None = None
    sort_orders: list[dict[str, Any]] | None = None
    default_sort_order_id: Int | None = None
    properties: dict[str, Any] | None = None
    current_snapshot_id: Long | None = None
    snapshots: list[SnapshotEntry] | None = None
    snapshot_log: list[SnapshotLogEntry] | None = None
    metadata_log: list[MetadataLogEntry] | None = None
    refs: dict[str, SnapshotReference] | None = None
    statistics: list[Any] | None = None
    partition_statistics: list[Any] | None = None
    encryption_keys: list[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class RecordedSchema:
    """A schema of the table. `text`: the JSON as recorded; `identifier_field_ids` name the columns that tell rows
    apart."""

    schema_id: int
    schema: Schema
    identifier_field_ids: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """A table as one metadata file describes it. Everything by id; order as recorded."""

    format_version: int
    table_uuid: str | None
    location: str | None
    last_updated_ms: int | None
    last_sequence_number: int
    last_column_id: int | None
    last_partition_id: int | None
    schemas: Mapping[int, RecordedSchema]
    current_schema_id: int
    specs: Mapping[int, PartitionSpec]
    default_spec_id: int
    sort_orders: tuple[Mapping[str, Any], ...]
    default_sort_order_id: int | None
    properties: Mapping[str, str]
    current_snapshot_id: int
    snapshots: Mapping[int, SnapshotEntry]
    snapshot_log: tuple[SnapshotLogEntry, ...]
    metadata_log: tuple[MetadataLogEntry, ...]
    refs: Mapping[str, SnapshotReference]
    statistics: tuple[Mapping[str, Any], ...]
    partition_statistics: tuple[Mapping[str, Any], ...]
    is_encrypted: bool
    unreadable_bounds: frozenset[int]
    """The ids of columns whose types were changed as no schema may: bounds in their files are not read."""

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schemas[self.current_schema_id].schema

    @property
    def schemas_by_age(self) -> list[RecordedSchema]:
        """All schemas, oldest first, but the current one last, which may be an old one again."""
        return sorted(self.schemas.values(), key=lambda s: (s.schema_id == self.current_schema_id, s.schema_id))

    @property
    def spec(self) -> PartitionSpec:
        """The spec that new files are written with."""
        return self.specs[self.default_spec_id]

    @property
    def unpartitioned_specs(self) -> list[int]:
        """The specs whose equality deletes apply to every file."""
        return [spec.spec_id for spec in self.specs.values() if spec.is_unpartitioned]

    def schema_of(self, snapshot: SnapshotEntry | None) -> RecordedSchema:
        """The schema a snapshot was written with; the current one where it does not say, as in version 1."""
        schema_id = None if snapshot is None else snapshot.schema_id
        return self.schemas.get(
            self.current_schema_id if schema_id is None else schema_id, self.schemas[self.current_schema_id]
        )


def parse_metadata(data: bytes, path: str, max_depth: int = 64) -> Metadata:
    """A metadata file, gzip or not by its own first bytes.

    CorruptTableError ("invalid-metadata", or "corrupt-file" where it is no JSON at all), UnsupportedTableError for a
    version this reader does not know and for a view.
    """
    try:
        return _validate(_decode(inflate(data, path), path), path, max_depth)
    except LakeviewError as error:
        error.place = error.place or path
        raise


def _decode(text: bytes, path: str) -> _MetadataDocument:
    try:
        return msgspec.json.decode(text, type=_MetadataDocument)
    except msgspec.ValidationError as error:
        _refuse_version(text, path)
        raise invalid(path, str(error)) from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise corrupt(path, str(error) or type(error).__name__) from error


def _refuse_version(text: bytes, path: str) -> None:
    """A newer version may spell fields differently: its number is said before what does not fit."""

    class Version(msgspec.Struct, frozen=True, rename="kebab"):
        format_version: Any = None

    try:
        version = msgspec.json.decode(text, type=Version).format_version
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return
    _check_version(version, path)


def _check_version(version: Any, path: str) -> None:
    if isinstance(version, int) and version > NEWEST_VERSION:
        raise UnsupportedTableError(
            f"{path} has the format version {version}, and this reader knows 1 to {NEWEST_VERSION}",
            fix="upgrade lakeview, or read the table with a newer engine",
            place=path,
            kind="unsupported-version",
        )


def _properties(document: _MetadataDocument) -> dict[str, str]:
    """Properties as text; writers record some as numbers or booleans."""
    properties = document.properties or {}
    return {k: v if isinstance(v, str) else msgspec.json.encode(v).decode() for k, v in properties.items()}


def _current_snapshot(document: _MetadataDocument, snapshots: Mapping[int, SnapshotEntry], path: str) -> int:
    current = document.current_snapshot_id
    if current is None or current == NO_SNAPSHOT:
        # "must be the same as the current ID of the main branch in refs"  iceberg spec, Table Metadata Fields
        main = (document.refs or {}).get("main")
        current = NO_SNAPSHOT if main is None else main.snapshot_id
    if current != NO_SNAPSHOT and current not in snapshots:  # never an empty table: rows would vanish without a word
        raise invalid(path, f"current-snapshot-id is {current}, but no snapshot in its list has this id")
    return current


def _refuse_view(document: _MetadataDocument, path: str) -> None:
    # "view-uuid: A UUID that identifies the view"  iceberg view spec, View Metadata
    if document.view_uuid is not None and document.table_uuid is None:
        raise UnsupportedTableError(
            f"{path} describes a view, which has no files of its own",
            fix="open the tables that it is made of",
            place=path,
            kind="view",
        )


def _validate(document: _MetadataDocument, path: str, max_depth: int) -> Metadata:
    _refuse_view(document, path)
    version = document.format_version
    _check_version(version, path)
    if version < 1:
        raise invalid(path, f"the format version is {version}")
    schemas, current_schema_id = _schemas(document, path, max_depth)
    specs, default_spec_id = _specs(document, path)
    snapshots = {s.snapshot_id: s for s in document.snapshots or ()}
    current = _current_snapshot(document, snapshots, path)
    refs = dict(document.refs or {})
    if current != NO_SNAPSHOT:
        refs.setdefault("main", SnapshotReference(current))
    return Metadata(
        format_version=version,
        table_uuid=document.table_uuid,
        location=document.location,
        last_updated_ms=document.last_updated_ms,
        last_sequence_number=document.last_sequence_number,
        last_column_id=document.last_column_id,
        last_partition_id=document.last_partition_id,
        schemas=schemas,
        current_schema_id=current_schema_id,
        specs=specs,
        default_spec_id=default_spec_id,
        sort_orders=tuple(o for o in document.sort_orders or () if is_id(o.get("order-id"))),
        default_sort_order_id=document.default_sort_order_id,
        properties=_properties(document),
        current_snapshot_id=current,
        snapshots=snapshots,
        snapshot_log=tuple(document.snapshot_log or ()),
        metadata_log=tuple(document.metadata_log or ()),
        refs=refs,
        statistics=_objects(document.statistics),
        partition_statistics=_objects(document.partition_statistics),
        is_encrypted=bool(document.encryption_keys),
        unreadable_bounds=frozenset() if len(schemas) == 1 else unreadable_bounds(s.schema for s in schemas.values()),
    )


def _objects(values: Iterable[Any] | None) -> tuple[dict[str, Any], ...]:
    return tuple(value for value in values or () if isinstance(value, dict))


def _schemas(document: _MetadataDocument, path: str, max_depth: int) -> tuple[dict[int, RecordedSchema], int]:
    """Version 1 has one schema in the singular and may have all of them beside it (Appendix E)."""
    texts = document.schemas
    if not texts:
        if document.format_version > 1 or not _present(document.schema):
            raise invalid(path, "it has no schemas")
        texts = [document.schema]
    schemas = {}
    for raw in texts:
        recorded_schema = _recorded_schema(bytes(raw), path, max_depth)
        schemas[recorded_schema.schema_id] = recorded_schema
    current = document.current_schema_id
    if current is None:
        # "schema" is required in version 1 and says which one is current where there is no id (Table Metadata Fields)
        if document.format_version > 1 or not _present(document.schema):
            raise invalid(path, "it has no current-schema-id")
        current = _recorded_schema(bytes(document.schema), path, max_depth).schema_id
    if current not in schemas:
        raise invalid(path, f"current-schema-id is {current}, which is none of its schemas")
    return schemas, current


def _present(raw: msgspec.Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _recorded_schema(raw: bytes, path: str, max_depth: int) -> RecordedSchema:
    try:
        document, text = msgspec.json.decode(raw), raw.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(path, f"a schema cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise invalid(path, "a schema is no object")
    schema_id, identifiers = document.get("schema-id", 0), document.get("identifier-field-ids") or []
    if not is_id(schema_id) or not isinstance(identifiers, list):
        raise invalid(path, f"a schema has the id {schema_id!r}")
    ids = tuple(i for i in identifiers if isinstance(i, int))
    return RecordedSchema(schema_id, parse_schema(document, max_depth), ids, text)


def _specs(document: _MetadataDocument, path: str) -> tuple[dict[int, PartitionSpec], int]:
    documents = document.partition_specs
    if documents is None or (not documents and document.format_version == 1):
        if document.format_version > 1 or document.partition_spec is None:
            raise invalid(path, "it has no partition-specs")
        documents = [{"spec-id": 0, "fields": document.partition_spec}]
    specs = {s.spec_id: s for s in (parse_spec(d, path) for d in documents)}
    default = document.default_spec_id
    if default is None:
        if document.format_version > 1:
            raise invalid(path, "it has no default-spec-id")
        default = max(specs, default=0)
    if default not in specs:
        raise invalid(path, f"default-spec-id is {default}, which is none of its partition specs")
    return specs, default
