"""Partitions: is every part there, whole and on time? Sizes side by side, skew, and when each was written."""

from __future__ import annotations

from lakeview import charts, views
from lakeview.ui import beside, downloads, errors, opened, partitions, viewed
from lakeview.ui.components import card, dark, finding_lines, nothing, stack

now = opened.current()
snapshot = now.snapshot

if not snapshot.partition_columns:
    with card():
        nothing(
            f"{partitions.short_name(now)} has no partitions.",
            f"Its {views.counted(snapshot.num_files, 'file')} lie in one place; statistics decide what a filter reads.",
            "files",
            "See its files",
        )
elif snapshot.num_files == 0:
    with card():
        nothing(
            f"{views.format_version(now.version)} has no partition with data.",
            f"It is partitioned by {', '.join(snapshot.partition_columns)}, and holds no files.",
            "timeline",
            "See what happened",
        )
else:
    sizes = views.partition_sizes(snapshot)
    downloads.offer("partitions", sizes)
    here = viewed.layout_findings(now, "partitions")
    if here:
        with card(key="partition-findings"):
            finding_lines(here, here="partitions")
    skew = views.partition_skew(sizes)
    partitions.tiles(now, sizes, skew)
    with card(f"By {', '.join(snapshot.partition_columns)}", partitions.map_note(now, sizes), key="sizes"):
        partitions.picture(now, sizes)
    writes = partitions.writes(now)
    with card("When each was written", "stronger is more rows; on time lies on the diagonal", key="writes"):
        if writes.is_empty():
            nothing(
                "The log no longer tells when.",
                "The commits that wrote these files were cleaned up, or are not shared.",
                "timeline",
            )
        else:
            stack(charts.partition_writes(writes, dark=dark()), key="partition-writes")
    with card(key="one-partition"):
        partitions.history(now, sizes)
    with card("Partitions", partitions.table_note(sizes)):
        partitions.size_table(sizes)

with errors.shown(here="partitions"):
    beside.partition_specs(now)
