"""A table's current metadata to what writing its data files takes, their paths included.

The paths are those of Iceberg's Java library (`LocationProviders`; for the properties its docs, Write properties).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec
import pyarrow as pa

from lakeview.iceberg.metadata.locate import FOLDER
from lakeview.iceberg.metadata.locations import canonical, relocate_path
from lakeview.iceberg.metadata.partition_fields import PartitionSpec
from lakeview.iceberg.metadata.transforms import murmur3
from lakeview.iceberg.metadata.types import parse_schema, struct_fields
from lakeview.iceberg.state import State
from lakeview.iceberg.write.commits import not_honoured, unsupported_table
from lakeview.iceberg.write.metrics import MetricColumn, metered_columns
from lakeview.iceberg.write.stored_schema import stored_schema
from lakeview.model.addresses import is_absolute
from lakeview.model.data_types import DataType, Field
from lakeview.model.schema import Schema
from lakeview.rows.open_files import ROWS_PER_FILE

_CODECS: Mapping[str, str] = {
    "uncompressed": "none", "snappy": "snappy", "gzip": "gzip", "lz4": "lz4", "brotli": "brotli", "zstd": "zstd",
}  # fmt: skip
_TARGET_BYTES = 512 << 20
_NUMBER = re.compile(r"[0-9]{1,18}")
_NOT_HONOURED = ("encryption.key-id", "write.location-provider.impl", "write.wap.enabled")
"""Properties that ask for what this writer does not do, but where they are false."""
_METADATA_PATH = "write.metadata.path"


@dataclass(frozen=True)
class WriteContext:
    """What writing files of a table takes, as a value that can travel to another process.

    `root`: the table's folder; `locations`: where data files lie;
    `table_uuid`, `format_version`, `schema_id` and the id of `spec` tell whether it is still what the table asks for;
    `schema_text`: the schema as recorded; `compression`: as Arrow calls it; `write_id`: in the names of all
    files of one write.
    """

    root: str
    locations: DataLocations
    table_uuid: str | None
    format_version: int
    schema_id: int
    schema_text: str
    spec: PartitionSpec
    properties: Mapping[str, str]
    compression: str
    target_bytes: int
    rows_per_file: int = ROWS_PER_FILE
    write_id: str = ""

    @cached_property
    def schema(self) -> Schema:
        """The columns of the table."""
        return parse_schema(msgspec.json.decode(self.schema_text))

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The columns of its data files."""
        schema = stored_schema(msgspec.json.decode(self.schema_text))
        return schema.with_metadata({b"iceberg.schema": self.schema_text.encode()})

    @cached_property
    def metric_columns(self) -> dict[tuple[str, ...], MetricColumn]:
        """The columns that files get metrics of."""
        return metered_columns(self.schema, self.properties)

    @cached_property
    def sources(self) -> list[tuple[tuple[str, ...], Field] | None]:
        """The source column of each part of the partition spec, with its path; None of a void one."""
        fields = struct_fields(self.schema)
        return [None if f.transform.name == "void" else fields[f.source_ids[0]] for f in self.spec.fields]

    @property
    def result_types(self) -> list[DataType | None]:
        """The type of each part of its partition tuples; None of a void one."""
        pairs = zip(self.spec.fields, self.sources, strict=True)
        return [None if source is None else f.transform.result_type(source[1].type) for f, source in pairs]

    def is_current(self, state: State) -> bool:
        """Whether files of this context are what the table, as it is now, asks for."""
        now = state.metadata
        definition = now.table_uuid, now.format_version, now.current_schema_id, now.default_spec_id
        return definition == (self.table_uuid, self.format_version, self.schema_id, self.spec.spec_id)


