"""A click on a row of a table, or on a mark of a chart, to the page it leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import streamlit as st

from lakeview.app.pages import PAGES

_TARGET = "_row_target"


def row_link(
    key: str, rows: pl.DataFrame, page: str, parameters: Callable[[Mapping[str, Any]], Mapping[str, str] | None]
) -> dict[str, Any]:
    """Options of the table `key` that shows `rows`: a click on one opens a page with the parameters made from it, or
    nothing where they are None."""

    def open_row() -> None:
        for position in st.session_state[key]["selection"]["rows"]:
            _open(page, parameters(rows.row(position, named=True)))

    return {"selection_mode": "single-row", "on_select": open_row}


def pick_link(key: str, page: str, parameters: Callable[[Mapping[str, Any]], Mapping[str, str] | None]) -> None:
    """Opens a page with the parameters made from what was clicked in the chart `key`; None of them opens nothing."""
    for mark in picked_marks(key):
        _open(page, parameters(mark))


def picked_marks(key: str) -> list[Mapping[str, Any]]:
    """What was clicked in the chart `key`: the fields by which each mark is selected."""
    selections = st.session_state[key].get("selection", {}).values()
    return [mark for marks in selections if isinstance(marks, list) for mark in marks if isinstance(mark, Mapping)]


def follow() -> None:
    """Goes to the page that a click opened, if one was clicked."""
    if (target := st.session_state.pop(_TARGET, None)) is not None:
        page, parameters = target
        st.switch_page(PAGES[page].file, query_params=parameters)


def _open(page: str, parameters: Mapping[str, str] | None) -> None:
    if parameters is not None:
        st.session_state[_TARGET] = page, dict(parameters)
