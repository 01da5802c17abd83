"""Pruning: what would a filter read, what spares the rest, and which columns tell the files apart?"""

from __future__ import annotations

from lakeview import charts, views
from lakeview.errors import InvalidRequestError
from lakeview.ui import clustering, downloads, errors, opened, pruning
from lakeview.ui.components import card, dark, grid, nothing, stack

now = opened.current()
snapshot = now.snapshot

if snapshot.num_files == 0:
    with card():
        nothing(
            f"{views.format_version(now.version)} holds no data files.",
            "A filter has nothing to read, and nothing to be spared.",
            "timeline",
            "See what happened",
        )
else:
    columns = clustering.columns(now)
    downloads.offer("columns", columns)
    with card("What would this filter read?", pruning.FILTER_NOTE, key="explain"), errors.shown(here="pruning"):
        where = pruning.typed_filter(now)
        if where:
            try:
                found = pruning.looked(now, where)
            except InvalidRequestError as error:
                pruning.bad_filter(now, error)
            else:
                pruning.answer(found)
                conditions = pruning.parts(now, where)
                pruning.say_unjudged(conditions, where)
                if not conditions.is_empty():
                    pruning.parts_table(conditions)
                pruning.file_list(found)
    with card("How well columns tell files apart", clustering.NOTE, key="clustering-card"):
        column = clustering.picked_column(columns)
        if column is None:
            nothing("No file tells the range of a column.", "Its writers left statistics out.", "files")
        else:
            stack(
                charts.clustering_bars(columns, picked=column, dark=dark()),
                key="clustering",
                on_pick=clustering.pick_column,
            )
            halves = grid(400)
            with halves, card(stretch=True):
                clustering.depth_picture(now, column)
            with halves, card(stretch=True), errors.shown(here="pruning"):
                clustering.course(now, column)
    with card("Statistics by column", clustering.coverage_note(columns)):
        clustering.column_table(columns)
