"""Snapshots, refs and logs as metadata files record them (iceberg spec, Snapshots; Table Metadata)."""

from typing import Annotated, Any

import msgspec

Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""64 bits: JSON has larger numbers, and some writers use them; such a table is corrupt."""

Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_IntText = Annotated[str, msgspec.Meta(pattern=r"^\d{1,9}$")]

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
    recorded_schema_id: Int | _IntText | None = msgspec.field(default=None, name="schema-id")
    first_row_id: Long | None = None
    added_rows: Long | None = None
    key_id: str | None = None

    @property
    def schema_id(self) -> int | None:
        """The schema it was written with; the specification shows its id as text (Table Metadata and Snapshots)."""
        return None if self.recorded_schema_id is None else int(self.recorded_schema_id)

    @property
    def summary(self) -> dict[str, Any]:
        """What its writer recorded of it, decoded when asked; nothing where that is no object."""
        try:
            summary = msgspec.json.decode(self.recorded_summary)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return summary if isinstance(summary, dict) else {}

    @property
    def operation(self) -> str | None:
        """append, replace, overwrite, delete, or what else the writer said; None without a summary."""
        operation = self.summary.get("operation")
        return operation if isinstance(operation, str) else None

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
