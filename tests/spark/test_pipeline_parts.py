"""Pipelines without Spark: configuration, plans of flows, offsets, conditions, and what a commit tells the records."""

from __future__ import annotations

import json
import os
import runpy
import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import polars as pl
import pyarrow as pa
import pyspark.sql.connect.proto as pb2
import pytest
from pyspark.errors import PySparkException
from pyspark.pipelines.output import MaterializedView, Sink, StreamingTable, TemporaryView
from pyspark.pipelines.source_code_location import SourceCodeLocation

import lakeview as lv
from lakeview.inspection import inspect_pipelines
from lakeview.model.errors import CommitConflictError, InvalidRequestError, RuleError, StoreUnavailableError
from lakeview.model.pipelines import TABLES
from lakeview.model.schema import Schema
from lakeview.spark.pipelines import server
from lakeview.spark.pipelines.checks import check_no_new_columns, check_results, spelled_as_rows
from lakeview.spark.pipelines.config import Action, Dataset, Expectation, Mode, parse_config, read_config
from lakeview.spark.pipelines.definitions import Registry, error_of_file, take_error, with_failed_flow
from lakeview.spark.pipelines.expectations import check_rules, failures
from lakeview.spark.pipelines.graph import Answer, FlowNode, Graph, Input, inputs_in
from lakeview.spark.pipelines.lineage import (
    Checkpoints,
    Span,
    are_visible,
    check_publications,
    check_restart,
    flow_lineage,
    flow_mark,
    span,
    table_offsets,
)
from lakeview.spark.pipelines.project import find_spec, write_project
from lakeview.spark.pipelines.publication import Publication, Read, Result, publication_in, records_of
from lakeview.spark.pipelines.records import Records
from lakeview.spark.pipelines.run import Spec, _Run, _with_late_workers, first_lines, lock_project
from lakeview.spark.pipelines.sources import Places, Source, restored_at
from lakeview.spark.row_stream import Offset
from lakeview.spark.stream_snapshots import COMPLETE, SnapshotOffset
from lakeview.storage import open_storage
from lakeview.storage.access import StoreAccess
from tests.builders.object_server import object_server

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


def test_a_project_that_is_written_has_a_configuration_and_an_input(tmp_path: Path) -> None:
    write_project(tmp_path / "shop")
    config, spec = read_config(tmp_path / "shop"), Spec.read(tmp_path / "shop")
    assert config.output == str(tmp_path / "shop" / "lake")
    assert (spec.name, spec.storage) == ("shop", (tmp_path / "shop" / "storage").as_uri())
    orders, revenue = config.tables["orders"], config.tables["revenue"]
    assert (orders.publish, orders.retention) == (Mode.MERGE, timedelta(days=7))
    assert [(e.action, e.text) for e in revenue.rules] == [(Action.FAIL, "UNIQUE (customer)")]
    with pytest.raises(InvalidRequestError, match="there already, and not empty"):
        write_project(tmp_path / "shop")


def test_keys_of_a_merge_are_unique_where_no_order_says_which_row_counts() -> None:
    merged = parse_config("{output: o, tables: {t: {sink: s, publish: merge, keys: [a, b]}}}").tables["t"]
    assert [(e.action, e.unique) for e in merged.rules] == [(Action.FAIL, ("a", "b"))]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("output: o\ntables: {t: [", "no YAML: .*, line 2"),
        ("output: o\noutput: p", "output is there twice"),
        (
            "{output: o, tables: {s: {sink: s}, t: {sink: s, publsh: append}}}",
            "table t: .* unknown field `publsh`\n  fix: perhaps publish is meant",
        ),
        ("{output: o, tables: {t: {sink: s, publish: mrege}}}", "publish is append, merge, overwrite"),
        ("{output: o, tables: {t: {sink: s, expectations: [{name: e, condition: a >}]}}}", "expectation e: .* stopped"),
        ("tables: {}", "missing required field `output`"),
        ("{output: o, table: {}}", "unknown field `table`\n  fix: perhaps tables is meant"),
        (
            "{output: o, tables: {t: {sink: s, expectations: [{name: e, uniqe: [a]}]}}}",
            "table t: .*`uniqe` .*\n  fix: perhaps unique is meant",
        ),
        ("{output: o, tables: {../t: {sink: s}}}", "no name of a table"),
        ("{output: o, tables: {t: {}}}", "neither a sink nor a view"),
        ("{output: o, tables: {t: {view: v}}}", "publish must be overwrite"),
        ("{output: o, tables: {t: {sink: s, publish: merge}}}", "a merge needs keys"),
        ("{output: o, tables: {t: {sink: s, order_by: [a]}}}", "order_by says"),
        ("{output: o, tables: {t: {sink: s, delete_when: a = 1}}}", "delete_when says which rows of a merge"),
        ("{output: o, tables: {t: {sink: s, publish: merge, keys: [a], delete_when: a =}}}", "delete_when: .* stopped"),
        ("{output: o, tables: {t: {sink: s, vacuum: soon}}}", "a retention such as 7d"),
        ("{output: o, tables: {t: {sink: s, tombstones: long}}}", "tombstones is a period such as 30d"),
        ("{output: o, tables: {t: {sink: s, tombstones: 3d}}}", "of a merge with order_by and delete_when"),
        ("{output: o, tables: {t: {sink: s, expectations: [{name: e}]}}}", "needs a condition or unique columns"),
        ("{output: o, tables: {t: {sink: s, expectations: [{name: e, action: ignore, condition: a}]}}}", "action"),
        ("{output: o, tables: {t: {sink: s, publish: merge, keys: [a, a]}}}", "table t: keys names a twice"),
        ("{output: o, tables: {t: {sink: s, partition_by: [a, b, a]}}}", "partition_by names a twice"),
        (
            "{output: o, tables: {t: {sink: s, expectations: [{name: e, unique: [b, b]}]}}}",
            "expectation e names b twice",
        ),
        ("{output: o, tables: {t: {sink: s, properties: {delta.fast: x}}}}", "delta.fast"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        parse_config(text)


def test_a_folder_without_a_project_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="no specification of a Spark pipeline"):
        find_spec(tmp_path)
    with pytest.raises(InvalidRequestError, match=r"lakeview-pipeline\.yml is not there"):
        read_config(tmp_path)
    (tmp_path / "spark-pipeline.yml").write_text("storage: file:///s")
    with pytest.raises(InvalidRequestError, match="no name or no storage"):
        Spec.read(tmp_path)
    (tmp_path / "lakeview-pipeline.yml").write_bytes("output: größe".encode("latin-1"))
    with pytest.raises(InvalidRequestError, match="no UTF-8"):
        read_config(tmp_path)


