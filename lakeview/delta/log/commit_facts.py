"""One commit's lines to what its row of COMMITS says, and to its file events."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from lakeview.delta.log.actions import CommitInfo, Metadata, Protocol
from lakeview.delta.log.file_lines import AddLine, FileLine, events_of, info_of, log_lines, records_of, unique_id
from lakeview.delta.log.paths import canonical_paths, decoded_paths
from lakeview.model import limits
from lakeview.model.errors import CorruptTableError

Identity: TypeAlias = tuple[str, str | None]
"""A file: canonical path and unique id of its deletion vector."""

KnownFile: TypeAlias = tuple[int | None, int | None]
"""What is known of a live file: bytes, live rows."""


class FileEvent(NamedTuple):
    """One file action of a commit; `size` None where no file is of the size recorded; `records`: live rows of an add,
    None where nobody says and for a remove."""

    added: bool
    key: str
    path: str
    deletion_vector: str | None
    size: int | None
    records: int | None


@dataclass(slots=True)
class CommitFacts:
    """What a commit says. `broken`: why it cannot be read, then the rest is empty.

    Bytes and rows are None where a part of the sum is unknown. `unknown`: removed files whose add has not been met;
    `complete` gives what they were.
    """

    version: int
    info: CommitInfo = field(default_factory=CommitInfo)
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    broken: str | None = None
    files_added: int = 0
    files_removed: int = 0
    bytes_added: int | None = 0
    bytes_removed: int | None = 0
    records_added: int | None = 0
    records_removed: int | None = 0
    data_change: bool = False
    unknown: list[tuple[Identity, int | None]] = field(default_factory=list)

    @property
    def definition(self) -> tuple[Protocol | None, Metadata | None] | None:
        """Its last protocol and metaData action; None of a commit that is corrupt."""
        return None if self.broken is not None else (self.protocol, self.metadata)

    def complete(self, files: Mapping[Identity, KnownFile]) -> None:
        """Count the removed files whose add was not met; one that is not among `files` makes the sums unknown."""
        for identity, size in self.unknown:
            self.remove(size, files.get(identity, (None, None)))
        self.unknown = []

    def remove(self, size: int | None, was: KnownFile) -> None:
        """Count one removed file: its bytes as the remove says, its rows as its add did."""
        self.bytes_removed = _plus(self.bytes_removed, was[0] if size is None else size)
        self.records_removed = _plus(self.records_removed, was[1])


def read_facts(
    version: int, data: bytes, root: str, live: MutableMapping[Identity, KnownFile]
) -> tuple[CommitFacts, list[FileEvent]]:
    """What a commit says, and its file events in the order recorded.

    `live`: files that earlier commits touched, brought up to its version. "The actions of a commit have no order": what
    it removes was there before it, whatever else it adds.
    """
    try:
        lines = log_lines(data, version)
    except CorruptTableError as error:
        return CommitFacts(version, broken=error.message), []
    facts = CommitFacts(version, info_of(lines))
    for line in lines:
        if line.meta_data is not None:
            facts.metadata = line.meta_data
        if line.protocol is not None:
            facts.protocol = line.protocol
    actions = events_of(lines)
    if not actions:
        return facts, []
    facts.data_change = any(a.data_change for a in actions)
    events = _events(actions, root)
    for event in events:
        if event.added:
            facts.files_added += 1
            facts.bytes_added = _plus(facts.bytes_added, event.size)
            facts.records_added = _plus(facts.records_added, event.records)
            continue
        facts.files_removed += 1
        identity = event.key, event.deletion_vector
        if identity in live:
            facts.remove(event.size, live[identity])
        else:
            facts.unknown.append((identity, event.size))
    for event in events:  # of a file that is gone nothing is known: a second removal undoes nothing
        live[event.key, event.deletion_vector] = (event.size, event.records) if event.added else (None, None)
    return facts, events


def _events(actions: Sequence[FileLine], root: str) -> list[FileEvent]:
    paths = decoded_paths([a.path for a in actions])
    found = []
    for action, path, key in zip(actions, paths, canonical_paths(paths, root), strict=True):
        added = isinstance(action, AddLine)
        count = records_of(action) if added else None
        vector, size = action.deletion_vector, action.size
        if size is not None and not 0 <= size <= limits.FILE_BYTES:
            size = None
        if count is not None and vector is not None:
            left = count - vector.cardinality
            count = left if left >= 0 else None  # more deleted than there are
        found.append(FileEvent(added, key, path, unique_id(vector), size, count))
    return found


def _plus(total: int | None, part: int | None) -> int | None:
    """A sum, None if a part is unknown, or beyond the 64 bits of a frame."""
    if total is None or part is None or not -(2**63) <= total + part < 2**63:
        return None
    return total + part
