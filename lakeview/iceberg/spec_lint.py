"""Findings that cite a section of the Iceberg specification: of schemas and of delete files."""

from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from lakeview.iceberg.deletes.index import applying, is_vector
from lakeview.iceberg.metadata.table_metadata import Metadata, RecordedSchema
from lakeview.iceberg.metadata.type_changes import lengths, may_become
from lakeview.iceberg.metadata.types import struct_fields
from lakeview.model.data_types import DecimalType, PrimitiveType
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import first_few
from lakeview.model.schema import leaf_name

_HIGHEST_ID = 2**31 - 1 - 200
REMEDY = "have the table repaired by the engine that owns it"


def schema_findings(metadata: Metadata) -> Iterator[Finding]:
    """What the table's schemas contradict in the sections Schema Evolution, Reserved Field IDs and Identifier Field
    IDs."""
    current = metadata.schemas[metadata.current_schema_id]
    schema_ids = {metadata.schema_of(s).schema_id for s in metadata.snapshots.values()} - {current.schema_id}
    yield from _changes([metadata.schemas[i] for i in sorted(schema_ids)], current, metadata.format_version)
    yield from _reserved_ids(current)
    yield from _identifiers(current)


def _changes(schemas: Iterable[RecordedSchema], current: RecordedSchema, version: int) -> Iterator[Finding]:
    """Each type that a column had once and may not have become what it is, with the first schema that has it."""
    fields = struct_fields(current.schema)
    keys: set[tuple[int, str, object]] = set()
    for before in schemas:
        for field_id, (_, old) in struct_fields(before.schema).items():
            key = (field_id, str(old.type), lengths(old))
            if field_id not in fields or key in keys:
                continue
            keys.add(key)
            path, field = fields[field_id]
            if not (may_become(old.type, field.type, version) and lengths(old) == lengths(field)):
                evidence = f"{old.type} in schema {before.schema_id}, {field.type} now"
                yield spec_finding("type-change-not-allowed", evidence, leaf_name(path))


def _reserved_ids(recorded_schema: RecordedSchema) -> Iterator[Finding]:
    for field_id, (path, _) in struct_fields(recorded_schema.schema).items():
        if field_id > _HIGHEST_ID:
            evidence = f"{field_id}, and ids of columns go up to {_HIGHEST_ID}"
            yield spec_finding("field-id-reserved", evidence, leaf_name(path))


def _identifiers(recorded_schema: RecordedSchema) -> Iterator[Finding]:
    fields = struct_fields(recorded_schema.schema)
    optional = {path for path, field in fields.values() if field.nullable}
    for field_id in recorded_schema.identifier_field_ids:
        path, field = fields.get(field_id, ((), None))
        if field is None:
            why = "it is no column outside lists and maps"
        elif field.type in (PrimitiveType("float"), PrimitiveType("double")) or not isinstance(
            field.type, PrimitiveType | DecimalType
        ):
            why = f"it is a {field.type}"
        elif any(path[:length] in optional for length in range(1, len(path) + 1)):
            why = "it may be null"
        else:
            continue
        subject = leaf_name(path) if path else f"The field {field_id}"
        evidence, place = f"identifier field {field_id}: {why}", leaf_name(path) if path else None
        yield spec_finding("identifier-field-not-allowed", evidence, place, subject=subject)


def delete_findings(metadata: Metadata, data: pl.DataFrame, deletes: pl.DataFrame) -> Iterator[Finding]:
    """What live delete ENTRIES contradict, given the live data ENTRIES of the snapshot."""
    idle = deletes.height - len(applying(data, deletes, metadata.unpartitioned_specs))
    if deletes.height and idle:
        yield spec_finding("delete-files-without-data", f"{idle:,} of {deletes.height:,}")
    targets = deletes.filter(is_vector(deletes))["referenced_data_file"].drop_nulls()
    several = targets.filter(targets.is_duplicated()).unique(maintain_order=True)
    if several.len():
        yield spec_finding("data-file-with-several-deletion-vectors", first_few(several))


