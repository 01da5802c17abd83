"""Snapshots, their logs and manifests to what happened: VERSIONS, SCHEMAS, LIFETIMES, ACTIONS."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import accumulate, islice

import msgspec
import polars as pl

from lakeview.iceberg.deletes.index import FILE_PATH_ID
from lakeview.iceberg.deletes.live_intervals import stays
from lakeview.iceberg.manifests.entries import FORMATS, entry_actions
from lakeview.iceberg.manifests.manifest_lists import MANIFESTS
from lakeview.iceberg.manifests.spans import Span, together
from lakeview.iceberg.manifests.statistics import Leaf, statistics_of
from lakeview.iceberg.manifests.tree import Tree, one_ahead
from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.metadata.versions import in_order, version_frame
from lakeview.model.column_values import all_differ
from lakeview.model.errors import CorruptTableError, LakeviewError, StoreUnavailableError
from lakeview.model.frames import ACTIONS, LIFETIMES
from lakeview.storage import Storage

_OF_LIVES = ("status", "content", "path", "snapshot_id", "size", "records", "first", "last")
_PATHS_AT_ONCE = 2_000_000
"""Looked up together among the names of a folder, which are made a table to look up for each part."""


class TreeHistory:
    """What the manifests of all snapshots tell. Each manifest is read once."""

    def __init__(self, storage: Storage, locations: Locations, tree: Tree, metadata: Metadata) -> None:
        self._storage = storage
        self._locations = locations
        self._tree = tree
        self._metadata = metadata
        self._lives: tuple[int, pl.DataFrame] | None = None  # of the line asked for last: a million are seconds

    def versions(self, names: pl.Series | None = None) -> pl.DataFrame:
        """VERSIONS, newest first; one listing of the table's folder shows which files are gone, or `names`, those below
        it where it was listed.

        Files outside the folder are taken to be there. Manifest lists are read together, then the first manifest of
        every snapshot, then the others of those snapshots that miss nothing so far: where a file is gone most often
        all are, and manifests are many requests to a remote store.
        """
        newest_first = list(reversed(in_order(self._metadata)))
        with ThreadPoolExecutor(1, thread_name_prefix="lakeview-names") as lister:
            # a million names take seconds, as their manifests do
            listing = lister.submit(self._storage.names if names is None else lambda: names)
            paths, spans, reasons = self._manifests_by_snapshot(newest_first)
            self._preload([spans[path] for path in next(iter(paths.values()), ())])
            present = listing.result()
        faults = self._faults(list(paths.values()), spans, present)
        for number, each in paths.items():
            if reason := next(filter(None, map(faults.get, each)), None):
                reasons[number] = reason
        ids = [(s.snapshot_id, s.timestamp_ms) for s in newest_first]
        return version_frame([(number, time, number not in reasons, reasons.get(number)) for number, time in ids])

    def _faults(
        self, paths: Sequence[Sequence[str]], spans: Mapping[str, Span], present: pl.Series
    ) -> dict[str, str | None]:
        """Why the files of a manifest cannot be read, by its path; None where they can.

        `paths`: those of each snapshot; one that misses a file is not examined further.
        """
        faults: dict[str, str | None] = {}
        first = dict.fromkeys(each[0] for each in paths if each)
        self._examine([spans[path] for path in first], present, faults)
        whole = [each for each in paths if not any(map(faults.get, each))]
        rest = dict.fromkeys(path for each in whole for path in each if path not in faults)
        self._examine([spans[path] for path in rest], present, faults)
        return faults

    def _manifests_by_snapshot(
        self, snapshots: Sequence[SnapshotEntry]
    ) -> tuple[dict[int, list[str]], dict[str, Span], dict[int, str]]:
        """The manifests' paths of each snapshot, each manifest by its path, and why other snapshots cannot be read."""
        reasons: dict[int, str] = {}
        paths: dict[int, list[str]] = {}
        spans: dict[str, Span] = {}
        self._tree.prepare(snapshots)
        for snapshot in snapshots:
            try:
                manifests = self._tree.manifests(snapshot)
            except LakeviewError as error:
                reasons[snapshot.snapshot_id] = error.message
                continue
            paths[snapshot.snapshot_id] = manifests["manifest_path"].to_list()
            new = ~manifests["manifest_path"].is_in(list(spans))
            spans |= {row["manifest_path"]: Span(row, 0, 0) for row in manifests.filter(new).iter_rows(named=True)}
        return paths, spans, reasons

    def _preload(self, spans: Sequence[Span]) -> None:
        """Reads the first of these manifests into the cache; their errors are raised by those that examine them."""
        for part in islice(together(spans, _PATHS_AT_ONCE), 1):
            with suppress(LakeviewError):
                self._tree.entries(self._rows(part))

    def _examine(self, spans: Sequence[Span], names: pl.Series, faults: dict[str, str | None]) -> None:
        """Adds to `faults` why the files of each of these manifests cannot be read, None where they can."""
        for part in together(spans, _PATHS_AT_ONCE):
            try:
                entries, counts = self._tree.counted_entries(self._rows(part))
            except LakeviewError as error:
                if len(part) == 1:
                    faults[str(part[0].row["manifest_path"])] = error.message
                else:
                    for half in (part[: len(part) // 2], part[len(part) // 2 :]):
                        self._examine(half, names, faults)
                continue
            live = entries["status"] != 2
            absent = live & self._absent(entries["path"], names)
            unread = live & ~entries["format"].is_in([*FORMATS, "PUFFIN"])
            at_fault = absent | unread
            is_whole = not at_fault.any()
            for span, start, length in zip(part, accumulate(counts, initial=0), counts, strict=False):
                fault = None
                if not is_whole and (hits := at_fault.slice(start, length).arg_true()).len():
                    path, kind, is_absent = (
                        each[start + int(hits[0])] for each in (entries["path"], entries["format"], absent)
                    )
                    fault = f"the file {path} is " + (
                        "not in the store" if is_absent else f"of the format {kind}, which is not read"
                    )
                faults[str(span.row["manifest_path"])] = fault

    def _rows(self, spans: Sequence[Span]) -> pl.DataFrame:
        return pl.DataFrame([span.row for span in spans], schema=MANIFESTS)

    def _absent(self, paths: pl.Series, names: pl.Series) -> pl.Series:
        """Which recorded paths lie in the table's folder and are not among the names there, or name no place at all."""
        try:
            places = self._locations.resolve_all(paths)
        except CorruptTableError:
            places = pl.Series([self._place(path) or "" for path in paths], dtype=pl.String)
        root = self._storage.root.rstrip("/") + "/"
        keys = pl.DataFrame({"key": places.str.strip_prefix(root)}).with_row_index("at")
        inside = keys.filter(places.str.starts_with(root))
        positions = inside.join(names.to_frame("key"), on="key", how="anti")["at"]
        return (places == "").scatter(positions, True)

    def _place(self, path: str) -> str | None:
        with suppress(CorruptTableError):
            return self._locations.resolve(path)
        return None

    def lifetimes(self, head: int, leaves: Sequence[Leaf] | None = None) -> pl.DataFrame:
        """LIFETIMES of the data files of the snapshots up to `head`, one row more for each time that other rows of a
        file are deleted. A snapshot whose manifests are gone is passed over, `head` itself not; `records` is unknown
        from when on deletes other than a vector may apply. With `leaves`, their `statistics` too, and `written`: the
        rows of the file before any delete."""
        lives = self._lives
        if leaves is None and lives is not None and lives[0] == head:
            return lives[1]
        lifetimes = self._lifetimes(head, leaves)
        self._lives = head, lifetimes.select(LIFETIMES.names())
        return lifetimes

    def _lifetimes(self, head: int, leaves: Sequence[Leaf] | None) -> pl.DataFrame:
        line = list(reversed(ancestors(self._metadata, head)))
        spans = self._spans(line) if line else []
        data, deletes = ([m for m in spans if m.row["content"] == content] for content in (0, 1))
        if not data:
            return pl.DataFrame(schema=LIFETIMES)
        frames, statistics = self._data_entries(data, leaves, deletes=bool(deletes))
        order = {s.snapshot_id: i for i, s in enumerate(line)}
        own = pl.col("snapshot_id").replace_strict(order, default=None, return_dtype=pl.Int64)
        files = _each_once(pl.concat(frames, how="diagonal_relaxed"), own)
        ids = {i: s.snapshot_id for i, s in enumerate(line)}
        begins, ends = (
            pl.col(name).replace_strict(ids, default=None, return_dtype=pl.Int64) for name in ("from", "to")
        )
        has_start = pl.col("known") | (pl.col("from") > pl.col("first"))
        lives = self._stays(files, deletes).select(
            "path",
            "deletion_vector",
            pl.when(has_start).then(begins).alias("added"),
            ends.alias("removed"),
            "size",
            "records",
        ).cast(LIFETIMES)  # fmt: skip
        return lives if leaves is None else _with_statistics(lives, pl.concat(statistics, rechunk=False))

    def _data_entries(
        self, manifests: Sequence[Span], leaves: Sequence[Leaf] | None, *, deletes: bool
    ) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
        """Entries of data manifests that are no deletions, and with `leaves` the statistics of all entries."""
        metrics = [field.id for _, field in leaves or () if field.id is not None]
        frames: list[pl.DataFrame] = []
        statistics: list[pl.DataFrame] = []
        for entries in one_ahead(self._spanned(part, metrics) for part in together(manifests)):
            live = entries if deletes else entries.select(_OF_LIVES)
            live = live.filter((pl.col("status") != 2) & (pl.col("content") == 0))
            if leaves is not None:
                statistics.append(statistics_of(entries, leaves, deletes=deletes))
                live = live.with_columns(statistics[-1]["path"])  # the same again, held once
            frames.append(live)
        return frames, statistics

    def _stays(self, files: pl.DataFrame, spans: Sequence[Span]) -> pl.DataFrame:
        """Data files with `first` and `last` to their stays: `from` and `to` (places on the line), `deletion_vector`
        and `records`, as the delete manifests tell."""
        whole_life = files.with_columns(
            pl.lit(None, dtype=pl.String).alias("deletion_vector"), pl.col("first").alias("from"), to=pl.col("last") + 1
        )
        if not spans:
            return whole_life
        try:
            frames = [self._spanned(manifests, [FILE_PATH_ID]) for manifests in together(spans)]
        except StoreUnavailableError:
            raise
        except LakeviewError:  # deletes that cannot be read may name any row
            return whole_life.with_columns(records=pl.lit(None, dtype=pl.Int64))
        live = pl.concat(frames).filter((pl.col("status") != 2) & pl.col("content").is_in([1, 2]))
        deletes = live.group_by("path", "content_offset", "referenced_data_file", maintain_order=True).agg(
            pl.exclude("first", "last").first(), pl.col("first").min(), pl.col("last").max()
        )  # fmt: skip
        everywhere = [s.spec_id for s in self._metadata.specs.values() if s.is_unpartitioned]
        lives = stays(files, deletes, everywhere)
        return lives.join(files.drop("records").with_row_index("data"), on="data", how="left", maintain_order="left")

    def _spans(self, line: Sequence[SnapshotEntry]) -> list[Span]:
        """Every manifest of these snapshots, oldest first."""
        self._tree.prepare(line)
        frames: list[pl.DataFrame] = []
        places: list[int] = []
        for i, snapshot in enumerate(line):
            try:
                manifests = self._tree.manifests(snapshot)
            except StoreUnavailableError:  # its files may be there: lives that leave it out would be kept
                raise
            except LakeviewError:
                if i == len(line) - 1:
                    raise
                continue
            frames.append(manifests)
            places.append(i)
        at = _repeated({"at": places}, [manifests.height for manifests in frames])
        every = pl.concat(frames).hstack(at).group_by("manifest_path", "first_row_id", maintain_order=True)
        spans = every.agg(pl.exclude("at").last(), pl.col("at").min().alias("first"), pl.col("at").max().alias("last"))
        rows = spans.select(MANIFESTS.names()).iter_rows(named=True)
        return [Span(row, first, last) for row, first, last in zip(rows, spans["first"], spans["last"], strict=True)]

    def _spanned(self, spans: Sequence[Span], metrics: Collection[int]) -> pl.DataFrame:
        """ENTRIES of these manifests with `first` and `last`."""
        entries, counts = self._tree.counted_entries(self._rows(spans), metrics)
        places = {"first": [span.first for span in spans], "last": [span.last for span in spans]}
        return entries.hstack(_repeated(places, counts))

    def commit(self, snapshot: SnapshotEntry) -> pl.DataFrame:
        """ACTIONS of one snapshot: itself as recorded, then the entries it added and removed."""
        document = msgspec.json.encode(snapshot).decode(errors="replace")
        itself = pl.DataFrame([("snapshot", snapshot.manifest_list, document)], schema=ACTIONS, orient="row")
        manifests = self._tree.manifests(snapshot)
        own = manifests.filter(pl.col("added_snapshot_id").fill_null(snapshot.snapshot_id) == snapshot.snapshot_id)
        entries = self._tree.entries(own).filter(
            (pl.col("snapshot_id") == snapshot.snapshot_id) & (pl.col("status") != 0)
        )
        return pl.concat([itself, entry_actions(entries)])


def _repeated(columns: Mapping[str, Sequence[int]], counts: Sequence[int]) -> pl.DataFrame:
    """Each row as often as its count says."""
    frame = pl.DataFrame(
        {**columns, "count": counts}, schema={**dict.fromkeys(columns, pl.Int64()), "count": pl.Int64()}
    )
    return frame.filter(pl.col("count") > 0).select(pl.exclude("count").repeat_by("count").explode())


def _each_once(files: pl.DataFrame, own: pl.Expr) -> pl.DataFrame:
    """Files that several manifests list, once each, with `known`: true if `first` is when the file was added.

    `own`: the position of the snapshot that added a file, by its entry.
    """
    if not all_differ(files["path"]):
        files = files.group_by("path", maintain_order=True).agg(
            pl.exclude("first", "last").first(), pl.col("first").min(), pl.col("last").max()
        )
    # a file that the oldest snapshot lists may have been there before
    return files.with_columns(
        known=(own <= pl.col("first")).fill_null(False) | (pl.col("first") > 0)
    ).with_columns(first=pl.when(own <= pl.col("first")).then(own).otherwise("first"))  # fmt: skip


def _with_statistics(lifetimes: pl.DataFrame, statistics: pl.DataFrame) -> pl.DataFrame:
    if lifetimes["path"].equals(statistics["path"]):  # as a rule: each copy of so much counts
        return lifetimes.hstack(statistics.drop("path"))
    once = statistics.unique("path", keep="first", maintain_order=True)
    return lifetimes.join(once, on="path", how="left", maintain_order="left")
