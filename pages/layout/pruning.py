"""Pruning: which files would a filter read, why are the others skipped, and by which columns are files clustered?"""

from lakeview import charts, views
from lakeview.app import downloads, errors, session
from lakeview.app.components import card, dark, first_line, grid, nothing, stack
from lakeview.app.pruning import clustering, panels
from lakeview.app.row_links import pick_state
from lakeview.model.errors import InvalidRequestError

now = session.current()
snapshot = now.snapshot

if snapshot.num_files == 0:
    with card():
        nothing(
            views.first_lines.empty_line(now.version, "data files"),
            "A filter has nothing to read or skip.",
            "timeline",
            "See what happened",
        )
else:
    columns = now.look.clustering().columns
    note = clustering.sample_note(now)
    downloads.offer("columns", columns)
    first_line(f"{views.first_lines.pruning_line(columns)}{note}")
    with card("What would this filter read?", panels.FILTER_NOTE, key="explain"), errors.messages(here="pruning"):
        where = panels.typed_filter(now)
        if where:
            try:
                plans = panels.plans(now, where)
            except InvalidRequestError as error:
                panels.bad_filter(now, error)
            else:
                panels.answer(plans)
                conditions = panels.parts(now, where)
                panels.warn_unsupported(conditions, where)
                if not conditions.is_empty():
                    panels.parts_table(conditions)
                panels.file_list(plans)
    with card("Clustering by column", f"{clustering.NOTE}{note}", key="clustering-card"):
        column = clustering.picked_column(columns)
        if column is None:
            nothing(f"No file has min and max of a column{note}.", "Its writers left statistics out.", "files")
        else:
            stack(
                charts.pruning.clustering_bars(columns, selection=column, dark=dark()),
                key="clustering",
                on_pick=pick_state(clustering.COLUMN, "column"),
            )
            halves = grid(400)
            with halves, card(stretch=True):
                clustering.depth_picture(now, column)
            with halves, card(stretch=True), errors.messages(here="pruning"):
                clustering.history(now, column)
    with card("Statistics by column", f"{views.pruning.clustering.coverage_note(columns)}{note}"):
        clustering.column_table(columns)
