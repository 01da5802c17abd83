"""An Iceberg table in words, written by hand from the specification: snapshots, manifests, data and delete files."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring

from lakeview.iceberg.metadata.transforms import microseconds, parse_transform
from lakeview.iceberg.metadata.types import parse_schema
from lakeview.model.arrow_types import arrow_type
from lakeview.model.data_types import ArrayType, Field, StructType

COUNTS, BOUNDS = "long", "bytes"


def _optional(name: str, field_id: int, type_: Any) -> dict[str, Any]:
    return {"name": name, "field-id": field_id, "type": ["null", type_], "default": None}


def _field(name: str, field_id: int, type_: Any) -> dict[str, Any]:
    return {"name": name, "field-id": field_id, "type": type_}


def _map(key_id: int, value_id: int, value: str) -> dict[str, Any]:
    fields = [_field("key", key_id, "int"), _field("value", value_id, value)]
    return {
        "type": "array",
        "logicalType": "map",
        "items": {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": fields},
    }


LIST_SCHEMA = {
    "type": "record", "name": "manifest_file",
    "fields": [
        _field("manifest_path", 500, "string"), _field("manifest_length", 501, "long"),
        _field("partition_spec_id", 502, "int"), _field("content", 517, "int"),
        _field("sequence_number", 515, "long"), _field("min_sequence_number", 516, "long"),
        _field("added_snapshot_id", 503, "long"), _field("added_files_count", 504, "int"),
        _field("existing_files_count", 505, "int"), _field("deleted_files_count", 506, "int"),
        _field("added_rows_count", 512, "long"), _field("existing_rows_count", 513, "long"),
        _field("deleted_rows_count", 514, "long"), _optional("first_row_id", 520, "long"),
        _optional("partitions", 507, {"type": "array", "element-id": 508, "items": {
            "type": "record", "name": "r508", "fields": [
                _field("contains_null", 509, "boolean"), _optional("contains_nan", 518, "boolean"),
                _optional("lower_bound", 510, "bytes"), _optional("upper_bound", 511, "bytes")]}}),
    ],
}  # fmt: skip

AVRO = {
    "int": "int",
    "integer": "int",
    "long": "long",
    "double": "double",
    "string": "string",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp_ntz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
}


def entry_schema(partition: Sequence[tuple[str, int, Any]]) -> dict[str, Any]:
    """The Avro schema of a manifest whose partition tuples have these (name, field id, Avro type)."""
    tuple_ = {"type": "record", "name": "r102", "fields": [_optional(n, i, t) for n, i, t in partition]}
    file = [
        _field("content", 134, "int"), _field("file_path", 100, "string"), _field("file_format", 101, "string"),
        _field("partition", 102, tuple_), _field("record_count", 103, "long"),
        _field("file_size_in_bytes", 104, "long"),
        _optional("value_counts", 109, _map(119, 120, COUNTS)),
        _optional("null_value_counts", 110, _map(121, 122, COUNTS)),
        _optional("nan_value_counts", 137, _map(138, 139, COUNTS)),
        _optional("lower_bounds", 125, _map(126, 127, BOUNDS)), _optional("upper_bounds", 128, _map(129, 130, BOUNDS)),
        _optional("equality_ids", 135, {"type": "array", "element-id": 136, "items": "int"}),
        _optional("first_row_id", 142, "long"), _optional("referenced_data_file", 143, "string"),
        _optional("content_offset", 144, "long"),
        _optional("content_size_in_bytes", 145, "long"),
    ]  # fmt: skip
    return {
        "type": "record", "name": "manifest_entry",
        "fields": [
            _field("status", 0, "int"), _optional("snapshot_id", 1, "long"), _optional("sequence_number", 3, "long"),
            _optional("file_sequence_number", 4, "long"),
            _field("data_file", 2, {"type": "record", "name": "r2", "fields": file}),
        ],
    }  # fmt: skip


def single(value: Any) -> bytes:
    """A value as bounds hold it: longs as eight bytes, dates as four, texts and bytes as they are."""
    match value:
        case bool():
            return bytes([value])
        case int():
            return struct.pack("<q", value)
        case float():
            return struct.pack("<d", value)
        case datetime():
            return struct.pack("<q", microseconds(value))
        case date():
            return struct.pack("<i", (value - date(1970, 1, 1)).days)
        case str():
            return value.encode()
        case bytes():
            return value
    raise TypeError(value)


class IcebergHistory:
    """A table at `root`, recorded as lying at `location`, that grows a snapshot with each call.

    `fields` as metadata spells them; `spec`: (source id, transform, name). Data file names are given by the test and
    are returned as the paths recorded.
    """

    first_id = 1000  # what snapshot ids count from

    def __init__(
        self, root: Path, fields: list[dict[str, Any]], spec: Sequence[tuple[int, str, str]] = (), *,
        version: int = 2, location: str = "s3://old/table", properties: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.root = root
        self.location = location
        (root / "metadata").mkdir(parents=True)
        (root / "data").mkdir()
        self.document: dict[str, Any] = {
            "format-version": version, "table-uuid": "8d5c4a9e-0000-4000-8000-000000000001", "location": location,
            "last-sequence-number": 0, "last-updated-ms": 1_700_000_000_000, "last-column-id": 1000,
            "current-schema-id": 0, "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
            "default-spec-id": 0, "partition-specs": [], "last-partition-id": 1999, "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}], "properties": dict(properties or {}), "snapshots": [],
            "snapshot-log": [], "refs": {},
        }  # fmt: skip
        if version == 3:
            self.document["next-row-id"] = 0
        self._manifests: list[dict[str, Any]] = []
        self._live: dict[str, tuple[dict[str, Any], int, int, int]] = {}
        self.partition_by(*spec)
        self._write()

    @property
    def address(self) -> str:
        """Where it lies."""
        return str(self.root)

    @property
    def fields(self) -> dict[str, Field]:
        """The columns of the current schema."""
        return {f.name: f for f in parse_schema(self._schema)}

    @property
    def _schema(self) -> dict[str, Any]:
        current: dict[str, Any] = self.document["schemas"][-1]
        return current

    def partition_by(self, *spec: tuple[int, str, str]) -> IcebergHistory:
        """A new default spec."""
        specs = self.document["partition-specs"]
        fields = [
            {"source-id": s, "field-id": 1000 + 10 * len(specs) + i, "transform": t, "name": n}
            for i, (s, t, n) in enumerate(spec)
        ]
        specs.append({"spec-id": len(specs), "fields": fields})
        self.document["default-spec-id"] = len(specs) - 1
        return self

    def evolve(self, fields: list[dict[str, Any]]) -> IcebergHistory:
        """A new current schema, without a snapshot."""
        number = len(self.document["schemas"])
        self.document["schemas"].append({"type": "struct", "schema-id": number, "fields": fields})
        self.document["current-schema-id"] = number
        self._write()
        return self

    def append(
        self,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        *,
        leave_out: Sequence[str] = (),
        ids: bool = True,
        operation: str = "append",
    ) -> str:
        """A data file of these rows; columns of `leave_out` are not in it, without `ids` it records none."""
        entry = self._data(name, rows, leave_out, ids)
        self._commit(operation, [entry], 0, {"added-data-files": "1", "added-records": str(len(rows))})
        return str(entry["file_path"])

    def remove(self, path: str) -> None:
        """The data file leaves the table."""
        entry, *_ = self._live[path]
        self._commit("delete", [entry], 0, {"deleted-data-files": "1"}, status=2)

    def restore_deleted_rows(self) -> None:
        """A snapshot without the delete files and vectors of the table."""
        self._manifests = [manifest for manifest in self._manifests if manifest["content"] == 0]
        self._commit("overwrite", [], 0, {})

    def summarise(self) -> None:
        """Totals in the summary of the current snapshot, in another metadata file."""
        deletes = [f for manifest in self._manifests if manifest["content"] for f in self._entries_of(manifest)]
        data = [file for file, *_ in self._live.values()]
        totals = {
            "data-files": len(data), "records": sum(f["record_count"] for f in data),
            "files-size": sum(f["file_size_in_bytes"] for f in (*data, *deletes)), "delete-files": len(deletes),
            "position-deletes": sum(f["record_count"] for f in deletes if f["content"] == 1),
            "equality-deletes": sum(f["record_count"] for f in deletes if f["content"] == 2),
        }  # fmt: skip
        self.document["snapshots"][-1]["summary"] |= {f"total-{name}": str(number) for name, number in totals.items()}
        self._write()

    def _entries_of(self, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
        path = self.root / manifest["manifest_path"].removeprefix(f"{self.location}/")
        with path.open("rb") as container:
            entries: list[Any] = list(fastavro.reader(container))
        return [entry["data_file"] for entry in entries if entry["status"] != 2]

    def delete_positions(
        self, name: str, positions: Mapping[str, Sequence[int]], *, partition: Mapping[str, Any] | None = None
    ) -> str:
        """A position delete file: rows of data files, by their paths as recorded."""
        return self.delete_positions_by({name: positions}, partition=partition)[0]

    def delete_positions_by(
        self,
        files: Mapping[str, Mapping[str, Sequence[int]]],
        *,
        partition: Mapping[str, Any] | None = None,
        aimed: bool = False,
    ) -> list[str]:
        """Position delete files, as `delete_positions` makes each, in one snapshot and one manifest; `aimed`: those for
        one data file name it."""
        entries, rows = [], 0
        for name, positions in files.items():
            pairs = [(path, p) for path, rows in positions.items() for p in rows]
            schema = pa.schema([_id("file_path", pa.string(), 2147483546), _id("pos", pa.int64(), 2147483545)])
            table = pa.table([[p for p, _ in pairs], [p for _, p in pairs]], schema=schema)
            entry = self._file(name, table, 1, partition or {}) | {"lower_bounds": [], "upper_bounds": []}
            if aimed and len(positions) == 1:
                entry["referenced_data_file"] = next(iter(positions))
            entries.append(entry)
            rows += len(pairs)
        counts = {"added-delete-files": str(len(entries)), "added-position-deletes": str(rows)}
        self._commit("delete", entries, 1, counts)
        return [str(entry["file_path"]) for entry in entries]

    def delete_equal(
        self,
        name: str,
        columns: Sequence[Field],
        rows: Sequence[Mapping[str, Any]],
        *,
        partition: Mapping[str, Any] | None = None,
        ids: Sequence[int] | None = None,
    ) -> str:
        """An equality delete file of these columns; `ids`: of those that are compared, where they are not the same."""
        schema = pa.schema([_id(f.name, _arrow(f), f.id) for f in columns])
        table = pa.Table.from_pylist([dict(r) for r in rows], schema=schema)
        entry = self._file(name, table, 2, partition or {}) | _metrics(columns, rows)
        entry["equality_ids"] = list(ids or (f.id or 0 for f in columns))
        self._commit("delete", [entry], 1, {"added-delete-files": "1", "added-equality-deletes": str(len(rows))})
        return str(entry["file_path"])

    def delete_vectors(self, name: str, positions: Mapping[str, Sequence[int]], *, damage: int | None = None) -> str:
        """A Puffin file with a deletion vector for each data file; `damage`: the byte of the first blob to flip."""
        path = f"{self.location}/data/{name}"
        content = b"PFA1"
        entries: list[dict[str, Any]] = []
        blobs: list[dict[str, Any]] = []
        for target, rows in positions.items():
            data = b"\xd1\xd3\x39\x64" + pyroaring.BitMap64(rows).serialize()
            blob = struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
            if damage is not None and not entries:
                at = damage % len(blob)
                blob = blob[:at] + bytes([blob[at] ^ 0xFF]) + blob[at + 1 :]
            partition = self._live[target][0]["partition"]
            entries.append(
                {
                    "content": 1, "file_path": path, "file_format": "PUFFIN", "partition": partition,
                    "record_count": len(rows), "file_size_in_bytes": 0, "referenced_data_file": target,
                    "content_offset": len(content), "content_size_in_bytes": len(blob),
                }
            )  # fmt: skip
            content += blob
            places = {"referenced-data-file": target, "cardinality": str(len(rows))}
            blobs.append(
                {
                    "type": "deletion-vector-v1", "fields": [2147483545], "snapshot-id": -1, "sequence-number": -1,
                    "offset": entries[-1]["content_offset"], "length": len(blob), "properties": places,
                }
            )  # fmt: skip
        footer = json.dumps({"blobs": blobs}).encode()
        content += b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1"
        for entry in entries:
            entry["file_size_in_bytes"] = len(content)
        (self.root / "data" / name).write_bytes(content)
        self._commit("delete", entries, 1, {"added-delete-files": str(len(entries))})
        return path

    # -- inside

    def _data(
        self, name: str, rows: Sequence[Mapping[str, Any]], leave_out: Sequence[str], ids: bool
    ) -> dict[str, Any]:
        columns = [f for f in self.fields.values() if f.name not in leave_out]
        schema = pa.schema([_id(f.name, _arrow(f), f.id if ids else None) for f in columns])
        table = pa.Table.from_pylist([dict(r) for r in rows], schema=schema)
        first = dict(rows[0]) if rows else {}
        spec = self.document["partition-specs"][-1]["fields"]
        by_id = {f.id: f for f in self.fields.values()}
        partition = {}
        for part in spec:
            source = by_id[part["source-id"]]
            transform = parse_transform(part["transform"])
            is_known = transform.name != "unknown"
            partition[part["name"]] = transform.apply(first.get(source.name), source.type) if is_known else None
        entry = self._file(name, table, 0, partition)
        return entry | _metrics(columns, rows)

    def _file(self, name: str, table: pa.Table, content: int, partition: Mapping[str, Any]) -> dict[str, Any]:
        where = self.root / "data" / name
        where.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, where)
        return {
            "content": content, "file_path": f"{self.location}/data/{name}", "file_format": "PARQUET",
            "partition": dict(partition), "record_count": table.num_rows, "file_size_in_bytes": where.stat().st_size,
        }  # fmt: skip

    def _commit(
        self, operation: str, files: list[dict[str, Any]], content: int, summary: Mapping[str, str], status: int = 1
    ) -> None:
        sequence = self.document["last-sequence-number"] + 1
        snapshot_id = self.first_id + sequence
        parent = self.document.get("current-snapshot-id")
        spec = self.document["partition-specs"][-1]
        if status == 2:
            deletes = [manifest for manifest in self._manifests if manifest["content"] == 1]
            manifests = [self._without(files[0]["file_path"], snapshot_id, sequence, spec), *deletes]
        else:
            entries = [{"status": 1, "snapshot_id": snapshot_id, "data_file": f} for f in files]
            manifests = [*self._manifests, self._manifest(entries, content, snapshot_id, sequence, spec)]
            for f in files if content == 0 else ():
                numbered = f | ({"first_row_id": self._next_row_id(f["record_count"])} if self._tracks else {})
                self._live[f["file_path"]] = (numbered, snapshot_id, sequence, spec["spec-id"])
        self._manifests = manifests
        name = f"metadata/snap-{snapshot_id}.avro"
        with (self.root / name).open("wb") as out:
            fastavro.writer(out, fastavro.parse_schema(LIST_SCHEMA), manifests, codec="deflate")
        at = 1_700_000_000_000 + sequence * 60_000
        self.document["snapshots"].append(
            {
                "snapshot-id": snapshot_id, "sequence-number": sequence, "timestamp-ms": at,
                "manifest-list": f"{self.location}/{name}", "schema-id": self.document["current-schema-id"],
                "summary": {"operation": operation, "total-data-files": str(len(self._live)), **summary},
            } | ({} if parent is None else {"parent-snapshot-id": parent})
        )  # fmt: skip
        self.document |= {"last-sequence-number": sequence, "current-snapshot-id": snapshot_id, "last-updated-ms": at}
        self.document["snapshot-log"].append({"timestamp-ms": at, "snapshot-id": snapshot_id})
        self.document["refs"]["main"] = {"snapshot-id": snapshot_id, "type": "branch"}
        self._write()

    def _without(self, path: str, snapshot_id: int, sequence: int, spec: Mapping[str, Any]) -> dict[str, Any]:
        """One manifest with every live file but one, and that one as deleted."""
        entries = []
        for name, (file, added, number, _) in self._live.items():
            fields_by_name = {"sequence_number": number, "file_sequence_number": number, "data_file": file}
            entries.append(
                {"status": 2, "snapshot_id": snapshot_id, **fields_by_name}
                if name == path
                else {"status": 0, "snapshot_id": added, **fields_by_name}
            )
        del self._live[path]
        return self._manifest(entries, 0, snapshot_id, sequence, spec)

    def _manifest(
        self, entries: list[dict[str, Any]], content: int, snapshot_id: int, sequence: int, spec: Mapping[str, Any]
    ) -> dict[str, Any]:
        fields = {f.id: f for f in self.fields.values()}
        parts = []
        for part in spec["fields"]:
            result = parse_transform(part["transform"]).result_type(fields[part["source-id"]].type)
            parts.append((part["name"], part["field-id"], AVRO[str(result)]))
        name = f"metadata/manifest-{snapshot_id}.avro"
        header = {
            "schema": json.dumps(self._schema), "partition-spec": json.dumps(spec["fields"]),
            "partition-spec-id": str(spec["spec-id"]), "format-version": str(self.document["format-version"]),
            "content": "deletes" if content else "data",
        }  # fmt: skip
        with (self.root / name).open("wb") as out:
            fastavro.writer(out, fastavro.parse_schema(entry_schema(parts)), entries, codec="deflate", metadata=header)
        counts = {s: sum(e["status"] == n for e in entries) for s, n in (("existing", 0), ("added", 1), ("deleted", 2))}
        rows = {
            s: sum(e["data_file"]["record_count"] for e in entries if e["status"] == n)
            for s, n in (("existing", 0), ("added", 1), ("deleted", 2))
        }
        summaries = []
        for part, _, _ in parts:
            values = [e["data_file"]["partition"].get(part) for e in entries]
            some = [v for v in values if v is not None]
            ends = (min(some), max(some)) if some else (None, None)
            low, high = (
                None
                if v is None
                else struct.pack("<i", v)
                if parts[0][2] == "int" and isinstance(v, int)
                else single(v)
                for v in ends
            )
            summaries.append(
                {"contains_null": None in values, "contains_nan": False, "lower_bound": low, "upper_bound": high}
            )
        return {
            "manifest_path": f"{self.location}/{name}", "manifest_length": (self.root / name).stat().st_size,
            "partition_spec_id": spec["spec-id"], "content": content, "sequence_number": sequence,
            "min_sequence_number": 1, "added_snapshot_id": snapshot_id, "partitions": summaries,
            "first_row_id": self.document["next-row-id"] if self._tracks and not content else None,
            **{f"{s}_files_count": n for s, n in counts.items()}, **{f"{s}_rows_count": n for s, n in rows.items()},
        }  # fmt: skip

    @property
    def _tracks(self) -> bool:
        return bool(self.document["format-version"] >= 3)

    def _next_row_id(self, rows: int) -> int:
        first: int = self.document["next-row-id"]
        self.document["next-row-id"] = first + rows
        return first

    def _write(self) -> None:
        number = len(list((self.root / "metadata").glob("v*.metadata.json"))) + 1
        (self.root / "metadata" / f"v{number}.metadata.json").write_text(json.dumps(self.document))


def _metrics(columns: Sequence[Field], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts and bounds of these columns, but nested ones."""
    bounds = {
        f.id: [r.get(f.name) for r in rows]
        for f in columns
        if not isinstance(rows and rows[0].get(f.name), dict | list)
    }
    present = {i: [v for v in values if v is not None] for i, values in bounds.items()}
    ordered = {i: [v for v in values if v == v] for i, values in present.items()}  # NaN is never a bound
    floats = [f.id for f in columns if f.id in bounds and str(f.type) in ("float", "double")]
    return {
        "value_counts": [{"key": i, "value": len(v)} for i, v in bounds.items()],
        "null_value_counts": [{"key": i, "value": len(v) - len(present[i])} for i, v in bounds.items()],
        "nan_value_counts": [{"key": i, "value": len(present[i]) - len(ordered[i])} for i in floats],
        "lower_bounds": [{"key": i, "value": single(min(v))} for i, v in ordered.items() if v],
        "upper_bounds": [{"key": i, "value": single(max(v))} for i, v in ordered.items() if v],
    }


def _id(name: str, type_: pa.DataType, field_id: int | None) -> pa.Field:
    return pa.field(name, type_, metadata=None if field_id is None else {"PARQUET:field_id": str(field_id)})


def _arrow(field: Field) -> pa.DataType:
    """A column's Arrow type, ids on the fields inside."""

    if isinstance(field.type, StructType):
        return pa.struct([_id(f.name, _arrow(f), f.id) for f in field.type.fields])
    if isinstance(field.type, ArrayType):
        return pa.list_(pa.field("element", _arrow(Field("element", field.type.element))))
    return arrow_type(field.type)
