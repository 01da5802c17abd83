"""A new snapshot to the commit that makes it current: the next metadata file of a folder, or a change that a catalog is
asked for; and whether this writer may commit to a table at all."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from lakeview.iceberg.metadata.documents import invalid, metadata_document
from lakeview.iceberg.metadata.locate import FOLDER, HINT, Pointer, is_numbered_alone, metadata_number
from lakeview.iceberg.metadata.refs import MAIN
from lakeview.iceberg.metadata.table_metadata import parse_metadata
from lakeview.iceberg.state import State
from lakeview.iceberg.write.metadata_file import (
    NewSnapshot,
    encode_document,
    following_document,
    following_name,
    snapshot_entry,
)
from lakeview.model.errors import LakeviewError, NotATableError, StoreUnavailableError, UnsupportedTableError
from lakeview.storage import Storage, back_off
from lakeview.storage.exclusive import ExclusivePut

_CODEC = "write.metadata.compression-codec"
_EARLIER = "write.metadata.previous-versions-max"
_REPEATS = 3
"""How often a change whose outcome is not known is asked for again: it requires what the first one changed."""


class Target(Protocol):
    """An Iceberg table as its writer sees it."""

    @property
    def address(self) -> str:
        """How errors name it."""

    @property
    def state(self) -> State:
        """Its metadata at the last refresh."""

    @property
    def pointer(self) -> Pointer | None:
        """The catalog that knows its current metadata file; None for a table in a folder."""

    def refresh(self) -> bool:
        """Look for a newer metadata file."""


class Commits(Protocol):
    """How one snapshot becomes current. `unsure`: whether it is there, or may be although the commit seemed to fail or
    was interrupted: its files have to stay then."""

    @property
    def unsure(self) -> bool:
        """Whether its files have to stay."""

    def commit(self, state: State, document: Mapping[str, Any], snapshot: NewSnapshot, recorded_base: str) -> bool:
        """Make it current after a state, whose metadata file has this document and is recorded by this path; false if
        another commit was first. StoreUnavailableError, of the kind outcome-unknown where it may be there."""


class FolderCommits:
    """Commits by the metadata file with the next number, created exclusively."""

    def __init__(self, storage: Storage, snapshot_id: int) -> None:
        self._storage = storage
        self._snapshot_id = snapshot_id
        self._creation = ExclusivePut(
            storage, self._holds_ours, lambda path, error: _outcome_unknown(path, snapshot_id, error)
        )

    @property
    def unsure(self) -> bool:
        """As `Commits`."""
        return self._creation.unsure

    def commit(self, state: State, document: Mapping[str, Any], snapshot: NewSnapshot, recorded_base: str) -> bool:
        """As `Commits`."""
        properties = state.metadata.properties
        is_compressed = properties.get(_CODEC, "none").lower() == "gzip"
        name = following_name(state.metadata_file.path.rpartition("/")[2], is_compressed=is_compressed)
        assert name is not None, "a table whose commits are made here has numbered metadata files"
        new = following_document(document, snapshot, recorded_base, properties.get(_EARLIER))
        data = encode_document(new, is_compressed=is_compressed)
        if metadata_number(name) is None:
            raise invalid(state.metadata_file.path, "its number is so high that no file can follow it")
        parse_metadata(data, f"{FOLDER}/{name}")  # what cannot be read must not become the table
        if not self._creation.put(f"{FOLDER}/{name}", data):
            return False
        with suppress(LakeviewError):  # readers can do without
            self._move_hint(name)
        return True

    def _move_hint(self, name: str) -> None:
        """Write the hint; again as long as another writer went on meanwhile, whose hint this one replaced."""
        following: str | None = name
        while following is not None:
            name = following
            self._storage.put(f"{FOLDER}/{HINT}", str(metadata_number(name)).encode())
            names = [following_name(name, is_compressed=is_compressed) for is_compressed in (False, True)]
            following = next((n for n in names if n is not None and self._storage.exists(f"{FOLDER}/{n}")), None)

    def _holds_ours(self, path: str) -> bool:
        snapshots = metadata_document(self._storage.read(path), path).get("snapshots") or ()
        return any(snapshot.get("snapshot-id") == self._snapshot_id for snapshot in snapshots)


class CatalogCommits:
    """Commits by a change that the table's catalog makes if the branch, the columns and the spec are what they were."""

    def __init__(self, table: Target, pointer: Pointer, snapshot_id: int) -> None:
        self._table = table
        self._pointer = pointer
        self._snapshot_id = snapshot_id
        self.unsure = False

    def commit(self, state: State, document: Mapping[str, Any], snapshot: NewSnapshot, recorded_base: str) -> bool:  # noqa: ARG002 (the catalog writes the metadata file)
        """As `Commits`."""
        requirements = _requirements(state, snapshot)
        main = (document.get("refs") or {}).get(MAIN) or {"type": "branch"}
        updates = [
            {"action": "add-snapshot", "snapshot": snapshot_entry(snapshot, state.metadata.format_version)},
            {**main, "action": "set-snapshot-ref", "ref-name": MAIN, "snapshot-id": snapshot.snapshot_id},
        ]
        if snapshot.properties:
            updates.append({"action": "set-properties", "updates": dict(snapshot.properties)})
        for attempt in range(_REPEATS):
            self.unsure = True
            try:
                if self._pointer.commit(requirements, updates):
                    self._check_made()
                    return True
                # an earlier request may have made it, also one that a proxy repeated; what it required is gone then
                self.unsure = self._is_there()
                return self.unsure
            except StoreUnavailableError as error:
                if error.kind == "outcome-unknown":
                    raise
                if self._is_there():
                    return True
                if attempt + 1 == _REPEATS:
                    raise _outcome_unknown(self._table.address, self._snapshot_id, error) from error
                back_off(attempt, remote=True)
            except LakeviewError:  # refused: only an earlier request may have made it
                with suppress(NotATableError):
                    if self._is_there():
                        return True
                self.unsure = attempt > 0
                raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _check_made(self) -> None:
        """Refuses the answer of a catalog that says that the snapshot is there while the table lacks it."""
        try:
            self._table.refresh()
        except LakeviewError:  # then its answer is all that is known
            return
        if self._snapshot_id not in self._table.state.metadata.snapshots:
            doubt = StoreUnavailableError("the catalog answered that it was, and the table has no such snapshot")
            raise _outcome_unknown(self._table.address, self._snapshot_id, doubt)

    def _is_there(self) -> bool:
        try:
            self._table.refresh()
        except StoreUnavailableError as error:
            raise _outcome_unknown(self._table.address, self._snapshot_id, error) from error
        return self._snapshot_id in self._table.state.metadata.snapshots


