"""The configuration of a dataset to the merge by which its rows are published."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakeview.delta.write.merge import SOURCE, Merge, condition_of
from lakeview.model.errors import InvalidRequestError
from lakeview.predicates.qualifiers import qualified
from lakeview.spark.dml.merge import empty_source
from lakeview.spark.pipelines.config import Dataset


def merge_plan(dataset: Dataset, rows: DataFrame) -> Merge:
    """Rows update the row of their key, or are inserted; those of `delete_when` delete it, and are not inserted."""
    plan = Merge(empty_source(rows), condition_of(dataset.keys), _elsewhere)
    if dataset.delete_when is None:
        return plan.when_matched_update().when_not_matched_insert()
    deletes = qualified(dataset.delete_when, SOURCE)
    plan.when_matched_delete(where=deletes).when_matched_update()
    return plan.when_not_matched_insert(where=f"({deletes}) IS NOT TRUE")


def _elsewhere(plan: Merge) -> int | None:
    raise InvalidRequestError(f"the merge on {plan.on} is run by Spark", fix="publish the dataset")
