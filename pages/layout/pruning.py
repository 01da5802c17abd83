"""Pruning: what would a filter read, what spares the rest, and which columns tell the files apart?"""

from __future__ import annotations

from lakeview import charts, views
from lakeview.app import downloads, errors, session
from lakeview.app.components import card, dark, grid, nothing, stack
from lakeview.app.pruning import clustering, panels
from lakeview.model.errors import InvalidRequestError

now = session.current()
snapshot = now.snapshot

if snapshot.num_files == 0:
    with card():
        nothing(
            f"{views.units.format_version(now.version)} holds no data files.",
            "A filter has nothing to read, and nothing to be spared.",
            "timeline",
            "See what happened",
        )
else:
    columns = clustering.columns(now)
    downloads.offer("columns", columns)
    with card("What would this filter read?", panels.FILTER_NOTE, key="explain"), errors.shown(here="pruning"):
        where = panels.typed_filter(now)
        if where:
            try:
                found = panels.looked(now, where)
            except InvalidRequestError as error:
                panels.bad_filter(now, error)
            else:
                panels.answer(found)
                conditions = panels.parts(now, where)
                panels.say_unjudged(conditions, where)
                if not conditions.is_empty():
                    panels.parts_table(conditions)
                panels.file_list(found)
    with card("How well columns tell files apart", clustering.NOTE, key="clustering-card"):
        column = clustering.picked_column(columns)
        if column is None:
            nothing("No file tells the range of a column.", "Its writers left statistics out.", "files")
        else:
            stack(
                charts.pruning.clustering_bars(columns, picked=column, dark=dark()),
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
