"""Two snapshots to what lies between them: files by partition, settings, a sentence for a ticket, and good bases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from lakeview.model.column_values import live_records
from lakeview.model.snapshot import Snapshot
from lakeview.views.compare.row_change import bounds_text, row_change_bounds
from lakeview.views.files.rows import rows_text
from lakeview.views.schema.diff import diff_schemas
from lakeview.views.sums import flows, total, zero_without_files
from lakeview.views.timeline.commits import on_branch
from lakeview.views.units import counted, format_bytes, format_change, format_count, format_date, format_version

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
"""One row a partition, in order, those without a difference too; one row "all files" for a table without partitions.
`files_redeleted`: files in both with other deleted rows; `bytes` and `records` of added and removed files, null when
unknown."""

SETTINGS_DIFF = pl.Schema({"name": pl.String(), "change": pl.String(), "before": pl.String(), "after": pl.String()})
"""One row a property, protocol version or table feature: added, dropped, changed or same, changes first."""

_UNPARTITIONED = "all files"

_BEFORE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class FileDifference:
    """What happened to the files as a whole; `rows` the difference of live rows, None where a side is unknown, as bytes
    are where the log does not tell a file's; `rows_between` its bounds then, if there are any. Delete files are those
    of Iceberg."""

    added: int
    removed: int
    redeleted: int
    same: int
    bytes_added: int | None
    bytes_removed: int | None
    rows: int | None
    deletes_added: int = 0
    deletes_removed: int = 0
    rows_between: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class BaseChoice:
    """A version worth comparing with, and why."""

    label: str
    version: int


def file_difference(before: Snapshot, after: Snapshot) -> FileDifference:
    """The files of two snapshots, by path and deletion vector."""
    by_partition = partition_difference(before, after)
    totals = by_partition.select(total(name) for name in PARTITION_DIFF.names()[1:]).row(0, named=True)
    added, removed, redeleted = totals["files_added"], totals["files_removed"], totals["files_redeleted"]
    old, new = (s.delete_files.select("path", "deletion_vector").sort("path") for s in (before, after))
    rows = None
    if before.num_records is not None and after.num_records is not None:
        rows = after.num_records - before.num_records
    # what the files of both have deleted is not known, and is the same if the same files delete
    elif not redeleted and None not in (totals["records_added"], totals["records_removed"]) and old.equals(new):
        rows = totals["records_added"] - totals["records_removed"]
    same = after.num_files - added - redeleted
    sizes = (totals["bytes_added"], totals["bytes_removed"])
    deletes = (_without(new, old), _without(old, new))
    bounds = row_change_bounds(before, after) if rows is None else None
    return FileDifference(added, removed, redeleted, same, *sizes, rows, *deletes, bounds)


def _without(files: pl.DataFrame, others: pl.DataFrame) -> int:
    return files.join(others, on=files.columns, how="anti", nulls_equal=True).height


def partition_difference(before: Snapshot, after: Snapshot) -> pl.DataFrame:
    """PARTITION_DIFF, partitions of either side in the order of the later one's, then those that are gone."""
    old, new = _files(before), _files(after)
    both = new.join(old.select("path", old_vector="deletion_vector", there=pl.lit(value=True)), on="path", how="left")
    touched = both.filter("there").filter(~pl.col("deletion_vector").eq_missing(pl.col("old_vector")))
    added, removed = new.join(old, on="path", how="anti"), old.join(new, on="path", how="anti")
    every = pl.concat([new.select("partition_text"), old.select("partition_text")]).unique(maintain_order=True)
    parts = [flows(files, "partition_text", way, "live") for files, way in ((added, "added"), (removed, "removed"))]
    counts = touched.group_by("partition_text").agg(files_redeleted=pl.len().cast(pl.Int64))
    found = every
    for part in (*parts, counts):
        found = found.join(part, on="partition_text", how="left", nulls_equal=True, maintain_order="left")
    found = found.with_columns(*zero_without_files("added"), *zero_without_files("removed"))
    known = [n for n in PARTITION_DIFF.names()[1:] if n.startswith("files")]
    return found.with_columns(pl.col(known).fill_null(0)).select(PARTITION_DIFF.names()).cast(PARTITION_DIFF)