def test_a_project_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequestError, match=r"file/shop cannot be created: Not a directory"):
        write_project(tmp_path / "file" / "shop")
    with (
        pytest.raises(InvalidRequestError, match=r"lock cannot be written: No such file"),
        lock_project(tmp_path / "gone"),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "message"),
    [("x = 1\nint('a')", "line 2: ValueError: invalid literal"), ("def f(:", "line 1: SyntaxError: invalid syntax")],
)
def test_an_error_of_a_project_names_the_line_of_its_file(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "orders.py").write_text(text)
    with pytest.raises((ValueError, SyntaxError)) as caught:
        runpy.run_path(str(tmp_path / "orders.py"))
    assert error_of_file(caught.value, tmp_path).startswith(f"{tmp_path / 'orders.py'}, {message}")


def test_an_error_of_a_task_is_told_by_what_it_raised() -> None:
    query = "[STREAM_FAILED] Query [id = 1] ended: [PYTHON_EXCEPTION] "
    stack = 'Traceback (most recent call last):\n  File "w.py", line 1, in write\n    do()\n'
    text = f"{query}{stack}ValueError: no\n SQLSTATE: 38000\n=== Streaming Query ===\nplan"
    assert first_lines(text) == f"{query}ValueError: no"
    assert first_lines("[A] what\nwhere\nJVM stacktrace:\nx") == "[A] what\nwhere"


def test_an_error_of_a_flow_names_it_and_what_it_writes_to() -> None:
    def event(message: str) -> dict[str, Any]:
        return {"pipeline_event_result": SimpleNamespace(event=SimpleNamespace(message=message))}

    answer = Answer(graph=Graph({"orders": "/orders"}, flows=(FlowNode("orders", (), (), "load"),)))
    events = [{"pipeline_command_result": None}, event("Flow load is RUNNING."), event("Flow 'load' has FAILED.\nWhy")]
    assert list(with_failed_flow(events, answer)) == events
    assert answer.flow == "flow load to orders"
    list(with_failed_flow([event("Flow 'spark_catalog.default.totals' has FAILED more than 2 times")], answer))
    assert answer.flow == "flow totals"


def test_a_second_run_of_a_project_is_refused_at_once(tmp_path: Path) -> None:
    with lock_project(tmp_path), pytest.raises(InvalidRequestError, match="is running"), lock_project(tmp_path):
        pass
    with lock_project(tmp_path):
        pass


# -- flows


def read(source: str, *paths: str, streams: bool = False, **options: str) -> Any:
    relation = pb2.Relation()
    relation.filter.input.read.is_streaming = streams
    data_source = relation.filter.input.read.data_source
    data_source.format = source
    data_source.paths.extend(paths)
    data_source.options.update(options)
    return relation


def test_what_a_flow_reads_is_in_its_plan_and_a_batch_read_is_pinned() -> None:
    plan = pb2.Relation()
    plan.join.left.CopyFrom(read("lakeview", "/lake/raw", streams=True, startingVersion="4"))
    plan.join.right.join.left.CopyFrom(
        read("lakeview", path="/lake/customers", streams=False, **{"Storage.Region": "r"})
    )
    plan.join.right.join.right.project.input.read.named_table.unparsed_identifier = "cleaned"
    opened = {}

    def latest(address: str, access: StoreAccess) -> int:
        opened[address] = access.options
        return 7

    inputs, datasets = inputs_in(plan, latest)
    assert opened == {"/lake/customers": {"region": "r"}, "/lake/raw": {}}
    assert set(inputs) == {
        Input("/lake/raw", "lakeview", streams=True, starting=4),
        Input("/lake/customers", "lakeview", streams=False, version=7),
    }
    assert datasets == ("cleaned",)
    assert dict(plan.join.right.join.left.filter.input.read.data_source.options)["versionAsOf"] == "7"
    again, _ = inputs_in(plan, lambda *_: 8)
    assert Input("/lake/customers", "lakeview", streams=False, version=7) in again


def test_a_relative_path_is_one_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = read("lakeview", "raw")
    inputs, _ = inputs_in(plan, lambda *_: 0)
    assert inputs[0].address == plan.filter.input.read.data_source.paths[0] == str(tmp_path / "raw")
    assert inputs_in(read("csv", "in/*.csv", streams=True), lambda *_: 0)[0] == (
        Input("in/*.csv", "csv", streams=True),
    )


def test_a_dataset_is_made_of_what_its_own_datasets_are_made_of() -> None:
    raw, names = Input("/raw", "lakeview", streams=True), Input("/names", "csv", streams=False)
    flows = (
        FlowNode("spark_catalog.default.clean", (raw,), ()),
        FlowNode("out", (names,), ("clean",)),
        FlowNode("clean", (), ("out",)),  # a circle ends
    )
    graph = Graph({"out": "/out"}, ("clean",), flows)
    assert set(graph.inputs_of("out")) == {raw, names}
    assert graph.inputs_of("nothing") == ()


