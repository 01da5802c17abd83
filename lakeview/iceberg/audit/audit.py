"""Every law over every snapshot, what it may list, delete and add, and how its counts and rows add up: metadata and
manifests to AUDIT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import polars as pl

from lakeview.iceberg.audit.steps import Step, Story, read_steps
from lakeview.iceberg.manifests.tree import Tree
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.summaries import whole
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.metadata.versions import commits
from lakeview.model.audit_cases import Case, case_frame, proven, unknowable, violated
from lakeview.model.frames import AUDIT

_SUMMARY = "summary-adds-up"


def audit(metadata: Metadata, tree: Tree, start: int | None = None, end: int | None = None) -> pl.DataFrame:
    """AUDIT of all snapshots, those of branches included, or of those between two in the order of commits.

    Costs every manifest list, and each manifest once. A snapshot whose manifests cannot be read is unknowable.
    """
    steps: list[Step] = []
    cases: list[tuple[Case, str]] = []
    for step in read_steps(metadata, tree):
        if isinstance(step, Step):
            steps.append(step)
        else:
            cases.append((unknowable(step[0].snapshot_id, step[1]), _SUMMARY))
    if steps:
        cases += _cases(Story(metadata, steps))
    heads = commits(metadata).select("version", "position", "timestamp", "operation", "engine", "client_version")
    rows = case_frame(cases).join(heads, on="version", how="left").sort("position", "law_order")
    places = dict(heads.select("version", "position").iter_rows())
    first, last = (None if v is None else places[v] for v in (start, end))
    if first is not None:
        rows = rows.filter(pl.col("position") >= first)
    if last is not None:
        rows = rows.filter(pl.col("position") <= last)
    return rows.select(AUDIT.names()).cast(AUDIT)


def _cases(story: Story) -> Iterator[tuple[Case, str]]:
    totals: dict[int, Totals] = {}
    for step in story.steps:
        for law, judge in LAWS.items():
            yield from ((case, law) for case in judge(step, story))
        own = totals[step.snapshot.snapshot_id] = _totals(step, totals)
        before = {} if step.base or step.parent is None else totals.get(step.parent.snapshot_id, {})
        yield from ((case, _SUMMARY) for case in summaries_add_up(step, own, before))


def _totals(step: Step, earlier_totals: Mapping[int, Totals]) -> Totals:
    """Live files and rows of a snapshot, by their names in summaries: its parent's, and what came and went."""
    parent = None if step.base or step.parent is None else earlier_totals.get(step.parent.snapshot_id)
    totals: dict[str, int | None] = {}
    for key, content, counts_rows in _TOTALS:
        before = 0 if parent is None else parent[key]
        change: int | None = 0
        for frame, sign in ((step.came, 1), (step.went, -1)):
            part = frame.filter(content)
            number = part.height if not counts_rows else None if part["records"].null_count() else part["records"].sum()
            change = None if change is None or number is None else change + sign * int(number)
        totals[key] = None if before is None or change is None else before + change
    return totals


_TOTALS = (
    ("total-data-files", pl.col("content") == 0, False),
    ("total-records", pl.col("content") == 0, True),
    ("total-delete-files", pl.col("content") != 0, False),
)


Totals: TypeAlias = Mapping[str, int | None]
"""Counts by their names in summaries, None where a file does not say."""

_PARENT_GONE = "the parent snapshot has expired, or its manifests cannot be read"


def entries_not_resurrected(step: Step, story: Story) -> Iterator[Case]:
    """entries-not-resurrected."""
    version = step.snapshot.snapshot_id
    if step.base:
        yield unknowable(version, _PARENT_GONE)
        return
    candidates = step.came.filter((pl.col("status") == 0) | (pl.col("snapshot_id") != version))
    own = candidates.filter(pl.col("snapshot_id") == version)
    repeats = story.several_times["file"].unique()
    candidates = candidates.join(own.filter(~pl.col("file").is_in(repeats.implode())), on="file", how="anti")
    yield from _verdict(step, _not_live(step, story, candidates), "files are live that the parent did not have")


def deletes_name_live_files(step: Step, story: Story) -> Iterator[Case]:
    """delete-names-live-file."""
    version = step.snapshot.snapshot_id
    if step.deleted_entries.is_empty():
        return
    if step.base:
        yield unknowable(version, _PARENT_GONE)
        return
    rest = step.deleted_entries.join(step.went, on="file", how="anti")
    yield from _verdict(step, _not_live(step, story, rest), "DELETED entries name files that were not live")


