"""Health and retention: what is wrong, what would a clean-up take, and who can still read the table?"""

from __future__ import annotations

from lakeview import views
from lakeview.errors import LakeviewError
from lakeview.ui import downloads, engines, errors, health, opened, upkept, viewed
from lakeview.ui.components import card, nothing

now = opened.current()
failed: list[LakeviewError] = []

with errors.shown(here="health", caught=failed):
    found = upkept.retention(now)
    with card("Clean-up, simulated", health.simulator_note(found), key="simulator"):
        if not health.dated(found):
            nothing("There is nothing to clean up.", "No version is told with its time.", "overview")
        else:
            health.simulator(now, found)
            downloads.offer("clean-up by days kept", views.retention_curve(found))
    told = viewed.findings(now)
    with card("Findings", health.findings_note(told), key="findings"):
        health.findings(told)
    with card(f"Who can read {views.format_version(now.version)}", engines.note(), key="engines-card"):
        downloads.offer("engines", engines.matrix(now))
    with card("Cost of history, by commit", health.history_note(found), key="cost"):
        downloads.offer("cost of history", health.history_cost(found, viewed.timeline(now)))

# the doctor works on tables that do not open
with (
    errors.shown(here="health"),
    card("The log doctor", "what the log breaks or leaves odd, with the section it breaks", key="doctor-card"),
):
    health.doctor(now)