def test_a_view_of_our_format_is_refused_and_so_is_a_table_that_the_session_forgets() -> None:
    session: Any = SimpleNamespace(
        client=None,
        conf=SimpleNamespace(get=lambda *_: "in-memory"),
        catalog=SimpleNamespace(currentCatalog=lambda: "spark_catalog"),
    )
    where = SourceCodeLocation("orders.py", 1)
    registry = Registry(session, "graph")
    view = MaterializedView("totals", None, where, {}, None, None, None, "lakeview")
    with pytest.raises(InvalidRequestError, match="totals is a table or materialized view of format lakeview") as error:
        registry.register_output(view)
    assert "create_sink" in str(error.value.fix)
    with pytest.raises(InvalidRequestError, match="this session forgets its tables"):
        registry.register_output(StreamingTable("totals", None, where, {}, None, None, None, None))


def test_commits_to_a_sink_have_the_user_of_the_run_unless_it_names_one() -> None:
    requests: list[Any] = []
    session: Any = SimpleNamespace(client=SimpleNamespace(execute_command=requests.append))
    registry = Registry(session, "graph", "mara")
    for more in ({}, {"username": "tove"}):
        registry.register_output(
            Sink("out", None, SourceCodeLocation("orders.py", 1), "lakeview", {"path": "/out", **more})
        )
    users = [dict(command.pipeline_command.define_output.sink_details.options) for command in requests]
    assert users == [{"path": "/out", "userName": "mara"}, {"path": "/out", "username": "tove"}]


def test_a_sink_that_may_get_columns_by_a_run_is_known() -> None:
    session: Any = SimpleNamespace(client=SimpleNamespace(execute_command=lambda _: None))
    registry, where = Registry(session, "graph"), SourceCodeLocation("orders.py", 1)
    for name, more in {"out": {}, "grows": {"MERGESCHEMA": "true"}, "stays": {"mergeSchema": "false"}}.items():
        registry.register_output(Sink(name, None, where, "lakeview", {"path": "/out", **more}))
    assert registry.graph.evolving_sinks == ("grows",)


def test_a_sink_is_published_with_the_options_of_its_store_and_secrets_stand_in_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = Registry(SimpleNamespace(client=SimpleNamespace(execute_command=lambda _: None)), "graph")  # type: ignore[arg-type]
    options = {"path": "s3://b/out", "storage.Region": "eu", "storage.allow_http": "true"}
    registry.register_output(Sink("out", None, SourceCodeLocation("orders.py", 1), "lakeview", options))
    assert registry.graph.access_to("out").options == {"region": "eu", "allow_http": True}
    assert registry.graph.access_to(None).options == {}
    monkeypatch.setenv("LAKE_SECRET", "s")
    text = "output: s3://b/lake\nstorage_options: {region: eu, secret_access_key: {env: LAKE_SECRET}}"
    assert parse_config(text).access.options == {"region": "eu", "secret_access_key": "s"}
    with pytest.raises(InvalidRequestError, match="secret_access_key for storage_options of lakeview"):
        _ = parse_config(text.replace("{env: LAKE_SECRET}", "s3cr3t")).access


# -- offsets


def offset(version: int, index: int = 0, *, initial: bool = False) -> Offset:
    return Offset("id", version, index, initial)


@pytest.mark.parametrize(
    ("start", "end", "starting", "expected"),
    [
        (None, offset(4), None, Span(None, 3)),
        (None, offset(3, 2, initial=True), None, Span(None, 3)),
        (None, offset(6), 4, Span(4, 5)),
        (offset(4), offset(6), None, Span(4, 5)),
        (offset(4), offset(4, 3), None, Span(4, 4)),
        (offset(3, 2, initial=True), offset(5), None, Span(None, 4)),
        (offset(4), offset(4), None, None),
        (None, offset(4), 4, None),
    ],
)
def test_offsets_are_versions(start: Offset | None, end: Offset, starting: int | None, expected: Span | None) -> None:
    assert span(start, end, starting) == expected


def test_spans_of_a_batch_come_from_the_checkpoint_of_its_query(tmp_path: Path) -> None:
    folder = tmp_path / "_checkpoints" / "orders" / "load" / "0"
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"q"}')
    state = folder / "state/0/_metadata"  # of a flow that drops duplicates
    state.mkdir(parents=True)
    (state / "metadata").write_text('v1\n{"operatorInfo":{"operatorId":0,"operatorName":"dedupe"}}')
    for batch, version in enumerate((3, 5)):
        lines = [
            "v1",
            "{}",
            json.dumps({**offset(version).json(), "first": [version, 0, False]}),
            '{"logOffset":1}',
            "-",
            "7",
        ]
        (folder / "offsets" / str(batch)).write_text("\n".join(lines))
    checkpoints = Checkpoints(str(tmp_path))
    assert checkpoints.spans("q", 0, {}) == {"id": Span(None, 2)}
    assert checkpoints.spans("q", 1, {}) == {"id": Span(3, 4)}
    assert checkpoints.spans("q", 2, {}) is None
    assert checkpoints.spans("other", 0, {}) is None
    assert table_offsets("v1\n{}\n-") == {}
    for batch, snapshot in enumerate((11, 12, 12)):
        there = SnapshotOffset("uuid", snapshot, COMPLETE, initial=False)
        (folder / "offsets" / str(batch)).write_text(
            f"v1\n{{}}\n{json.dumps(there.json() | {'first': [there.version, there.index, there.initial]})}"
        )
    checkpoints = Checkpoints(str(tmp_path))
    assert [checkpoints.spans("q", batch, {}) for batch in range(3)] == [{"uuid": Span(None, None)}] * 2 + [{}]


