"""A table's metadata and manifests to findings: what contradicts itself, and which section of the spec it breaks."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import polars as pl

from lakeview.iceberg.deletes.index import FILE_PATH_ID
from lakeview.iceberg.manifests.statistics import Metrics, file_bounds
from lakeview.iceberg.manifests.tree import Tree
from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.single_values import sound_bounds
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT, SnapshotEntry
from lakeview.iceberg.metadata.summaries import whole
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.metadata.types import struct_fields
from lakeview.iceberg.metadata.versions import in_order
from lakeview.iceberg.orphan_files import orphan_findings
from lakeview.iceberg.spec_lint import REMEDY, delete_findings, schema_findings, spec_finding
from lakeview.iceberg.state import State
from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import first_few
from lakeview.model.schema import leaf_name


def check(state: State, now: datetime | None = None) -> list[Finding]:
    """What is broken or odd, worst first; one passing finding where nothing is.

    With `now`, files that no snapshot names are reported once they are older than a day. Costs the manifests of every
    snapshot and one listing of the table's folder, and of the folder of its data files where that is another one.
    """
    metadata, tree = state.metadata, state.tree
    listing = state.storage.walk()
    findings = [
        *_refs(metadata),
        *_dangling(metadata),
        *_numbers(metadata),
        *_logs(metadata),
        *schema_findings(metadata),
        *_readable(metadata, state.history.versions(listing["name"])),
        *orphan_findings(state, listing, now),
    ]
    current = metadata.snapshots.get(metadata.current_snapshot_id)
    if current is not None:
        try:
            findings += _manifests(metadata, tree, current)
        except LakeviewError as error:
            findings.append(spec_finding("snapshot-not-examined", error.message, error.place))
    if not findings:
        text = f"{len(metadata.snapshots):,} snapshots, their manifests and refs agree"
        findings.append(Finding("metadata-consistent", Severity.PASS, "The metadata contradicts itself nowhere", text))
    return sorted(findings, key=lambda f: list(Severity).index(f.severity))


def _refs(metadata: Metadata) -> Iterator[Finding]:
    for name, ref in sorted(metadata.refs.items()):
        if ref.snapshot_id not in metadata.snapshots:
            yield spec_finding("ref-without-snapshot", f"snapshot {ref.snapshot_id}", name, subject=ref.type)
    main = metadata.refs.get("main")
    if main is not None and main.snapshot_id != metadata.current_snapshot_id:
        evidence = f"main is {main.snapshot_id}, current is {metadata.current_snapshot_id}"
        yield spec_finding("main-not-current", evidence, "main")


def _dangling(metadata: Metadata) -> Iterator[Finding]:
    """Ids that name nothing: readers go on without, each in its own way."""
    for snapshot in in_order(metadata):
        if snapshot.schema_id is not None and snapshot.schema_id not in metadata.schemas:
            yield spec_finding("snapshot-schema-missing", f"schema {snapshot.schema_id}", str(snapshot.snapshot_id))
    orders = {order.get("order-id") for order in metadata.sort_orders} | {0}
    if metadata.default_sort_order_id is not None and metadata.default_sort_order_id not in orders:
        yield spec_finding("sort-order-missing", f"order {metadata.default_sort_order_id}")
    snapshot_ids = [s.get("snapshot-id") for s in (*metadata.statistics, *metadata.partition_statistics)]
    if missing := [i for i in snapshot_ids if not (isinstance(i, int) and i in metadata.snapshots)]:
        yield spec_finding("statistics-file-without-snapshot", f"{len(missing):,} of {len(snapshot_ids):,}")


def _numbers(metadata: Metadata) -> Iterator[Finding]:
    snapshots = in_order(metadata)
    newest = max((s.sequence_number for s in snapshots), default=0)
    if newest > metadata.last_sequence_number:
        evidence = f"{newest}, and last-sequence-number is {metadata.last_sequence_number}"
        yield spec_finding("sequence-number-not-given-out", evidence)
    if metadata.format_version > 1:
        for snapshot in snapshots:
            before = None if snapshot.parent is None else metadata.snapshots.get(snapshot.parent)
            if before is not None and before.sequence_number > snapshot.sequence_number:
                evidence = f"{snapshot.sequence_number} after {before.sequence_number}"
                yield spec_finding("sequence-number-below-parent", evidence, str(snapshot.snapshot_id))
    yield from _ids(metadata)


def _ids(metadata: Metadata) -> Iterator[Finding]:
    """Ids in use are at most the last one that the metadata has given out."""
    column = max((i for s in metadata.schemas.values() for i in struct_fields(s.schema)), default=0)
    if metadata.last_column_id is not None and column > metadata.last_column_id:
        evidence = f"{column}, and last-column-id is {metadata.last_column_id}"
        yield spec_finding("column-id-not-given-out", evidence)
    part = max((f.field_id for s in metadata.specs.values() for f in s.fields), default=0)
    if metadata.last_partition_id is not None and part > metadata.last_partition_id:
        evidence = f"{part}, and last-partition-id is {metadata.last_partition_id}"
        yield spec_finding("partition-id-not-given-out", evidence)


def _logs(metadata: Metadata) -> Iterator[Finding]:
    times = [e.timestamp_ms for e in metadata.snapshot_log]
    back = [b for a, b in pairwise(times) if b < a]
    if back:
        evidence = f"{len(back):,} of {len(times):,} entries are older than the one before"
        yield spec_finding("snapshot-log-backwards", evidence)
    if metadata.snapshot_log and metadata.snapshot_log[-1].snapshot_id != metadata.current_snapshot_id != NO_SNAPSHOT:
        yield spec_finding("snapshot-log-not-current", f"it ends at {metadata.snapshot_log[-1].snapshot_id}")


def _readable(metadata: Metadata, versions: pl.DataFrame) -> Iterator[Finding]:
    line = {s.snapshot_id for s in ancestors(metadata, metadata.current_snapshot_id)}
    for version, reason in versions.filter(~pl.col("readable")).select("version", "reason").iter_rows():
        finding = spec_finding("data-file-not-readable", str(reason), str(version))
        if version == metadata.current_snapshot_id:
            claim = "The current snapshot cannot be read"
            finding = replace(finding, severity=Severity.BROKEN, claim=claim, remedy=REMEDY)
        elif version in line:
            finding = replace(finding, severity=Severity.ATTENTION, remedy=REMEDY)
        yield finding


def _manifests(metadata: Metadata, tree: Tree, current: SnapshotEntry) -> Iterator[Finding]:
    manifests = tree.manifests(current)
    columns = [f.id for _, f in metadata.schema.leaves() if f.id is not None]
    all_entries = tree.entries(manifests, [*columns, FILE_PATH_ID])
    yield from _counts(manifests, all_entries)
    entries = all_entries.filter(pl.col("status") != 2)
    data, deletes = entries.filter(pl.col("content") == 0), entries.filter(pl.col("content") != 0)
    yield from _totals(current.summary, data, deletes)
    twice = data.filter(pl.col("path").is_duplicated())["path"].unique(maintain_order=True)
    if twice.len():
        yield spec_finding("data-file-twice", first_few(twice))
    for column, words in (("size", "sizes"), ("records", "numbers of records")):
        impossible = entries.filter(pl.col(column).is_null())["path"]  # as the manifests' reader gives what cannot be
        if impossible.len():
            yield spec_finding("file-counts-impossible", first_few(impossible), subject=words)
    late = entries.filter(pl.col("sequence_number") > max(current.sequence_number, metadata.last_sequence_number))
    if late.height:
        yield spec_finding("file-sequence-number-too-late", first_few(late["path"]))
    yield from delete_findings(metadata, data, deletes)
    metrics = Metrics(data)
    for path, field in metadata.schema.leaves():
        bounds = file_bounds(metrics, field)
        if bounds is None or bounds[0].dtype.is_float():
            continue
        low, high = sound_bounds(*bounds, field.type)
        wrong = data.filter((low > high).fill_null(False))
        if wrong.height:
            yield spec_finding("column-bounds-contradictory", first_few(wrong["path"]), leaf_name(path))


def _counts(manifests: pl.DataFrame, entries: pl.DataFrame) -> Iterator[Finding]:
    """What the manifest list says its manifests hold against what they do hold."""
    for status, word in enumerate(("existing", "added", "deleted")):
        counts = manifests[f"{word}_files_count"]
        number = entries.filter(pl.col("status") == status).height
        if not counts.has_nulls() and int(counts.sum()) != number:
            evidence = f"{int(counts.sum()):,} in the list, {number:,} in the manifests"
            yield spec_finding("manifest-list-counts-differ", evidence, subject=word)


def _totals(summary: Mapping[str, object], data: pl.DataFrame, deletes: pl.DataFrame) -> Iterator[Finding]:
    counts = {"total-data-files": data.height, "total-delete-files": deletes.height}
    if not data["records"].has_nulls():
        counts["total-records"] = int(data["records"].sum())
    for key, number in counts.items():
        text = summary.get(key)
        total = whole(text, None) if isinstance(text, str) else None
        if total is not None and total != number:
            evidence = f"{total:,} in the summary, {number:,} in the manifests"
            yield spec_finding("summary-differs", evidence, key)