def files_added_once(step: Step, story: Story) -> Iterator[Case]:
    """file-added-once."""
    if step.added_entries.is_empty():
        return
    twice = step.added_entries.filter(pl.col("file").is_duplicated())
    again = step.added_entries.filter(pl.col("file").is_in(story.several_times["file"].unique().implode()))
    again = again.join(step.went, on="file", how="anti")
    not_new = step.added_entries.join(step.came, on="file", how="anti")  # a manifest that it replaced had it
    live = story.live(step, again["file"], before=True) if again.height and not step.base else again.clear()
    wrong = pl.concat([twice.select("path"), not_new.select("path"), live.select("path")])
    if step.base and wrong.is_empty():
        yield unknowable(step.snapshot.snapshot_id, _PARENT_GONE)
        return
    yield from _verdict(step, wrong, "ADDED entries name files that are live already")


def deletes_not_stranded(step: Step, story: Story) -> Iterator[Case]:
    """deletes-not-stranded, of snapshots that add position deletes or deletion vectors."""
    positions = step.added_entries.filter(pl.col("content") == 1)
    if positions.is_empty():
        return
    with_target = positions.filter(pl.col("target").is_not_null())
    data = story.live(step, with_target["target"], "path").filter(pl.col("content") == 0)
    hits = with_target.join(
        data.select(pl.col("path").alias("target"), pl.col("sequence_number").alias("age")), on="target"
    )
    hits = hits.filter(pl.col("age").fill_null(0) <= pl.col("sequence_number").fill_null(0))
    strays = with_target.join(hits, on="file", how="anti")
    if strays.is_empty() and with_target.height < positions.height:
        yield unknowable(step.snapshot.snapshot_id, "delete files do not record which data files they name")
    else:
        claim = "delete files are for data files that are not live, or newer than they are"
        yield from _verdict(step, strays, claim)


def one_vector_per_file(step: Step, story: Story) -> Iterator[Case]:
    """one-vector-per-file, of snapshots that add deletion vectors."""
    vectors = step.added_entries.filter("vector")
    if vectors.is_empty():
        return
    live = story.live(step, vectors["target"].drop_nulls(), "target").filter("vector")
    yield from _verdict(step, live.filter(pl.col("target").is_duplicated()), "data files have two vectors")


def sequence_numbers_increase(step: Step, _: Story) -> Iterator[Case]:
    """sequence-numbers-increase; version 1 has no sequence numbers."""
    own = step.snapshot.sequence_number
    version = step.snapshot.snapshot_id
    if own == 0:
        return
    if step.parent is not None and step.parent.sequence_number >= own:
        before = step.parent.sequence_number
        yield violated(version, "the sequence number is not above that of its parent", f"above {before}", str(own))
    elif step.latest_sequence is not None and step.latest_sequence > own:
        yield violated(version, "a file has a later sequence number than the snapshot", f"at most {own}",
            str(step.latest_sequence))  # fmt: skip
    elif step.base and step.parent is None:
        yield unknowable(version, _PARENT_GONE)
    else:
        yield proven(version)


def summaries_add_up(step: Step, totals: Totals, before: Totals) -> Iterator[Case]:
    """summary-adds-up. `totals`: counts of live files and rows of the snapshot, by their names in summaries; `before`:
    those of its parent. Writers add to the totals of the parent: one that was wrong there by as much is not the
    snapshot's own fault."""
    of_data, of_deletes = pl.col("content") == 0, pl.col("content") != 0
    data, deletes = step.added_entries.filter(of_data), step.added_entries.filter(of_deletes)
    old_data, old_deletes = step.deleted_entries.filter(of_data), step.deleted_entries.filter(of_deletes)
    counts: dict[str, int | None] = {
        "added-data-files": data.height, "added-records": _rows(data), "deleted-data-files": old_data.height,
        "deleted-records": _rows(old_data), "added-delete-files": deletes.height,
        "removed-delete-files": old_deletes.height, **totals,
    }  # fmt: skip
    version = step.snapshot.snapshot_id
    differences = _differences(step.snapshot, counts)
    earlier = {} if step.parent is None else _differences(step.parent, before)
    wrong = [key for key, difference in differences.items() if difference]
    own = [key for key in wrong if differences[key] != earlier.get(key)]
    for key in own[:1]:
        count = counts[key] or 0
        yield violated(version, f"{key} differs from the manifests", count, count + differences[key])
    if wrong and not own:
        yield unknowable(version, f"{wrong[0]} differs from the manifests as it did in the parent's summary")
    elif not wrong:
        yield proven(version) if differences else unknowable(version, "the summary has no counts")