def test_lineage_of_a_batch_leaves_out_what_it_did_not_read() -> None:
    inputs = [
        Input("/raw", "lakeview", streams=True),
        Input("/idle", "lakeview", streams=True),
        Input("/names", "lakeview", streams=False, version=2),
        Input("/files", "csv", streams=True),
    ]
    ids = {"/raw": "id", "/idle": "other"}
    rows = flow_lineage({"id": Span(3, 4)}, inputs, ids)
    assert [(r["input"], r["input_from"], r["input_version"]) for r in rows] == [
        ("/raw", 3, 4), ("/names", None, 2), ("/files", None, None),
    ]  # fmt: skip
    assert [r["input_version"] for r in flow_lineage(None, inputs, ids)] == [None, None, 2, None]


# -- expectations


ROWS = pa.RecordBatch.from_pydict({"id": [1, 2, None], "Price": [2.0, -1.0, None], "a.b": ["x", None, "y"]})
SCHEMA = Schema.from_arrow(ROWS.schema)


def test_rows_fail_a_condition_that_is_false_or_null() -> None:
    conditions = [(0, "price > 0"), (2, "id IN (1, 2)"), (3, '"a.b" IS NOT NULL'), (4, "TRUE")]
    assert failures(ROWS, conditions, SCHEMA) == [[], [0, 3], [0, 2]]
    assert failures(ROWS.slice(0, 0), conditions, SCHEMA) == []


def test_columns_are_named_without_regard_to_case() -> None:
    names = "publish: merge, keys: [ID], order_by: [price, A.B], partition_by: [PRICE]"
    text = f"{{output: o, tables: {{t: {{sink: s, {names}, expectations: [{{name: e, unique: [Id, x]}}]}}}}}}"
    dataset = parse_config(text).tables["t"].spelled_as(SCHEMA.names)
    assert (dataset.keys, dataset.order_by, dataset.partition_by) == (("id",), ("Price", "a.b"), ("Price",))
    assert [rule.unique for rule in dataset.rules] == [("id", "x")]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("condition: colour = 1", "colour"),
        ("condition: price + 1", "not true or false"),
        ("condition: 'price > (SELECT 1)'", "no part of a condition"),
        ("condition: id LIKE 'a'", "cannot be evaluated"),
        ("unique: [colour]", "colour"),
    ],
)
def test_an_expectation_that_cannot_be_checked_is_refused_before_any_row_is_read(rule: str, problem: str) -> None:
    text = f"{{output: o, tables: {{t: {{sink: s, expectations: [{{name: e, {rule}}}]}}}}}}"
    with pytest.raises(InvalidRequestError, match=problem):
        check_rules(parse_config(text).tables["t"].rules, SCHEMA)


@pytest.mark.parametrize("rule", [Expectation("e", condition="colour = 1"), Expectation("e", unique=("colour",))])
def test_an_expectation_with_a_column_that_rows_do_not_have_is_a_rule_error(rule: Expectation) -> None:
    with pytest.raises(RuleError, match=r"expectation e: .*colour"):
        check_rules([rule], SCHEMA)


def test_an_order_by_values_that_have_none_is_refused() -> None:
    words = "sink: s, publish: merge, keys: [id], order_by: [at]"
    dataset = parse_config(f"{{output: o, tables: {{t: {{{words}}}}}}}").tables["t"]
    schema = Schema.from_arrow(pa.schema({"id": pa.int64(), "at": pa.list_(pa.int64())}))
    with pytest.raises(InvalidRequestError, match="column at is of type array<long>, whose values have no order"):
        spelled_as_rows(dataset, schema)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("publish: merge, keys: [idd]", "keys: there is no column idd\n  fix: perhaps id is meant; correct keys in"),
        ("publish: merge, keys: [id], order_by: [pric]", "order_by: there is no column pric\n  fix: perhaps Price"),
        ("partition_by: [day]", "partition_by: there is no column day"),
        ("publish: merge, keys: [id], delete_when: opp = 'D'", "delete_when: .*opp"),
        ("publish: merge, keys: [id], delete_when: id + 1", "delete_when: id [+] 1 is Int64, not true"),
        ("expectations: [{name: once, unique: [ids]}]", "expectation once: there is no column ids"),
        ("expectations: [{name: dear, condition: prize > 1}]", "expectation dear: .*prize.*\n  fix: .*Price"),
    ],
)
def test_columns_that_rows_do_not_have_are_named_with_the_word_that_names_them(words: str, problem: str) -> None:
    dataset = parse_config(f"{{output: o, tables: {{t: {{sink: s, {words}}}}}}}").tables["t"]
    with pytest.raises(InvalidRequestError, match=problem):
        spelled_as_rows(dataset, SCHEMA)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("sink: s, publish: merge, keys: [idd]", "table t of lakeview-pipeline.yml: keys: there is no column idd"),
        ("sink: s, z_order_by: [day]", "table t of .*: z_order_by: .*day.*\n  fix: .*; correct z_order_by in"),
        ("sink: s, expectations: [{name: e, condition: prize > 1}]", "table t of .*: expectation e: .*prize"),
        ("view: v, publish: overwrite, z_order_by: [day]", "z_order_by: .*day"),
        ("sink: grows, publish: merge, keys: [day]", "keys: there is no column day"),
        ("sink: grows, publish: merge, keys: [day], merge_schema: true", ""),
        ("sink: new, z_order_by: [id], partition_by: [id], merge_schema: true", ""),
        ("sink: s, z_order_by: [ID]", ""),
    ],
)
def test_columns_that_tables_do_not_have_are_named_before_flows_run(tmp_path: Path, words: str, problem: str) -> None:
    sinks = {name: _table(tmp_path / name).address for name in ("s", "grows")} | {"new": str(tmp_path / "new")}
    _table(tmp_path / "lake/t")
    config = parse_config(f"{{output: {tmp_path / 'lake'}, tables: {{t: {{{words}}}}}}}")
    graph = Graph(sinks, ("v",), evolving_sinks=("grows",))
    with pytest.raises(InvalidRequestError, match=problem) if problem else nullcontext():
        check_publications(graph, config, "shop")


