"""A metadata file to values: schemas, partition specs, sort orders, snapshots, refs and logs, of versions 1 to 3
(iceberg spec, Table Metadata). Unknown fields are skipped; what a reader does not need may be missing."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeGuard

import msgspec

from lakeview.iceberg.metadata.transforms import Transform, parse_transform
from lakeview.iceberg.metadata.types import parse_schema
from lakeview.model import limits
from lakeview.model.errors import CorruptTableError, LakeviewError, UnsupportedTableError
from lakeview.model.schema import Schema

Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""64 bits: JSON has larger numbers, and some writers use them; such a table is corrupt."""
Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

NEWEST_VERSION = 3
NO_SNAPSHOT = -1
"""How a table without a snapshot is numbered; metadata spells it -1, null, or not at all."""


class SnapshotEntry(msgspec.Struct, frozen=True, gc=False, rename="kebab"):
    """One snapshot as recorded. Times in milliseconds since 1970; version 1 may list its manifests inline."""

    snapshot_id: Long
    timestamp_ms: Long
    parent_snapshot_id: Long | None = None
    sequence_number: Long = 0
    manifest_list: str | None = None
    manifests: list[str] | None = None
    recorded_summary: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="summary")
    schema_id: Int | None = None
    first_row_id: Long | None = None
    added_rows: Long | None = None
    key_id: str | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """What its writer told of it, decoded when asked; nothing where that is no object."""
        try:
            found = msgspec.json.decode(self.recorded_summary)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def operation(self) -> str | None:
        """append, replace, overwrite, delete, or what else the writer said; None without a summary."""
        found = self.summary.get("operation")
        return found if isinstance(found, str) else None

    @property
    def parent(self) -> int | None:
        """The snapshot before this one on its branch."""
        return None if self.parent_snapshot_id in (None, NO_SNAPSHOT) else self.parent_snapshot_id


class SnapshotReference(msgspec.Struct, frozen=True, gc=False, rename="kebab"):
    """A branch or a tag, with its retention."""

    snapshot_id: Long
    type: str = "branch"
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None


class SnapshotLogEntry(msgspec.Struct, frozen=True, gc=False, rename="kebab"):
    """When a snapshot became the current one."""

    timestamp_ms: Long
    snapshot_id: Long


class MetadataLogEntry(msgspec.Struct, frozen=True, gc=False, rename="kebab"):
    """A metadata file that was current before."""

    timestamp_ms: Long
    metadata_file: str


class _Recorded(msgspec.Struct, frozen=True, rename="kebab"):
    format_version: Long
    location: str | None = None
    table_uuid: str | None = None
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
    statistics: list[dict[str, Any]] | None = None
    partition_statistics: list[dict[str, Any]] | None = None
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
class PartitionField:
    """One part of a partition tuple: a transform of a column, addressed in manifests by `field_id`."""

    field_id: int
    name: str
    transform: Transform
    source_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """How files of this spec are partitioned."""

    spec_id: int
    fields: tuple[PartitionField, ...]

    @property
    def is_unpartitioned(self) -> bool:
        """Whether the tuple says nothing: no fields, or only void ones. Such a delete file is global."""
        return all(f.transform.name == "void" for f in self.fields)


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
    encrypted: bool

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schemas[self.current_schema_id].schema

    @property
    def spec(self) -> PartitionSpec:
        """The spec that new files are written with."""
        return self.specs[self.default_spec_id]

    def schema_of(self, snapshot: SnapshotEntry | None) -> RecordedSchema:
        """The schema a snapshot was written with; the current one where it does not say, as in version 1."""
        wanted = None if snapshot is None else snapshot.schema_id
        return self.schemas.get(
            self.current_schema_id if wanted is None else wanted, self.schemas[self.current_schema_id]
        )


