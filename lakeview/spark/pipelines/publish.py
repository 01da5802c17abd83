"""Results of a pipeline to versions of published tables: expectations first, then one commit, then maintenance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql import functions as f

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.addresses import relative_to
from lakeview.model.clock import Clock, system_clock
from lakeview.model.errors import ConstraintViolationError
from lakeview.model.schema import Schema, quote_name
from lakeview.spark.addresses import delta_table
from lakeview.spark.dml import changes
from lakeview.spark.dml.merge import merge
from lakeview.spark.option_values import as_spark_options
from lakeview.spark.pipelines import expectations
from lakeview.spark.pipelines.checks import (
    check_no_new_columns,
    check_order,
    check_same_rules,
    no_such_view,
    spelled_as_rows,
)
from lakeview.spark.pipelines.config import Action, Dataset, Expectation, Mode
from lakeview.spark.pipelines.graph import FORMAT, Graph
from lakeview.spark.pipelines.merges import Tombstones, merge_plan
from lakeview.spark.pipelines.publication import (
    Publication,
    expectation_rows,
    publication_in,
    records_of,
)
from lakeview.spark.pipelines.records import Records, Row, commits_after, transaction_version
from lakeview.spark.pipelines.sources import Places, Source, added_rows, only_grew, restored_at, table_at
from lakeview.spark.types import from_spark
from lakeview.storage.access import StoreAccess

Step = Callable[[str], None]
"""Called with the name of a step that is done; a test ends the process there."""


@dataclass(frozen=True)
class Publisher:
    """Publishes a dataset in one run. `graph`: the pipeline as Spark ran it. `clock`: dates records and commits of
    published tables."""

    spark: SparkSession
    run_id: str
    places: Places
    dataset: Dataset
    graph: Graph
    records: Records
    clock: Clock
    step: Step
    namespace: str = ""
    """Catalog and database of views that are named without."""

    user: str | None = None
    """The user name of the commits."""

    say: Callable[[str], None] = lambda _: None
    """Called with what a user has to know of a publication."""

    def publish(self) -> str:
        """Publish what is new of the dataset, and record it; returns `succeeded` or `unchanged`.

        Rows of an earlier run that were quarantined but not published come first, as they were divided then.
        InvalidRequestError for columns that the sink does not have, whether or not it has new rows;
        ConstraintViolationError where an expectation of action fail has failed rows. Nothing is published then.
        """
        self.recover()
        name, dataset = self.places.name, self.dataset
        sources = self.places.sources(dataset, self.graph)
        for source in sources:
            self._publish(source)
            self.step(f"published {name}")
            self.recover()
            self.step(f"recorded {name}")
        if sources:
            return "succeeded"
        sink = table_at(self.graph.sinks[dataset.sink or ""], self.graph.access_to(dataset.sink))
        if sink is not None:
            spelled_as_rows(dataset, sink.snapshot().schema)
        self._record("publish", "unchanged")
        return "unchanged"

    def maintain(self, outcome: str) -> None:
        """Optimize and vacuum a published table and its tombstones as its policy says; a no-op where nothing is to do.

        `outcome`: of `publish`. A publication that was not followed by maintenance gets it by a later run. Tombstones
        expire without a publication, too.
        """
        name, dataset, access = self.places.name, self.dataset, self.places.access
        is_due = dataset.is_maintained and (outcome != "unchanged" or self.records.owes_maintenance(name))
        if not is_due and (dataset.tombstones is None or table_at(self.places.address, access) is None):
            return
        start, version = self.clock(), None
        table = delta_table(self.places.address, "maintained", "leave optimize and vacuum out", access)
        tombstones = self._tombstones(dataset, table)
        if tombstones.prune():
            self.step(f"pruned {name}")
        elif not is_due:
            return
        if dataset.optimize or dataset.z_order_by:
            version = changes.optimize(self.spark, table, None, dataset.z_order_by, self.user)
            tombstones.optimize()
            self.step(f"optimized {name}")
        if dataset.retention is not None:
            table.vacuum(dataset.retention, dry_run=False, user=self.user, clock=self.clock)
            tombstones.vacuum(dataset.retention)
        self._record("maintain", "succeeded", started=start, output=table.address, version=version)

    def recover(self) -> None:
        """Record the commits of the published table whose records a run that was killed did not write."""
        name, table = self.places.name, self._published_table()
        if table is None:
            return
        mark = f"publish {name} {table.snapshot().id}"
        for commit in commits_after(table, self.records.last_recorded_version(mark)):
            done = publication_in(commit.user_metadata, self.places.pipeline, name)
            if done is not None:
                rows = records_of(done, table.address, commit.version, commit.timestamp)
                self.records.add(rows, mark, commit.version)

    # -- one publication

    def _publish(self, source: Source) -> None:
        start = self.clock()
        sink_access = self.graph.access_to(self.dataset.sink)
        rows = self._rows(source, sink_access)
        schema = from_spark(rows.schema)
        dataset = spelled_as_rows(self.dataset, schema)
        rules = dataset.rules
        there = self._published_table()
        check_order(dataset, schema, None if there is None else there.snapshot())
        target = there or self._create_table(dataset, schema)
        check_no_new_columns(dataset, schema, target.snapshot().schema, target.address)
        stays = None
        if dataset.publish is Mode.APPEND and target.snapshot().num_files:
            stays = self._reader(target.latest_version, self.places.access).load(target.address)
        marked_rows = expectations.mark_failures(rows, rules, stays).persist()
        try:
            counts = expectations.count(marked_rows, rules)
            reads = [msgspec.structs.replace(r, address=relative_to(r.address, self.places.root)) for r in source.reads]
            done = Publication(
                self.places.pipeline, self.run_id, self.places.name, start, tuple(reads), counts.rows,
                counts.rows - counts.dropped - counts.quarantined, counts.dropped, counts.quarantined, counts.results,
            )  # fmt: skip
            self._refuse_failures(done, target)
            sink = None if source.view else table_at(source.address, sink_access)
            if sink is not None and (restore := restored_at(sink, source)) is not None:
                self.say(
                    f"{self.places.name}: version {restore} of the sink restored an older one: rows that are gone from "
                    "it stay published, and flows do not read them again"
                )
            app = (self.places.application(sink), source.number)
            if counts.quarantined:
                done = self._set_apart(rules, marked_rows, target, app, done)
                self.step(f"quarantined {self.places.name}")
            done = self._write(target, dataset, marked_rows, app, done)
        finally:
            marked_rows.unpersist()
        self.say(f"{self.places.name}: {done.summary()}")

    def _rows(self, source: Source, access: StoreAccess) -> DataFrame:
        if source.view:
            name = source.address
            name = f"{self.namespace}.{name}" if self.namespace and "." not in name else name
            if not self.spark.catalog.tableExists(name):
                raise no_such_view(self.places.name, source.address, self.graph)
            self.spark.catalog.refreshTable(name)  # the session of the flows has written it
            return self.spark.read.table(name)
        reader = self._reader(source.number, access)
        if source.first is None:
            return reader.load(source.address)
        difference = reader.option("differenceFrom", str(source.first)).load(source.address)
        sink = delta_table(source.address, "published", "write the sink as Delta", access)
        own = sink.snapshot(source.number).schema.names
        return added_rows(difference, own, only_grew=only_grew(sink, source))

    def _reader(self, version: int, access: StoreAccess) -> DataFrameReader:
        reader = self.spark.read.format(FORMAT).options(**as_spark_options(access))
        return reader.option("versionAsOf", str(version))

    def _published_table(self) -> DeltaTable | None:
        return table_at(self.places.address, self.places.access)

    def _create_table(self, dataset: Dataset, schema: Schema) -> DeltaTable:
        return lv.create_table(
            self.places.address, schema.to_arrow(), partition_by=dataset.partition_by,
            properties=dict(dataset.properties), user=self.user, clock=self.clock,
            storage_options=self.places.access.options,
        )  # fmt: skip

    def _refuse_failures(self, done: Publication, target: DeltaTable) -> None:
        """ConstraintViolationError, which is recorded, where rows fail an expectation by which nothing is published."""
        failures = [r for r in done.results if r.action == Action.FAIL and r.rows_failed]
        if not failures:
            return
        done = msgspec.structs.replace(done, rows_out=0, rows_dropped=0, rows_quarantined=0)
        self.records.add({"expectations": expectation_rows(done, target.address, None, self.clock())})
        texts = "; ".join(f"{r.name} ({r.condition}): {r.rows_failed:,} rows" for r in failures)
        raise ConstraintViolationError(
            f"{done.dataset} is not published, of {done.rows_in:,} rows some fail what has to hold: {texts}",
            fix="correct or delete the rows in the sink, or change the expectation; the rows are still there",
            place=done.dataset,
            kind="expectation",
        )

    def _set_apart(
        self, rules: Sequence[Expectation], marked_rows: DataFrame, target: DeltaTable, app: tuple[str, int],
        done: Publication,
    ) -> Publication:  # fmt: skip
        """Append the quarantined rows to their table, with the names of what they fail and of the run."""
        address, access = self.places.quarantine, self.places.access
        app = (self.places.quarantine_application(app[0], target), app[1])
        digest = msgspec.json.encode([(rule.name, rule.action, rule.text) for rule in rules]).decode()
        there = table_at(address, access)
        if transaction_version(there, app[0]) < app[1]:
            names = f.array(*[f.lit(rule.name) for rule in rules])
            texts = f.transform(f.col(quote_name(expectations.FAILED)), lambda number: f.element_at(names, number + 1))
            rows = marked_rows.where(expectations.is_removed(rules, {Action.QUARANTINE}))
            rows = rows.withColumn(expectations.free_name(marked_rows, "_expectations"), texts).withColumn(
                expectations.free_name(marked_rows, "_run_id"), f.lit(self.run_id)
            )
            writer = self._once(rows.drop(expectations.FAILED), app).option("userMetadata", digest)
            writer.option("mergeSchema", "true").save(address)
        else:
            assert there is not None
            check_same_rules(there, digest, done.dataset)
        quarantine = delta_table(address, "written", "move it away: quarantined rows go there", access)
        recorded_address = relative_to(quarantine.address, self.places.root)
        return msgspec.structs.replace(done, quarantine=recorded_address, quarantine_version=quarantine.latest_version)

    def _write(
        self, target: DeltaTable, dataset: Dataset, marked_rows: DataFrame, app: tuple[str, int], done: Publication
    ) -> Publication:
        """Commit the rows that no expectation removes; the publication as its commit records it."""
        good = marked_rows.where(~expectations.is_removed(dataset.rules)).drop(expectations.FAILED)
        if dataset.order_by:
            good = expectations.latest_of_keys(good, dataset.keys, dataset.order_by)
            if dataset.delete_when is not None:
                tombstones = self._tombstones(dataset, target)
                good = tombstones.newer(good)
                tombstones.add(good)
                self.step(f"tombstones of {done.dataset}")
            rows_out = good.count()
            done = msgspec.structs.replace(
                done, rows_out=rows_out, rows_dropped=done.rows_dropped + done.rows_out - rows_out
            )
        if dataset.publish is Mode.MERGE:
            merge(
                self.spark, target, good, merge_plan(dataset, good), merge_schema=dataset.merge_schema, application=app,
                user=self.user, user_metadata=done.user_metadata(), clock=self.clock,
            )  # fmt: skip
            return done
        mode = "overwrite" if dataset.publish is Mode.OVERWRITE else "append"
        writer = self._once(good, app).mode(mode).option("userMetadata", done.user_metadata())
        if dataset.merge_schema:
            writer = writer.option("mergeSchema", "true")
        writer.save(target.address)
        return done

    def _once(self, rows: DataFrame, app: tuple[str, int]) -> DataFrameWriter:
        """A writer of rows that changes nothing where the table has this version of the application."""
        name, version = app
        writer = rows.write.format(FORMAT).mode("append").options(**as_spark_options(self.places.access, writing=True))
        writer = writer.option("txnAppId", name).option("txnVersion", str(version))
        if self.user is not None:
            writer = writer.option("userName", self.user)
        # the system's time is the writer's own when it commits, which may be long after this
        return writer if self.clock is system_clock else writer.option("commitTimestamp", self.clock().isoformat())

    def _tombstones(self, dataset: Dataset, table: DeltaTable) -> Tombstones:
        address, access = self.places.tombstones(table), self.places.access
        return Tombstones(self.spark, address, dataset, access, self.user, self.clock)

    def _record(self, step: str, status: str, **more: object) -> None:
        now = self.clock()
        row: Row = {"run_id": self.run_id, "dataset": self.places.name, "step": step, "status": status}
        self.records.add({"runs": [row | {"started": now, "ended": now} | more]})