def _files(snapshot: Snapshot) -> pl.DataFrame:
    files = snapshot.files
    order = files.sort("partition", nulls_last=True, maintain_order=True) if "partition" in files.columns else files
    return order.select(
        "path",
        "deletion_vector",
        "size",
        live=live_records(),
        partition_text=pl.col("partition_text").fill_null(_UNPARTITIONED),
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
    told = {name: str(number) for name, number in numbers.items() if number is not None}
    for feature in sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())}):
        needed = "to read and write" if feature in (protocol.reader_features or ()) else "to write"
        told[f"feature {feature}"] = needed
    told |= {"partitioned by": ", ".join(snapshot.partition_columns)} if snapshot.partition_columns else {}
    return told | snapshot.properties


def sentence(before: Snapshot, after: Snapshot, timeline: pl.DataFrame | None = None) -> str:
    """What changed in one sentence of plain text, for a ticket: rows, columns, files, settings, and by whom."""
    difference = file_difference(before, after)
    between = None if timeline is None else commits_between(timeline, before.version, after.version)
    parts = [_rows(difference, between), *_columns(before, after), *_file_words(difference)]
    changed = settings_difference(before, after).filter(pl.col("change") != "same").height
    if changed:
        parts.append(f"{counted(changed, 'setting')} changed")
    table = after.name or after.location.rstrip("/").rpartition("/")[2]
    sides = [f"{format_version(s.version)} ({format_date(s.timestamp)})" for s in (before, after)]
    by = "" if between is None else _by(between)
    return f"{table} from {sides[0]} to {sides[1]}: {', '.join(parts)}{by}."


def _rows(difference: FileDifference, between: pl.DataFrame | None) -> str:
    if difference.rows is None:
        return bounds_text(difference.rows_between) if difference.rows_between else "an unknown number of rows"
    if difference.rows:
        return f"{format_change(difference.rows)} rows"
    if not (difference.added or difference.removed or difference.redeleted):
        return "as many rows"
    # a promise of the writers, where there is one: no commit changed data
    is_layout = between is not None and not between.is_empty() and (~between["data_change"]).all()
    return "the same rows in other files" if is_layout else "as many rows, of which some may have changed"


def _columns(before: Snapshot, after: Snapshot) -> list[str]:
    changes = diff_schemas(before.schema, after.schema).group_by("change", maintain_order=True).len()
    words = {"added": "added", "dropped": "dropped", "renamed": "renamed", "type": "with another type"}
    told = [f"{counted(count, 'column')} {words[change]}" for change, count in changes.iter_rows() if change in words]
    return told or ["the same columns"]


def _file_words(difference: FileDifference) -> list[str]:
    deletes = [
        f"{counted(count, 'delete file')} {word}"
        for count, word in ((difference.deletes_added, "written"), (difference.deletes_removed, "removed"))
        if count
    ]
    if not (difference.added or difference.removed or difference.redeleted):
        return [f"the same {'data ' if deletes else ''}files", *deletes]
    sides = [
        (difference.added, f"written ({format_bytes(difference.bytes_added)})"),
        (difference.removed, f"removed ({format_bytes(difference.bytes_removed)})"),
        (difference.redeleted, "with other deleted rows"),
    ]
    changed = [(count, words) for count, words in sides if count]
    files = [
        f"{f'{count:,}' if place else counted(count, 'file')} {words}" for place, (count, words) in enumerate(changed)
    ]
    return [*files, *deletes]


def _by(between: pl.DataFrame) -> str:
    if between.is_empty():
        return ""
    writers = between["writer"].drop_nulls().unique(maintain_order=True).to_list()
    more = f" and {len(writers) - 3} more" if len(writers) > 3 else ""
    who = f" by {', '.join(writers[:3])}{more}" if writers else ""
    return f"; in {counted(between.height, 'commit')}{who}{_bad_loads(between)}"


def _bad_loads(between: pl.DataFrame) -> str:
    """The newest of the suspicious loads with its reason, and the others by their versions."""
    bad = between.filter("suspicious").reverse()  # in the order of commits: ids of snapshots have none
    if bad.is_empty():
        return ""
    newest, note = bad.select("version", "note").row(0)
    reason = "" if note is None else f", {note.split('; ')[0]}"
    others = [format_version(version) for version in bad["version"][1:4]]
    more = f" and {bad.height - 4:,} more" if bad.height > 4 else ""
    also = f"; {', '.join(others)}{more}: {'a bad load' if bad.height == 2 else 'bad loads'} too" if others else ""
    return f"; bad load {format_version(newest)}{reason}{also}"


