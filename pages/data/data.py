"""Data: the rows at a version or a moment, with the price of reading them first; nulls by column as a first look."""

from __future__ import annotations

from lakeview import charts, views
from lakeview.ui import data, downloads, errors, opened, viewed
from lakeview.ui.components import card, dark, nothing, stack

now = opened.current()

with errors.shown(here="data"), card("Preview", data.NOTE, key="preview"):
    request = data.request(now)
    cost = data.cost(now, request)
    if data.read_button(request, cost):
        rows = data.rows(now, request)
        downloads.offer("rows", rows)
        data.show_rows(now, rows, request)
        with errors.shown(here="data"):
            data.show_profile(views.profile(rows))

with errors.shown(here="data"), card("Null share by column", data.nulls_note(now), key="nulls"):
    shares = viewed.null_shares(now)
    downloads.offer("null shares", shares)
    if data.tells_nothing(shares):
        nothing("No null share is known.", "There are no files, or their writer left statistics out.", "files")
    else:
        data.null_table(shares)

with errors.shown(here="data"), card("Null share by column and version", data.TREND_NOTE, key="null-trend"):
    trend = viewed.null_shares_by_version(now)
    if data.tells_nothing(trend):
        nothing("There is no course to show.", "No readable version has statistics.", "timeline")
    else:
        stack(charts.null_heatmap(trend, dark=dark()), key="null-trend")
