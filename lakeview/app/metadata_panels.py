"""Iceberg-style metadata, drawn where a table has it: branches, partition specs, manifests, sort orders."""

import polars as pl

from lakeview import charts, views
from lakeview.app import columns, downloads, selection, widths
from lakeview.app.components import BROKEN_LINES, MAX_ROWS, ROW_HEIGHT, card, dark, fold, frame, grid, stack, tile
from lakeview.app.row_links import picked_marks, row_pick
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import write_parameters

_WHY = {
    "first": "the first",
    "commit": "child of the one before",
    "rollback": "rolled back to",
    "moved": "moved to from another branch",
    "again": "set again",
    "expired": "expired since",
}
_TAB = "tab"
_SPEC, _FILE, _RANGES, _ID = 96, 140, 96, 140
"""Pixels of what a spec partitions by, of a file's name, of a manifest's ranges and of an id that are not cut; all but
the last break lines."""
_DEFAULT = {"true": "new files", "false": ""}


def branches(now: OpenTable) -> None:
    """Draws the card of branches and tags, and the log of current versions, if the table has any."""
    refs = views.timeline.branches.branches(now.frames.refs, now.frames.history)
    if refs.is_empty():
        return
    downloads.offer("branches and tags", refs)
    counts = dict(refs["kind"].value_counts().sort("kind").iter_rows())
    note = ", ".join(
        views.units.count_text(n, kind, "branches" if kind == "branch" else None) for kind, n in counts.items()
    )
    with card("Branches and tags", f"{note} · tick a row to see its commits, a dot to see the commit", key="branches"):
        graph = views.timeline.branches.branch_graph(now.frames.history, now.frames.refs)
        stack(charts.lanes.branch_graph_chart(graph, dark=dark()), key="branch-graph", on_pick=_open_commit)
        _branch_table(refs)
        log = now.frames.of_log("snapshot log")
        if not log.is_empty():
            label = f"Log of current versions: {views.units.count_text(log.height, 'entry', 'entries')}"
            with fold(label, "times", icon=":material/swap_vert:"):
                _log_table(log)


def _open_commit(key: str) -> None:
    for mark in picked_marks(key):
        _show_commits(commit=str(mark["version"]))


def _open_branch(branch: tuple[str, bool]) -> None:
    name, is_default = branch
    _show_commits()
    selection.select_ref(None if is_default else name)


def _show_commits(**changes: str) -> None:
    """To the page's first tab."""
    write_parameters(changes, without=(_TAB,))


def _branch_table(branches: pl.DataFrame) -> None:
    table_columns = {
        "name": columns.text("name", least=widths.NAME),
        "kind": columns.text(""),
        "version": columns.version(),
        "committed": columns.date("committed", of="timestamp"),
        "commits": columns.number("commits"),
        "ahead": columns.number("ahead", help="commits that the default branch does not have"),
        "behind": columns.number("behind", help="commits that only the default branch has"),
        "keeps": columns.text("retention", help="where the branch or tag declares its own"),
        "id": columns.text("full id", of="version"),
    }
    if branches["keeps"].null_count() == branches.height:  # its room is the id's
        del table_columns["keeps"]
        table_columns["id"] = columns.text("full id", of="version", least=_ID)
    frame(
        branches,
        table_columns,
        key="branches-table",
        **row_pick("branches-table", branches.select("name", "default").rows(), _open_branch),
    )


def _log_table(log: pl.DataFrame) -> None:
    frame(
        log.tail(MAX_ROWS).reverse(),
        {
            "since": columns.timestamp("current since, UTC", seconds=True),
            "version": columns.version(),
            "why": columns.text("how", words=_WHY),
            "now": columns.text("on the current branch", of="on_current_line", words={"true": "yes", "false": "no"}),
            "id": columns.text("full id", of="version", least=_ID),
        },
        key="snapshot-log",
        unknown="unknown",
    )


