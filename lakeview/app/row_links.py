"""A click on a row of a table to the page it leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import streamlit as st

from lakeview.app.pages import PAGES

_TARGET = "_row_target"


def row_link(
    key: str, rows: pl.DataFrame, page: str, parameters: Callable[[Mapping[str, Any]], Mapping[str, str]]
) -> dict[str, Any]:
    """Options of the table `key` that shows `rows`: a click on one opens a page with the parameters made from it."""

    def open_row() -> None:
        for position in st.session_state[key]["selection"]["rows"]:
            st.session_state[_TARGET] = page, dict(parameters(rows.row(position, named=True)))

    return {"selection_mode": "single-row", "on_select": open_row}


def follow() -> None:
    """Goes to the page that a click opened, if one was clicked."""
    if (target := st.session_state.pop(_TARGET, None)) is not None:
        page, parameters = target
        st.switch_page(PAGES[page].file, query_params=parameters)
