"""Two snapshots to what lies between them: rows, files, by partition too, and settings; the versions worth comparing
one with, and the commits between two."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from lakeview.model.column_values import least_records, live_records, most_records
from lakeview.model.printable import count_text
from lakeview.model.snapshot import Snapshot
from lakeview.views.conform import conform
from lakeview.views.partitions.keys import NO_PARTITION
from lakeview.views.sums import flows, total, zero_without_files
from lakeview.views.timeline.branches import on_branch
from lakeview.views.units import MINUS

PARTITION_DIFF = pl.Schema(
    {
        "partition_text": pl.String(),
        "files_added": pl.Int64(),
        "files_removed": pl.Int64(),
        "files_redeleted": pl.Int64(),
        "bytes_added": pl.Int64(),
        "bytes_removed": pl.Int64(),
        "records_added": pl.Int64(),
        "records_removed": pl.Int64(),
    }
)
"""One row a partition, in order, those without a difference too; one row ALL_FILES for a table without partitions,
NO_PARTITION for the files of one from before it was partitioned. `files_redeleted`: files in both with other deleted
rows; `bytes` and `records` of added and removed files, null when unknown."""

SETTINGS_DIFF = pl.Schema({"name": pl.String(), "change": pl.String(), "before": pl.String(), "after": pl.String()})
"""One row a property, protocol version or table feature: added, dropped, changed or same, changes first."""

ALL_FILES = "all files"


@dataclass(frozen=True, slots=True)
class FileDifference:
    """What happened to the files as a whole; `rows` the difference of live rows, None where a side is unknown, as bytes
    are where the log does not tell a file's; `rows_between` its bounds then, if there are any. Delete files are those
    of Iceberg."""

    added_files: int
    removed_files: int
    redeleted_files: int
    bytes_added: int | None
    bytes_removed: int | None
    rows: int | None
    deletes_added: int = 0
    deletes_removed: int = 0
    rows_between: tuple[int, int] | None = None


def file_difference(before: Snapshot, after: Snapshot, partitions: pl.DataFrame | None = None) -> FileDifference:
    """The files of two snapshots, by path and deletion vector; `partitions`: their PARTITION_DIFF, if it is there."""
    partitions = partition_difference(before, after) if partitions is None else partitions
    totals = partitions.select(total(name) for name in PARTITION_DIFF.names()[1:]).row(0, named=True)
    files = (totals["files_added"], totals["files_removed"], totals["files_redeleted"])
    old, new = (s.delete_files.select("path", "deletion_vector").sort("path") for s in (before, after))
    gain, loss = totals["records_added"], totals["records_removed"]
    rows = None
    if before.num_records is not None and after.num_records is not None:
        rows = after.num_records - before.num_records
    # what the files of both have deleted is not known, and is the same if the same files delete
    elif not totals["files_redeleted"] and None not in (gain, loss) and old.equals(new):
        rows = gain - loss
    sizes = (totals["bytes_added"], totals["bytes_removed"])
    deletes = (_without(new, old).height, _without(old, new).height)
    bounds = row_change_bounds(before, after) if rows is None else None
    return FileDifference(*files, *sizes, rows, *deletes, bounds)


def partition_difference(before: Snapshot, after: Snapshot) -> pl.DataFrame:
    """PARTITION_DIFF, partitions of either side in the order of the later one's, then those that are gone."""
    old, new = _files(before), _files(after)
    both = new.join(old.select("path", old_vector="deletion_vector", there=pl.lit(value=True)), on="path", how="left")
    redeletes = both.filter("there").filter(~pl.col("deletion_vector").eq_missing(pl.col("old_vector")))
    additions, removals = both.filter(pl.col("there").is_null()), old.join(new, on="path", how="anti")
    every = pl.concat([new.select("partition_text"), old.select("partition_text")]).unique(maintain_order=True)
    ways = (additions, "added"), (removals, "removed")
    parts = [flows(files, "partition_text", way, "live") for files, way in ways]
    counts = redeletes.group_by("partition_text").agg(files_redeleted=pl.len().cast(pl.Int64))
    difference = every
    for part in (*parts, counts):
        difference = difference.join(part, on="partition_text", how="left", nulls_equal=True, maintain_order="left")
    difference = difference.with_columns(zero_without_files())
    file_counts = [n for n in PARTITION_DIFF.names()[1:] if n.startswith("files")]
    return difference.with_columns(pl.col(file_counts).fill_null(0)).pipe(conform, PARTITION_DIFF)


def partition_contents(snapshot: Snapshot, name: str) -> pl.DataFrame:
    """`partition_text`, and the live files and rows of each as text under `name`: `1 file, 993 rows`."""
    sizes = _files(snapshot).group_by("partition_text").agg(files=pl.len(), rows=total("live"))
    texts = [
        count_text(files, "file") + ("" if rows is None else f", {count_text(rows, 'row')}")
        for files, rows in sizes.select("files", "rows").iter_rows()
    ]
    return sizes.select("partition_text", pl.Series(name, texts, dtype=pl.String))


def _files(snapshot: Snapshot) -> pl.DataFrame:
    files = snapshot.files
    order = files.sort("partition", nulls_last=True, maintain_order=True) if "partition" in files.columns else files
    is_partitioned = bool(snapshot.partition_columns) or files["partition_text"].count() > 0
    outside = NO_PARTITION if is_partitioned else ALL_FILES
    return order.select(
        "path",
        "deletion_vector",
        "size",
        live=live_records(),
        partition_text=pl.col("partition_text").fill_null(outside),
    )


