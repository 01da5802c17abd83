"""What a fuzzer of the Iceberg targets begins with: a few sound inputs of each kind, which it then breaks."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.builders.iceberg import IcebergHistory
from tests.builders.iceberg_metadata import document, snapshot, text, version_1
from tests.fuzz.iceberg_targets import whole_table

_FIELDS: list[dict[str, Any]] = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
]


def _table() -> dict[str, bytes]:
    """The files of a small table with a deletion vector, by name."""
    with tempfile.TemporaryDirectory() as folder:
        history = IcebergHistory(Path(folder) / "t", _FIELDS, [(2, "month", "m")], version=3, location="/lake/orders")
        first = history.append("a", [{"id": 1}, {"id": 2}, {"id": 3}])
        history.delete_vectors("v", {first: [1]})
        return {f.name: f.read_bytes() for f in history.root.rglob("*") if f.is_file()}


_FILES = _table()
_MAPPING = [
    {"field-id": 1, "names": ["a", "b"]},
    {"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["a"]}]},
    {"names": ["m"], "fields": [{"field-id": 4, "names": ["key"]}, {"field-id": 5, "names": ["value"]}]},
]
_MANIFESTS = tuple(_FILES[name] for name in sorted(_FILES) if name.startswith("manifest-"))
_LISTS = tuple(_FILES[name] for name in sorted(_FILES) if name.startswith("snap-"))

SEEDS: Mapping[str, tuple[bytes, ...]] = {
    "iceberg_metadata": (
        text(document(snapshots=[snapshot(1)], refs={"main": {"snapshot-id": 1, "type": "branch"}})),
        text(version_1()), gzip.compress(text(document())), _FILES["v3.metadata.json"],
    ),
    "avro_container": (*_MANIFESTS, *_LISTS),
    "manifest": _MANIFESTS,
    "manifest_list": _LISTS,
    "puffin_vector": (_FILES["v"][4:], b""),
    "single_values": (
        b"\x01\0\0\0", b"abcdefgh", b'"2024-01-31"', b'"1.25"', b'{"keys": ["a"], "values": [1]}', b'{"5": "1.00"}',
        b"bucket[16]", b"[1]", b'"2024-01-31T01:02:03.000000004"', b"",
    ),
    "name_mapping": (json.dumps(_MAPPING).encode(), json.dumps({"fields": _MAPPING}).encode()),
    "location": (b"file:///lake/orders/data/a", b"s3a://x/../y", b"./a/b", b"/etc/passwd", b"a\\b", b""),
    "iceberg_table": (whole_table(_LISTS[0], _MANIFESTS[0]), whole_table(_LISTS[1], _MANIFESTS[1])),
}  # fmt: skip
"""Target -> inputs."""
