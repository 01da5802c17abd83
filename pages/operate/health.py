"""Health and retention: what is wrong, what would cleanup remove, and who can still read the table?"""

from lakeview import views
from lakeview.app import downloads, errors, session
from lakeview.app.components import card, nothing
from lakeview.app.health import engines, panels

now = session.current()

with errors.messages(here="health"):
    findings = now.look.findings()
    panels.findings_card(findings, engines.reading_note(now))
    with errors.messages(here="health"):  # what a cleanup removes is unknown where the newest version cannot be read
        retention = now.look.retention_simulation()
        is_dated = panels.has_times(retention)
        with card("Cleanup, simulated", panels.simulator_note(retention) if is_dated else "", key="simulator"):
            if not is_dated:
                nothing("Cleanup cannot be simulated.", "No version has a timestamp.", "overview")
            else:
                panels.simulator(now, retention)
                downloads.offer("cleanup by days retained", views.retention.simulation.retention_curve(retention))
        with card("Cost of history, by commit", panels.history_note(retention), key="cost"):
            downloads.offer("cost of history", panels.history_cost(retention, now.look.timeline()))
    with card(f"Who can read {views.units.format_version(now.version)}", engines.note(), key="engines-card"):
        downloads.offer("engines", engines.matrix(now))

# the doctor works on tables that do not open
with (
    errors.messages(here="health"),
    card(
        "The log doctor",
        "violations of the protocol and oddities in the log, with the section violated",
        key="doctor-card",
    ),
):
    panels.doctor(now)