def settings_difference(before: Snapshot, after: Snapshot) -> pl.DataFrame:
    """SETTINGS_DIFF of properties and protocol."""
    old, new = _settings(before), _settings(after)
    rows = []
    for name in sorted(old.keys() | new.keys()):
        a, b = old.get(name), new.get(name)
        change = "same" if a == b else "added" if a is None else "dropped" if b is None else "changed"
        rows.append((name, change, a, b))
    rows.sort(key=lambda row: row[1] == "same")
    return pl.DataFrame(rows, schema=SETTINGS_DIFF, orient="row")


def _settings(snapshot: Snapshot) -> Mapping[str, str]:
    protocol = snapshot.protocol
    numbers = {
        "reader version": protocol.min_reader_version,
        "writer version": protocol.min_writer_version,
        "format version": protocol.format_version,
    }
    settings = {name: str(number) for name, number in numbers.items() if number is not None}
    for feature in sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())}):
        purpose = "to read and write" if feature in (protocol.reader_features or ()) else "to write"
        settings[f"feature {feature}"] = purpose
    settings |= {"partitioned by": ", ".join(snapshot.partition_columns)} if snapshot.partition_columns else {}
    return settings | snapshot.properties


def count_changes(settings: pl.DataFrame) -> int:
    """How many rows of SETTINGS_DIFF differ."""
    return settings.filter(pl.col("change") != "same").height


def has_file_changes(partitions: pl.DataFrame) -> bool:
    """True if any partition of PARTITION_DIFF has added, removed or changed files."""
    changes = pl.any_horizontal(pl.col("files_added", "files_removed", "files_redeleted") > 0)
    return bool(partitions.select(changes.any()).item())


_FILE = ["path", "deletion_vector"]


def row_change_bounds(before: Snapshot, after: Snapshot) -> tuple[int, int] | None:
    """At least and at most how many rows the later version has more; None where a file does not count its rows."""
    ends = [(least_records(s.files, s.delete_files), most_records(s.files)) for s in (before, after)]
    (least_before, most_before), (least_after, most_after) = ends
    if most_before is None or most_after is None:
        return None
    least, most = (least_after or 0) - most_before, most_after - (least_before or 0)
    if growth := _growth_bounds(before, after):
        return max(least, growth[0]), min(most, growth[1])
    if shrunk := _growth_bounds(after, before):
        return max(least, -shrunk[1]), min(most, -shrunk[0])
    return least, most


def _growth_bounds(before: Snapshot, after: Snapshot) -> tuple[int, int] | None:
    """The bounds where the later version has all files of the earlier one: what other files delete counts alone."""
    old, new = (s.files.select(*_FILE, "records", "deleted_records") for s in (before, after))
    deletes = after.delete_files.join(before.delete_files, on=_FILE, how="anti", nulls_equal=True)
    removed_files = [_without(old, new), _without(before.delete_files, after.delete_files)]
    if any(not files.is_empty() for files in removed_files) or deletes["records"].has_nulls():
        return None
    if not deletes.is_empty() and set(deletes["content"]) != {"position deletes"}:
        return None
    gain = most_records(_without(new, old))
    return None if gain is None else (gain - int(deletes["records"].sum()), gain)


def _without(files: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    return files.join(others, on=_FILE, how="anti", nulls_equal=True)


def bounds_text(bounds: tuple[int, int]) -> str:
    """`+25,320 to +27,268 rows`."""
    return f"{' to '.join(map(_signed_text, bounds))} rows"


def _signed_text(number: int) -> str:
    return f"{MINUS}{-number:,}" if number < 0 else f"{number:+,}" if number else "0"


_BEFORE_DAY = timedelta(days=1)


def commits_between(timeline: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
    """TIMELINE rows after version `first` up to `last`, whichever of them came first; none where one is missing,
    or is an off-branch commit: of two branches no commits lead from one to the other."""
    places = [timeline["version"].index_of(version) for version in (first, last)]
    if None in places or "off-branch" in (timeline["lane"][place] for place in places if place is not None):
        return timeline.clear()
    low, high = sorted(place for place in places if place is not None)
    return on_branch(timeline.slice(low + 1, high - low))


def base_choices(timeline: pl.DataFrame, version: int) -> dict[int, str]:
    """Versions worth comparing one with, and why: the one before, a day and a week before, before the last schema
    change and before the last bad load. None of another branch."""
    place = timeline["version"].index_of(version)
    if not place:
        return {}
    earlier = on_branch(timeline.head(place))
    line = pl.concat([earlier, timeline.slice(place, 1)]).with_row_index("place")
    choices: dict[int, str] = {}

    def offer(label: str, rows: pl.DataFrame) -> None:
        for other in rows["version"].tail(1):
            choices.setdefault(int(other), label)

    offer("the version before", earlier)
    moment = timeline["timestamp"][place]
    if isinstance(moment, datetime):
        offer("a day before", earlier.filter(pl.col("timestamp") <= moment - _BEFORE_DAY))
        offer("a week before", earlier.filter(pl.col("timestamp") <= moment - 7 * _BEFORE_DAY))
    for label, mark in (
        ("before the last schema change", "schema_changed"),
        ("before the last bad load", "suspicious"),
    ):
        last = line.filter(mark)["place"].max()
        if isinstance(last, int) and last > 0:
            offer(label, line.slice(last - 1, 1))
    return choices
