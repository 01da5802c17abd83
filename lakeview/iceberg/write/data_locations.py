"""The properties of a table to the paths of its new data files.

The paths are those of Iceberg's Java library (`LocationProviders`; for the properties its docs, Write properties).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeview.iceberg.metadata.locations import canonical
from lakeview.iceberg.metadata.transforms import murmur3
from lakeview.iceberg.state import State
from lakeview.iceberg.write.writability import not_honoured
from lakeview.model.addresses import is_absolute

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
    hashed = _is_true(properties, _HASHED, default=False)
    names = (_DATA, _OBJECT_STORAGE, _FOLDER_STORAGE) if hashed else (_DATA, _FOLDER_STORAGE)
    setting = next((name for name in names if name in properties), None)
    prefix = f"{location}/data" if setting is None else properties[setting].rstrip("/")
    if setting is not None and not is_absolute(prefix):
        # file_path: "Full URI for the file with FS scheme"
        raise not_honoured(setting, properties[setting])
    inside = f"{canonical(prefix)}/".startswith(f"{canonical(location)}/")
    context = None if inside or not hashed else "/".join(canonical(location).strip("/").split("/")[-2:])
    _address(state, f"{prefix}/{context or 'data'}/f")
    partition_folders = not hashed or _is_true(properties, _PARTITIONED, default=True)
    return DataLocations(prefix, _address(state, f"{prefix}/f").rpartition("/")[0], hashed, context, partition_folders)


def _address(state: State, path: str) -> str:
    return state.storage.resolve(state.locations.resolve(path))


def _is_true(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    """As Java's Boolean.parseBoolean."""
    return properties[name].lower() == "true" if name in properties else default