def commits_between(timeline: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
    """TIMELINE rows after version `first` up to `last`, whichever of them came first; none where one is not told,
    or is an off-branch commit: of two branches no commits lead from one to the other."""
    places = [timeline["version"].index_of(version) for version in (first, last)]
    if None in places or "off-branch" in (timeline["lane"][place] for place in places if place is not None):
        return timeline.clear()
    low, high = sorted(place for place in places if place is not None)
    return on_branch(timeline.slice(low + 1, high - low))


def base_choices(timeline: pl.DataFrame, version: int) -> list[BaseChoice]:
    """Versions worth comparing one with: the one before, a day and a week before, before the last schema change and
    before the last bad load. Each version once."""
    place = timeline["version"].index_of(version)
    if not place:
        return []
    earlier = on_branch(timeline.head(place))
    upto = timeline.head(place + 1).with_row_index("place")
    found: dict[int, str] = {}

    def offer(label: str, rows: pl.DataFrame) -> None:
        for other in rows["version"].tail(1):
            found.setdefault(int(other), label)

    offer("the version before", earlier)
    moment = timeline["timestamp"][place]
    if isinstance(moment, datetime):
        offer("a day before", earlier.filter(pl.col("timestamp") <= moment - _BEFORE_DAY))
        offer("a week before", earlier.filter(pl.col("timestamp") <= moment - 7 * _BEFORE_DAY))
    for label, marked in (
        ("before the last schema change", "schema_changed"),
        ("before the last bad load", "suspicious"),
    ):
        last = upto.filter(marked)["place"].max()
        if isinstance(last, int) and last > 0:
            offer(label, timeline.slice(last - 1, 1))
    return [BaseChoice(label, other) for other, label in found.items()]


def difference_tiles(before: Snapshot, after: Snapshot) -> list[tuple[str, str, str | None]]:
    """Label, value now and what changed, for rows, bytes, files, columns and partitions; None without a change."""
    difference = file_difference(before, after)
    schema = diff_schemas(before.schema, after.schema)["change"].to_list()
    kinds = {name: schema.count(name) for name in ("added", "dropped", "renamed")}
    columns = ", ".join(f"{count} {name}" for name, count in kinds.items() if count)
    sizes = after.size_bytes, before.size_bytes
    grown = None if sizes[0] is None or sizes[1] is None else sizes[0] - sizes[1]
    tiles = [
        ("Rows", rows_text(after), _rows_changed(difference, rows_text(before))),
        (
            "Live bytes",
            format_bytes(after.size_bytes),
            _changed(grown, format_bytes(before.size_bytes), bytes_=True),
        ),
        (
            "Files",
            format_count(after.num_files),
            _changed(after.num_files - before.num_files, format_count(before.num_files)),
        ),
        ("Columns", str(len(after.schema)), columns or (f"{len(schema)} changed" if schema else None)),
    ]
    if after.partition_columns:
        sides = [s.files["partition_text"].n_unique() for s in (before, after)]
        touched = partition_difference(before, after).filter(pl.any_horizontal(pl.exclude("partition_text") > 0)).height
        tiles.append(("Partitions", format_count(sides[1]), f"{touched:,} touched" if touched else None))
    return tiles


def _rows_changed(difference: FileDifference, before: str) -> str | None:
    if difference.rows_between is None:
        return _changed(difference.rows, before)
    return f"{bounds_text(difference.rows_between).removesuffix(' rows')} from {before}"


def _changed(difference: int | None, before: str, *, bytes_: bool = False) -> str | None:
    if difference is None:
        return f"from {before}"
    return f"{format_change(difference, bytes_=bytes_)} from {before}" if difference else None


def changed(settings: pl.DataFrame) -> int:
    """How many rows of SETTINGS_DIFF differ."""
    return settings.filter(pl.col("change") != "same").height


def has_file_changes(partitions: pl.DataFrame) -> bool:
    """True if any partition of PARTITION_DIFF has added, removed or changed files."""
    changes = pl.any_horizontal(pl.col("files_added", "files_removed", "files_redeleted") > 0)
    return bool(partitions.select(changes.any()).item())
