"""Pipelines: what ran, which rows failed which expectation, and which version came from which."""

from lakeview.views.pipelines.lineage import lineage_edges, lineage_nodes, upstream
from lakeview.views.pipelines.results import expectation_results, run_results, step_results

__all__ = ["expectation_results", "lineage_edges", "lineage_nodes", "run_results", "step_results", "upstream"]
