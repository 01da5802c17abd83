"""Overview: is this table all right? The verdict, its figures, its past in one picture, its schema and protocol."""

from __future__ import annotations

from lakeview import charts, views
from lakeview.errors import LakeviewError
from lakeview.ui import commits, downloads, errors, opened, overview, viewed
from lakeview.ui.components import card, dark, finding_lines, grid, link, nothing, stack

now = opened.current()
timeline = viewed.timeline(now)
downloads.offer("timeline", timeline)

failed: list[LakeviewError] = []

with errors.shown(here="overview", caught=failed):
    found = viewed.findings(now)
    with card(views.verdict(found), "from the log alone", key="verdict"):
        finding_lines(found, here="overview")
    overview.tiles(now, timeline)

with card(overview.span_title(timeline), overview.span_note(timeline), key="past"):
    if timeline.is_empty():
        nothing("Nothing is told about commits.", "They were cleaned up, or are not shared.")
    else:
        ribbon = viewed.ribbon(now)
        panels = charts.timeline_charts(
            timeline, viewed.events(now), ribbon, dark=dark(), small=True, version=now.version, pick=False
        )
        commits.ribbon_key(views.readability_runs(ribbon))
        stack(panels, key="past")
        link("timeline", "All commits")

if not failed:
    halves = grid(400)
    with errors.shown(here="overview"):
        with halves, card("Schema", overview.schema_note(now), stretch=True):
            overview.schema_glance(now)
            link("schema", "All columns, and what changed")
        with halves, card("Protocol and properties", stretch=True):
            overview.identity(now)
