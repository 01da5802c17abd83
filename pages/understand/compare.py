"""Compare: what changed between two versions: a sentence, schema, settings, files, statistics, and rows on demand."""

from __future__ import annotations

from lakeview import views
from lakeview.app import downloads, errors, session
from lakeview.app.compare import panels
from lakeview.app.components import card, grid, nothing

now = session.current()

with errors.messages(here="compare"):
    now.check_readable()
    pair = panels.current_pair(now)
    if pair is None:
        with card():
            panels.offers(now)
    else:
        with card():
            panels.sentence(now, pair)
        panels.tiles(pair)

        halves = grid(400)
        changes = views.schema.diff.diff_schemas(pair.before.schema, pair.after.schema)
        downloads.offer("schema changes", changes)
        with halves, card("Schema", panels.schema_note(changes, pair), stretch=True):
            if changes.is_empty():
                nothing("The schema is the same in both versions.", "Neither names, types nor comments differ.")
            else:
                panels.schema_table(changes, pair)
        settings = views.compare.versions.settings_difference(pair.before, pair.after)
        downloads.offer("settings", settings)
        with halves, card("Properties and protocol", panels.settings_note(settings), stretch=True):
            panels.settings_table(settings, pair)

        with halves, card("Files by partition", panels.FILES_NOTE, stretch=True), errors.messages(here="compare"):
            partitions = panels.partitions(now, pair)
            downloads.offer("files by partition", partitions)
            panels.partition_picture(partitions)
        with halves, card("Statistics shift", panels.SHIFT_NOTE, stretch=True), errors.messages(here="compare"):
            shifts = panels.shifts(now, pair)
            downloads.offer("statistics shift", shifts)
            panels.shift_picture(shifts, pair)

        with card("Rows"), errors.messages(here="compare"):
            difference = panels.rows(now, pair, panels.cost(now, pair))
            if difference is not None:
                downloads.offer("row difference", difference.rows)
                panels.rows_table(difference, pair)
