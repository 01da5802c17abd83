"""The configuration of a dataset to the merge by which its rows are published."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from lakeview.delta.write.merge import SOURCE, TARGET, Merge, condition_of
from lakeview.model.errors import InvalidRequestError
from lakeview.predicates.qualifiers import qualify
from lakeview.spark.dml.merge import empty_source
from lakeview.spark.pipelines.config import Dataset


def merge_plan(dataset: Dataset, rows: DataFrame) -> Merge:
    """Rows update the row of their key, or are inserted; those of `delete_when` delete it, and are not inserted. With
    `order_by` a row that is older than that of its key changes nothing."""
    plan = Merge(empty_source(rows), condition_of(dataset.keys), _elsewhere)
    current = _not_older(dataset.order_by) if dataset.order_by else None
    if dataset.delete_when is None:
        return plan.when_matched_update(where=current).when_not_matched_insert()
    deletes = qualify(dataset.delete_when, SOURCE)
    plan.when_matched_delete(where=deletes if current is None else f"({deletes}) AND {current}")
    plan.when_matched_update(where=current)
    return plan.when_not_matched_insert(where=f"({deletes}) IS NOT TRUE")


def tombstone_plan(dataset: Dataset, rows: DataFrame) -> Merge:
    """Of each key the tombstone with the largest values of `order_by` stays, and of equal ones the last."""
    plan = Merge(empty_source(rows), condition_of(dataset.keys), _elsewhere)
    return plan.when_matched_update(where=_not_older(dataset.order_by)).when_not_matched_insert()


def _not_older(order_by: Sequence[str]) -> str:
    """That a row of the source is as new as that of the table, or newer."""
    return f"({_is_older(order_by, SOURCE, TARGET)} IS NOT TRUE)"


def _is_older(order_by: Sequence[str], side: str, other: str) -> str:
    """That the row of one side is older than that of the other. Null is older than all values, as in
    `latest_of_keys`."""
    older = "FALSE"
    for name in reversed(order_by):
        column = '"' + name.replace('"', '""') + '"'
        ours, theirs = f"{side}.{column}", f"{other}.{column}"
        before = f"{theirs} > {ours} OR ({ours} IS NULL AND {theirs} IS NOT NULL)"
        same = f"{theirs} = {ours} OR ({ours} IS NULL AND {theirs} IS NULL)"
        older = f"({before} OR (({same}) AND {older}))"
    return older


def _elsewhere(plan: Merge) -> int | None:
    raise InvalidRequestError(f"the merge on {plan.on} is run by Spark", fix="publish the dataset")
