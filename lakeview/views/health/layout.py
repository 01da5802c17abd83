"""A snapshot and its statistics to findings about files and partitions."""

import polars as pl

from lakeview.model.contradictions import ALL_NULL
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import first_few
from lakeview.model.snapshot import Snapshot
from lakeview.views.files.sizes import FileFacts, file_facts
from lakeview.views.health.kinds import finding
from lakeview.views.partitions.sizes import missing_partitions, partition_sizes, partition_skew
from lakeview.views.retention.remedies import command, partition_condition
from lakeview.views.schema.null_shares import files_without_statistics
from lakeview.views.sums import total_of
from lakeview.views.thresholds import (
    DELETE_FILES_MIN,
    DELETE_FILES_TIMES,
    DELETED_ROWS,
    DELETED_SHARE,
    FILES_EXCESS,
    FILES_TIMES,
    SKEW_TIMES,
    SMALL_FILE_BYTES,
    SMALL_TABLE_BYTES,
    TARGET_HIGH,
)
from lakeview.views.units import count_text, format_bytes, format_percent


def file_findings(snapshot: Snapshot) -> list[Finding]:
    """Findings about the sizes of files, and about deleted rows in them."""
    facts = file_facts(snapshot.files)
    if facts.files == 0:
        return [
            finding("no-files", Severity.NOTE, "The table has no files", "no rows at this version"),
            *_delete_files(snapshot),
        ]
    sizes = []
    if facts.files_without_size:
        claim = f"{facts.files_without_size:,} of {facts.files:,} files are recorded with an impossible size"
        evidence = "the table's size in bytes is unknown"
        sizes = [finding("impossible-file-sizes", Severity.ATTENTION, claim, evidence)]
    return [*sizes, *_small_files(snapshot, facts), *_deleted_rows(snapshot, facts), *_delete_files(snapshot)]


def _small_files(snapshot: Snapshot, facts: FileFacts) -> list[Finding]:
    ideal = facts.files if facts.ideal_files is None else facts.ideal_files
    if facts.files - ideal < FILES_EXCESS or facts.files < FILES_TIMES * ideal:
        return []
    many, claim = facts.files, f"{facts.files:,} files where {ideal:,} would do"
    if facts.small_files >= facts.files / 2:
        many = facts.small_files
        claim = f"{many:,} of {facts.files:,} files are smaller than {SMALL_FILE_BYTES >> 20} MiB"
    share = facts.small_bytes / facts.bytes if facts.bytes and facts.small_bytes is not None else None
    evidence = (
        f"{format_percent(share)} of the bytes, {format_percent(many / facts.files)} of the requests; "
        f"{count_text(ideal, 'file')} of up to {format_bytes(TARGET_HIGH)} would hold the table"
    )
    skew = partition_skew(partition_sizes(snapshot))
    run = command("compact", snapshot)
    if skew.partitions > 1 and skew.most_files_count > facts.files / 2:
        evidence += f"; {skew.most_files_count:,} of the {facts.files:,} are in {skew.most_files}"
        where = partition_condition(snapshot, skew.most_files or "")
        run = run if where is None else command("compact_where", snapshot, where=where)
    weight = _weight(snapshot)
    # a small table is read in a moment as it is: the command is stated, with how little it brings
    effect = "little: so small a table is read at once however its files lie" if weight is Severity.NOTE else None
    return [finding("small-files", weight, claim, evidence, command=run, effect=effect)]


def _weight(snapshot: Snapshot) -> Severity:
    """How much the layout matters: a note for a table that is read in a moment however it lies."""
    size = snapshot.size_bytes
    return Severity.NOTE if size is not None and size < SMALL_TABLE_BYTES else Severity.ATTENTION


def _deleted_rows(snapshot: Snapshot, facts: FileFacts) -> list[Finding]:
    """Where some files do not tell how many of their rows are deleted, the others decide alone, at least so many; else
    the rows that position deletes name: at most so many, for two may name one row."""
    rows, deleted_rows = total_of(snapshot.files["records"]), facts.least_deleted_records
    if not rows:
        return []
    bound = "" if facts.deleted_records is not None else "at least "
    claim, files = "Deleted rows pile up in files", facts.files_with_deletes
    if bound and (deleted_rows or 0) / rows < DELETED_SHARE:
        deleted_rows = min(_named_rows(snapshot) or 0, rows)
        bound, claim, files = "up to ", "Position deletes pile up", files + facts.files_perhaps_with_deletes
    if not deleted_rows:
        return []
    heavy = deleted_rows / rows >= DELETED_SHARE
    figures = (
        count_text(files, "file"),
        count_text(deleted_rows, "row"),
        f"{format_percent(deleted_rows / rows)} of the table",
    )
    evidence = ", ".join(f"{bound}{figure}" for figure in figures)
    severity = Severity.PASS if not heavy else Severity.NOTE if deleted_rows < DELETED_ROWS else Severity.ATTENTION
    claim = claim if heavy else "Deleted rows in files are few"
    return [finding("deleted-rows", severity, claim, evidence, command=command("apply_deletes", snapshot))]


