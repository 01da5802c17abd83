"""Snapshots to steps: what each changed in the manifests of its parent, every manifest read once; steps to the story
of the files that came and went along the line of a snapshot."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from lakeview.iceberg.deletes.index import FILE_PATH_ID, is_vector
from lakeview.iceberg.manifests.manifest_lists import parts_of
from lakeview.iceberg.manifests.statistics import Metrics
from lakeview.iceberg.manifests.tree import Tree, has_expired_parent
from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.single_values import text_values
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.metadata.versions import in_order
from lakeview.model.errors import LakeviewError, StoreUnavailableError

ENTRIES = pl.Schema(
    {
        "file": pl.String(),
        "status": pl.Int32(),
        "snapshot_id": pl.Int64(),
        "sequence_number": pl.Int64(),
        "content": pl.Int32(),
        "path": pl.String(),
        "records": pl.Int64(),
        "target": pl.String(),
        "vector": pl.Boolean(),
    }
)
"""One row a manifest entry. `file`: what identifies it: its path, of a deletion vector also its place in the file and
its target; `target`: the one data file whose rows a delete file names, null where there may be several."""

_ENTRIES_AT_ONCE = 1_000_000

EVENTS = ("file", "path", "content", "sequence_number", "records", "target", "vector")


@dataclass(frozen=True)
class Step:
    """One snapshot beside its parent. `added_entries`, `deleted_entries`: ENTRIES that it marks so itself; `came`,
    `went`: ENTRIES of the files that only it, or only its parent, has live. `base`: the parent is not there any more
    or cannot be read, so that all of its files count as `came` and nothing is known of the parent's."""

    position: int
    snapshot: SnapshotEntry
    parent: SnapshotEntry | None
    base: bool
    added_entries: pl.DataFrame
    deleted_entries: pl.DataFrame
    came: pl.DataFrame
    went: pl.DataFrame
    latest_sequence: int | None


def read_steps(metadata: Metadata, tree: Tree) -> Iterator[Step | tuple[SnapshotEntry, str]]:
    """The steps of all snapshots, oldest first; for one whose manifests cannot be read, the snapshot and the reason."""
    snapshots = _parents_first(metadata)
    lists, errors = tree.manifests_of(snapshots)
    for error in errors.values():
        if isinstance(error, StoreUnavailableError):
            raise error
    reasons = {number: error.message for number, error in errors.items()}
    _preload(tree, lists)
    for position, snapshot in enumerate(snapshots):
        number = snapshot.snapshot_id
        parent = None if snapshot.parent is None else metadata.snapshots.get(snapshot.parent)
        try:
            if number in reasons:
                yield snapshot, reasons[number]
            else:
                unread = parent is not None and parent.snapshot_id in reasons
                base = unread or has_expired_parent(metadata, tree, snapshot)
                before = None if base or parent is None else lists[parent.snapshot_id]
                yield _step(tree, position, snapshot, parent, base, lists[number], before)
        except StoreUnavailableError:
            raise
        except LakeviewError as error:
            reasons[number] = error.message
            yield snapshot, error.message


def _parents_first(metadata: Metadata) -> list[SnapshotEntry]:
    """All snapshots, oldest first, each after its parent: also one whose sequence number is too low."""
    snapshots: dict[int, SnapshotEntry] = {}
    for snapshot in in_order(metadata):
        line: list[SnapshotEntry] = []
        at: SnapshotEntry | None = snapshot
        while at is not None and at.snapshot_id not in snapshots:
            line.append(at)
            at = None if at.parent is None or len(line) > len(metadata.snapshots) else metadata.snapshots.get(at.parent)
        snapshots.update((each.snapshot_id, each) for each in reversed(line) if each.snapshot_id not in snapshots)
    return list(snapshots.values())


def _step(
    tree: Tree, position: int, snapshot: SnapshotEntry, parent: SnapshotEntry | None, base: bool,
    manifests: pl.DataFrame, before: pl.DataFrame | None,
) -> Step:  # fmt: skip
    old = manifests.clear() if before is None else before
    new_entries = _entries(tree, _without(manifests, old))
    old_entries = _entries(tree, _without(old, manifests))
    live, was = (frame.filter(pl.col("status") != 2) for frame in (new_entries, old_entries))
    if live.height and was.height:
        came, went = live.join(was, on="file", how="anti"), was.join(live, on="file", how="anti")
    else:
        came, went = live, was
    latest = new_entries["sequence_number"].max()
    status, is_own = pl.col("status"), pl.col("snapshot_id") == snapshot.snapshot_id
    arrivals, departures = _once(came), _once(went)
    # pyiceberg marks entries of version 1 as EXISTING that are new, and leaves DELETED ones the snapshot of their file
    is_new = (status == 1) | ((status == 0) & pl.col("file").is_in(arrivals["file"].implode()))
    is_lost = (status == 2) & (is_own | pl.col("file").is_in(departures["file"].implode()))
    added_entries, deleted_entries = new_entries.filter(is_own & is_new), new_entries.filter(is_lost)
    latest_number = latest if isinstance(latest, int) else None
    return Step(position, snapshot, parent, base, added_entries, deleted_entries, arrivals, departures, latest_number)


