"""Rows that a page shows without a press: the first of a version, or of what one commit changed.

They are read in a process of their own as every query is: a file of a few bytes may decode to more than the memory of
the server. What was read is cached, so that a second visit starts no process.
"""

from __future__ import annotations

import streamlit as st

from lakeview.app.memo import cached
from lakeview.app.query import runner
from lakeview.app.query.worker import Answer, Request


@cached(16)
def first_rows(address: str, version: int, limit: int, seconds: float, change_types: tuple[str, ...] = ()) -> Answer:
    """The first rows of a version; with `change_types` those of CHANGES of this commit. Raises as `runner.run`."""
    start = version if change_types else None
    request = Request(address, version, limit, runner.MEMORY, start=start, change_types=change_types)
    return runner.run(request, seconds=seconds, on_wait=_end_with_the_page)


def _end_with_the_page(_progress: runner.Progress) -> None:
    _ = "waiting" in st.session_state  # where Streamlit ends the run of a page that was left
