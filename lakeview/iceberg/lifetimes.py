"""The manifests of all snapshots to LIFETIMES, with statistics where columns are asked for."""

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from lakeview.iceberg.deletes.index import FILE_PATH_ID
from lakeview.iceberg.deletes.live_intervals import stays
from lakeview.iceberg.manifests.manifest_lists import MANIFESTS, parts_of
from lakeview.iceberg.manifests.statistics import Leaf, statistics_of
from lakeview.iceberg.manifests.tree import Tree, one_ahead
from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.column_values import all_differ
from lakeview.model.errors import LakeviewError, StoreUnavailableError
from lakeview.model.frames import LIFETIMES

_OF_LIVES = ("status", "content", "path", "snapshot_id", "size", "records", "first", "last")


class FileLifetimes:
    """From when to when each data file was part of a line of snapshots. Each manifest is read once."""

    def __init__(self, tree: Tree, metadata: Metadata) -> None:
        self._tree = tree
        self._metadata = metadata
        self._lives: tuple[int, pl.DataFrame] | None = None  # of the line asked for last: a million are seconds

    def of(self, head: int, leaves: Sequence[Leaf] | None = None) -> pl.DataFrame:
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

    def of_changes(self, head: int, leaves: Sequence[Leaf]) -> pl.DataFrame:
        """`of`, for the paths that a snapshot still there added or removed: metrics are read of the manifests that name
        one of them, which are few where most snapshots of a large table expired."""
        lives = self.of(head)
        is_changed = lives["added"].is_not_null() | lives["removed"].is_not_null()
        paths = lives["path"].filter(is_changed).unique()
        if lives.is_empty():
            return lives
        manifests, _ = self._line_manifests(list(reversed(ancestors(self._metadata, head))))
        data = manifests.filter(content=0)
        naming = pl.concat([data.clear(), *(self._naming(part, paths) for part in parts_of(data))])
        of_changes = data.head(1) if naming.is_empty() else naming
        _, statistics = self._data_entries(of_changes, leaves, deletes=data.height < manifests.height)
        has_path = pl.col("path").is_in(paths.implode())
        return _with_statistics(lives.filter(has_path), pl.concat(statistics, rechunk=False).filter(has_path))

    def _naming(self, manifests: pl.DataFrame, paths: pl.Series) -> pl.DataFrame:
        """The manifests that name one of these paths."""
        entries, counts = self._tree.counted_entries(manifests)
        numbers = _repeat_rows({"number": range(manifests.height)}, counts)["number"]
        hits = entries["path"].is_in(paths.implode()) & (entries["status"] != 2)
        return manifests[numbers.filter(hits).unique().sort()]

    def _lifetimes(self, head: int, leaves: Sequence[Leaf] | None) -> pl.DataFrame:
        line = list(reversed(ancestors(self._metadata, head)))
        if not line:
            return pl.DataFrame(schema=LIFETIMES)
        manifests, places = self._line_manifests(line)
        data, deletes = (manifests.filter(content=content) for content in (0, 1))
        if data.is_empty():
            return pl.DataFrame(schema=LIFETIMES)
        frames, statistics = self._data_entries(data, leaves, deletes=not deletes.is_empty())
        order = {s.snapshot_id: i for i, s in enumerate(line)}
        own = pl.col("snapshot_id").replace_strict(order, default=None, return_dtype=pl.Int64)
        files = _each_stay_once(pl.concat(frames, how="diagonal_relaxed"), own, places)
        ids = {i: s.snapshot_id for i, s in enumerate(line)}
        begins, ends = (
            pl.col(name).replace_strict(ids, default=None, return_dtype=pl.Int64) for name in ("from", "to")
        )
        has_start = pl.col("start_is_known") | (pl.col("from") > pl.col("first"))
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
        self, manifests: pl.DataFrame, leaves: Sequence[Leaf] | None, *, deletes: bool
    ) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
        """Entries of data manifests that are no deletions, and with `leaves` the statistics of all entries."""
        metrics = [field.id for _, field in leaves or () if field.id is not None]
        frames: list[pl.DataFrame] = []
        statistics: list[pl.DataFrame] = []
        for entries in one_ahead(self._with_spans(part, metrics) for part in parts_of(manifests)):
            live = entries if deletes else entries.select(_OF_LIVES)
            live = live.filter((pl.col("status") != 2) & (pl.col("content") == 0))
            if leaves is not None:
                statistics.append(statistics_of(entries, leaves, deletes=deletes))
                live = live.with_columns(statistics[-1]["path"])  # the same again, held once
            frames.append(live)
        return frames, statistics

    def _stays(self, files: pl.DataFrame, manifests: pl.DataFrame) -> pl.DataFrame:
        """Data files with `first` and `last` to their stays: `from` and `to` (places on the line), `deletion_vector`
        and `records`, as the delete manifests tell."""
        whole_life = files.with_columns(
            pl.lit(None, dtype=pl.String).alias("deletion_vector"), pl.col("first").alias("from"), to=pl.col("last") + 1
        )
        if manifests.is_empty():
            return whole_life
        try:
            frames = [self._with_spans(part, [FILE_PATH_ID]) for part in parts_of(manifests)]
        except StoreUnavailableError:
            raise
        except LakeviewError:  # deletes that cannot be read may name any row
            return whole_life.with_columns(records=pl.lit(None, dtype=pl.Int64))
        live = pl.concat(frames).filter((pl.col("status") != 2) & pl.col("content").is_in([1, 2]))
        deletes = live.group_by("path", "content_offset", "referenced_data_file", maintain_order=True).agg(
            pl.exclude("first", "last").first(), pl.col("first").min(), pl.col("last").max()
        )  # fmt: skip
        lives = stays(files, deletes, self._metadata.unpartitioned_specs)
        return lives.join(files.drop("records").with_row_index("data"), on="data", how="left", maintain_order="left")

    def _line_manifests(self, line: Sequence[SnapshotEntry]) -> tuple[pl.DataFrame, list[int]]:
        """The manifests of a line of snapshots, oldest first, with the `first` and the `last` place on it that lists
        one, once for each unbroken run of places; and the places that can be read."""
        lists, errors = self._tree.manifests_of(line)
        for error in errors.values():
            if isinstance(
                error, StoreUnavailableError
            ):  # its files may be there: lives that leave it out would be kept
                raise error
        if line[-1].snapshot_id in errors:
            raise errors[line[-1].snapshot_id]
        places = [i for i, snapshot in enumerate(line) if snapshot.snapshot_id in lists]
        lengths = [manifests.height for manifests in lists.values()]
        every = pl.concat(lists.values()).hstack(_repeat_rows({"at": places, "step": range(len(places))}, lengths))
        spans = _listed_spans(every, "manifest_path", "first_row_id")
        if (spans["times"] <= spans["steps"]).any():
            run = pl.col("step") - pl.col("step").rank("dense").over("manifest_path", "first_row_id")
            spans = _listed_spans(every.with_columns(run=run), "manifest_path", "first_row_id", "run")
        return spans.select(*MANIFESTS, "first", "last"), places

    def _with_spans(self, manifests: pl.DataFrame, metrics: Collection[int]) -> pl.DataFrame:
        """ENTRIES of these manifests with their `first` and `last`."""
        entries, counts = self._tree.counted_entries(manifests, metrics)
        return entries.hstack(_repeat_rows(manifests.select("first", "last").to_dict(as_series=False), counts))