def parse_metadata(data: bytes, path: str, max_depth: int = 64) -> Metadata:
    """A metadata file, gzip or not by its own first bytes.

    CorruptTableError ("invalid-metadata", or "corrupt-file" where it is no JSON at all), UnsupportedTableError for a
    version this reader does not know.
    """
    try:
        return _checked(_decoded(_inflated(data, path), path), path, max_depth)
    except LakeviewError as error:
        error.place = error.place or path
        raise


def _inflated(data: bytes, path: str) -> bytes:
    if not data.startswith(b"\x1f\x8b"):  # the name is no witness: both spellings and wrong ones occur
        return data
    inflator = zlib.decompressobj(31)
    try:
        text = inflator.decompress(data, limits.METADATA_BYTES)
    except zlib.error as error:
        raise _corrupt(path, f"its gzip stream is broken: {error}") from error
    if inflator.unconsumed_tail:
        raise UnsupportedTableError(
            f"{path} inflates to more than {limits.METADATA_BYTES:,} bytes",
            fix="have the table's old snapshots expired",
            place=path,
            kind="too-large",
        )
    if not inflator.eof:
        raise _corrupt(path, "its gzip stream is cut off")
    return text


def _decoded(text: bytes, path: str) -> _Recorded:
    try:
        return msgspec.json.decode(text, type=_Recorded)
    except msgspec.ValidationError as error:
        _refuse_version(text, path)
        raise _invalid(path, str(error)) from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _corrupt(path, str(error) or type(error).__name__) from error


def _refuse_version(text: bytes, path: str) -> None:
    """A newer version may spell fields differently: its number is said before what does not fit."""

    class Version(msgspec.Struct, frozen=True, rename="kebab"):
        format_version: Any = None

    try:
        found = msgspec.json.decode(text, type=Version).format_version
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return
    _check_version(found, path)


def _check_version(version: Any, path: str) -> None:
    if isinstance(version, int) and version > NEWEST_VERSION:
        raise UnsupportedTableError(
            f"{path} has the format version {version}, and this reader knows 1 to {NEWEST_VERSION}",
            fix="upgrade lakeview, or read the table with a newer engine",
            place=path,
            kind="unsupported-version",
        )


def _properties(document: _Recorded) -> dict[str, str]:
    """Properties as text; writers record some as numbers or booleans."""
    properties = document.properties or {}
    return {k: v if isinstance(v, str) else msgspec.json.encode(v).decode() for k, v in properties.items()}


def _current_snapshot(document: _Recorded, snapshots: Mapping[int, SnapshotEntry], path: str) -> int:
    current = NO_SNAPSHOT if document.current_snapshot_id is None else document.current_snapshot_id
    if current != NO_SNAPSHOT and current not in snapshots:  # never an empty table: rows would vanish without a word
        raise _invalid(path, f"current-snapshot-id is {current}, which is not among its {len(snapshots)} snapshots")
    return current


def _checked(document: _Recorded, path: str, max_depth: int) -> Metadata:
    version = document.format_version
    _check_version(version, path)
    if version < 1:
        raise _invalid(path, f"the format version is {version}")
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
        sort_orders=tuple(o for o in document.sort_orders or () if _is_id(o.get("order-id"))),
        default_sort_order_id=document.default_sort_order_id,
        properties=_properties(document),
        current_snapshot_id=current,
        snapshots=snapshots,
        snapshot_log=tuple(document.snapshot_log or ()),
        metadata_log=tuple(document.metadata_log or ()),
        refs=refs,
        statistics=tuple(document.statistics or ()),
        partition_statistics=tuple(document.partition_statistics or ()),
        encrypted=bool(document.encryption_keys),
    )


