"""One inspection of a table: every answer of the app as a frame, on demand and cached by version."""

from datetime import datetime

from lakeview.inspection.frames import TableFrames
from lakeview.inspection.inspection import Inspection
from lakeview.inspection.pipelines import PipelineInspection, inspect_pipelines
from lakeview.model.clock import Clock, system_clock
from lakeview.model.table import Table

__all__ = ["Inspection", "PipelineInspection", "TableFrames", "inspect", "inspect_pipelines"]


def inspect(
    table: Table,
    version: int | None = None,
    *,
    at: datetime | None = None,
    ref: str | None = None,
    clock: Clock = system_clock,
) -> Inspection:
    """Returns an Inspection of a table at a version, a timestamp or the newest version of a branch or tag.

    Without any it is about the latest version, and follows `table.refresh()`. Reads nothing but what resolves `at` and
    `ref`; each answer reads what it needs. Raises VersionNotFoundError, and InvalidRequestError for a naive `at`.
    """
    pin = table.snapshot(version, at=at, ref=ref).version if (version, at, ref) != (None, None, None) else None
    return Inspection(TableFrames(table, ref=ref, latest=pin if ref is not None else None, clock=clock), pin)
