"""Two versions compared in short: in one frame of totals, columns, settings and partitions, in a sentence, in tiles."""

import polars as pl

from lakeview.model.column_values import least_records
from lakeview.model.printable import first_few
from lakeview.model.snapshot import Snapshot
from lakeview.views.compare.versions import (
    ALL_FILES,
    FileDifference,
    bounds_text,
    commits_between,
    count_changes,
    file_difference,
    partition_contents,
    partition_difference,
    settings_difference,
)
from lakeview.views.partitions.keys import NO_PARTITION, partition_names
from lakeview.views.schema.diff import diff_schemas
from lakeview.views.sums import rows_text
from lakeview.views.units import (
    count_text,
    format_bytes,
    format_change,
    format_count,
    format_date,
    format_row_change,
    format_version,
)

COMPARISON = pl.Schema(
    {"aspect": pl.String(), "name": pl.String(), "change": pl.String(), "before": pl.String(), "after": pl.String()}
)
"""One row a difference. `aspect`: total (`name`: rows, bytes or files), column, setting or partition; `change`: of a
column as in SCHEMA_DIFF, of a setting as in SETTINGS_DIFF, else changed. `before` and `after` as text, numbers in plain
digits (a bound of the rows as `≥ 308641`), null where there is none or it is unknown; of a partition its live files and
their rows."""


def comparison(before: Snapshot, after: Snapshot) -> pl.DataFrame:
    """COMPARISON of two snapshots of one table; what is equal in both has no row."""
    columns = diff_schemas(before.schema, after.schema).select(
        pl.lit("column").alias("aspect"), pl.col("column").alias("name"), "change", "before", "after"
    )
    settings = settings_difference(before, after).filter(pl.col("change") != "same")
    partitions = partition_difference(before, after).filter(
        pl.any_horizontal(pl.col("files_added", "files_removed", "files_redeleted") > 0)
    )
    for name, snapshot in (("before", before), ("after", after)):
        partitions = partitions.join(partition_contents(snapshot, name), on="partition_text", how="left")
    return pl.concat([
        _totals(before, after),
        columns,
        settings.select(pl.lit("setting").alias("aspect"), "name", "change", "before", "after"),
        partitions.select(
            pl.lit("partition").alias("aspect"),
            pl.col("partition_text").alias("name"),
            pl.lit("changed").alias("change"),
            "before",
            "after",
        ),
    ]).cast(COMPARISON)  # fmt: skip


def _totals(before: Snapshot, after: Snapshot) -> pl.DataFrame:
    pairs = {
        "rows": (_record_digits(before), _record_digits(after)),
        "bytes": (_digits(before.size_bytes), _digits(after.size_bytes)),
        "files": (_digits(before.num_files), _digits(after.num_files)),
    }
    rows = [
        ("total", name, "changed", old, new)
        for name, (old, new) in pairs.items()
        if old != new or old is None or not old.isdecimal()
    ]
    return pl.DataFrame(rows, schema=COMPARISON, orient="row")


def _record_digits(snapshot: Snapshot) -> str | None:
    if snapshot.num_records is not None:
        return str(snapshot.num_records)
    least = least_records(snapshot.files, snapshot.delete_files)
    return f"\N{GREATER-THAN OR EQUAL TO} {least}" if least else None


def _digits(number: int | None) -> str | None:
    return None if number is None else str(number)


def sentence(
    before: Snapshot, after: Snapshot, timeline: pl.DataFrame | None = None, partitions: pl.DataFrame | None = None
) -> str:
    """What changed in one sentence of plain text, for a ticket: rows, columns, files, settings, and by whom.

    `partitions`: PARTITION_DIFF of the two, where it is there."""
    difference = file_difference(before, after, partitions)
    between = None if timeline is None else commits_between(timeline, before.version, after.version)
    parts = [_rows(difference, between), *_columns(before, after), *_file_words(difference)]
    if settings := count_changes(settings_difference(before, after)):
        parts.append(f"{count_text(settings, 'setting')} changed")
    table = after.name or after.location.rstrip("/").rpartition("/")[2]
    sides = [f"{format_version(s.version)} ({format_date(s.timestamp)})" for s in (before, after)]
    by = "" if between is None else _by(between)
    return f"{table} from {sides[0]} to {sides[1]}: {', '.join(parts)}{by}."


def _rows(difference: FileDifference, between: pl.DataFrame | None) -> str:
    if difference.rows is None:
        return bounds_text(difference.rows_between) if difference.rows_between else "an unknown number of rows"
    if difference.rows:
        return format_row_change(difference.rows)
    if not (difference.added_files or difference.removed_files or difference.redeleted_files):
        return "as many rows"
    # a promise of the writers, where there is one: no commit changed data
    is_layout = between is not None and not between.is_empty() and (~between["data_change"]).all()
    return "the same rows in other files" if is_layout else "as many rows, of which some may have changed"


