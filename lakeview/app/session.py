"""A selection to what the pages draw from: the table, its snapshot, its history, each read when first asked."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

import streamlit as st

from lakeview import views
from lakeview.app import cache, selection, tables
from lakeview.inspection.frames import TableFrames
from lakeview.inspection.inspection import Inspection
from lakeview.model.errors import LakeviewError
from lakeview.model.snapshot import Snapshot
from lakeview.model.table import Table

_STATE = "_opened"
_VISITED = "_seen"


@dataclass(frozen=True, slots=True)
class OpenTable:
    """The table that this run looks at. Reading an attribute may read the log, and raise any LakeviewError.

    `name` as links name it; `version` the version shown, `base` the one compared with; `latest` the newest known,
    `checked` when the store was last asked for it; `ref` the branch or tag shown, and whose newest version
    `latest` is then; None for the default branch; `replacements` how many times another table was found in its place.
    """

    name: str
    address: str
    version: int
    base: int | None
    latest: int
    checked_at: datetime
    ref: str | None = None
    replacements: int = 0

    @property
    def table(self) -> Table:
        """The table itself."""
        return cache.table(self.address)

    @property
    def frames(self) -> TableFrames:
        """The frames that answers are made of."""
        return cache.frames(self.address, self.latest, self.ref)

    @property
    def look(self) -> Inspection:
        """The answers about the version shown."""
        return Inspection(self.frames, self.version)

    @property
    def snapshot(self) -> Snapshot:
        """The table at the version shown; the newest one of a branch has the table's schema as it is now."""
        return self.look.snapshot

    @property
    def base_snapshot(self) -> Snapshot | None:
        """The table at the version compared with, None without a comparison."""
        return None if self.base is None else replace(self, version=self.base).snapshot

    @property
    def compared_version(self) -> int | None:
        """The version that Compare takes as the base: the one chosen, else the one before; None for the first."""
        if self.base is not None:
            return self.base
        return views.timeline.commits.version_before(self.look.timeline(), self.version)

    @property
    def branch(self) -> str | None:
        """The ref whose newest version is shown, None at any other version and where the table has no refs."""
        return self.look.branch

    def check_readable(self) -> None:
        """Raises what keeps the version shown from being read; its log may be there all the same."""
        _ = self.snapshot


def look_at(name: str, version: int | None = None, base: int | None = None, ref: str | None = None) -> OpenTable:
    """Opens a table by its name, at its latest version, or that of a branch or tag, if none is given."""
    address = tables.address(name)
    latest = cache.latest(address, ref)
    version = latest.version if version is None else version
    return OpenTable(name, address, version, base, latest.version, latest.checked_at, ref, latest.replacements)


def link_to(name: str) -> dict[str, str]:
    """Query parameters of a link to a table at its latest version, so that following it is one step; without a version
    where it cannot be opened: the page it leads to says why."""
    try:
        version = look_at(name).version
    except LakeviewError:
        return selection.Selection(name).parameters()
    return selection.Selection(name, version).parameters()


def open_selected(on_wait: Callable[[], object]) -> OpenTable | None:
    """Opens what is asked for and remembers it for the page; None if nothing is selected and nothing is offered.

    A selection without a version is moved to the latest one, so that the URL always says what is shown; it is written
    there when that is known, or when it is known that it cannot be opened. `on_wait` is called before a log is read
    that this session has not seen.
    """
    st.session_state.pop(_STATE, None)
    try:
        choice = selection.current()
        name = choice.table or tables.default()
        if name is None:
            return None
        visits: set[str] = st.session_state.setdefault(_VISITED, set())
        if name not in visits:
            on_wait()
        now = look_at(name, choice.version, choice.base, choice.ref)
    except LakeviewError:
        selection.settle()
        raise
    selection.settle(selection.Selection(name, now.version, choice.base, choice.ref))
    tables.remember(name)
    st.session_state[_STATE] = now
    if name not in visits:
        with suppress(LakeviewError):  # the page asks again, and says what is wrong
            now.check_readable()
        visits.add(name)
    return now


def current() -> OpenTable:
    """What `open_selected` opened in this run."""
    table: OpenTable = st.session_state[_STATE]
    return table