def _differences(snapshot: SnapshotEntry, counts: Totals) -> dict[str, int]:
    """By how much a summary differs from the counts, where both are known."""
    differences: dict[str, int] = {}
    for key, count in counts.items():
        text = snapshot.summary.get(key)
        summary_count = whole(text, None) if isinstance(text, str) else None
        if summary_count is not None and count is not None:
            differences[key] = summary_count - count
    return differences


def appends_delete_nothing(step: Step, _: Story) -> Iterator[Case]:
    """append-deletes-nothing."""
    if step.snapshot.operation != "append":
        return
    removals = pl.concat([step.deleted_entries.select("path"), step.went.select("path")])
    if step.base and removals.is_empty():  # a file whose manifest is not listed any more leaves no entry
        yield unknowable(step.snapshot.snapshot_id, _PARENT_GONE)
    else:
        yield from _verdict(step, removals.unique(), "files are removed by an append")


def replaces_conserve_rows(step: Step, story: Story) -> Iterator[Case]:
    """replace-conserves-rows: rows of the data files that came against live rows of those that went."""
    if step.snapshot.operation != "replace":
        return
    version = step.snapshot.snapshot_id
    if step.base or step.parent is None:
        yield unknowable(version, _PARENT_GONE if step.base else "the snapshot records no parent")
        return
    came, went = (frame.filter(pl.col("content") == 0) for frame in (step.came, step.went))
    rows_in, rows_out = _rows(came), _rows(went)
    if rows_in is None or rows_out is None:
        yield unknowable(version, "data files do not count their rows")
        return
    deletes = story.live(step, went["path"], "target", before=True)
    vectors = deletes.filter("vector")
    others = deletes.filter(~pl.col("vector") & ~pl.col("target").is_in(vectors["target"].implode()))
    exact, bound = _rows(vectors), _rows(others)
    if exact is None or bound is None:
        yield unknowable(version, "delete files do not count their rows")
        return
    yield _rows_case(version, rows_in, rows_out - exact, bound, story.has_broad_deletes(step))


def _rows_case(version: int, rows_in: int, most: int, bound: int, broad: bool) -> Case:
    """`most`: live rows of the files that went where no row of their other delete files, `bound`, deleted another one;
    `broad`: delete files that name no data file may have deleted any number of them."""
    least = most - bound
    if rows_in == least and not broad:
        return proven(version)
    if rows_in > most or (rows_in < least and not broad):
        expected_rows = most if most == least else f"{least:,} to {most:,}"
        return violated(version, "the number of rows changed", expected_rows, rows_in)
    return unknowable(version, "how many rows the delete files deleted is not recorded")


def _rows(entries: pl.DataFrame) -> int | None:
    """The rows that entries count; None where one does not."""
    records = entries["records"]
    return None if records.null_count() else int(records.cast(pl.Int128).sum())


def _not_live(step: Step, story: Story, entries: pl.DataFrame) -> pl.DataFrame:
    """Those of these entries whose file the parent snapshot did not have live."""
    if entries.is_empty():
        return entries
    return entries.join(story.live(step, entries["file"], before=True), on="file", how="anti")


def _verdict(step: Step, wrong: pl.DataFrame, claim: str) -> Iterator[Case]:
    version = step.snapshot.snapshot_id
    if wrong.is_empty():
        yield proven(version)
    else:
        yield violated(version, claim, 0, wrong["path"].n_unique(), wrong["path"][0])


LAWS: Mapping[str, Callable[[Step, Story], Iterator[Case]]] = {
    "entries-not-resurrected": entries_not_resurrected,
    "delete-names-live-file": deletes_name_live_files,
    "file-added-once": files_added_once,
    "deletes-not-stranded": deletes_not_stranded,
    "one-vector-per-file": one_vector_per_file,
    "sequence-numbers-increase": sequence_numbers_increase,
    "append-deletes-nothing": appends_delete_nothing,
    "replace-conserves-rows": replaces_conserve_rows,
}
"""What judges each law, by its id; the law of summaries needs totals as well."""
