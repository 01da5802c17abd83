"""Pipelines: what ran, which rows failed which expectation, and which version came from which."""

from lakeview.views.pipelines.lineage import lineage_edges as lineage_edges
from lakeview.views.pipelines.lineage import lineage_nodes as lineage_nodes
from lakeview.views.pipelines.lineage import newest_nodes as newest_nodes
from lakeview.views.pipelines.lineage import range_edges as range_edges
from lakeview.views.pipelines.lineage import upstream as upstream
from lakeview.views.pipelines.results import expectation_results as expectation_results
from lakeview.views.pipelines.results import run_results as run_results
from lakeview.views.pipelines.results import step_results as step_results
from lakeview.views.pipelines.summary import RunOutcome as RunOutcome
from lakeview.views.pipelines.summary import failed_rows as failed_rows
from lakeview.views.pipelines.summary import run_outcomes as run_outcomes
from lakeview.views.pipelines.summary import run_sentences as run_sentences
from lakeview.views.pipelines.summary import version_name as version_name
