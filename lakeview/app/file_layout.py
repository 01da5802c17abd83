"""How the files of the version shown lie, cached by version: the overview and the files page draw from it."""

from __future__ import annotations

from lakeview import views
from lakeview.app import cache
from lakeview.app.components import MAX_ROWS
from lakeview.app.memo import cached
from lakeview.app.session import OpenTable


def file_layout(now: OpenTable) -> views.files.sizes.FileLayout:
    """Sizes, figures and partitions of the files of the version shown."""
    return layout_of(now.address, now.version, now.branch)


@cached(32)
def layout_of(address: str, version: int, branch: str | None) -> views.files.sizes.FileLayout:
    """As `file_layout`, by address, version and branch."""
    return views.files.sizes.file_layout(cache.snapshot(address, version, branch), MAX_ROWS)
