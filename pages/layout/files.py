"""Files: is it slow because of how it lies on disk? Sizes in doubling bins, and every file with its statistics."""

from __future__ import annotations

from lakeview import charts, views
from lakeview.ui import beside, downloads, errors, files, opened, physical, viewed
from lakeview.ui.components import card, dark, finding_lines, nothing, stack

now = opened.current()
live = now.snapshot.files

if live.is_empty():
    with card():
        nothing(
            f"{views.format_version(now.version)} holds no data files.",
            "Nothing was written yet, or everything was removed.",
            "timeline",
            "See what happened",
        )
else:
    here = viewed.layout_findings(now, "files")
    if here:
        with card(key="files-findings"):
            finding_lines(here, here="files")
    layout = files.layout(now)
    with card("Sizes, doubling bins", files.sizes_note(layout.bins), key="sizes-card"):
        panels = charts.size_histogram(layout.bins, picked=files.picked_bin(layout.bins), dark=dark())
        stack(panels, key="sizes-picture", on_pick=files.pick_bin)
    files.tiles(layout.facts)
    with card(key="files-card"):
        page = files.listing(now, layout)
    downloads.offer("files on this page", page)
    downloads.offer("all files", live)
    physical.detail(now, page)

with errors.shown(here="files"):
    beside.delete_files(now)
    beside.manifests(now)