def test_new_columns_are_refused_with_the_word_that_adds_them() -> None:
    published = SCHEMA.select(["id", "Price"])
    for word in ("sink: s", "sink: s, publish: merge, keys: [id]"):
        dataset = parse_config(f"{{output: o, tables: {{t: {{{word}}}}}}}").tables["t"]
        with pytest.raises(InvalidRequestError, match=r"/lake/t does not have: a\.b\n  fix: write merge_schema: true"):
            check_no_new_columns(dataset, SCHEMA, published, "/lake/t")
        check_no_new_columns(msgspec.structs.replace(dataset, merge_schema=True), SCHEMA, published, "/lake/t")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("sink: order", "table t of lakeview-pipeline.yml: the pipeline has no sink order .*\n  fix: perhaps orders"),
        ("view: ravenue, publish: overwrite", "no view ravenue\n  fix: perhaps revenue is meant, or a view of a SQL"),
        ("view: clean, publish: overwrite", "clean is a temporary view, .*\n  fix: define it with @dp.materialized"),
    ],
)
def test_a_result_that_the_pipeline_does_not_have_is_named_before_flows_run(table: str, problem: str) -> None:
    graph = Graph({"orders": "/orders"}, ("revenue",), temporary_views=("clean",))
    with pytest.raises(InvalidRequestError, match=problem):
        check_results(parse_config(f"{{output: o, tables: {{t: {{{table}}}}}}}"), graph)


def test_views_of_sql_files_are_known_to_the_server_alone() -> None:
    session: Any = SimpleNamespace(client=SimpleNamespace(execute_command=lambda _: None))
    registry, where = Registry(session, "graph"), SourceCodeLocation("orders.py", 1)
    registry.register_output(TemporaryView("clean", None, where))
    registry.register_output(MaterializedView("db.revenue", None, where, {}, None, None, None, None))
    config = parse_config("{output: o, tables: {r: {view: revenue, publish: overwrite}}}")
    check_results(config, registry.graph)
    config = parse_config("{output: o, tables: {t: {view: totals, publish: overwrite}}}")
    with pytest.raises(InvalidRequestError, match="no view totals"):
        check_results(config, registry.graph)
    registry.register_sql("CREATE MATERIALIZED VIEW totals AS SELECT 1", Path("totals.sql"))
    check_results(config, registry.graph)
    assert (registry.graph.datasets, registry.graph.temporary_views) == (("db.revenue",), ("clean",))


# -- records


DONE = Publication(
    "shop", "r1", "orders", NOON, (Read("/staging/orders", 3, 5), Read("/files")), 10, 7, 1, 2,
    (Result("priced", "quarantine", "price > 0", 2, ('{"price":-1}',)), Result("named", "drop", "name IS NOT NULL", 0)),
    "/q/orders", 4,
)  # fmt: skip


def test_a_commit_tells_all_that_is_recorded_of_it() -> None:
    assert publication_in(DONE.user_metadata(), "shop", "orders") == DONE
    for text, pipeline in ((None, "shop"), ("a note", "shop"), ('{"a":1}', "shop"), (DONE.user_metadata(), "other")):
        assert publication_in(text, pipeline, "orders") is None
    rows = records_of(DONE, "/lake/orders", 8, NOON)
    frames = {name: pl.DataFrame(list(records), schema=TABLES[name]) for name, records in rows.items()}
    assert frames["runs"].select("rows_in", "rows_out", "rows_dropped", "rows_quarantined", "version").rows() == [
        (10, 7, 1, 2, 8)
    ]
    assert frames["expectations"].select("rows_failed", "sample", "quarantine_version").rows() == [
        (2, '[{"price":-1}]', 4), (0, None, None),
    ]  # fmt: skip
    assert frames["lineage"].select("input", "input_from", "input_version", "output", "output_version").rows() == [
        ("/staging/orders", 3, 5, "/lake/orders", 8), ("/files", None, None, "/lake/orders", 8),
        ("/staging/orders", 3, 5, "/q/orders", 4), ("/files", None, None, "/q/orders", 4),
    ]  # fmt: skip


def test_publications_of_a_view_are_numbered_above_those_that_are_there(tmp_path: Path) -> None:
    dataset, graph = Dataset(view="v", publish=Mode.OVERWRITE), Graph({}, ("v",), ())
    places = Places("shop", str(tmp_path), "orders")
    application = places.application(None)
    numbers = [places.sources(dataset, graph)[0].number]
    published = _with_transaction(places.address, application, 3)
    numbers.append(places.sources(dataset, graph)[0].number)
    _with_transaction(places.quarantine, places.quarantine_application(application, published), 7)
    numbers.append(places.sources(dataset, graph)[0].number)
    assert numbers == [0, 4, 8]


def test_rows_are_divided_again_for_a_published_table_that_is_created_again(tmp_path: Path) -> None:
    sink, places = _table(tmp_path / "sink"), Places("shop", str(tmp_path), "orders")
    for _ in range(3):
        sink.append(pl.DataFrame({"id": [1]}))
    dataset, graph, application = Dataset(sink="s"), Graph({"s": sink.address}), places.application(sink)
    published = _with_transaction(places.address, application, 1)
    _with_transaction(places.quarantine, places.quarantine_application(application, published), 2)
    assert [(each.first, each.number) for each in places.sources(dataset, graph)] == [(1, 2), (2, 3)]
    shutil.rmtree(places.address)
    assert [(each.first, each.number) for each in places.sources(dataset, graph)] == [(None, 3)]
    _table(Path(places.address))
    assert [(each.first, each.number) for each in places.sources(dataset, graph)] == [(None, 3)]


