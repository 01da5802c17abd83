"""The files that a transaction adds and removes, as the actions of its commit."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from lakeview.delta.data.deletion_vectors import file_of
from lakeview.delta.log.actions import AddCDCFile, AddFile, DeletionVectorDescriptor, RemoveFile
from lakeview.delta.log.paths import canonical_path, decode_path, encode_path
from lakeview.delta.log.record_counts import records_of
from lakeview.model.clock import Clock
from lakeview.model.errors import InvalidRequestError
from lakeview.model.snapshot import milliseconds
from lakeview.storage import Storage

Key = tuple[str, str | None]
"""A logical file: its canonical path, and its deletion vector's unique id."""

REMOVAL_COLUMNS = ("size", "partition_values", "vector", "tags", "base_row_id", "default_row_commit_version")
"""What a remove action says of the file besides its path."""

LIVE_COLUMNS = (*REMOVAL_COLUMNS, "modified", "stats", "clustering_provider")
"""What an add action says of the file besides its path."""


class FileChanges:
    """Adds, removes and change data of one commit, each file once.

    `adds`, `removes` and `changes` are actions; removes go by their key. `live_again`: canonical paths of live files
    that are added once more. `paths`: decoded, of the files that this process wrote, which nothing needs
    unless the commit is made.
    """

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self.storage = storage
        self._clock = clock
        self.adds: list[AddFile] = []
        self.removes: dict[Key, RemoveFile] = {}
        self.changes: list[AddCDCFile] = []
        self.paths: list[str] = []
        self.live_again: set[str] = set()
        self._is_partial = False

    @contextmanager
    def operation(self) -> Iterator[None]:
        """Around one operation. If it fails in its midst, no commit is made of the changes, even if the error is
        caught: rows of files that it removed would be lost."""
        before = self._size()
        try:
            yield
        except BaseException:
            self._is_partial = self._is_partial or self._size() != before
            raise

    def _size(self) -> tuple[int, int, int]:
        return len(self.adds), len(self.removes), len(self.changes)

    def remove(self, row: Mapping[str, Any], *, data_change: bool) -> None:
        """Remove a live file: a row of FILE_ACTIONS with REMOVAL_COLUMNS.

        InvalidRequestError where the transaction has removed it: what took its place would be there twice.
        """
        if (row["key"], row["deletion_vector"]) in self.removes:
            raise InvalidRequestError(
                f"two operations of one transaction change the file {row['path']}: each works on the table as it was "
                "before the transaction",
                fix="do them in one operation, or in two transactions",
                place=row["path"],
                kind="duplicate-file-action",
            )
        now = milliseconds(self._clock())
        self.removes[row["key"], row["deletion_vector"]] = RemoveFile(
            deletion_timestamp=now, data_change=data_change, extended_file_metadata=True, **_common_fields(row)
        )

    def take(self, adds: Sequence[AddFile], removes: Mapping[Key, RemoveFile], changes: Sequence[AddCDCFile]) -> None:
        """Take over what another process did to other files; `written` stays with the caller."""
        self.adds += adds
        self.removes.update(removes)
        self.changes += changes

    @property
    def removed_paths(self) -> frozenset[str]:
        """Canonical paths of the removes."""
        return frozenset(path for path, _ in self.removes)

    def keys(self) -> list[Key]:
        """The key of each add."""
        paths = [canonical_path(path, self.storage.root) for path in paths_of(self.adds)]
        vectors = [None if a.deletion_vector is None else a.deletion_vector.unique_id for a in self.adds]
        return list(zip(paths, vectors, strict=True))

    def check(self) -> None:
        """ "A single log entry MUST NOT include more than one action that reconciles with each other."

        InvalidRequestError names a file that is added twice, or added and removed as the same logical file; also after
        an operation that failed in its midst.
        """
        if self._is_partial:
            raise InvalidRequestError(
                "an operation of this transaction failed in its midst, and what it did until then cannot be committed",
                fix="begin another transaction without it",
                kind="failed-operation",
            )
        keys = self.keys()
        if len(set(keys)) < len(keys) or self.removes.keys() & set(keys):
            twice = next(k for k in keys if keys.count(k) > 1 or k in self.removes)
            raise InvalidRequestError(
                f"the file {twice[0]} would be added or removed twice in one commit",
                fix="add and remove each file once",
                kind="duplicate-file-action",
            )

    def add_again(self, row: Mapping[str, Any], stats: str | None) -> None:
        """Add a file that is live once more, `dataChange` false; a commit that removes it meanwhile collides."""
        self.live_again.add(row["key"])
        self.adds.append(add_of(row, stats=stats, data_change=False))

    def withdraw(self, paths: Collection[str]) -> None:
        """Take back what was said of files, by their canonical paths."""
        self.removes = {key: remove for key, remove in self.removes.items() if key[0] not in paths}
        self.adds = [add for add, key in zip(self.adds, self.keys(), strict=True) if key[0] not in paths]

    def metrics(self) -> dict[str, int]:
        """What the actions add up to, in the words of a WRITE."""
        counts = [records_of(add.stats) for add in self.adds]
        metrics = {
            "numFiles": len(self.adds),
            "numOutputBytes": sum(a.size for a in self.adds),
            "numRemovedFiles": len(self.removes),
            "numRemovedBytes": sum(r.size or 0 for r in self.removes.values()),
        }
        return metrics if None in counts else {**metrics, "numOutputRows": sum(c for c in counts if c is not None)}

    def whole_files(self) -> dict[str, int]:
        """How many files come and go, and their bytes, by each name that operationMetrics have for it. Files that
        stay, with another deletion vector or other statistics, do not count."""
        paths = [path for path, _ in self.keys()]
        stays = self.live_again | (self.removed_paths & set(paths))
        sizes_added = [add.size for add, path in zip(self.adds, paths, strict=True) if path not in stays]
        sizes_removed = [remove.size or 0 for (path, _), remove in self.removes.items() if path not in stays]
        return {
            "numAddedFiles": len(sizes_added), "numTargetFilesAdded": len(sizes_added),
            "numAddedBytes": sum(sizes_added), "numTargetBytesAdded": sum(sizes_added),
            "numRemovedFiles": len(sizes_removed), "numTargetFilesRemoved": len(sizes_removed),
            "numRemovedBytes": sum(sizes_removed), "numTargetBytesRemoved": sum(sizes_removed),
        }  # fmt: skip

    def actions(self, adds: Iterable[AddFile]) -> Iterator[tuple[str, Any]]:
        """The actions in the order of the commit, removes first; `adds`: with what only the commit knows."""
        for remove in self.removes.values():
            yield "remove", remove
        for add in adds:
            yield "add", add
        for change in self.changes:
            yield "cdc", change

    def discard_unused(self) -> None:
        """Delete what was written and the commit does not name: deletion vectors that were joined with those of others
        later. A file that cannot be deleted stays for a vacuum: the commit is made."""
        vectors = [add.deletion_vector for add in self.adds if add.deletion_vector is not None]
        names = {decode_path(path) for path in (*(a.path for a in self.adds), *(c.path for c in self.changes))}
        names |= {file for vector in vectors if (file := file_of(vector.unique_id)) is not None}
        paths = [path for path in self.paths if path not in names]
        self.paths.clear()
        self.storage.delete_each(paths)

    def discard(self) -> None:
        """Delete what was written. What cannot be deleted stays for a vacuum: the error that led here counts."""
        self.storage.delete_each(self.paths)
        self.paths.clear()


def add_of(row: Mapping[str, Any], **changes: Any) -> AddFile:
    """A live file as the add action that it was, with changes; `row`: FILE_ACTIONS with LIVE_COLUMNS."""
    own = {"modification_time": row["modified"], **{n: row[n] for n in ("stats", "clustering_provider")}}
    return AddFile(**{**_common_fields(row), **own, **changes})


def _common_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """What adds and removes say of a file, of a row of FILE_ACTIONS."""
    tags, vector = row["tags"], row["vector"]
    return {
        "path": encode_path(row["path"]),
        "partition_values": dict(row["partition_values"] or {}),
        "tags": None if tags is None else msgspec.json.decode(tags, type=dict[str, str | None]),
        "deletion_vector": None if vector is None else DeletionVectorDescriptor(**vector),
        **{name: row[name] for name in ("size", "base_row_id", "default_row_commit_version")},
    }


def paths_of(adds: Iterable[AddFile]) -> list[str]:
    """The decoded paths of adds."""
    return [decode_path(add.path) for add in adds]
