"""Partitions: is every part there, whole and on time? Sizes side by side, skew, and when each was written."""

from lakeview import charts, views
from lakeview.app import answers, downloads, errors, metadata_panels, session
from lakeview.app.components import card, dark, finding_lines, first_line, nothing, stack
from lakeview.app.partitions import one_partition, panels

now = session.current()
snapshot = now.snapshot

names = views.partitions.keys.partition_names(snapshot)
if not names:
    with card():
        nothing(
            f"{panels.short_name(now)} is not partitioned.",
            views.first_lines.unpartitioned_line(snapshot.num_files),
            "files",
            "See its files",
        )
elif snapshot.num_files == 0:
    with card():
        nothing(
            f"{views.units.format_version(now.version)} has no partition with data.",
            f"It is partitioned by {', '.join(snapshot.partition_columns)}, and holds no files.",
            "timeline",
            "See what happened",
        )
elif (sizes := views.partitions.sizes.partition_sizes(snapshot))["partition_text"].is_null().all():
    with card():
        nothing(
            f"No file of {views.units.format_version(now.version)} is in a partition.",
            f"It is partitioned by {', '.join(snapshot.partition_columns)} since the last of them was written.",
            "files",
            "See its files",
        )
else:
    downloads.offer("partitions", sizes)
    here = answers.layout_findings(now, "partitions")
    if here:
        with card(key="partition-findings"):
            finding_lines(here, here="partitions")
    else:
        commits = views.timeline.commits.up_to(now.look.timeline(), now.version)
        first_line(views.first_lines.partitions_line(sizes, names, now.look.arrivals(), commits))
    skew = views.partitions.sizes.partition_skew(sizes)
    panels.tiles(now, sizes, skew)
    with card(f"By {', '.join(names)}", panels.map_note(now, sizes), key="sizes"):
        panels.picture(now, sizes)
    writes = panels.writes(now)
    with card(
        "When each was written",
        panels.writes_note(writes, sizes),
        key="writes",
    ):
        if writes.is_empty():
            nothing(
                "Unknown when.",
                "The log no longer has the commits that wrote these files, or they are not shared.",
                "timeline",
            )
        else:
            cells = charts.partitions.partition_writes(writes, keys=names, dark=dark())
            stack(cells, key="partition-writes", on_pick=one_partition.pick)
    with card(key="one-partition"):
        one_partition.history(now, sizes)
    with card("Partitions", panels.table_note(sizes)):
        panels.size_table(sizes, snapshot)

with errors.messages(here="partitions"):
    metadata_panels.partition_specs(now)
