"""Whether the data can be trusted: loads, their trends and anomalies, and the constraints of the table."""

from lakeview.views.quality import (
    anomalies,
    column_loads,
    column_states,
    constraints,
    lateness,
    repeats,
    trends,
    verdicts,
)

__all__ = [
    "anomalies",
    "column_loads",
    "column_states",
    "constraints",
    "lateness",
    "repeats",
    "trends",
    "verdicts",
]
