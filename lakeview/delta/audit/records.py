"""Commits to what they say of themselves, besides their file actions: one record a commit."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol, Txn, parse_commit_info
from lakeview.delta.log.commits import Commit


@dataclass(frozen=True)
class CommitRecord:
    """One commit without its file actions. `info`: its commitInfo as recorded, empty where there is none."""

    version: int
    operation: str | None = None
    engine: str | None = None
    client_version: str | None = None
    timestamp: int | None = None
    in_commit_timestamp: int | None = None
    info: dict[str, Any] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txns: tuple[Txn, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    change_files: int = 0

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """operationParameters; values are JSON texts, or values that some writers leave as they are."""
        parameters = self.info.get("operationParameters")
        return parameters if isinstance(parameters, dict) else {}

    @cached_property
    def metrics(self) -> dict[str, Any] | None:
        """operationMetrics; values are numbers or texts of numbers."""
        metrics = self.info.get("operationMetrics")
        return metrics if isinstance(metrics, dict) else None

    @property
    def read_version(self) -> int | None:
        """The version that the operation read, if the commit records one."""
        return whole(self.info.get("readVersion"))

    @property
    def isolation(self) -> str | None:
        """The isolation level, if the commit records one."""
        level = self.info.get("isolationLevel")
        return level if isinstance(level, str) else None

    @property
    def mode(self) -> str | None:
        """The mode of a write in lower case: append, overwrite, ...; of a stream its output mode."""
        mode = self.parameters.get("mode", self.parameters.get("outputMode"))
        return mode.lower() if isinstance(mode, str) else None

    @property
    def predicate(self) -> str | None:
        """The condition of the operation as recorded; None without one, and for an empty list of conditions."""
        text = self.parameters.get("predicate")
        return text if isinstance(text, str) and text.strip() not in ("", "[]", '["true"]', "true") else None

    @property
    def is_append(self) -> bool:
        """True if the commit says that it only appends."""
        blind = self.info.get("isBlindAppend") is True and not self.is_manual
        return blind or (self.operation == "WRITE" and self.mode == "append")

    @property
    def is_manual(self) -> bool:
        """True if actions were composed by hand through Spark's interface for that: what it records is no promise."""
        return self.operation == "Manual Update"

    @property
    def restores_files(self) -> bool:
        """True if the operation restores an earlier version, or the commit reports that it does so among others."""
        return self.is_restore or "numRestoredFiles" in (self.metrics or {})

    @property
    def is_restore(self) -> bool:
        """True if the operation restores an earlier version."""
        return self.operation == "RESTORE"


def commit_record(commit: Commit) -> CommitRecord:
    """The record of a parsed commit."""
    raw = next((bytes(a.commit_info) for a in commit.actions if bytes(a.commit_info) not in (b"", b"null")), b"{}")
    info = parse_commit_info(raw)
    protocol, metadata = commit.definition
    return CommitRecord(
        commit.version,
        info.operation,
        info.engine,
        info.client_version,
        info.timestamp,
        info.in_commit_timestamp,
        json_object(raw),
        protocol,
        metadata,
        tuple(a.txn for a in commit.actions if a.txn is not None),
        tuple(a.domain_metadata for a in commit.actions if a.domain_metadata is not None),
        sum(bytes(a.cdc) not in (b"", b"null") for a in commit.actions),
    )


def whole(value: object) -> int | None:
    """A JSON value as a number of 64 bits, whether written as a number or as text; None for anything else."""
    if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal() and value.isascii():
        value = int(value)
    fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if fits else None  # type: ignore[return-value]  # `fits` says it is an int


def json_object(raw: bytes) -> dict[str, Any]:
    """The object in a JSON text; an empty one where it holds no object."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
