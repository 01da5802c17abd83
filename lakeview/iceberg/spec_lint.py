"""Findings that cite a section of the Iceberg specification: of schemas and of delete files."""

from collections.abc import Iterable, Iterator

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
                yield spec_finding(
                    "type-change-not-allowed",
                    Severity.BROKEN,
                    f"The type of {leaf_name(path)} was changed as no schema may be: "
                    "readers refuse older files, or differ",
                    f"{old.type} in schema {before.schema_id}, {field.type} now",
                    "Schema Evolution",
                    leaf_name(path),
                )


def _reserved_ids(recorded_schema: RecordedSchema) -> Iterator[Finding]:
    for field_id, (path, _) in struct_fields(recorded_schema.schema).items():
        if field_id > _HIGHEST_ID:
            yield spec_finding(
                "field-id-reserved",
                Severity.ATTENTION,
                f"The column {leaf_name(path)} has an id that is reserved for metadata columns",
                f"{field_id}, and ids of columns go up to {_HIGHEST_ID}",
                "Reserved Field IDs",
                leaf_name(path),
            )


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
        yield spec_finding(
            "identifier-field-not-allowed",
            Severity.ATTENTION,
            f"{leaf_name(path) if path else f'The field {field_id}'} cannot tell rows apart",
            f"identifier field {field_id}: {why}",
            "Identifier Field IDs",
            leaf_name(path) if path else None,
        )


def delete_findings(metadata: Metadata, data: pl.DataFrame, deletes: pl.DataFrame) -> Iterator[Finding]:
    """What live delete ENTRIES contradict, given the live data ENTRIES of the snapshot."""
    everywhere = [s.spec_id for s in metadata.specs.values() if s.is_unpartitioned]
    idle = deletes.height - len(applying(data, deletes, everywhere))
    if deletes.height and idle:
        yield spec_finding(
            "delete-files-without-data",
            Severity.NOTE,
            "Delete files apply to no data file any more",
            f"{idle:,} of {deletes.height:,}",
            "Scan Planning",
        )
    targets = deletes.filter(is_vector(deletes))["referenced_data_file"].drop_nulls()
    several = targets.filter(targets.is_duplicated()).unique(maintain_order=True)
    if several.len():
        yield spec_finding(
            "data-file-with-several-deletion-vectors",
            Severity.BROKEN,
            "A data file has several deletion vectors: readers refuse it, or take one of them",
            first_few(several),
            "Deletion Vectors",
        )


def spec_finding(
    finding_id: str, severity: Severity, claim: str, evidence: str, section: str, place: str | None = None
) -> Finding:
    """A finding of the log doctor. `section`: of the specification, whose rule is broken."""
    remedy = None if severity is Severity.NOTE else "have the table repaired by the engine that owns it"
    return Finding(finding_id, severity, claim, evidence, None, place, f"Iceberg spec, {section}", remedy, "timeline")