_CLAIMS: Mapping[str, tuple[Severity, str, str]] = {
    "column-bounds-contradictory": (Severity.BROKEN, "Manifests",
        "Bounds of {place} contradict each other: filters skip files that hold rows"),
    "column-id-not-given-out": (Severity.BROKEN, "Table Metadata Fields",
        "A column has an id that the table has not given out yet: the next column may get the same"),
    "data-file-not-readable": (Severity.NOTE, "Snapshots", "A snapshot cannot be read any more"),
    "data-file-twice": (Severity.BROKEN, "Manifests",
        "A data file is listed twice in the current snapshot: readers that do not look give its rows twice"),
    "data-file-with-several-deletion-vectors": (Severity.BROKEN, "Deletion Vectors",
        "A data file has several deletion vectors: readers refuse it, or take one of them"),
    "delete-files-without-data": (Severity.NOTE, "Scan Planning", "Delete files apply to no data file any more"),
    "field-id-reserved": (Severity.ATTENTION, "Reserved Field IDs",
        "The column {place} has an id that is reserved for metadata columns"),
    "file-counts-impossible": (Severity.BROKEN, "Manifests",
        "Files of the current snapshot are listed with {subject} that no file has"),
    "file-sequence-number-too-late": (Severity.BROKEN, "Sequence Numbers",
        "A file has a later sequence number than its snapshot"),
    "identifier-field-not-allowed": (Severity.ATTENTION, "Identifier Field IDs", "{subject} cannot tell rows apart"),
    "main-not-current": (Severity.BROKEN, "Snapshot References",
        "The branch main and the current snapshot differ"),
    "manifest-list-counts-differ": (Severity.ATTENTION, "Manifest Lists",
        "The manifest list counts {subject} files that its manifests do not: readers may pass one over"),
    "partition-id-not-given-out": (Severity.BROKEN, "Table Metadata Fields",
        "A partition field has an id that the table has not given out yet"),
    "ref-without-snapshot": (Severity.BROKEN, "Snapshot References",
        "The {subject} {place} names a snapshot that is not there"),
    "sequence-number-below-parent": (Severity.BROKEN, "Sequence Numbers",
        "A snapshot has a lower sequence number than its parent"),
    "sequence-number-not-given-out": (Severity.BROKEN, "Sequence Numbers",
        "A snapshot has a sequence number that the table has not given out yet"),
    "snapshot-log-backwards": (Severity.NOTE, "Point in Time Reads",
        "The snapshot log runs backwards: writers' clocks disagree"),
    "snapshot-log-not-current": (Severity.ATTENTION, "Point in Time Reads",
        "The snapshot log does not end at the current snapshot: travelling to now leads elsewhere"),
    "snapshot-not-examined": (Severity.BROKEN, "Manifests", "The current snapshot cannot be examined"),
    "snapshot-schema-missing": (Severity.ATTENTION, "Snapshots",
        "A snapshot names a schema that is not there: it is read with the current one"),
    "sort-order-missing": (Severity.ATTENTION, "Sorting",
        "The default sort order is none of the table's: writers cannot keep it"),
    "statistics-file-without-snapshot": (Severity.NOTE, "Table Statistics",
        "Statistics files belong to snapshots that are not there"),
    "summary-differs": (Severity.ATTENTION, "Snapshots",
        "The summary of the current snapshot and its manifests differ in {place}"),
    "type-change-not-allowed": (Severity.BROKEN, "Schema Evolution",
        "The type of {place} was changed as no schema may be: readers refuse older files, or differ"),
}  # fmt: skip
"""Findings by their ids: how much they matter, the section of the specification whose rule is broken, and the claim."""


def spec_finding(finding_id: str, evidence: str, place: str | None = None, *, subject: str = "") -> Finding:
    """A finding of the log doctor. `subject`: what its claim is about beside the place."""
    severity, section, claim = _CLAIMS[finding_id]
    claim = claim.format(place=place, subject=subject)
    remedy = None if severity is Severity.NOTE else REMEDY
    return Finding(finding_id, severity, claim, evidence, None, place, f"Iceberg spec, {section}", remedy, "timeline")
