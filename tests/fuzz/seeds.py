"""What a fuzzer begins with: a few sound inputs of each kind, which it then breaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyroaring

from tests.builders.actions import add, info, metadata, protocol, remove, schema_string, struct, txn
from tests.builders.history import parquet_actions
from tests.fuzz import iceberg_seeds


def _line(*actions: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(a).encode() + b"\n" for a in actions)


_VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
_STATS = {
    "numRecords": 3,
    "minValues": {"long": -1, "string": "a", "date": "2026-03-01", "double": 1.5, "s": {"d": 0.25}},
    "maxValues": {"long": 9, "string": "z", "timestamp": "2026-03-01T08:00:00.123Z", "float": "NaN"},
    "nullCount": {"long": 0, "s": {"d": 1}},
    "tightBounds": True,
}
_CREATED = _line(protocol(), metadata(partition_by=("city",), properties={"delta.appendOnly": "false"}))
_WRITE = _line(
    info(operation="WRITE", operationMetrics={"numFiles": "1"}, inCommitTimestamp=1_700_000_000_000, readVersion=0),
    add("a%20b.parquet", stats=_STATS, partition={"city": "x"}, deletionVector=_VECTOR),
    remove("file:///c.parquet"), txn("stream", 4), {"domainMetadata": {"domain": "d", "configuration": "{}"}},
)  # fmt: skip
_FILE = parquet_actions([protocol(), add("a.parquet", records=1)])
_WIDE = pyroaring.BitMap64([*range(5000), 7_000, 2**32 + 5, *range(2**40, 2**40 + 70_000)])
_HINT = b'{"version":1,"size":4,"parts":2,"sizeInBytes":9,"checksum":"6a92d155a59bf2eecbd4b4ec7fd1f875"}'
_CRC = b'{"tableSizeBytes":100,"numFiles":1,"numMetadata":1,"numProtocol":1,"protocol":{"minReaderVersion":1}}'

SEEDS: Mapping[str, tuple[bytes, ...]] = {
    "commit": (_CREATED, _WRITE, b"\xef\xbb\xbf" + _CREATED, b'{\n "add": {"path": "a",\n "size": 1}}\n'),
    "path": (
        b"a/b=c%20d/e.parquet", b"../x", b"file:///lakeview-fuzz/table/a", b"s3://b/c", b"%2e%2e/%2Fetc",
        b"a//./b/../c",
    ),
    "vector": (
        (1681511377).to_bytes(4, "little") + _WIDE.serialize(),
        (1681511377).to_bytes(4, "little") + pyroaring.BitMap64([1, 2, 3]).serialize(),
        bytes.fromhex("6439d3d0000000010000000000000012"),
    ),
    "inline_vector": (
        b"i^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", b"uab^-aqEH.-t@S}K{vb[*k^", b"pfile:///x",
    ),
    "statistics": (json.dumps(_STATS).encode(), b'{"numRecords":-1,"minValues":{"date":"10000-01-01"}}'),
    "partition_value": (
        b"2026-03-01", b"2026-03-01 08:00:00.5", b"2026-03-01T08:00:00+02:00", b"-12.50", b"NaN", b"true", b"",
    ),
    "schema": (
        schema_string({"id": "long", "d": "decimal(10, 2)", "s": struct(a="string")}).encode(),
        json.dumps(
            struct(
                m={"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True},
                a={"type": "array", "elementType": struct(x="variant"), "containsNull": False},
            )
        ).encode(),
    ),
    "hint": (_HINT, b'{"version":0,"v2Checkpoint":{"path":"x","nonFileActions":[{"txn":null}]}}'),
    "variant": tuple(map(bytes.fromhex, ("04010001610c0103000102", "03010000020100000a", "0301000015616263"))),
    "condition": (b"id = 1 AND (city LIKE 'a%' OR NOT day BETWEEN DATE '2026-03-01' AND NULL)", b"a.b IN (1, 2.5)"),
    "checkpoint": (
        parquet_actions([protocol(), metadata(), add("a.parquet", records=1), remove("b.parquet"), txn("s", 1)]),
        parquet_actions([protocol(), metadata(properties={"a": "b"}), add("a.parquet", stats=_STATS)]),
    ),
    "footer": (_FILE,),
    "table": (
        b"\x00" + _CREATED + b"\0\x01" + _WRITE + b"\0\x04" + _HINT + b"\0\x05" + _CRC,
        b"\x00" + _CREATED + b"\0\x02" + _WRITE + b"\0\x06" + _WRITE,
        b"\x00" + _CREATED + b"\0\x07" + _CREATED + b'{"checkpointMetadata":{"version":1}}\n' + b"\0\x03PAR1",
    ),
    **iceberg_seeds.SEEDS,
}  # fmt: skip
"""Target -> inputs."""
