"""What a table says beside its versions, drawn where there is any: branches, partition specs, manifests, orders."""

from __future__ import annotations

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import answers, downloads
from lakeview.app.components import MAX_ROWS, ROW_HEIGHT, byte_unit, card, fold, frame, grid, tile
from lakeview.app.session import Opened

_WHY = {
    "first": "the first",
    "commit": "grew from the one before",
    "rollback": "rolled back to",
    "moved": "taken from another line",
    "again": "set again",
    "expired": "has expired since",
}


def branches(now: Opened) -> None:
    """A card with every branch and tag, and when which version was the current one; nothing for a table without."""
    told = answers.branches(now)
    if told.is_empty():
        return
    downloads.offer("branches and tags", told)
    counts = dict(told["kind"].value_counts().iter_rows())
    note = ", ".join(
        views.units.counted(n, kind, "branches" if kind == "branch" else None) for kind, n in counts.items()
    )
    with card("Branches and tags", f"{note} · choose one above to see its line", key="branches"):
        _branch_table(told)
        log = now.snapshot_log
        if not log.is_empty():
            label = f"When which version was the current one: {views.units.counted(log.height, 'time')}"
            with fold(label, "times", icon=":material/swap_vert:"):
                _log_table(log)


def _branch_table(told: pl.DataFrame) -> None:
    column = st.column_config
    rows = told.select(
        "name",
        "kind",
        "commits",
        "ahead",
        "behind",
        "keeps",
        version=views.units.version_label("version"),
        id=pl.col("version").cast(pl.String),
        committed=pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M"),
    )
    frame(
        rows,
        {
            "name": column.TextColumn("name", width=160),
            "kind": column.TextColumn("", width=60),
            "version": column.TextColumn("version", width=100),
            "committed": column.TextColumn("committed, UTC", width=130),
            "commits": column.NumberColumn("commits", format="localized", width=70),
            "ahead": column.NumberColumn("ahead", format="localized", width=60, help="commits the default has not"),
            "behind": column.NumberColumn("behind", format="localized", width=60, help="commits only the default has"),
            "keeps": column.TextColumn("keeps", width=220, help="its retention, where it declares one of its own"),
            "id": column.TextColumn("whole id", width=160),
        },
        key="branches-table",
    )


def _log_table(log: pl.DataFrame) -> None:
    column = st.column_config
    rows = log.tail(MAX_ROWS).reverse()
    shown = rows.select(
        since=pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M:%S"),
        version=views.units.version_label("version"),
        why=pl.col("why").replace(_WHY),
        now=pl.when("on_current_line").then(pl.lit("yes")).when(~pl.col("on_current_line")).then(pl.lit("no")),
        id=pl.col("version").cast(pl.String),
    )
    frame(
        shown,
        {
            "since": column.TextColumn("current since, UTC", width=150),
            "version": column.TextColumn("version", width=100),
            "why": column.TextColumn("how", width=180),
            "now": column.TextColumn("on the current line", width=120),
            "id": column.TextColumn("whole id", width=160),
        },
        key="snapshot-log",
        unknown="unknown",
    )


def partition_specs(now: Opened) -> None:
    """A card with how the table is and was partitioned, where that is told; nothing else."""
    specs = now.partition_specs
    if specs.filter(pl.col("fields").list.len() > 0).is_empty():
        return
    used = views.files.manifests.spec_use(specs, now.manifests)
    downloads.offer("partition specs", used.drop("fields"))
    column = st.column_config
    rows = used.select(
        "files",
        "rows",
        "manifests",
        spec=pl.col("spec_id").cast(pl.String),
        text="text",
        state=pl.when("default")
        .then(pl.lit("new files"))
        .when(pl.col("files") == 0)
        .then(pl.lit("unused"))
        .otherwise(pl.lit("")),
        since=pl.col("since").dt.strftime("%Y-%m-%d %H:%M"),
        recorded="recorded_in",
    )
    note = f"{views.units.counted(used.height, 'way', 'ways')} so far · files stay as they were written"
    with card("How it is partitioned", note, key="partition-specs"):
        frame(
            rows,
            {
                "spec": column.TextColumn("spec", width=50),
                "text": column.TextColumn("partitioned by", width=280),
                "state": column.TextColumn("", width=80),
                "files": column.NumberColumn("live files", format="localized", width=80),
                "rows": column.NumberColumn("rows", format="localized", width=90, help="physical, before deletes"),
                "manifests": column.NumberColumn("manifests", format="localized", width=80),
                "since": column.TextColumn("since, UTC", width=130, help="unknown where older metadata is gone"),
                "recorded": column.TextColumn("first recorded in", width=260),
            },
            key="partition-specs-table",
            unknown="unknown" if used.height > 1 else "",
        )


