"""The conformance folder to golden tables: a table's path beside what a conforming reader must find in it.

The folder's own README says what each field means; null means "not known", never "nothing".
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[2]


class Protocol(msgspec.Struct, frozen=True):
    """The protocol at the latest version."""

    min_reader_version: int | None
    reader_features: list[str] | None
    writer_features: list[str] | None = None


class Alternative(msgspec.Struct, frozen=True):
    """Another acceptable outcome of a table that should not open: these numbers."""

    version: int
    num_files: int


class Refusal(msgspec.Struct, frozen=True):
    """Why a table must not open, or need not."""

    kind: str
    detail: str
    alternative: Alternative | None = None


class Version(msgspec.Struct, frozen=True):
    """One version that can still be reconstructed. `rows`: the Parquet file of its rows, relative to the table."""

    num_files: int
    num_rows: int | None
    rows: str | None
    columns: list[str] | None = None
    may_error: str | None = None


class Latest(msgspec.Struct, frozen=True):
    """The latest version, in more detail. `missing_files`: live data files that are not in the folder."""

    version: int
    num_files: int
    num_rows: int | None
    size_bytes: int
    partition_columns: list[str]
    columns: list[str]
    rows: str | None
    num_rows_from_stats: int | None
    num_files_with_dv: int
    missing_files: int = 0


class Commit(msgspec.Struct, frozen=True):
    """One commit whose JSON is present. Timestamps in milliseconds since 1970."""

    version: int
    operation: str | None
    timestamp: int | None
    in_commit_timestamp: int | None = None


class Expected(msgspec.Struct, frozen=True):
    """expected.json. `protocol` is null where the log does not get that far."""

    features: list[str]
    protocol: Protocol | None
    error: Refusal | None
    latest: Latest | None
    versions: dict[str, Version] | None
    history: list[Commit]
    txns: dict[str, int]
    tombstones: int | None
    domain_metadata: dict[str, str]
    may_error: Refusal | None = None
    versions_reconstructable: tuple[int, int] | None = None
    tombstones_full_json_replay: int | None = None


class GoldenTable(msgspec.Struct, frozen=True):
    """A table and what must be found in it."""

    name: str
    folder: Path
    expected: Expected

    @property
    def path(self) -> str:
        """The address to open."""
        return str(self.folder / "table")

    @property
    def excusable_features(self) -> frozenset[str]:
        """The reader features that must be implemented to read this table.

        None for tables of reader version 1, and for those that must or may be refused: nothing excuses these.
        """
        protocol = self.expected.protocol
        if protocol is None or self.expected.error is not None or self.expected.may_error is not None:
            return frozenset()
        names = set(protocol.reader_features or ())
        # Reader version 2 means column mapping, in use or not (delta protocol, Reader Version Requirements).
        names.discard("columnMapping")
        if any(tag.startswith("column-mapping") for tag in self.expected.features):
            names.add("columnMapping")
        return frozenset(names)


def conformance_root() -> Path:
    """Where the conformance tables are looked for: LAKEVIEW_CONFORMANCE, else beside the project."""
    value: Any = os.environ.get("LAKEVIEW_CONFORMANCE")
    return Path(value).expanduser() if value else ROOT.parent / "shared" / "conformance"


def require_tables(tables: Sequence[object]) -> None:
    """Skip the test without conformance tables, or fail it where they have to be."""
    if not tables:
        reason = f"no conformance tables at {conformance_root()} (LAKEVIEW_CONFORMANCE says where they are)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def delta_tables() -> list[GoldenTable]:
    """Every Delta table of the conformance folder, by name; none where the folder is absent."""
    return [
        GoldenTable(path.parent.name, path.parent, msgspec.json.decode(path.read_bytes(), type=Expected))
        for path in sorted(conformance_root().glob("delta/*/expected.json"))
    ]
