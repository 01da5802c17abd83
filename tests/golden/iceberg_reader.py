"""A golden Iceberg table, read through the public interface, to what differs from what must be found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from lakeview.iceberg.metadata.types import struct_fields
from lakeview.iceberg.table import IcebergTable
from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.errors import (
    AccessDeniedError,
    CorruptTableError,
    LakeviewError,
    NotATableError,
    UnsupportedTableError,
)
from lakeview.model.frames import FILES
from lakeview.model.schema import leaf_name
from lakeview.model.snapshot import Snapshot
from tests.builders.opening import open_iceberg_table
from tests.golden.iceberg_conformance import Current, GoldenIceberg, IcebergFile, IcebergRefusal, RecordedSnapshot
from tests.golden.reader import Problem, check_equal, check_rows

CLASSES: dict[str, tuple[tuple[type[LakeviewError], ...], frozenset[str]]] = {
    "corrupt_file": (
        (CorruptTableError,),
        frozenset({"corrupt-file", "corrupt-data-file", "unsafe-path", "corrupt-deletion-vector"}),
    ),
    "invalid_metadata": ((CorruptTableError,), frozenset({"invalid-metadata"})),
    "missing_file": ((CorruptTableError,), frozenset({"missing-file", "data-file-missing"})),
    "forbidden_path": ((AccessDeniedError,), frozenset({"outside-roots"})),
    "not_a_table": ((NotATableError,), frozenset({"not-a-table"})),
    "unsupported_version": ((UnsupportedTableError,), frozenset({"unsupported-version"})),
    "unsupported_feature": (
        (UnsupportedTableError,),
        frozenset({"unsupported-file-format", "unsupported-encryption", "unsupported-type", "unsupported-codec"}),
    ),
}
"""What expected.json calls an error, to the classes and the values of `kind` that fit."""

OVERFLOW = "snapshot-id-overflow"


def problems(golden: GoldenIceberg) -> list[Problem]:
    """Everything that is not as it must be; empty for a table that reads right (or is refused as it must be)."""
    return list(_problems(golden))


def _problems(golden: GoldenIceberg) -> Iterator[Problem]:
    expected = golden.expected
    error = expected.error
    at_metadata = error if error is not None and error.stage == "metadata" else None
    try:
        table = open_golden_table(golden.path, golden)
    except LakeviewError as refusal:
        if OVERFLOW in expected.features:
            yield from _fits("open", refusal, IcebergRefusal("invalid_metadata", "metadata"))
        elif at_metadata is None:
            yield Problem(f"open: refused: {refusal}", refusal)
        else:
            yield from _fits("open", refusal, at_metadata)
        return
    if at_metadata is not None:
        if not at_metadata.lenient_ok:
            yield Problem(f"opened, expected an error: {at_metadata}")
        return
    current = expected.current
    assert current is not None, "a table that opens has a current state"
    if "stale-hint" in expected.features and table.metadata_file.path.rpartition("/")[2] != current.metadata_file:
        return  # a newer file than the hint's is right as well
    yield from _metadata(table, golden, current)
    yield from _state(table, golden, current)
    yield from _history(table, expected.snapshots)
    for number, snapshot in expected.snapshots.items():
        yield from _snapshot(table, golden, int(number), snapshot)
    yield from _other_files(golden)


def open_golden_table(address: str, golden: GoldenIceberg) -> IcebergTable:
    """The table at an address, as everybody opens it."""
    return open_iceberg_table(address, relocate=golden.relocate)


def _fits(place: str, error: LakeviewError, refusal: IcebergRefusal) -> Iterator[Problem]:
    for kind in {refusal.kind, *(refusal.accept_kinds or ())}:
        classes, kinds = CLASSES[kind]
        if isinstance(error, classes) and error.kind in kinds:
            break
    else:
        yield Problem(f"{place}: {type(error).__name__} {error.kind!r} ({error}), expected {refusal.kind!r}", error)
    if not error.fix:
        yield Problem(f"{place}: the refusal {error.kind!r} does not say what to do")


def _metadata(table: IcebergTable, golden: GoldenIceberg, current: Current) -> Iterator[Problem]:
    expected, metadata = golden.expected, table.metadata
    snapshot = table.snapshot()
    yield from check_equal("metadata file", Path(table.metadata_file.path).name, current.metadata_file)
    yield from check_equal("snapshot id", snapshot.version, -1 if current.snapshot_id is None else current.snapshot_id)
    yield from check_equal("format version", snapshot.protocol.format_version, expected.format_version)
    columns = [(f.id, f.name, type_text(f.type, f), not f.nullable) for f in snapshot.schema]
    recorded_columns = [
        (c.id, c.name, c.type.replace(", ", ",").replace(",", ", "), c.required) for c in current.columns
    ]
    yield from check_equal("columns", columns, recorded_columns)
    sources = struct_fields(snapshot.schema)
    spec = [
        (".".join(sources[f.source_ids[0]][0]) if f.source_ids[0] in sources else None, f.transform.text, f.name)
        for f in metadata.spec.fields
    ]
    yield from check_equal("partition spec", spec, [(p.source, p.transform, p.name) for p in current.partition_spec])
    identifiers = list(metadata.schemas[metadata.current_schema_id].identifier_field_ids)
    yield from check_equal("identifier fields", sorted(identifiers), sorted(current.identifier_field_ids))
    if expected.schemas is not None:
        yield from check_equal("number of schemas", len(metadata.schemas), expected.schemas)
    if expected.specs is not None:
        yield from check_equal("number of specs", len(metadata.specs), expected.specs)
    if expected.refs is not None:
        refs = {name: (r.type, r.snapshot_id) for name, r in metadata.refs.items()}
        yield from check_equal("refs", refs, {name: (r.type, r.snapshot_id) for name, r in expected.refs.items()})
    if expected.properties is not None:
        yield from check_equal("properties", snapshot.properties, expected.properties)


def _state(table: IcebergTable, golden: GoldenIceberg, current: Current) -> Iterator[Problem]:
    error = golden.expected.error
    snapshot = table.snapshot()
    try:
        yield from _counts("current", snapshot, current.num_data_files, current.num_delete_files, current.num_rows)
        if current.files is not None:
            yield from _files(table, snapshot, current.files)
    except LakeviewError as refusal:
        if error is None or error.stage in ("data", "delete"):
            yield Problem(f"current: files: {refusal}", refusal)
        else:
            yield from _fits("current", refusal, error)
        return
    if error is not None and error.stage in ("manifest_list", "manifest") and not error.lenient_ok:
        yield Problem(f"its files are listed, expected an error: {error}")
        return
    columns = [c.name for c in current.columns]
    yield from _rows(golden, table.scan, "current", current.rows, current.num_rows, columns, error)


def _counts(
    place: str, snapshot: Snapshot, data: int | None, deletes: int | None, rows: int | None
) -> Iterator[Problem]:
    files = snapshot.files
    yield from check_equal(f"{place}: types of FILES", {name: files.schema.get(name) for name in FILES}, dict(FILES))
    if data is not None:
        yield from check_equal(f"{place}: data files", snapshot.num_files, data)
    if deletes is not None:
        yield from check_equal(f"{place}: delete files", snapshot.delete_files.height, deletes)
    if rows is not None and snapshot.num_records is not None:
        yield from check_equal(f"{place}: records", snapshot.num_records, rows)
    unknown = (files["deleted_records"].null_count() > 0) or files["records"].null_count() > 0
    if snapshot.num_records is None and not unknown:
        yield Problem(f"{place}: records are unknown for no reason")


def _files(table: IcebergTable, snapshot: Snapshot, expected_files: list[IcebergFile]) -> Iterator[Problem]:
    frame = pl.concat([snapshot.files, snapshot.delete_files], how="diagonal")
    records = {}
    for row in frame.iter_rows(named=True):
        at = None if row["deletion_vector"] is None else row["deletion_vector"].rpartition("@")[2]
        records[row["path"], row["content"] != "data", at if row["content"] == "deletion vector" else None] = row
    yield from check_equal("paths of files", sorted({k[0] for k in records}), sorted({f.path for f in expected_files}))
    for file in expected_files:
        rows = [r for (path, _, _), r in records.items() if path == file.path and r["records"] == file.record_count]
        if not rows:
            yield Problem(f"file {file.path}: no such file with {file.record_count} records")
            continue
        row = rows[0]
        facts = (row["size"], row["spec_id"], row["sequence_number"], row["format"])
        expected = (file.file_size_in_bytes, file.spec_id, file.sequence_number, file.format)
        yield from check_equal(f"file {file.path}: size, spec, sequence number, format", facts, expected)
        partition = {k: plain(v) for k, v in (row.get("partition") or {}).items()}
        partition_values = {name: partition.get(name) for name in file.partition}
        unknown = {f.name for s in table.metadata.specs.values() for f in s.fields if f.transform.name == "unknown"}
        texts = {k: str(v) if k in unknown else v for k, v in file.partition.items()}  # its type is not known either
        yield from check_equal(f"file {file.path}: partition", partition_values, texts)
        others = {k: v for k, v in partition.items() if k not in file.partition and v is not None}
        yield from check_equal(f"file {file.path}: other partition values", others, {})
    yield from _bounds(table, snapshot, [f for f in expected_files if f.content == 0])


def _bounds(table: IcebergTable, snapshot: Snapshot, expected_files: list[IcebergFile]) -> Iterator[Problem]:
    leaves = {f.id: leaf_name(path) for path, f in struct_fields(snapshot.schema).values()}
    uuids = {leaf_name(path) for path, f in struct_fields(snapshot.schema).values() if f.type == PrimitiveType("uuid")}
    frame = table.statistics()
    statistics = {row["_path"]: row for row in pl.DataFrame([_comparable(s) for s in frame]).iter_rows(named=True)}
    for file in expected_files:
        row = statistics[file.path]
        for side, bounds in (("min", file.lower_bounds), ("max", file.upper_bounds)):
            for field_id, value in (bounds or {}).items():
                column = leaves.get(int(field_id))
                if column in row and not str(value).startswith("!undecodable"):
                    text = value.replace("-", "") if column in uuids else value
                    yield from check_equal(f"file {file.path}: {side} of {column}", plain(row[column][side]), text)


def _comparable(series: pl.Series) -> pl.Series:
    """Bounds as expected.json has them: times as numbers, bytes as hexadecimal text."""
    if not isinstance(series.dtype, pl.Struct):
        return series
    parts = {}
    for part in series.struct.unnest():
        if isinstance(part.dtype, pl.Datetime | pl.Time):
            unit = 1000 if isinstance(part.dtype, pl.Time) else 1
            part = part.to_physical() // unit
        elif isinstance(part.dtype, pl.Binary):
            part = part.bin.encode("hex")
        parts[part.name] = part
    return pl.DataFrame(parts).to_struct(series.name)


def _history(table: IcebergTable, snapshots: dict[str, RecordedSnapshot]) -> Iterator[Problem]:
    commits = {row["version"]: row for row in table.history().iter_rows(named=True)}
    yield from check_equal("snapshots", sorted(commits), sorted(int(n) for n in snapshots))
    for number, snapshot in snapshots.items():
        row = commits.get(int(number))
        if row is not None:
            commit = (row["parent"], row["operation"], round(row["timestamp"].timestamp() * 1000))
            yield from check_equal(
                f"snapshot {number}", commit, (snapshot.parent_id, snapshot.operation, snapshot.timestamp_ms)
            )


def _snapshot(table: IcebergTable, golden: GoldenIceberg, number: int, record: RecordedSnapshot) -> Iterator[Problem]:
    place = f"snapshot {number}"
    error = record.error or golden.expected.error
    try:
        snapshot = table.snapshot(number)
        yield from _counts(place, snapshot, record.num_data_files, record.num_delete_files, record.num_rows)
    except LakeviewError as refusal:
        if error is None:
            yield Problem(f"{place}: {refusal}", refusal)
        else:
            yield from _fits(place, refusal, error)
        return
    if record.error is None:
        yield from _rows(golden, lambda: table.scan(number), place, record.rows, record.num_rows, None, error)


def _other_files(golden: GoldenIceberg) -> Iterator[Problem]:
    for name, version_record in golden.expected.metadata_versions.items():
        address = golden.folder / "table" / "metadata" / name
        try:
            table = open_golden_table(str(address), golden)
            if version_record.error is None:
                yield from check_equal(f"{name}: snapshot", table.latest_version, version_record.snapshot_id or -1)
                yield from check_equal(
                    f"{name}: version", table.snapshot().protocol.format_version, version_record.format_version
                )
            count = table.snapshot().num_files
        except LakeviewError as refusal:
            if version_record.error is None:
                yield Problem(f"{name}: {refusal}", refusal)
            else:
                yield from _fits(name, refusal, version_record.error)
            continue
        if version_record.error is not None:
            yield Problem(f"{name}: opened with {count} files, expected {version_record.error}")
            continue
        yield from _rows(golden, table.scan, name, version_record.rows, version_record.num_rows, None, None)


def _rows(
    golden: GoldenIceberg,
    scan: Callable[[], pl.LazyFrame],
    place: str,
    rows: str | None,
    num_rows: int | None,
    columns: list[str] | None,
    error: IcebergRefusal | None,
) -> Iterator[Problem]:
    if rows is None and num_rows is None and error is None:
        return
    try:
        rows_read = scan().collect()
    except LakeviewError as refusal:
        if error is None:
            yield Problem(f"{place}: scan: {refusal}", refusal)
        else:
            yield from _fits(f"{place}: scan", refusal, error)
        return
    if error is not None:
        if not error.lenient_ok and rows is None:
            yield Problem(f"{place}: scan gave {rows_read.height} rows, expected an error: {error}")
        return
    yield from check_rows(place, rows_read, columns, num_rows, None if rows is None else golden.folder / rows)


def plain(value: Any) -> Any:
    """A value as expected.json writes it."""
    match value:
        case bytes():
            return "0x" + value.hex()
        case float():
            return str(value)
        case Decimal():
            return str(value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat()
        case date() | time():
            return value.isoformat()
    return value


WORDS = {"integer": "int", "timestamp_ntz": "timestamp", "timestamp": "timestamptz", "void": "unknown"}


def type_text(type_: DataType, field: Field | None = None) -> str:
    """A type as Iceberg writes it, ids of struct fields included."""
    match type_:
        case PrimitiveType("fixed"):
            return f"fixed[{(field.metadata if field else {}).get('length')}]"
        case PrimitiveType(name):
            return WORDS.get(name, name)
        case DecimalType(precision, scale):
            return f"decimal({precision}, {scale})"
        case ArrayType(element):
            return f"list<{type_text(element)}>"
        case MapType(key, value):
            return f"map<{type_text(key)}, {type_text(value)}>"
        case StructType(fields):
            parts = (
                f"{f.id}: {f.name}: {'optional' if f.nullable else 'required'} {type_text(f.type, f)}" for f in fields
            )
            return f"struct<{', '.join(parts)}>"