def _once(entries: pl.DataFrame) -> pl.DataFrame:
    hashes = entries["file"].hash()  # compared far sooner than a million texts
    if hashes.n_unique() == hashes.len():
        return entries
    return entries.unique("file", keep="first", maintain_order=True)


def _without(manifests: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    if others.is_empty():
        return manifests
    return manifests.filter(~pl.col("manifest_path").is_in(others["manifest_path"].implode()))


def _entries(tree: Tree, manifests: pl.DataFrame) -> pl.DataFrame:
    """ENTRIES of these manifests; of delete files also the bounds of the paths that they name."""
    frames = [pl.DataFrame(schema=ENTRIES)]
    data = manifests.filter(pl.col("content") == 0)
    if data.height:
        entries = tree.entries(data)
        names = ("status", "snapshot_id", "sequence_number", "content", "path", "records")
        no_target = (pl.lit(None, pl.String()).alias("target"), pl.lit(value=False).alias("vector"))
        frames.append(entries.select(pl.col("path").alias("file"), *names, *no_target))
    deletes = manifests.filter(pl.col("content") != 0)
    if deletes.height:
        frames.append(_delete_entries(tree.entries(deletes, [FILE_PATH_ID])))
    return pl.concat([frame.select(ENTRIES.names()) for frame in frames])


def _delete_entries(entries: pl.DataFrame) -> pl.DataFrame:
    metrics = Metrics(entries)
    low, high = (metrics.value(f"{side}_bounds", FILE_PATH_ID).alias(side) for side in ("lower", "upper"))
    one = pl.when(pl.col("lower") == pl.col("upper")).then(text_values(low).alias("one"))
    marks = [pl.col("content_offset").cast(pl.String), pl.col("referenced_data_file")]
    frame = entries.with_columns(low, high, is_vector(entries).alias("vector"))
    return frame.with_columns(
        pl.when("vector").then(pl.concat_str("path", *marks, separator="#", ignore_nulls=True)).otherwise("path")
        .alias("file"),
        # equality deletes name no file
        pl.when(pl.col("content") == 1).then(pl.coalesce("referenced_data_file", one)).alias("target"),
    )  # fmt: skip


def _preload(tree: Tree, lists: dict[int, pl.DataFrame]) -> None:
    """Reads the manifests of data files into the tree's cache, many at once; errors are left to those that ask."""
    if not lists:
        return
    every = pl.concat(lists.values()).unique("manifest_path", maintain_order=True).filter(pl.col("content") == 0)
    for part in parts_of(every, _ENTRIES_AT_ONCE):
        try:
            tree.entries(part)
        except StoreUnavailableError:
            raise
        except LakeviewError:
            continue


class Story:
    """What came and went in all steps that could be read. Only changes are stored, not what each snapshot lists."""

    def __init__(self, metadata: Metadata, steps: Sequence[Step]) -> None:
        self._metadata = metadata
        self.steps = steps
        self._steps = {step.snapshot.snapshot_id: step for step in steps}
        parents = [step.parent.snapshot_id for step in steps if step.parent is not None]
        roots = sum(step.parent is None or step.base for step in steps)
        self._has_lines = len(parents) > len(set(parents)) or roots > 1

    @cached_property
    def events(self) -> pl.DataFrame:
        """EVENTS with `position` and `live`, oldest first: one row a file that came (live) or went in a step."""
        frames = [
            frame.select(*EVENTS, pl.lit(step.position).alias("position"), pl.lit(value=live).alias("live"))
            for step in self.steps
            for frame, live in ((step.went, False), (step.came, True))
        ]
        return pl.concat(frames)

    @cached_property
    def several_times(self) -> pl.DataFrame:
        """The events of files that come more than once, anywhere."""
        came = self.events.filter("live")
        hashes = came["file"].hash()
        again = (
            came.filter(hashes.is_duplicated())["file"].unique()
            if hashes.n_unique() < len(hashes)
            else came["file"][:0]
        )
        return self.events.filter(pl.col("file").is_in(again.implode()))

    def live(self, step: Step, files: pl.Series, column: str = "file", *, before: bool = False) -> pl.DataFrame:
        """EVENTS of those of these files that are live in a step's snapshot, or `before` in its parent's."""
        events = self.events.filter(pl.col(column).is_in(files.implode()) & (pl.col("position") <= step.position))
        if before:
            events = events.filter(pl.col("position") < step.position)
        if self._has_lines:
            events = events.filter(pl.col("position").is_in(self._line(step)))
        return events.unique("file", keep="last", maintain_order=True).filter("live")

    def _line(self, step: Step) -> list[int]:
        """The positions of a step and of those before it, as far back as each one's parent is known."""
        positions: list[int] = []
        for snapshot in ancestors(self._metadata, step.snapshot.snapshot_id):
            at = self._steps.get(snapshot.snapshot_id)
            positions += [] if at is None else [at.position]
            if at is None or at.base:  # what that one has live came with it
                break
        return positions

    def has_broad_deletes(self, step: Step) -> bool:
        """Whether the parent of a step may have delete files whose data files are not recorded: equality deletes, and
        position deletes for several files."""
        return bool(self._broad_since is not None and step.position > self._broad_since)

    @cached_property
    def _broad_since(self) -> int | None:
        broad = self.events.filter((pl.col("content") != 0) & pl.col("target").is_null())["position"].min()
        return broad if isinstance(broad, int) else None