def test_a_sink_is_not_published_into_itself(tmp_path: Path) -> None:
    sink = _table(tmp_path / "staging/orders")
    (tmp_path / "lake").symlink_to(tmp_path / "staging")
    graph = Graph({"s": sink.address})
    for mode in Mode:
        with pytest.raises(InvalidRequestError, match="is the sink s itself"):
            Places("shop", str(tmp_path / "lake"), "orders").sources(Dataset(sink="s", publish=mode), graph)


def test_a_pipeline_that_was_renamed_does_not_append_the_rows_again(tmp_path: Path) -> None:
    sink, places = _table(tmp_path / "sink"), Places("shop", str(tmp_path), "orders")
    _with_transaction(places.address, places.application(sink), 0)
    graph, renamed = Graph({"s": sink.address}), Places("store", str(tmp_path), "orders")
    with pytest.raises(InvalidRequestError, match="the pipeline shop has appended the rows of"):
        renamed.sources(Dataset(sink="s"), graph)
    assert len(renamed.sources(Dataset(sink="s", publish=Mode.OVERWRITE), graph)) == 1


def test_a_run_is_refused_whose_checkpoints_and_sinks_are_not_of_each_other(tmp_path: Path) -> None:
    sink, storage = str(tmp_path / "sink"), (tmp_path / "storage").as_uri()
    graph, records = Graph({"orders": sink}), Records(str(tmp_path / "lake"), "shop", lambda: NOON)

    def check() -> None:
        check_restart(graph, Checkpoints(storage), records, storage)

    check()  # the first run
    query, other = (f"00000000-0000-4000-8000-00000000000{n}" for n in range(2))
    table = _with_transaction(sink, query, 0)
    check()  # of another writer, or of a run that was killed
    flow = {"run_id": "r1", "step": "flow", "dataset": "orders", "status": "succeeded", "started": NOON, "output": sink}
    records.add({"runs": [flow]}, flow_mark(table), 1)
    with pytest.raises(InvalidRequestError, match="no checkpoint of the flow that wrote them"):
        check()
    folder = tmp_path / "storage/_checkpoints/orders/new_orders/0"
    folder.mkdir(parents=True)
    (folder / "metadata").write_text(f'{{"id":"{other}"}}')
    check()  # its flow has written nothing yet, that of another pipeline has
    (folder / "commits").mkdir()
    (folder / "commits/0").write_text("v1\n{}")
    with pytest.raises(InvalidRequestError, match="no checkpoint of the flow that wrote them"):
        check()
    (folder / "metadata").write_text(f'{{"id":"{query}"}}')
    check()
    shutil.rmtree(sink)
    with pytest.raises(InvalidRequestError, match="was deleted, and its checkpoint"):
        check()
    shutil.rmtree(tmp_path / "storage")
    check()  # all input is read again
    with pytest.raises(InvalidRequestError, match="the sink s has no path"):
        check_restart(Graph({"s": ""}), Checkpoints(storage), records, storage)


def test_a_sink_of_which_an_older_state_was_restored_is_refused(tmp_path: Path) -> None:
    sink, places = _table(tmp_path / "sink"), Places("shop", str(tmp_path / "lake"), "orders")
    storage, records = str(tmp_path), Records(str(tmp_path / "lake"), "shop", lambda: NOON)
    graph = Graph({"s": sink.address})
    sink.append(pl.DataFrame({"id": [1]}))
    shutil.copytree(sink.address, tmp_path / "backup")
    sink.append(pl.DataFrame({"id": [2]}))
    _with_transaction(places.address, places.application(sink), 2)
    folder = tmp_path / "_checkpoints/s/flow/0"
    folder.mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"00000000-0000-4000-8000-000000000000"}')
    assert places.sources(Dataset(sink="s"), graph) == []
    shutil.rmtree(sink.address)
    (tmp_path / "backup").rename(sink.address)
    with pytest.raises(InvalidRequestError, match="ends at version 1, and its version 2 has been published"):
        places.sources(Dataset(sink="s"), graph)
    # the version that is gone may be of another writer, which the publication alone knows
    check_restart(graph, Checkpoints(storage), records, storage)
    config = parse_config(f"{{output: {tmp_path / 'lake'}, tables: {{orders: {{sink: s}}}}}}")
    check_publications(graph, config, "another pipeline")
    with pytest.raises(InvalidRequestError, match="ends at version 1, and its version 2 has been published"):
        check_publications(graph, config, "shop")
    records.add({}, flow_mark(sink), 2)
    with pytest.raises(InvalidRequestError, match=r"an older state of the sink was restored, and rows"):
        check_restart(graph, Checkpoints(storage), records, storage)


def test_a_restored_sink_that_was_filled_again_is_refused(tmp_path: Path) -> None:
    sink, places = _table(tmp_path / "sink"), Places("shop", str(tmp_path / "lake"), "orders")
    graph, dataset = Graph({"s": sink.address}), Dataset(sink="s")
    shutil.copytree(sink.address, tmp_path / "backup")
    sink.append(pl.DataFrame({"id": [1]}))
    (source,) = places.sources(dataset, graph)
    published = _table(Path(places.address))
    done = Publication("shop", "r1", "orders", NOON, source.reads, 1, 1, 0, 0)
    with published.transaction("WRITE", parameters={}, user_metadata=done.user_metadata()) as txn:
        txn.set_transaction(places.application(sink), source.number)
    published.append(pl.DataFrame({"id": [5]}))
    assert places.sources(dataset, graph) == []
    shutil.rmtree(sink.address)
    (tmp_path / "backup").rename(sink.address)
    filled: Any = lv.open_table(sink.address)
    filled.append(pl.DataFrame({"id": [2]}))
    config = parse_config(f"{{output: {tmp_path / 'lake'}, tables: {{orders: {{sink: s}}}}}}")
    for check in (lambda: places.sources(dataset, graph), lambda: check_publications(graph, config, "shop")):
        with pytest.raises(
            InvalidRequestError, match="has another commit under the number of the version that was last"
        ):
            check()


