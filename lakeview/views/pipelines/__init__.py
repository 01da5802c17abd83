"""Pipelines: what ran, which rows failed which expectation, and which version came from which."""

from __future__ import annotations

from lakeview.views.pipelines.lineage import lineage_edges, lineage_nodes, newest_nodes, range_edges, upstream
from lakeview.views.pipelines.results import expectation_results, run_results, step_results
from lakeview.views.pipelines.summary import RunOutcome, failed_rows, run_outcomes, run_sentences, version_name

__all__ = [
    "RunOutcome",
    "expectation_results",
    "failed_rows",
    "lineage_edges",
    "lineage_nodes",
    "newest_nodes",
    "range_edges",
    "run_outcomes",
    "run_results",
    "run_sentences",
    "step_results",
    "upstream",
    "version_name",
]
