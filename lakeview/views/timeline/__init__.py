"""What happened, commit by commit: operations, events, branches, writers, and lifetimes of files."""

from lakeview.views.timeline import (
    branches,
    commits,
    downsampling,
    events,
    lifetimes,
    live_intervals,
    loads,
    readability,
    reasons,
    trend,
    writers,
)

__all__ = [
    "branches",
    "commits",
    "downsampling",
    "events",
    "lifetimes",
    "live_intervals",
    "loads",
    "readability",
    "reasons",
    "trend",
    "writers",
]