def write_context(state: State) -> WriteContext:
    """How files of a table are written as it is now.

    UnsupportedTableError for what is not written: encrypted tables, unknown transforms, partition fields of one name,
    types without values, file formats other than Parquet, and a table whose recorded location is not where it lies.
    """
    metadata, properties = state.metadata, state.metadata.properties
    for name in _NOT_HONOURED:
        if properties.get(name, "false").lower() != "false":
            raise not_honoured(name, properties[name])
    if metadata.is_encrypted:
        raise unsupported_table("the table is encrypted, and encryption is not written", "unsupported-encryption")
    file_format = properties.get("write.format.default", "parquet")
    if file_format.lower() != "parquet":
        raise not_honoured("write.format.default", file_format)
    codec = properties.get("write.parquet.compression-codec", "zstd")
    if codec.lower() not in _CODECS:
        raise not_honoured("write.parquet.compression-codec", codec)
    target = properties.get("write.target-file-size-bytes", str(_TARGET_BYTES))
    if not _NUMBER.fullmatch(target) or int(target) == 0:
        raise not_honoured("write.target-file-size-bytes", target)
    check_spec(metadata.spec, metadata.schema)
    location = recorded_location(state)
    metadata_path = properties.get(_METADATA_PATH, f"{location}/{FOLDER}")
    if canonical(metadata_path).rstrip("/") != f"{canonical(location)}/{FOLDER}":
        # in a folder it is where readers look ("Hadoop path-based tables cannot relocate metadata", the Java library);
        # in a catalog, the table's folder could not be compared with its metadata file's any more
        raise not_honoured(_METADATA_PATH, metadata_path)
    recorded_schema = metadata.schemas[metadata.current_schema_id]
    context = WriteContext(
        root=state.storage.root,
        locations=data_locations(state, location),
        table_uuid=metadata.table_uuid,
        format_version=metadata.format_version,
        schema_id=recorded_schema.schema_id,
        schema_text=recorded_schema.text,
        spec=metadata.spec,
        properties={name: text for name, text in properties.items() if name.startswith("write.")},
        compression=_CODECS[codec.lower()],
        target_bytes=int(target),
    )
    assert context.stored_schema is not None  # refuses types whose values are not written
    assert context.metric_columns is not None  # refuses modes that are none
    return context


def recorded_location(state: State) -> str:
    """The prefix of the paths that the table's new files are recorded with.

    UnsupportedTableError where that is not the folder that the table was opened at, by the user's own rules.
    """
    location, root = (state.metadata.location or "").rstrip("/"), state.storage.root.rstrip("/")
    if state.locations.is_guess:
        raise unsupported_table(
            f"the table records its location as {location or 'nothing'}, and its files below another folder, where "
            "they would not be found beside new ones",
            "moved-table",
            "have the engine that owns it write its metadata again",
        )
    path = state.metadata_file.path
    if location and relocate_path(f"{location}/{path}", state.relocate) == f"{root}/{path}":
        return location
    raise unsupported_table(
        f"the table records its location as {location or 'nothing'}, and was opened at {root}: other engines would not "
        "find files that are added here",
        "moved-table",
        "open it at its recorded location, or give relocate= where that is the same place",
    )


def check_spec(spec: PartitionSpec, schema: Schema, subject: str = "the table is") -> None:
    """UnsupportedTableError for a partition spec whose manifests are not written: of an unknown transform, a column
    that is gone, or fields that manifests confuse. `subject`: of the message, what is partitioned so."""
    # "Writers are not allowed to commit data using a partition spec that contains a field with an unknown transform"
    fields = struct_fields(schema)
    for part in spec.fields:
        if part.transform.name == "unknown" or len(part.source_ids) != 1:
            raise unsupported_table(
                f"{subject} partitioned by {part.name}, whose transform {part.transform.text} is not known",
                "unsupported-transform",
            )
        if part.transform.name != "void" and part.source_ids[0] not in fields:
            raise unsupported_table(
                f"{subject} partitioned by {part.name}, whose column is not in the table's schema any more",
                "unsupported-transform",
            )
    # manifests hold the parts of a tuple by these names, and readers find them by these ids
    names: dict[str, int] = {}
    ids: dict[int, int] = {}
    for position, part in enumerate(spec.fields):
        same_name = names.setdefault(avro_name(part.name), position)
        first = min(same_name, ids.setdefault(part.field_id, position))
        if first < position:
            what = f"have the field id {part.field_id}" if same_name == position else "have one name in manifests"
            raise unsupported_table(
                f"{subject} partitioned by {spec.fields[first].name} and {part.name}, which {what}",
                "ambiguous-partition",
                "have the table's partition spec corrected by the engine that owns it",
            )