def partition_specs(now: OpenTable) -> None:
    """Draws the card of the table's partition specs, if any of them has fields."""
    specs = now.frames.of_log("partition specs")
    if not views.files.manifests.is_partitioned(specs):
        return
    use = views.files.manifests.spec_use(specs, now.frames.manifests(now.version))
    downloads.offer("partition specs", use.drop("fields"))
    specs_text = views.units.count_text(use.height, "partition spec")
    note = f"{specs_text} · files keep the spec they were written with · rows before deletes"
    with card("Partition specs", note, key="partition-specs"):
        frame(
            use,
            {
                "spec": columns.text("spec", of="spec_id"),
                "text": columns.text("partitioned by", least=_SPEC),
                "state": columns.text(""),
                "files": columns.number("files", help="live files"),
                "rows": columns.number("rows", help="rows of the data files, before deletes"),
                "manifests": columns.number("manifests"),
                "since": columns.timestamp("since, UTC", of="since", help="unknown where older metadata is gone"),
                "recorded": columns.text(
                    "recorded in", of="recorded_in", least=_FILE, help="the metadata file that recorded it first"
                ),
            },
            key="partition-specs-table",
            row_height=BROKEN_LINES,  # the name of a metadata file is long
            unknown="unknown" if use.height > 1 else "",
        )


def manifests(now: OpenTable) -> None:
    """Draws the card of the version's manifests, if it has any."""
    rows = now.frames.manifests(now.version)
    if rows.is_empty():
        return
    downloads.offer("manifests", rows)
    facts = views.files.manifests.manifest_facts(rows)
    with card("Manifests", "the files that list this version's data files, from its manifest list", key="manifests"):
        with grid(186):
            tile("Manifests", f"{rows.height:,}", f"{facts.data:,} of data, {facts.deletes:,} of deletes")
            tile("Bytes", views.units.format_bytes(facts.size), f"median {views.units.format_bytes(facts.median_size)}")
            tile(
                "Overlapping",
                "unknown" if facts.overlapping is None else f"{facts.overlapping:,}",
                f"of {rows.height:,}",
                help="Manifests whose partition ranges overlap another's: a filter opens all of them.",
            )
            tile(
                "With removed files",
                f"{facts.with_deleted:,}",
                help="Manifests with entries of files that this version no longer has.",
            )
        _manifest_table(rows)


def _manifest_table(manifests: pl.DataFrame) -> None:
    rows = views.files.manifests.manifest_rows(manifests)
    table_columns = {
        "file": columns.metadata_file("manifest", of="file"),
        "content": columns.text("of"),
        "size": columns.size("size"),
        "files": columns.number("files"),
        "rows": columns.number("rows"),
        "files_deleted": columns.number("removed"),
        "spec_id": columns.text("spec"),
        "partitions": columns.text("ranges", least=_RANGES),
        "overlaps": columns.number("overlap", help="how many other manifests its ranges overlap"),
        "added_version": columns.version("added"),
    }
    if (rows["files_deleted"] == 0).all():
        del table_columns["files_deleted"]
    frame(
        rows,
        table_columns,
        key="manifests-table",
        unknown="unknown",
        row_height=BROKEN_LINES,  # ranges of several fields are long
        height=8 * BROKEN_LINES,
    )


def delete_files(now: OpenTable) -> None:
    """Draws the card of the version's delete files, if it has any."""
    deletes = now.snapshot.delete_files
    if deletes.is_empty():
        return
    downloads.offer("delete files", deletes)
    rows = views.files.manifests.delete_file_rows(deletes)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in rows["kind"].value_counts(sort=True).iter_rows())
    with card("Delete files", kinds, key="delete-files"):
        frame(
            rows,
            {
                "file": columns.metadata_file("file", of="file"),
                "kind": columns.text("kind"),
                "partition": columns.partition(views.partitions.keys.partition_names(now.snapshot)),
                "size": columns.size("size"),
                "deletes": columns.number("deletes", of="records", help="positions, or values, that it lists"),
                "modified": columns.timestamp("added, UTC", of="modified"),
            },
            key="delete-files-table",
            height=10 * ROW_HEIGHT,
        )


def sort_orders(now: OpenTable) -> None:
    """Draws the card of the sort orders that writers are asked to use inside files, if there are any."""
    orders = now.frames.of_log("sort orders")
    if orders.is_empty():
        return
    with card("Sort orders", "of rows inside files, as declared for writers", key="sort-orders"):
        frame(
            orders,
            {
                "order": columns.text("order", of="order_id"),
                "text": columns.text("sorted by"),
                "state": columns.text("", of="default", words=_DEFAULT),
            },
            key="sort-orders-table",
        )
