"""Commits to what they say of themselves, besides their file actions: one record a commit."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol, Txn
from lakeview.delta.log.commit_info import CommitInfo, json_object
from lakeview.delta.log.commits import Commit

T = TypeVar("T")


@dataclass(frozen=True)
class CommitRecord:
    """One commit without its file actions, each kind in the order recorded. `info`: its first commitInfo; `places`:
    those of its commitInfo actions among all; `change_files`: its cdc actions as recorded."""

    version: int
    info: CommitInfo
    places: tuple[int, ...]
    protocols: tuple[Protocol, ...]
    metadatas: tuple[Metadata, ...]
    txns: tuple[Txn, ...]
    domains: tuple[DomainMetadata, ...]
    change_files: tuple[bytes, ...]

    @property
    def protocol(self) -> Protocol | None:
        """Its last protocol action."""
        return self.protocols[-1] if self.protocols else None

    @property
    def metadata(self) -> Metadata | None:
        """Its last metaData action."""
        return self.metadatas[-1] if self.metadatas else None

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """operationParameters; values are JSON texts, or values that some writers leave as they are."""
        return json_object(bytes(self.info.operation_parameters))

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """operationMetrics; values are numbers or texts of numbers."""
        return json_object(bytes(self.info.operation_metrics))

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
        blind = self.info.is_blind_append is True and not self.is_manual
        return blind or (self.info.operation == "WRITE" and self.mode == "append")

    @property
    def is_manual(self) -> bool:
        """True if actions were composed by hand through Spark's interface for that: what it records is no promise."""
        return self.info.operation == "Manual Update"

    @property
    def restores_files(self) -> bool:
        """True if the operation restores an earlier version, or the commit reports that it does so among others."""
        return self.is_restore or "numRestoredFiles" in self.metrics

    @property
    def is_restore(self) -> bool:
        """True if the operation restores an earlier version."""
        return self.info.operation == "RESTORE"


def commit_record(commit: Commit) -> CommitRecord:
    """The record of a parsed commit."""
    actions = commit.actions
    return CommitRecord(
        commit.version,
        commit.info,
        tuple(i for i, action in enumerate(actions) if bytes(action.commit_info) not in (b"", b"null")),
        _present(action.protocol for action in actions),
        _present(action.meta_data for action in actions),
        _present(action.txn for action in actions),
        _present(action.domain_metadata for action in actions),
        tuple(cdc for action in actions if (cdc := bytes(action.cdc)) not in (b"", b"null")),
    )


def _present(actions: Iterable[T | None]) -> tuple[T, ...]:
    return tuple(action for action in actions if action is not None)