def manifests(now: Opened) -> None:
    """A card with the files that list the version's files, where it has such; nothing else."""
    listed = now.manifests
    if listed.is_empty():
        return
    downloads.offer("manifests", listed)
    facts = views.files.manifests.manifest_facts(listed)
    with card("Manifests", "the files that list this version's files, as its list records them", key="manifests"):
        with grid(186):
            tile("Manifests", f"{listed.height:,}", f"{facts.data:,} of data, {facts.deletes:,} of deletes")
            tile("Bytes", views.units.format_bytes(facts.size), f"median {views.units.format_bytes(facts.median_size)}")
            tile(
                "Overlapping",
                "unknown" if facts.overlapping is None else f"{facts.overlapping:,}",
                f"of {listed.height:,}",
                help="Manifests whose ranges of partition values meet another's: a filter opens all of them.",
            )
            tile(
                "Naming removed files",
                f"{facts.with_deleted:,}",
                help="Manifests that name files which are gone from this version.",
            )
        _manifest_table(listed)


def _manifest_table(listed: pl.DataFrame) -> None:
    column = st.column_config
    unit, scale = byte_unit(listed["size"])
    rows = listed.select(
        "content",
        "partitions",
        "overlaps",
        file=pl.col("path").str.split("/").list.last(),
        size=pl.col("size") / scale,
        files=pl.col("files_added") + pl.col("files_existing"),
        gone="files_deleted",
        rows=pl.col("rows_added") + pl.col("rows_existing"),
        spec=pl.col("spec_id").cast(pl.String),
        added=views.units.version_label("added_version"),
    )
    frame(
        rows,
        {
            "file": column.TextColumn("manifest", width=225),
            "content": column.TextColumn("of", width=60),
            "size": column.NumberColumn(f"size, {unit}", format="%.1f", width=80),
            "files": column.NumberColumn("files", format="localized", width=60),
            "rows": column.NumberColumn("rows", format="localized", width=80),
            "gone": column.NumberColumn("removed", format="localized", width=70),
            "spec": column.TextColumn("spec", width=50),
            "partitions": column.TextColumn("ranges", width=240),
            "overlaps": column.NumberColumn("overlap with", format="localized", width=90),
            "added": column.TextColumn("added by", width=100),
        },
        key="manifests-table",
        unknown="unknown",
        height=12 * ROW_HEIGHT,
    )


def delete_files(now: Opened) -> None:
    """A card with the files that delete rows, apart from those that hold them, where there are any."""
    found = now.snapshot.delete_files
    if found.is_empty():
        return
    downloads.offer("delete files", found)
    column = st.column_config
    unit, scale = byte_unit(found["size"])
    kinds = found["content"] if "content" in found.columns else pl.Series(["deletes"] * found.height)
    rows = found.select(
        file=pl.col("path").str.split("/").list.last(),
        kind=kinds,
        partition="partition_text",
        size=pl.col("size") / scale,
        deletes="records",
        modified=pl.col("modified").dt.strftime("%Y-%m-%d %H:%M"),
    )
    shown = {
        "file": column.TextColumn("file", width=360),
        "kind": column.TextColumn("kind", width=120),
        "partition": column.TextColumn("partition", width=160),
        "size": column.NumberColumn(f"size, {unit}", format="%.1f", width=80),
        "deletes": column.NumberColumn("deletes", format="localized", width=80, help="rows, or values, it names"),
        "modified": column.TextColumn("added, UTC", width=130),
    }
    counts = ", ".join(f"{n:,} {kind}" for kind, n in rows["kind"].value_counts(sort=True).iter_rows())
    with card("Delete files", counts, key="delete-files"):
        frame(rows, shown, key="delete-files-table", height=10 * ROW_HEIGHT)


def sort_orders(now: Opened) -> None:
    """A card with the orders rows are declared to have inside files, where there are any."""
    orders = now.sort_orders
    if orders.is_empty():
        return
    column = st.column_config
    rows = orders.select(
        order=pl.col("order_id").cast(pl.String),
        text="text",
        state=pl.when("default").then(pl.lit("new files")).otherwise(pl.lit("")),
    )
    with card("Sort order", "of rows inside files, as writers are asked to keep it", key="sort-orders"):
        shown = {
            "order": column.TextColumn("order", width=60),
            "text": column.TextColumn("sorted by", width=420),
            "state": column.TextColumn("", width=90),
        }
        frame(rows, shown, key="sort-orders-table")