def _schemas(document: _Recorded, path: str, max_depth: int) -> tuple[dict[int, RecordedSchema], int]:
    """Version 1 has one schema in the singular and may have all of them beside it (Appendix E)."""
    texts = document.schemas
    if not texts:
        if document.format_version > 1 or not _present(document.schema):
            raise _invalid(path, "it has no schemas")
        texts = [document.schema]
    schemas = {}
    for raw in texts:
        recorded = _recorded_schema(bytes(raw), path, max_depth)
        schemas[recorded.schema_id] = recorded
    current = document.current_schema_id
    if current is None:
        # "schema" is required in version 1 and says which one is current where there is no id (Table Metadata Fields)
        if document.format_version > 1 or not _present(document.schema):
            raise _invalid(path, "it has no current-schema-id")
        current = _recorded_schema(bytes(document.schema), path, max_depth).schema_id
    if current not in schemas:
        raise _invalid(path, f"current-schema-id is {current}, which is none of its schemas")
    return schemas, current


def _present(raw: msgspec.Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _recorded_schema(raw: bytes, path: str, max_depth: int) -> RecordedSchema:
    try:
        document, text = msgspec.json.decode(raw), raw.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(path, f"a schema cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise _invalid(path, "a schema is no object")
    schema_id, identifiers = document.get("schema-id", 0), document.get("identifier-field-ids") or []
    if not _is_id(schema_id) or not isinstance(identifiers, list):
        raise _invalid(path, f"a schema has the id {schema_id!r}")
    ids = tuple(i for i in identifiers if isinstance(i, int))
    return RecordedSchema(schema_id, parse_schema(document, max_depth), ids, text)


def _specs(document: _Recorded, path: str) -> tuple[dict[int, PartitionSpec], int]:
    documents = document.partition_specs
    if documents is None or (not documents and document.format_version == 1):
        if document.format_version > 1 or document.partition_spec is None:
            raise _invalid(path, "it has no partition-specs")
        documents = [{"spec-id": 0, "fields": document.partition_spec}]
    specs = {s.spec_id: s for s in (_spec(d, path) for d in documents)}
    default = document.default_spec_id
    if default is None:
        if document.format_version > 1:
            raise _invalid(path, "it has no default-spec-id")
        default = max(specs, default=0)
    if default not in specs:
        raise _invalid(path, f"default-spec-id is {default}, which is none of its partition specs")
    return specs, default


def _spec(document: Mapping[str, Any], path: str) -> PartitionSpec:
    spec_id, fields = document.get("spec-id"), document.get("fields")
    if not _is_id(spec_id) or not isinstance(fields, list):
        raise _invalid(path, f"a partition spec has the id {spec_id!r} and {type(fields).__name__} for fields")
    return PartitionSpec(spec_id, parse_partition_fields(fields, path))


def parse_partition_fields(fields: list[Any], path: str) -> tuple[PartitionField, ...]:
    """The fields of a spec; version 1 leaves their ids out, which then count from 1000."""
    found = []
    for position, document in enumerate(fields):
        if not isinstance(document, dict):
            raise _invalid(path, f"{document!r} is no partition field")
        field_id, name = document.get("field-id", 1000 + position), document.get("name")
        sources = document.get("source-ids", [document.get("source-id")])
        whole = _is_id(field_id) and isinstance(sources, list) and sources and all(map(_is_id, sources))
        if not whole or not isinstance(name, str) or not isinstance(document.get("transform"), str):
            raise _invalid(path, f"a partition field cannot be understood: {document!r}")
        found.append(PartitionField(field_id, name, parse_transform(document["transform"]), tuple(sources)))
    return tuple(found)


def _is_id(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31


def _invalid(path: str, what: str) -> CorruptTableError:
    return CorruptTableError(
        f"{path} is no valid table metadata: {what}",
        fix="open an older metadata file of the table, or have its writer repair it",
        place=path,
        kind="invalid-metadata",
    )


def _corrupt(path: str, what: str) -> CorruptTableError:
    return CorruptTableError(
        f"{path} cannot be read as JSON: {what}",
        fix="restore the file, or open an older metadata file of the table",
        place=path,
        kind="corrupt-file",
    )
