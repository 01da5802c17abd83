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


def first_rows(
    address: str,
    version: int,
    limit: int,
    seconds: float,
    change_types: tuple[str, ...] = (),
    paths: tuple[str, ...] | None = None,
    skips_missing: bool = False,
) -> Answer:
    """The first rows of a version, `paths`: of these data files alone, `skips_missing`: of those in the store; with
    `change_types` those of CHANGES of this commit. Raises as `runner.run`."""
    try:
        return _first_rows(address, version, limit, seconds, change_types, paths, skips_missing)
    except _PartError as part:
        return part.answer


@cache_values(16)
def _first_rows(
    address: str,
    version: int,
    limit: int,
    seconds: float,
    change_types: tuple[str, ...],
    paths: tuple[str, ...] | None,
    skips_missing: bool,
) -> Answer:
    start = version if change_types else None
    request = Request(
        address,
        version,
        limit,
        runner.MEMORY,
        start=start,
        change_types=change_types,
        paths=paths,
        skips_missing=skips_missing,
    )
    answer = runner.run(request, seconds=seconds, on_wait=_end_with_the_page)
    if answer.counts.get("stopped"):
        raise _PartError(answer)
    return answer


def _end_with_the_page(_progress: runner.Progress) -> None:
    _ = "waiting" in st.session_state  # where Streamlit ends the run of a page that was left