def _repeat_rows(columns: Mapping[str, Sequence[int]], counts: Sequence[int]) -> pl.DataFrame:
    """Each row as often as its count says."""
    frame = pl.DataFrame(
        {**columns, "count": counts}, schema={**dict.fromkeys(columns, pl.Int64()), "count": pl.Int64()}
    )
    return frame.filter(pl.col("count") > 0).select(pl.exclude("count").repeat_by("count").explode())


def _listed_spans(manifests: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Manifests of several snapshots once each, with the `first` and the `last` place that lists one, in how many
    snapshots it is listed (`times`), and over how many that can be read (`steps` and the first)."""
    at, step = pl.col("at"), pl.col("step")
    return manifests.group_by(keys, maintain_order=True).agg(
        pl.exclude("at", "step").last(), at.min().alias("first"), at.max().alias("last"),
        step.n_unique().cast(pl.Int64).alias("times"), (step.max() - step.min()).alias("steps"),
    )  # fmt: skip


def _each_stay_once(files: pl.DataFrame, own: pl.Expr, places: Sequence[int]) -> pl.DataFrame:
    """Files that several manifests list, once for each stay in the table, with `start_is_known`: true if `first` is
    when the file was added.

    `own`: the position of the snapshot that added a file, by its entry; `places`: of the snapshots that can be read.
    """
    files = files.with_columns(run=pl.lit(0, dtype=pl.Int64))
    if not all_differ(files["path"]):
        steps = {place: step for step, place in enumerate(places)}
        start, end = (pl.col(name).replace_strict(steps, return_dtype=pl.Int64) for name in ("first", "last"))
        files = files.with_columns(start=start, end=end).with_row_index("row")
        merged_files = _merge_listings(files, "path")
        if not merged_files["is_one_stay"].all():  # a file went and came back, or is listed twice
            by_path = files.sort("path", "start", maintain_order=True)
            gap = pl.col("start") > pl.col("end").cum_max().shift(1).over("path") + 1
            runs = by_path.with_columns(run=gap.fill_null(value=False).cast(pl.Int64).cum_sum().over("path"))
            merged_files = _merge_listings(runs, "path", "run").sort("row")
        files = merged_files
    is_earlier = (own <= pl.col("first")) & (pl.col("run") == 0)
    # a file that the oldest snapshot lists may have been there before
    return files.with_columns(
        start_is_known=(own <= pl.col("first")).fill_null(False) | (pl.col("first") > 0)
    ).with_columns(first=pl.when(is_earlier).then(own).otherwise("first"))  # fmt: skip


def _merge_listings(files: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Files by these keys with their first and last place; `is_one_stay`: each listing but the first begins where
    another one ends. Where one does not, there may be a gap."""
    first, end = pl.col("first"), pl.col("end")
    marks = {"begin": _mark(pl.col("start")), "after": _mark(end + 1)}
    merged_files = files.with_columns(**marks).group_by(keys, maintain_order=True).agg(
        pl.exclude("first", "last", "start", "end", "row", "begin", "after").first(), first.min(), pl.col("last").max(),
        pl.col("row").min(), pl.col("start").min(), end.max(), pl.col("begin", "after").sum(),
    )  # fmt: skip
    inner_begins = pl.col("begin") - _mark(pl.col("start"))
    inner_ends = pl.col("after") - _mark(end + 1)
    return merged_files.with_columns(is_one_stay=inner_begins == inner_ends)


def _mark(place: pl.Expr) -> pl.Expr:
    """A number for each place; sums of them differ where the places do, of which sums may be equal."""
    return place.hash() % 2**32


def _with_statistics(lifetimes: pl.DataFrame, statistics: pl.DataFrame) -> pl.DataFrame:
    if lifetimes["path"].equals(statistics["path"]):  # as a rule: each copy of so much counts
        return lifetimes.hstack(statistics.drop("path"))
    once = statistics.unique("path", keep="first", maintain_order=True)
    return lifetimes.join(once, on="path", how="left", maintain_order="left")
