"""Inputs that once ended in something else than a value or a LakeviewError, each under what was wrong with it."""

from __future__ import annotations

from collections.abc import Mapping

REGRESSIONS: Mapping[str, tuple[str, bytes]] = {
    "an operation that is no UTF-8": ("commit", b'{"commitInfo":{"operation":"\xff"}}\n'),
    "an action nobody knows, and no UTF-8": ("commit", b'{"\xe8":1}\n{"future":{"path":"\xe8"}}\n'),
    "a table whose history is no UTF-8": ("table", b'\x00{"commitInfo":{"operation":"\xff"}}\n'),
    "statistics that are no UTF-8": (
        "table",
        b'\x00{"protocol":{}}\n{"metaData":{"id":"x"}}\n\0\x01{"add":{"path":"a","size":1,"stats":"\xff"}}\n',
    ),
    "a vector's name a byte short": ("inline_vector", b"uab^-aqEH.-t@S}K{#b[*k"),
    "Iceberg metadata that is no UTF-8 where its version is looked for": (
        "iceberg_metadata",
        b'{"format-version": "x", "\xba": 1}',
    ),
    "a bound of a text that is no UTF-8": ("single_values", b"|\xdd\x94\x9a\xff"),
    "a name mapping whose names are none": ("name_mapping", b'[{"field-id": 1, "names": [{}]}, {"names": 7}]'),
    "a default in nanoseconds that is only a day": ("single_values", b'"2024-01-31"'),
}
"""What it is -> (target, input)."""
