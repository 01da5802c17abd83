"""Rows that a page shows without a press: the first of a version, or of what one commit changed.

They are read in a process of their own as every query is: a file of a few bytes may decode to more than the memory of
the server. What was read is cached, so that a second visit starts no process.
"""

import streamlit as st

from lakeview.app.cache import cache_values
from lakeview.app.query import runner
from lakeview.app.query.answers import Answer
from lakeview.app.query.request import Request


class _PartError(Exception):
    """Carries an answer past the cache, which caches no errors: rows that are a part."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def first_rows(request: Request, seconds: float) -> Answer:
    """The rows of a request; raises as `runner.run`."""
    try:
        return _first_rows(request.address, request, seconds)
    except _PartError as part:
        return part.answer


@cache_values(16)
def _first_rows(_address: str, request: Request, seconds: float) -> Answer:
    answer = runner.run(request, seconds=seconds, on_wait=_end_with_the_page)
    if answer.counts.get("stopped"):
        raise _PartError(answer)
    return answer


def _end_with_the_page(_progress: runner.Progress) -> None:
    _ = "waiting" in st.session_state  # where Streamlit ends the run of a page that was left
