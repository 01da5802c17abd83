"""The conformance folder to golden Iceberg tables: what a conforming reader must find in each; null is "not known"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.golden.conformance import conformance_root


class IcebergRefusal(msgspec.Struct, frozen=True):
    """Why a table, or a snapshot of it, cannot be read, and at which stage."""

    kind: str
    stage: str
    detail: str | None = None
    lenient_ok: bool = False
    accept_kinds: list[str] | None = None


class Column(msgspec.Struct, frozen=True):
    """A column: its id, name, and type as Iceberg writes it."""

    id: int
    name: str
    type: str
    required: bool


class PartitionPart(msgspec.Struct, frozen=True):
    """One field of the current partition spec."""

    source: str | None
    transform: str
    name: str


class IcebergFile(msgspec.Struct, frozen=True):
    """A live data or delete file. Bounds by field id, decoded."""

    path: str
    content: int
    format: str
    record_count: int
    file_size_in_bytes: int
    spec_id: int
    sequence_number: int
    partition: dict[str, Any]
    equality_ids: list[int] | None
    referenced_data_file: str | None
    lower_bounds: dict[str, Any] | None = None
    upper_bounds: dict[str, Any] | None = None


class Current(msgspec.Struct, frozen=True):
    """The current snapshot, in the table's current schema."""

    metadata_file: str
    snapshot_id: int | None
    num_data_files: int | None
    num_delete_files: int | None
    num_rows: int | None
    columns: list[Column]
    partition_spec: list[PartitionPart]
    identifier_field_ids: list[int]
    rows: str | None
    record_count_sum: int | None = None
    files: list[IcebergFile] | None = None


class RecordedSnapshot(msgspec.Struct, frozen=True):
    """One snapshot, rows in its own schema. Times in milliseconds since 1970."""

    sequence_number: int | None
    timestamp_ms: int
    parent_id: int | None
    schema_id: int | None
    operation: str | None
    num_data_files: int | None
    num_delete_files: int | None
    num_rows: int | None
    rows: str | None
    error: IcebergRefusal | None = None


class MetadataVersion(msgspec.Struct, frozen=True):
    """Another metadata file of the table, opened by its own name."""

    format_version: int | None = None
    snapshot_id: int | None = None
    num_rows: int | None = None
    rows: str | None = None
    error: IcebergRefusal | None = None


class Ref(msgspec.Struct, frozen=True):
    """A branch or a tag."""

    type: str
    snapshot_id: int


class Rewrite(msgspec.Struct, frozen=True):
    """A recorded prefix and where it lies now, relative to the golden folder."""

    from_: str = msgspec.field(name="from")
    to: str = ""


class IcebergExpected(msgspec.Struct, frozen=True):
    """expected.json of an Iceberg table."""

    features: list[str]
    format_version: int | None
    error: IcebergRefusal | None
    path_rewrite_extra: list[Rewrite] | None
    discovery: str
    current: Current | None
    snapshots: dict[str, RecordedSnapshot]
    refs: dict[str, Ref] | None
    schemas: int | None
    specs: int | None
    metadata_versions: dict[str, MetadataVersion]
    properties: dict[str, str] | None = None


class GoldenIceberg(msgspec.Struct, frozen=True):
    """A table and what must be found in it."""

    name: str
    folder: Path
    expected: IcebergExpected

    @property
    def path(self) -> str:
        """The address to open: the folder, or the metadata file where the table is found through that only."""
        table = self.folder / "table"
        if self.expected.discovery == "explicit" and self.expected.current is not None:
            return str(table / "metadata" / self.expected.current.metadata_file)
        return str(table)

    @property
    def relocate(self) -> dict[str, str]:
        """What the user has to say about where files lie now."""
        return {r.from_: str(self.folder / r.to) for r in self.expected.path_rewrite_extra or ()}


def iceberg_tables() -> list[GoldenIceberg]:
    """Every Iceberg table of the conformance folder, by name; none where the folder is absent."""
    return [
        GoldenIceberg(path.parent.name, path.parent, msgspec.json.decode(path.read_bytes(), type=IcebergExpected))
        for path in sorted(conformance_root().glob("iceberg/*/expected.json"))
    ]