def avro_name(name: str) -> str:
    """A name as the reference implementation spells it: `a b` is `a_x20b`, `1st` is `_1st`."""
    text = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"_x{ord(c):X}" for c in name)
    return f"_{text}" if text[:1].isdigit() else text


_DATA, _FOLDER_STORAGE, _OBJECT_STORAGE = "write.data.path", "write.folder-storage.path", "write.object-storage.path"
_HASHED, _PARTITIONED = "write.object-storage.enabled", "write.object-storage.partitioned-paths"
_ENTROPY_BITS = 20
_ENTROPY_FOLDERS = (slice(0, 4), slice(4, 8), slice(8, 12), slice(12, 20))


@dataclass(frozen=True)
class DataLocations:
    """Where new data files lie. `prefix`: the recorded path above them; `folder`: its address.

    `hashes_names`: a hash of a file's name comes first ("object store file layout"), so that a store which limits
    requests by prefix spreads them; `context`: folders that tell tables apart which share the prefix, after the hash;
    `partition_folders`: whether folders are named by the partition.
    """

    prefix: str
    folder: str
    hashes_names: bool = False
    context: str | None = None
    partition_folders: bool = True

    def name(self, partition: str, file: str) -> str:
        """The path, below the prefix, of a file whose partition has these folders: `a=1/b=2`, or an empty text."""
        name = f"{partition}/{file}" if partition and self.partition_folders else file
        if not self.hashes_names:
            return name
        bits = f"{murmur3(name.encode()):032b}"[-_ENTROPY_BITS:]
        hash_ = "/".join(bits[part] for part in _ENTROPY_FOLDERS)
        if self.context is not None:
            return f"{hash_}/{self.context}/{name}"
        return f"{hash_}/{name}" if self.partition_folders else f"{hash_}-{name}"


def data_locations(state: State, location: str) -> DataLocations:
    """Where new data files of a table lie that is recorded at a location.

    UnsupportedTableError for a property that names no address, CorruptTableError for a path that climbs, and
    AccessDeniedError for one outside the table and the allowed roots: the writer of a table's properties must not
    choose what else its other writers write to.
    """
    properties = state.metadata.properties
    by_hash = _is_true(properties, _HASHED, default=False)
    names = (_DATA, _OBJECT_STORAGE, _FOLDER_STORAGE) if by_hash else (_DATA, _FOLDER_STORAGE)
    setting = next((name for name in names if name in properties), None)
    prefix = f"{location}/data" if setting is None else properties[setting].rstrip("/")
    if setting is not None and not is_absolute(prefix):
        # file_path: "Full URI for the file with FS scheme"
        raise not_honoured(setting, properties[setting])
    inside = f"{canonical(prefix)}/".startswith(f"{canonical(location)}/")
    context = None if inside or not by_hash else "/".join(canonical(location).strip("/").split("/")[-2:])
    _address(state, f"{prefix}/{context or 'data'}/f")
    partition_folders = not by_hash or _is_true(properties, _PARTITIONED, default=True)
    return DataLocations(prefix, _address(state, f"{prefix}/f").rpartition("/")[0], by_hash, context, partition_folders)


def _address(state: State, path: str) -> str:
    return state.storage.resolve(state.locations.resolve(path))


def _is_true(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    """As Java's Boolean.parseBoolean."""
    return properties[name].lower() == "true" if name in properties else default
