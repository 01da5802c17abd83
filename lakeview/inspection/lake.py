"""A table of a lake to its row of LAKE: its log, and what it says; of one that cannot be read why."""

from collections.abc import Callable
from datetime import datetime

from lakeview import views
from lakeview.inspection.frames import TableFrames
from lakeview.inspection.inspection import Inspection
from lakeview.model.errors import LakeviewError
from lakeview.model.table import Table
from lakeview.views.lake import LakeEntry


def read_entry(entry: LakeEntry, open_table: Callable[[str], Table], now: datetime) -> LakeEntry:
    """The entry with all that LAKE tells of a table, judged at this moment; `open_table`: its address to the table."""
    try:
        look = Inspection(TableFrames(open_table(entry.address), clock=lambda: now))
        return views.lake.lake_entry(entry, look.lake_evidence(), now)
    except LakeviewError as error:
        return views.lake.lake_failure(entry, error)