def test_a_sink_is_not_taken_for_restored_where_another_was_published_to_the_same_version(tmp_path: Path) -> None:
    places = Places("shop", str(tmp_path / "lake"), "orders")
    published, graph = _table(Path(places.address)), Graph()
    for name in ("first", "second"):
        sink = _table(tmp_path / name)
        sink.append(pl.DataFrame({"id": [1]}))
        graph.sinks[name] = sink.address
        (source,) = places.sources(Dataset(sink=name, publish=Mode.OVERWRITE), graph)
        done = Publication("shop", name, "orders", NOON, source.reads, 1, 1, 0, 0)
        with published.transaction("WRITE", parameters={}, user_metadata=done.user_metadata()) as txn:
            txn.set_transaction(places.application(sink), source.number)
    for name in graph.sinks:
        assert places.sources(Dataset(sink=name, publish=Mode.OVERWRITE), graph) == []


def test_a_source_names_the_version_that_restored_its_sink(tmp_path: Path) -> None:
    sink = _table(tmp_path / "sink")
    for number in (1, 2):
        sink.append(pl.DataFrame({"id": [number]}))
    sink.restore(1)
    assert restored_at(sink, Source(sink.address, 3, (), 2)) == 3
    assert restored_at(sink, Source(sink.address, 2, (), 1)) is None
    assert restored_at(sink, Source(sink.address, 3, ())) is None


def test_commits_of_another_pipeline_to_the_same_sink_are_not_recorded_as_own(tmp_path: Path) -> None:
    sink, (own, other) = _table(tmp_path / "sink"), (f"00000000-0000-4000-8000-00000000000{n}" for n in range(2))
    for number, query in enumerate((own, other, "named", own)):
        parameters = {"outputMode": "Append", "queryId": query, "epochId": str(number)}
        with sink.transaction("STREAMING UPDATE", parameters=parameters) as txn:
            txn.append(pl.DataFrame({"id": [number]}))
    graph, config = Graph({"s": sink.address}), parse_config(f"output: {tmp_path / 'lake'}")
    run = _Run(tmp_path, Spec(tmp_path, "shop", str(tmp_path)), config, lambda: NOON, print, None, print)
    folder = tmp_path / "_checkpoints/s/flow/0"
    folder.mkdir(parents=True)
    (folder / "metadata").write_text(f'{{"id":"{own}"}}')
    for _ in range(2):
        run._record_flows(graph)
    assert _scan(tmp_path / "lake", "runs").sort("version")["version"].to_list() == [1, 3, 4]


@pytest.mark.parametrize(
    ("storage", "server", "expected"),
    [
        ("file:///shop/storage", "sc://127.0.0.1:15002/;token=t", True),
        ("file:///shop/storage", "sc://spark.example:15002", False),
        ("s3://shop/storage", "sc://spark.example:15002", True),
    ],
)
def test_checkpoints_in_a_folder_of_another_machine_are_not_seen(storage: str, server: str, expected: bool) -> None:
    assert are_visible(storage, server) == expected


def test_a_sink_that_names_an_application_in_place_of_its_query_is_written_again(tmp_path: Path) -> None:
    table, records = _with_transaction(str(tmp_path / "sink"), "mine", 0), Records(str(tmp_path), "shop", lambda: NOON)
    records.add({}, flow_mark(table), 1)
    graph, folder = Graph({"orders": table.address}), tmp_path / "_checkpoints/orders/new_orders/0"
    with pytest.raises(InvalidRequestError, match="no checkpoint of the flow that wrote them"):
        check_restart(graph, Checkpoints(str(tmp_path)), records, str(tmp_path))
    (folder / "commits").mkdir(parents=True)
    (folder / "commits/0").write_text("v1\n{}")
    (folder / "metadata").write_text('{"id":"00000000-0000-4000-8000-000000000000"}')
    check_restart(graph, Checkpoints(str(tmp_path)), records, str(tmp_path))


def _table(folder: Path) -> Any:
    return lv.create_table(str(folder), pa.schema([("id", pa.int64())]))


def _with_transaction(address: str, application: str, number: int) -> Any:
    table = _table(Path(address))
    with table.transaction("WRITE", parameters={}) as txn:
        txn.set_transaction(application, number)
    return table


def test_records_of_a_version_are_there_once_and_a_run_without_an_end_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = Records(str(tmp_path), "shop", lambda: NOON, "mara")
    assert records.last_recorded_version("publish orders") == -1
    assert records.unfinished_runs() == []
    started = {"run_id": "r1", "step": "run", "status": "started", "started": NOON}
    records.add({"runs": [started]})
    for _ in range(2):
        records.add(records_of(DONE, "/lake/orders", 8, NOON), "publish orders", 8)
    records.add({}, "publish orders", 9)
    frames = {name: pl.concat([_scan(tmp_path, name)]) for name in TABLES}
    assert [frames[name].height for name in ("runs", "expectations", "lineage")] == [2, 2, 4]
    assert all(frames[name].schema == TABLES[name] for name in TABLES)
    assert records.last_recorded_version("publish orders") == 9
    assert [run for run, _ in records.unfinished_runs()] == ["r1"]
    records.add({"runs": [started | {"status": "interrupted", "ended": NOON}]})
    assert records.unfinished_runs() == []
    monkeypatch.setattr("lakeview.spark.pipelines.records._MANY_FILES", 2)
    records.pack()
    history = lv.open_table(str(tmp_path / "_lakeview/runs")).history()
    assert (history["operation"][0], set(history["user"])) == ("OPTIMIZE", {"mara"})
    assert Records(str(tmp_path), "other", lambda: NOON).unfinished_runs() == []