def _columns(before: Snapshot, after: Snapshot) -> list[str]:
    changes = diff_schemas(before.schema, after.schema).group_by("change", maintain_order=True).len()
    parts = [f"{count_text(count, 'column')} {_COLUMN_CHANGES[change]}" for change, count in changes.iter_rows()]
    return parts or ["the same columns"]


_COLUMN_CHANGES = {
    "added": "added", "dropped": "dropped", "renamed": "renamed", "moved": "moved", "type": "with another type",
    "nullability": "with another nullability", "comment": "with another comment", "default": "with another default",
    "metadata": "with other metadata",
}  # fmt: skip
"""The changes of SCHEMA_DIFF in words."""


def _file_words(difference: FileDifference) -> list[str]:
    deletes = [
        f"{count_text(count, 'delete file')} {word}"
        for count, word in ((difference.deletes_added, "written"), (difference.deletes_removed, "removed"))
        if count
    ]
    if not (difference.added_files or difference.removed_files or difference.redeleted_files):
        return [f"the same {'data ' if deletes else ''}files", *deletes]
    sides = [
        (difference.added_files, f"written ({format_bytes(difference.bytes_added)})"),
        (difference.removed_files, f"removed ({format_bytes(difference.bytes_removed)})"),
        (difference.redeleted_files, "with other deleted rows"),
    ]
    counts = [(count, words) for count, words in sides if count]
    files = [
        f"{f'{count:,}' if place else count_text(count, 'file')} {words}" for place, (count, words) in enumerate(counts)
    ]
    return [*files, *deletes]


def _by(between: pl.DataFrame) -> str:
    if between.is_empty():
        return ""
    writers = between["writer"].drop_nulls().unique(maintain_order=True).to_list()
    who = f" by {first_few(writers)}" if writers else ""
    return f"; in {count_text(between.height, 'commit')}{who}{_bad_loads(between)}"


def _bad_loads(between: pl.DataFrame) -> str:
    """The newest of the suspicious loads with its reason, and the others by their versions; open ones come first."""
    bad = between.filter("suspicious").reverse()  # in the order of commits: ids of snapshots have none
    bad = bad.sort(pl.col("taken_back_by").is_not_null(), maintain_order=True)
    if bad.is_empty():
        return ""
    newest, note, repair = bad.select("version", "note", "taken_back_by").row(0)
    reason = "" if note is None else f", {note.split('; ')[0]}"
    repair_note = "" if repair is None else f", repaired by {format_version(repair)}"
    others = [
        format_version(version) + ("" if back is None else " (repaired)")
        for version, back in bad[1:].select("version", "taken_back_by").iter_rows()
    ]
    also = f"; {first_few(others)}: {'a bad load' if bad.height == 2 else 'bad loads'} too" if others else ""
    return f"; bad load {format_version(newest)}{reason}{repair_note}{also}"


def difference_tiles(before: Snapshot, after: Snapshot, partitions: pl.DataFrame) -> list[tuple[str, str, str | None]]:
    """Label, value now and what changed, for rows, bytes, files, columns and partitions; None without a change.

    `partitions`: PARTITION_DIFF of the two."""
    difference = file_difference(before, after, partitions)
    schema = diff_schemas(before.schema, after.schema)["change"].to_list()
    kinds = {name: schema.count(name) for name in ("added", "dropped", "renamed")}
    columns = ", ".join(f"{count} {name}" for name, count in kinds.items() if count)
    sizes = after.size_bytes, before.size_bytes
    growth = None if sizes[0] is None or sizes[1] is None else sizes[0] - sizes[1]
    tiles = [
        ("Rows", rows_text(after), _rows_changed(difference, rows_text(before))),
        (
            "Live bytes",
            format_bytes(after.size_bytes),
            _change_text(growth, format_bytes(before.size_bytes), bytes_=True),
        ),
        (
            "Files",
            format_count(after.num_files),
            _change_text(after.num_files - before.num_files, format_count(before.num_files)),
        ),
        ("Columns", str(len(after.schema)), columns or (f"{len(schema)} changed" if schema else None)),
    ]
    if partition_names(after):
        count = after.files["partition_text"].drop_nulls().n_unique()
        inside = partitions.filter(~pl.col("partition_text").is_in([NO_PARTITION, ALL_FILES]))
        count_touched = inside.filter(pl.any_horizontal(pl.exclude("partition_text") > 0)).height
        tiles.append(("Partitions", format_count(count), f"{count_touched:,} touched" if count_touched else None))
    return tiles


def _rows_changed(difference: FileDifference, before: str) -> str | None:
    if difference.rows_between is None:
        return _change_text(difference.rows, before)
    return f"{bounds_text(difference.rows_between).removesuffix(' rows')} from {before}"


def _change_text(difference: int | None, before: str, *, bytes_: bool = False) -> str | None:
    if difference is None:
        return f"from {before}"
    return f"{format_change(difference, bytes_=bytes_)} from {before}" if difference else None
