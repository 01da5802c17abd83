"""A configuration to whether it fits the pipeline and the columns of its results, before anything is published."""

from lakeview.delta.table import DeltaTable
from lakeview.delta.write.evolution import merge_schemas
from lakeview.delta.write.optimize import order_columns
from lakeview.model.data_types import ArrayType, MapType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import choices, first_few
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.spark.pipelines.config import Dataset, PipelineConfig
from lakeview.spark.pipelines.expectations import check_condition, check_rules
from lakeview.spark.pipelines.graph import Graph, same_dataset
from lakeview.spark.pipelines.project import FILE
from lakeview.spark.pipelines.records import commits_after

_COLUMNS = ("keys", "order_by", "partition_by")


def check_results(config: PipelineConfig, graph: Graph) -> None:
    """InvalidRequestError for a table of a sink or view that the pipeline does not have; a view may be of a SQL file,
    which is the server's to read."""
    for name, dataset in config.tables.items():
        if dataset.sink is not None and not graph.sinks.get(dataset.sink):
            raise no_such_sink(name, dataset.sink, graph)
        view = dataset.view
        if view is None or any(same_dataset(view, each) for each in graph.datasets):
            continue
        if any(same_dataset(view, each) for each in graph.temporary_views):
            raise InvalidRequestError(
                f"table {name} of {FILE}: {view} is a temporary view, which keeps no rows that could be published",
                fix="define it with @dp.materialized_view",
                place=name,
                kind="no-such-view",
            )
        if not graph.has_sql:
            raise no_such_view(name, view, graph)


def no_such_sink(name: str, sink: str | None, graph: Graph) -> InvalidRequestError:
    """The error for a table of a sink that there is not."""
    there = choices(sink or "", list(graph.sinks)) if graph.sinks else "call dp.create_sink: the pipeline has none"
    return InvalidRequestError(
        f"table {name} of {FILE}: the pipeline has no sink {sink} of format lakeview",
        fix=there,
        place=name,
        kind="no-such-sink",
    )


def no_such_view(name: str, view: str, graph: Graph) -> InvalidRequestError:
    """The error for a table of a view that there is not."""
    there = f"{choices(view, graph.datasets)}, or a view of a SQL file" if graph.datasets else "define one"
    return InvalidRequestError(
        f"table {name} of {FILE}: the pipeline has no view {view}", fix=there, place=name, kind="no-such-view"
    )


def spelled_as_rows(dataset: Dataset, schema: Schema) -> Dataset:
    """The dataset with its columns as rows of this schema spell them. InvalidRequestError for a column that they do not
    have, RuleError for an expectation that they cannot be checked against."""
    dataset = dataset.spelled_as(schema.names)
    for word in _COLUMNS:
        unknown = next((name for name in getattr(dataset, word) if name not in schema), None)
        if unknown is not None:
            raise InvalidRequestError(
                f"{word}: there is no column {unknown}",
                fix=f"{choices(unknown, schema.names)}; correct {word} in {FILE}",
                place=word,
                kind="unknown-column",
            )
    for name in dataset.order_by:
        if isinstance(schema[name].type, ArrayType | MapType | StructType):
            raise InvalidRequestError(
                f"order_by: column {name} is of type {schema[name].type}, whose values have no order",
                fix=f"order by a column of a plain type, or by a field that the flow makes a column; correct {FILE}",
                place="order_by",
                kind="no-order",
            )
    check_rules(dataset.rules, schema)
    if dataset.delete_when is not None:
        try:
            check_condition(dataset.delete_when, schema)
        except InvalidRequestError as error:
            raise InvalidRequestError(
                f"delete_when: {error.message}", fix=error.fix, place="delete_when", kind=error.kind
            ) from error
    return dataset


def check_order(dataset: Dataset, rows: Schema, target: Snapshot | None) -> None:
    """InvalidRequestError for columns of z_order_by that the published table will not have once these rows are in it,
    or that no curve goes through."""
    schema, partitions = rows, list(dataset.partition_by)
    if target is not None:
        schema, partitions = merge_schemas(target.schema, rows), list(target.partition_columns)
    try:
        order_columns(schema, partitions, dataset.z_order_by)
    except InvalidRequestError as error:
        raise InvalidRequestError(
            f"z_order_by: {error.message}", fix=f"{error.fix}; correct z_order_by in {FILE}", place="z_order_by",
            kind=error.kind,
        ) from error  # fmt: skip


def check_columns(name: str, dataset: Dataset, sink: Snapshot | None, target: Snapshot | None) -> None:
    """InvalidRequestError for what a configuration says of columns, before there are rows: they have to
    be in a sink whose columns stay as they are, else in a published table that gets no new ones."""
    rows = sink or (None if dataset.merge_schema else target)
    if rows is None:
        return
    try:
        check_order(spelled_as_rows(dataset, rows.schema), rows.schema, target)
    except InvalidRequestError as error:
        raise type(error)(
            f"table {name} of {FILE}: {error.message}", fix=error.fix, place=name, kind=error.kind
        ) from error


def check_no_new_columns(dataset: Dataset, rows: Schema, target_schema: Schema, address: str) -> None:
    """InvalidRequestError for rows with columns that the published table lacks, unless they are to be added."""
    own = {name.casefold() for name in target_schema.names}
    new = [name for name in rows.names if name.casefold() not in own]
    if new and not dataset.merge_schema:
        raise InvalidRequestError(
            f"the rows have new columns that {address} does not have: {first_few(new)}",
            fix=f"write merge_schema: true in {FILE}, which adds them to the published table; or drop them in the flow",
            place=address,
            kind="new-columns",
        )


def check_same_rules(quarantine: DeltaTable, digest: str, name: str) -> None:
    """InvalidRequestError where a publication was interrupted whose rows were divided by other rules than those of this
    digest."""
    for commit in commits_after(quarantine, quarantine.latest_version - 1):
        if commit.user_metadata not in (None, digest):
            raise InvalidRequestError(
                f"the expectations of {name} changed after its rows were quarantined, before the others were published",
                fix="run once with the expectations as they were, then change them",
                place=name,
                kind="expectations-changed",
            )
