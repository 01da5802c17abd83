"""Compare: what changed between two versions: a sentence, schema, settings, files, statistics, and rows on demand."""

from lakeview import views
from lakeview.app import downloads, errors, session
from lakeview.app.compare import panels, rows
from lakeview.app.components import card, grid

now = session.current()

with errors.messages(here="compare"):
    now.check_readable()
    pair = panels.current_pair(now)
    if pair is None:
        with card():
            panels.offers(now)
    else:
        partitions = panels.partitions(now, pair)
        # before the card: what cannot be read leaves no empty one
        text = views.compare.summary.sentence(pair.before, pair.after, now.look.timeline(), partitions)
        with card():
            panels.sentence(text, pair)
            if now.base is None:
                panels.offers(now)
        panels.tiles(now, pair)

        changes = views.schema.diff.diff_schemas(pair.before.schema, pair.after.schema)
        settings = views.compare.versions.settings_difference(pair.before, pair.after)
        downloads.offer("schema changes", changes)
        downloads.offer("settings", settings)
        equal = []
        halves = grid(400)
        if changes.is_empty():
            equal.append("the schema")
        else:
            with halves, card("Schema", panels.schema_note(changes, pair), stretch=True):
                panels.schema_table(changes, pair)
        if views.compare.versions.count_changes(settings):
            with halves, card("Properties and protocol", panels.settings_note(settings), stretch=True):
                panels.settings_table(settings, pair)
        else:
            equal.append("properties and protocol")
        with errors.messages(here="compare"):
            downloads.offer("files by partition", partitions)
            if views.compare.versions.has_file_changes(partitions):
                with halves, card("Files by partition", panels.FILES_NOTE, stretch=True):
                    panels.partition_picture(partitions, pair)
            else:
                equal.append("the files")
        with errors.messages(here="compare"):
            if now.look.is_small:
                shifts = panels.shifts(now, pair)
                downloads.offer("statistics shift", shifts)
                if views.compare.statistics.has_shifts(shifts):
                    with halves, card("Statistics shift", panels.SHIFT_NOTE, stretch=True):
                        panels.shift_picture(shifts, pair)
                else:
                    equal.append("null shares to 0.1 %, min and max")
            else:
                panels.shifts_on_demand(now, pair)
        panels.same_in_both(equal)

        with card("Rows", rows.ROWS_NOTE), errors.messages(here="compare"):
            difference = rows.row_difference(now, pair, rows.cost(now, pair))
            if difference is not None:
                downloads.offer("row difference", difference.rows)
                rows.rows_table(difference, now, pair)