def commits_of(table: Target, snapshot_id: int) -> Commits:
    """How commits of a table are made."""
    if table.pointer is None:
        return FolderCommits(table.state.storage, snapshot_id)
    return CatalogCommits(table, table.pointer, snapshot_id)


def _requirements(state: State, snapshot: NewSnapshot) -> list[dict[str, Any]]:
    metadata = state.metadata
    return [
        {"type": "assert-table-uuid", "uuid": metadata.table_uuid},
        {"type": "assert-ref-snapshot-id", "ref": MAIN, "snapshot-id": snapshot.parent},
        {"type": "assert-current-schema-id", "current-schema-id": metadata.current_schema_id},
        {"type": "assert-default-spec-id", "default-spec-id": metadata.default_spec_id},
    ]


def _outcome_unknown(place: str, snapshot_id: int, error: LakeviewError) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"whether {place} was committed is not known: {error.message}",
        fix=f"refresh the table: it was, if it has the snapshot {snapshot_id}; its files were kept",
        place=place,
        kind="outcome-unknown",
    )


_NUMBERS = 1 << 63
"""Numbers of snapshots are longs."""


def check_commits(table: Target, *, without_catalog: bool) -> None:
    """Refuses tables whose commits are not made by the next metadata file of their folder or by a catalog that takes
    changes: UnsupportedTableError for one of another catalog, one opened by a metadata file, and one that a catalog may
    own.

    `without_catalog`: the caller knows that no catalog owns it, although its files are named as catalogs name them.
    """
    state, address = table.state, table.address
    name = state.metadata_file.path.rpartition("/")[2]
    if table.pointer is not None:
        if table.pointer.takes_commits:
            return
        problem = f"{address} is a table of a catalog that lakeview only reads: it commits to REST catalogs alone"
        raise unsupported_table(problem, "catalog-table", "write it with an engine that commits to its catalog")
    if state.place.explicit is not None:
        problem = f"{address} was opened by a metadata file, which never changes"
        raise unsupported_table(problem, "metadata-file", "open the table's folder")
    if state.place.folder != FOLDER or metadata_number(name) is None:
        problem = f"the metadata file {name} of {address} has no number that the next one could follow"
        raise unsupported_table(problem, "metadata-name", "write it with the engine that owns it")
    if not (without_catalog or is_numbered_alone(name)):
        raise unsupported_table(
            f"the metadata file {name} of {address} is named as catalogs name theirs: a catalog that owns the table "
            "would not see a commit to its folder, and would undo it",
            "catalog-may-own",
            "write it by its catalog; if none owns it, give without_catalog=True (for Spark the option withoutCatalog)",
        )


def check_continues(state: State, document: Mapping[str, object], rows: int) -> None:
    """Refuses metadata, `document` as recorded, that no snapshot of so many rows can follow.

    CorruptTableError where the branch main is not at the current snapshot ("this must be the same as the current ID of
    the main branch"), or a number has no next one.
    """
    metadata, path = state.metadata, state.metadata_file.path
    main = metadata.refs.get(MAIN)
    if main is not None and main.snapshot_id != metadata.current_snapshot_id:
        raise invalid(
            path, f"the branch main is at {main.snapshot_id}, and current-snapshot-id is {metadata.current_snapshot_id}"
        )
    next_row_id = document.get("next-row-id") or 0
    numbers = {
        "last-sequence-number": metadata.last_sequence_number + 1,
        "last-updated-ms": (metadata.last_updated_ms or 0) + 1,
        "next-row-id": (next_row_id if isinstance(next_row_id, int) else 0) + rows,
    }
    for name, following in numbers.items():
        if not 0 <= following < _NUMBERS:
            raise invalid(path, f"no snapshot can follow its {name}")


def not_honoured(name: str, text: str) -> UnsupportedTableError:
    """The refusal of a table that has a property of this value."""
    return UnsupportedTableError(
        f"{name} is {text!r}, which this writer would not honour",
        fix="write the table with the engine that set it",
        place=name,
        kind="unsupported-property",
    )


def unsupported_table(
    message: str, kind: str, fix: str = "write the table with the engine that owns it"
) -> UnsupportedTableError:
    """The refusal of a table for what it is."""
    return UnsupportedTableError(message, fix=fix, kind=kind)
