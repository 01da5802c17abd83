"""Compare: what changed between two versions: a sentence, schema, settings, files, statistics, and rows at a price."""

from __future__ import annotations

from lakeview import views
from lakeview.ui import compare, downloads, errors, opened
from lakeview.ui.components import card, grid, nothing

now = opened.current()

with errors.shown(here="compare"):
    now.check_readable()
    pair = compare.chosen(now)
    if pair is None:
        with card():
            compare.offers(now)
    else:
        with card():
            compare.sentence(now, pair)
        compare.tiles(pair)

        halves = grid(400)
        changes = views.diff_schemas(pair.before.schema, pair.after.schema)
        downloads.offer("schema changes", changes)
        with halves, card("Schema", compare.schema_note(changes, pair), stretch=True):
            if changes.is_empty():
                nothing("The schema is the same in both versions.", "Neither names, types nor comments differ.")
            else:
                compare.schema_table(changes, pair)
        settings = views.settings_difference(pair.before, pair.after)
        downloads.offer("settings", settings)
        with halves, card("Properties and protocol", compare.settings_note(settings), stretch=True):
            compare.settings_table(settings, pair)

        with halves, card("Files by partition", compare.FILES_NOTE, stretch=True), errors.shown(here="compare"):
            partitions = compare.partitions(now, pair)
            downloads.offer("files by partition", partitions)
            compare.partition_picture(partitions)
        with halves, card("Statistics shift", compare.SHIFT_NOTE, stretch=True), errors.shown(here="compare"):
            shifts = compare.shifts(now, pair)
            downloads.offer("statistics shift", shifts)
            compare.shift_picture(shifts, pair)

        with card("Rows"), errors.shown(here="compare"):
            difference = compare.rows(now, pair, compare.price(now, pair))
            if difference is not None:
                downloads.offer("row difference", difference.rows)
                compare.rows_table(difference, pair)
