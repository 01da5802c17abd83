"""Overview: is this table all right? The verdict, its figures, its past in one picture, its schema and protocol."""

from lakeview import charts, views
from lakeview.app import commits, downloads, errors, session
from lakeview.app.components import card, dark, grid, link, stack
from lakeview.app.overview import panels
from lakeview.model.errors import LakeviewError

now = session.current()
now.look.list_ahead()
timeline = now.look.timeline()
downloads.offer("timeline", timeline)

failures: list[LakeviewError] = []

with errors.messages(here="overview", failures=failures):
    findings = now.look.findings()
    with card(key="verdict"):
        panels.verdict(findings, timeline, is_latest=now.version == now.latest)
    panels.tiles(now, timeline)

with card(views.overview.span_title(timeline), views.overview.span_note(timeline), key="past"):
    if timeline.is_empty():
        commits.no_commits(now)
    else:
        ribbon = now.look.readability()
        pictures = charts.timeline.timeline_charts(
            timeline, now.look.events(), ribbon, dark=dark(), small=True, version=now.version
        )
        commits.ribbon_key(views.timeline.readability.readability_runs(ribbon))
        stack(pictures, key="past", on_pick=commits.open_picked)
        link("timeline", "All commits")

if not failures:
    halves = grid(400)
    with errors.messages(here="overview"):
        with halves, card("Schema", panels.schema_note(now), stretch=True):
            panels.schema_glance(now)
            link("schema", "All columns, and what changed")
        with halves, card("Protocol and properties", stretch=True):
            panels.identity(now)
