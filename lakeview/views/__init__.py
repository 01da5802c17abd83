"""Views: snapshots and frames to frames that answer one question each. They know no format and no clock.

A folder for each question, addressed by module: `views.timeline.commits.timeline(...)`.
"""

from lakeview.views import (
    audit,
    compare,
    data,
    engines,
    files,
    first_lines,
    health,
    lake,
    overview,
    partitions,
    pipelines,
    pruning,
    quality,
    retention,
    schema,
    sharing,
    sums,
    thresholds,
    timeline,
    units,
    values,
)
from lakeview.views.schema.diff import diff_schemas

__all__ = [
    "audit",
    "compare",
    "data",
    "diff_schemas",
    "engines",
    "files",
    "first_lines",
    "health",
    "lake",
    "overview",
    "partitions",
    "pipelines",
    "pruning",
    "quality",
    "retention",
    "schema",
    "sharing",
    "sums",
    "thresholds",
    "timeline",
    "units",
    "values",
]