def test_a_step_that_failed_is_recorded_by_its_name(tmp_path: Path) -> None:
    lines: list[str] = []
    problems: list[str] = []
    config = parse_config(f"output: {tmp_path}")
    run = _Run(tmp_path, Spec(tmp_path, "shop", "storage"), config, lambda: NOON, lines.append, None, lines.append)

    def fail() -> str:
        raise InvalidRequestError("no space", fix="free some")

    assert run._try_step("orders", "maintain", fail, problems) is None
    assert problems == ["orders: no space"]
    assert lines == ["orders: not optimized or vacuumed: no space", "orders: fix: free some"]
    assert run._fixes == ["orders: free some"]
    steps = _scan(tmp_path, "runs").select("dataset", "step", "status", "error")
    assert steps.rows() == [("orders", "maintain", "failed", "no space")]


LATE = "org.apache.spark.SparkException: Python worker failed to connect back."


def test_flows_are_repeated_whose_python_worker_began_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def run(*_: object) -> Answer:
        answer = Answer(flow="flow load to orders")
        if texts:
            take_error(answer, PySparkException(texts.pop()))
        return answer

    monkeypatch.setattr(server.Server, "_run", run)
    there: Any = server.Server(cast(Any, None), "sc://localhost")
    texts += [LATE] * (server.ATTEMPTS - 1)
    assert there.run_flows(Path("spec"), 0).error is None
    texts += [LATE] * server.ATTEMPTS
    assert there.run_flows(Path("spec"), 0).error.startswith("flow load to orders: a Python worker did not connect")
    texts += ["[DIVIDE_BY_ZERO] by zero"]
    assert there.run_flows(Path("spec"), 0).error == "flow load to orders: [DIVIDE_BY_ZERO] by zero"


def test_a_step_is_repeated_whose_python_worker_began_too_late() -> None:
    errors = [LATE] * server.ATTEMPTS

    def publish() -> str:
        if errors:
            raise PySparkException(errors.pop())
        return "succeeded"

    with pytest.raises(StoreUnavailableError, match="did not connect"):
        _with_late_workers(publish)
    errors += [LATE] * (server.ATTEMPTS - 1)
    assert _with_late_workers(publish) == "succeeded"


def test_maintenance_is_owed_by_a_publication_that_has_none_after_it(tmp_path: Path) -> None:
    records = Records(str(tmp_path), "shop", lambda: NOON)
    owed = [records.owes_maintenance("orders")]
    steps = ("publish", "succeeded"), ("maintain", "failed"), ("maintain", "succeeded"), ("publish", "unchanged")
    for hour, (step, status) in enumerate((*steps, ("publish", "succeeded"))):
        event = {"dataset": "orders", "step": step, "status": status, "started": NOON + timedelta(hours=hour)}
        records.add({"runs": [event]})
        owed.append(records.owes_maintenance("orders"))
    assert owed == [False, True, True, False, False, True]
    assert not records.owes_maintenance("revenue")


def _scan(root: Path, name: str) -> pl.DataFrame:
    import lakeview as lv

    return lv.open_table(str(root / "_lakeview" / name)).scan().collect()


def test_structs_of_the_child_process_travel_as_json() -> None:
    graph = Graph({"s": "/s"}, ("v",), (FlowNode("s", (Input("/r", "lakeview", streams=True),), ("v",)),))
    assert msgspec.json.decode(msgspec.json.encode(graph), type=Graph) == graph


def test_records_of_tables_below_the_output_stay_right_when_the_folder_is_moved(tmp_path: Path) -> None:
    lake, elsewhere = tmp_path / "lake", "/raw/orders"
    records = Records(str(lake), "shop", lambda: NOON)
    row = {"run_id": "r", "dataset": "orders", "step": "publish", "output": str(lake / "orders"), "output_version": 1}
    records.add({"lineage": [row | {"input": str(lake / "staged/orders")}, row | {"input": elsewhere}]})
    lake.rename(tmp_path / "moved")
    moved = inspect_pipelines(str(tmp_path / "moved"), lv.open_table)
    inputs = moved.upstream(str(tmp_path / "moved/orders"), 1)
    assert set(inputs["input"]) == {str(tmp_path / "moved/staged/orders"), elsewhere}


def test_records_whose_tables_were_deleted_and_stay_claimed_say_why_none_is_made(tmp_path: Path) -> None:
    with object_server() as store:
        store.ignores_conditions = True
        options = store.options("s3") | {"commit_coordinator": f"sqlite:///{tmp_path}/commits.db"}
        lake = store.bucket()
        records = Records(lake, "shop", lambda: NOON, access=StoreAccess(options))
        started = {"runs": [{"run_id": "r", "step": "run", "status": "started", "started": NOON}]}
        records.add(started)
        storage = open_storage(f"{lake}/_lakeview/runs", options=options)
        for name in storage.walk()["name"]:
            storage.delete(name)
        with pytest.raises(CommitConflictError, match="stay claimed in the commit coordinator"):
            records.add(started)


def test_the_token_of_a_local_server_is_shown_to_its_jvm_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other clients of Spark Connect would show it to any server."""
    monkeypatch.delenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", raising=False)
    texts: list[str] = []

    def start(*_: object, environment: Mapping[str, str], **__: object) -> None:
        texts.extend(environment)
        assert not environment.keys() & os.environ.keys()

    monkeypatch.setattr(server, "session", start)
    monkeypatch.setattr(server, "url", lambda _: "")
    server.local_server("test", "file:///warehouse", {})
    assert texts == ["SPARK_CONNECT_AUTHENTICATE_TOKEN"]
