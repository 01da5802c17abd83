"""What an overwrite takes out of a table: planned on one snapshot, checked against those that were committed since."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from lakeview.iceberg.deletes.index import aimless, is_vector
from lakeview.iceberg.manifests.files import IcebergFiles
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.state import State
from lakeview.iceberg.write.context import WriteContext
from lakeview.iceberg.write.rewritten_manifest import context_of_spec, partition_tuples
from lakeview.iceberg.write.selection import Selection
from lakeview.model.errors import CommitConflictError

_KEY = pl.concat_str(
    "path", pl.col("content_offset").cast(pl.String), "referenced_data_file", separator="\0", ignore_nulls=True
).alias("key")
"""What tells ENTRIES apart: deletion vectors share a file."""


class TouchedManifest(NamedTuple):
    """A manifest (one of MANIFESTS) that names files which go, by their keys."""

    manifest: Mapping[str, Any]
    keys: frozenset[str]

    def is_removed(self, entries: pl.DataFrame) -> pl.Series:
        """Which of its ENTRIES go."""
        return _in(entries, self.keys)


class Base:
    """A snapshot as an overwrite found it. `manifests`: its MANIFESTS; `entries`: ENTRIES of its live data files that
    may hold rows of the selection; `whole`: which of them are proved to hold no others; `deletes`: ENTRIES of its
    delete files."""

    def __init__(self, state: State, snapshot: SnapshotEntry | None, selection: Selection) -> None:
        files = state.files(snapshot)
        self.selection = selection
        self.manifests = files.manifests()
        entries = files.data_entries(_selected_manifests(self.manifests, selection, state), selection.metrics(state))
        self.entries = entries.filter(selection.files(state, entries))
        self.whole = selection.whole_files(state, self.entries)
        self.deletes = files.delete_entries()


@dataclass(frozen=True)
class Removal:
    """The files of a base that go. `files`: ENTRIES of the data files."""

    base: Base
    files: pl.DataFrame

    @property
    def rows(self) -> int:
        """Physical rows of the files."""
        return int(self.files["records"].sum())

    def partitions(self, context: WriteContext, state: State) -> set[tuple[object, ...]]:
        """The partitions of the files. UnsupportedTableError for one of a spec whose manifests are not written."""
        partitions: set[tuple[object, ...]] = set()
        for (spec_id,), part in self.files.group_by("spec_id"):
            own = context_of_spec(context, state, int(spec_id))
            partitions |= {(own.spec.spec_id, *map(repr, each)) for each in partition_tuples(part, own)}
        return partitions

    def check(self, state: State, address: str) -> None:
        """Refuses a table in which the base is followed by what the removal does not know of: rows that the selection
        may mean, deletes of rows that go, and files that are gone already. CommitConflictError."""
        base, files = self.base, _current_files(state)
        manifests = files.manifests()
        before = base.manifests["manifest_path"]
        if manifests["manifest_path"].equals(before):
            return
        new = manifests.filter(~pl.col("manifest_path").is_in(before.implode()))
        new_files = files.data_entries(_selected_manifests(new, base.selection, state), base.selection.metrics(state))
        new_files = new_files.filter(~_in(new_files, _keys(base.entries)))
        new_files = new_files.filter(base.selection.files(state, new_files))
        if new_files.height:
            raise _conflict(state, address, f"it added {new_files['path'][0]}, which may hold rows that are replaced")
        deletes = files.delete_entries()
        pairs = ((deletes, base.deletes), (base.deletes, deletes))
        changes = pl.concat([one.filter(~_in(one, _keys(other))) for one, other in pairs])
        if files.pairs(self.files, changes).height:
            raise _conflict(state, address, "it deleted rows that are replaced, or restored some")
        live = files.data_entries(_selected_manifests(manifests, base.selection, state))
        missing = self.files.filter(~_in(self.files, _keys(live)))
        if missing.height:
            raise _conflict(state, address, f"it removed {missing['path'][0]}, which is replaced")

    def delete_files(self, state: State) -> pl.DataFrame:
        """ENTRIES of the delete files that go with the data files: where any applied to them, those that apply to
        nothing else."""
        files = _current_files(state)
        deletes = files.delete_entries()
        if self.base.selection.everything or files.pairs(self.files, deletes).is_empty():
            return deletes if self.base.selection.everything else deletes.clear()
        data = files.data_entries()
        still = files.applying(data.filter(~_in(data, _keys(self.files))), deletes)
        idle = pl.Series([number not in still for number in range(deletes.height)], dtype=pl.Boolean)
        return deletes.filter(idle & ~aimless(deletes))

    def manifests_with(self, state: State, deletes: pl.DataFrame) -> Iterator[TouchedManifest]:
        """The manifests of the current snapshot that name the files, or these ENTRIES of delete files."""
        manifests = _current_files(state).manifests()
        keys = _keys(self.files) | _keys(deletes)
        others = manifests.filter(pl.col("content") == 1) if deletes.height else manifests.clear()
        for part in (_selected_manifests(manifests, self.base.selection, state), others):
            entries, lengths = state.tree.counted_entries(part)
            start = 0
            for row, length in zip(part.iter_rows(named=True), lengths, strict=True):
                own = entries[start : start + length]
                matches = _keys(own.filter((own["status"] != 2) & _in(own, keys)))
                start += length
                if matches:
                    yield TouchedManifest(row, matches)


def removed_counts(data: pl.DataFrame, deletes: pl.DataFrame) -> dict[str, int]:
    """What a summary reports of ENTRIES that went."""
    position = deletes["content"] == 1
    vector = is_vector(deletes)
    counts = {
        "deleted-data-files": data.height,
        "deleted-records": int(data["records"].sum()),
        "removed-files-size": int(data["size"].sum()) + int(deletes["size"].sum()),
        "removed-delete-files": deletes.height,
        "removed-position-delete-files": int((position & ~vector).sum()),
        "removed-dvs": int(vector.sum()),
        "removed-equality-delete-files": int((~position).sum()),
        "removed-position-deletes": int(deletes.filter(position)["records"].sum()),
        "removed-equality-deletes": int(deletes.filter(~position)["records"].sum()),
    }
    return {name: count for name, count in counts.items() if count}


def _current_files(state: State) -> IcebergFiles:
    return state.files(state.metadata.snapshots.get(state.metadata.current_snapshot_id))


def _selected_manifests(manifests: pl.DataFrame, selection: Selection, state: State) -> pl.DataFrame:
    """Those of MANIFESTS that may name data files with rows of the selection."""
    data = manifests.filter(pl.col("content") == 0)
    return data.filter(selection.manifests(state, data))


def _keys(entries: pl.DataFrame) -> frozenset[str]:
    return frozenset(entries.select(_KEY).to_series())


def _in(entries: pl.DataFrame, keys: frozenset[str]) -> pl.Series:
    return entries.select(_KEY).to_series().is_in(list(keys))


def _conflict(state: State, address: str, what: str) -> CommitConflictError:
    current = state.metadata.snapshots.get(state.metadata.current_snapshot_id)
    operation = None if current is None else current.operation
    return CommitConflictError(
        f"{address} was changed by another writer since it was read ({operation or 'unknown operation'}): {what}",
        fix="read the table again, and repeat the change if it is still meant",
        place=address,
        kind="concurrent-change",
        version=state.metadata.current_snapshot_id,
        operation=operation,
    )
