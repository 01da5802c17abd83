"""A click on a row of a table, or on a mark of a chart, to the page it leads to; and one step back from there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import polars as pl
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lakeview.app import selection
from lakeview.app.pages import PAGES

_T = TypeVar("_T")
_TARGET, _STEPS, _HERE, _UNSEEN = "_row_target", "_steps_between", "_page_here", "_unseen"


def row_pick(key: str, values: Sequence[_T], act: Callable[[_T], object]) -> dict[str, Any]:
    """Options of the table `key`, each of whose rows stands for a value: a click on one calls `act` with its value."""

    def take_row() -> None:
        for position in st.session_state[key]["selection"]["rows"]:
            if position < len(values):
                act(values[position])

    return {"selection_mode": "single-row", "on_select": take_row}


def row_link(
    key: str, rows: pl.DataFrame, page: str, parameters: Callable[[Mapping[str, Any]], Mapping[str, str] | None]
) -> dict[str, Any]:
    """Options of the table `key` that shows `rows`: a click on one opens a page with the parameters made from it, or
    nothing where they are None."""
    places = range(rows.height)
    return row_pick(key, places, lambda place: _open(page, parameters(rows.row(place, named=True))))


def pick_link(key: str, page: str, parameters: Callable[[Mapping[str, Any]], Mapping[str, str] | None]) -> None:
    """Opens a page with the parameters made from what was clicked in the chart `key`; None of them opens nothing."""
    for mark in picked_marks(key):
        _open(page, parameters(mark))


def pick_state(state: str, field: str) -> Callable[[str], None]:
    """For a chart's `on_pick`: the field of the mark that was clicked becomes the state of the widget `state`."""

    def take_mark(key: str) -> None:
        for mark in picked_marks(key):
            if field in mark:
                st.session_state[state] = mark[field]

    return take_mark


def note_unseen(key: str, texts: Mapping[str, str]) -> None:
    """Notes which texts the chart `key` shows with escapes, and those of the table that they stand for."""
    st.session_state.setdefault(_UNSEEN, {})[key] = texts


def picked_marks(key: str) -> list[Mapping[str, Any]]:
    """What was clicked in the chart `key`: the fields by which each mark is selected, with the table's own texts."""
    selections = st.session_state[key].get("selection", {}).values()
    texts = st.session_state.get(_UNSEEN, {}).get(key, {})
    marks = [mark for marks in selections if isinstance(marks, list) for mark in marks if isinstance(mark, Mapping)]
    return [{field: texts.get(v, v) if isinstance(v, str) else v for field, v in mark.items()} for mark in marks]


def begin(page: str) -> None:
    """To be called once a run, with the page that the URL names: goes to the page that a click opened, if one was.

    Streamlit writes the new parameters on the path of the old page, and then the new path: two steps of the browser's
    history (docs/decisions/016). Where one step back has led between them, the page that was left is drawn with the
    parameters that it had, and Streamlit puts these in place of that step.
    """
    before = st.session_state.get(_STEPS, {}).get((page, _sort_parameters(_url())))
    if before is not None and _is_step_back(page):
        st.switch_page(PAGES[page].file, query_params=before)
    st.session_state[_HERE] = page
    follow()


def _is_step_back(page: str) -> bool:
    """True where the back button asked for this run. Streamlit forgets that where a widget reports its state meanwhile;
    but no link of another page leads to this one with that page's parameters."""
    run = get_script_run_ctx()
    is_asked = run is not None and run.is_history_navigation
    has_more = any(key not in selection.OWN for key in st.query_params)
    return is_asked or (has_more and st.session_state.get(_HERE) != page)


def follow() -> None:
    """Goes to the page that a click opened, if one was clicked."""
    if (target := st.session_state.pop(_TARGET, None)) is not None:
        go(*target)


def go(page: str, parameters: Mapping[str, str]) -> None:
    """Goes to a page; one step back from it leads to the page and the parameters of now."""
    here, url = st.session_state.get(_HERE), _url()
    between = _sort_parameters({key: [text] for key, text in parameters.items()})
    if here != page and between != _sort_parameters(url):
        st.session_state.setdefault(_STEPS, {})[here, between] = url
    st.switch_page(PAGES[page].file, query_params=parameters)


def _url() -> dict[str, list[str]]:
    return {key: st.query_params.get_all(key) for key in st.query_params}


def _sort_parameters(parameters: Mapping[str, list[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(sorted((key, tuple(texts)) for key, texts in parameters.items()))


def _open(page: str, parameters: Mapping[str, str] | None) -> None:
    if parameters is not None:
        st.session_state[_TARGET] = page, dict(parameters)