def _named_rows(snapshot: Snapshot) -> int | None:
    """How many rows the position deletes name, one as often as they do; None where other deletes are there, too."""
    deletes = snapshot.delete_files
    if deletes.is_empty() or set(deletes["content"]) != {"position deletes"}:
        return None
    return total_of(deletes["records"])


def _delete_files(snapshot: Snapshot) -> list[Finding]:
    deletes, data = snapshot.delete_files.height, snapshot.num_files
    if deletes < DELETE_FILES_MIN or deletes < DELETE_FILES_TIMES * data:
        return []
    claim = f"{deletes:,} files only delete rows"
    evidence = f"with {count_text(data, 'data file')}, {format_bytes(total_of(snapshot.delete_files['size']))}"
    run = command("apply_deletes", snapshot)
    return [finding("delete-files-pile-up", Severity.ATTENTION, claim, evidence, command=run)]


def statistics_findings(snapshot: Snapshot, statistics: pl.DataFrame | None) -> list[Finding]:
    """A finding about files without row counts or, with STATISTICS, without any statistics."""
    files = snapshot.files
    if files.is_empty():
        return []
    silent = files.filter(pl.col("records").is_null())
    what, unknown = "no row count", "counts over them are"
    if silent.is_empty() and statistics is not None:
        silent, what = files_without_statistics(statistics).select(path="_path"), "no statistics"
        unknown = "how many of their values are null is"
    if silent.is_empty():
        evidence = count_text(files.height, "file")
        return [finding("files-with-row-counts", Severity.PASS, "Every file has a row count", evidence)]
    size = total_of(files["size"])
    silent_bytes = total_of(files.join(silent.select("path"), on="path", how="semi")["size"])
    share = silent_bytes / size if size and silent_bytes is not None else None
    skipping = "only partition values can skip them" if snapshot.partition_columns else "no filter can skip them"
    have = "has" if silent.height == 1 else "have"
    claim = f"{silent.height:,} of {count_text(files.height, 'file')} {have} {what}"
    evidence = f"{format_percent(share)} of the bytes; {skipping}, and {unknown} unknown"
    return [finding("files-without-statistics", _weight(snapshot), claim, evidence)]


def contradiction_findings(snapshot: Snapshot, contradictions: pl.DataFrame | None) -> list[Finding]:
    """A finding that statistics by CONTRADICTIONS cannot be true; none where bounds of nulls alone contradict them."""
    if contradictions is None:
        return []
    wrong = contradictions.filter(pl.col("kind") != ALL_NULL)
    if wrong.is_empty():
        return []
    row = wrong.row(0, named=True)
    of = f"{row['files']:,} of {count_text(snapshot.num_files, 'file')}"
    claim = f"Statistics of {row['column']} contradict themselves in {of}"
    others = wrong.height - 1
    more = f"; {count_text(others, 'other contradiction')}" if others else ""
    evidence = f"{row['text']} in {row['path'].rsplit('/', 1)[-1]}{more}"
    return [
        finding("column-statistics-contradictory", Severity.BROKEN, claim, evidence, row["path"], column=row["column"])
    ]


def partition_findings(snapshot: Snapshot) -> list[Finding]:
    """Findings about skew between partitions, and about gaps in their sequence."""
    findings = []
    sizes = partition_sizes(snapshot)
    skew = partition_skew(sizes)
    in_files = f"{count_text(skew.most_files_count, 'file')}; median of all {skew.median_files:,}"
    in_bytes = f"{format_bytes(skew.largest_bytes)}; median of all {format_bytes(skew.median_bytes)}"
    for kind, what, ratio, partition, evidence in (
        ("partition-file-skew", "files", skew.files_ratio, skew.most_files, in_files),
        ("partition-byte-skew", "bytes", skew.bytes_ratio, skew.largest, in_bytes),
    ):
        if ratio is not None and ratio >= SKEW_TIMES and skew.partitions > 2:
            claim = f"{partition} has {ratio:,.0f} times the {what} of its siblings"
            findings.append(finding(kind, _weight(snapshot), claim, evidence, partition))
    median = skew.median_bytes
    if skew.partitions and median is not None and median < SMALL_FILE_BYTES and _weight(snapshot) is not Severity.NOTE:
        small = sizes.filter(pl.col("partition_text").is_not_null() & (pl.col("bytes") < SMALL_FILE_BYTES)).height
        claim = f"{small:,} of {skew.partitions:,} partitions are smaller than {SMALL_FILE_BYTES >> 20} MiB"
        evidence = f"median {format_bytes(median)}; the table has {format_bytes(snapshot.size_bytes)}"
        findings.append(finding("small-partitions", Severity.ATTENTION, claim, evidence))
    missing = missing_partitions(snapshot)
    if missing:
        claim = f"{count_text(len(missing), 'partition')} missing in the sequence"
        evidence = f"{first_few(missing)}, between {count_text(skew.partitions, 'partition')} that are there"
        findings.append(finding("partitions-missing", Severity.ATTENTION, claim, evidence, missing[0]))
    return findings
