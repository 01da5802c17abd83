"""Results of a pipeline to versions of published tables: expectations first, then one commit, then maintenance."""

from collections.abc import Callable
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
from lakeview.spark.pipelines.config import Action, Dataset, Mode
from lakeview.spark.pipelines.graph import FORMAT, Graph
from lakeview.spark.pipelines.merges import Tombstones, merge_plan
from lakeview.spark.pipelines.publication import (
    Publication,
    expectation_rows,
    publication_in,
    records_of,
    results_of,
)
from lakeview.spark.pipelines.records import Records, Row, commits_after, transaction_version
from lakeview.spark.pipelines.sources import Places, Source, added_rows, only_grew, restored_at, table_at
from lakeview.spark.types import from_spark
from lakeview.storage.access import NO_OPTIONS, StoreAccess

Step = Callable[[str], None]
"""Called with the name of a step that is done; a test ends the process there."""


@dataclass(frozen=True)
class Publisher:
    """Publishes the datasets of one run below `root`. `graph`: the pipeline as Spark ran it. `clock`: dates records
    and commits of published tables. `access`: what the tables below `root` are opened with; sinks have their own."""

    spark: SparkSession
    pipeline: str
    run_id: str
    root: str
    graph: Graph
    records: Records
    clock: Clock
    step: Step
    namespace: str = ""
    """Catalog and database of views that are named without."""

    user: str | None = None
    """The user name of the commits."""

    access: StoreAccess = NO_OPTIONS
    say: Callable[[str], None] = lambda _: None
    """Called with what a user has to know of a publication."""

    def publish(self, name: str, dataset: Dataset) -> str:
        """Publish what is new of a dataset, and record it; returns `succeeded` or `unchanged`.

        Rows of an earlier run that were quarantined but not published come first, as they were divided then.
        InvalidRequestError for columns that the sink does not have, whether or not it has new rows;
        ConstraintViolationError where an expectation of action fail has failed rows. Nothing is published then.
        """
        self.recover(name)
        sources = self._places(name).sources(dataset, self.graph)
        for source in sources:
            self._publish(name, dataset, source)
            self.step(f"published {name}")
            self.recover(name)
            self.step(f"recorded {name}")
        if sources:
            return "succeeded"
        sink = table_at(self.graph.sinks[dataset.sink or ""], self.graph.access_to(dataset.sink))
        if sink is not None:
            spelled_as_rows(dataset, sink.snapshot().schema)
        self._record(name, "publish", "unchanged")
        return "unchanged"

    def maintain(self, name: str, dataset: Dataset, outcome: str) -> None:
        """Optimize and vacuum a published table and its tombstones as its policy says; a no-op where nothing is to do.

        `outcome`: of `publish`. A publication that was not followed by maintenance gets it by a later run. Tombstones
        expire without a publication, too.
        """
        is_due = dataset.is_maintained and (outcome != "unchanged" or self.records.owes_maintenance(name))
        if not is_due and (dataset.tombstones is None or table_at(self._address(name), self.access) is None):
            return
        start, version = self.clock(), None
        table = delta_table(self._address(name), "maintained", "leave optimize and vacuum out", self.access)
        tombstones = self._tombstones(name, dataset, table)
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
        self._record(name, "maintain", "succeeded", started=start, output=table.address, version=version)

    def recover(self, name: str) -> None:
        """Record the commits of the published table whose records a run that was killed did not write."""
        table = table_at(self._address(name), self.access)
        if table is None:
            return
        mark = f"publish {name} {table.snapshot().id}"
        for commit in commits_after(table, self.records.last_recorded_version(mark)):
            done = publication_in(commit.user_metadata, self.pipeline, name)
            if done is not None:
                rows = records_of(done, table.address, commit.version, commit.timestamp)
                self.records.add(rows, mark, commit.version)

    # -- one publication

    def _publish(self, name: str, dataset: Dataset, source: Source) -> None:
        start = self.clock()
        sink_access = self.graph.access_to(dataset.sink)
        rows = self._rows(name, source, sink_access)
        schema = from_spark(rows.schema)
        dataset = spelled_as_rows(dataset, schema)
        rules = dataset.rules
        there = table_at(self._address(name), self.access)
        check_order(dataset, schema, None if there is None else there.snapshot())
        target = self._target(name, dataset, schema)
        check_no_new_columns(dataset, schema, target.snapshot().schema, target.address)
        stays = None
        if dataset.publish is Mode.APPEND and target.snapshot().num_files:
            stays = self._reader(target.latest_version, self.access).load(target.address)
        marked_rows = expectations.mark_failures(rows, rules, stays).persist()
        try:
            counts = expectations.count(marked_rows, rules)
            reads = [msgspec.structs.replace(r, address=relative_to(r.address, self.root)) for r in source.reads]
            done = Publication(
                self.pipeline, self.run_id, name, start, tuple(reads), counts.rows,
                counts.rows - counts.dropped - counts.quarantined, counts.dropped, counts.quarantined,
                results_of(counts),
            )  # fmt: skip
            if counts.refusals:
                self._refuse(done, target, counts)
            sink = None if source.view else table_at(source.address, sink_access)
            if sink is not None and (restore := restored_at(sink, source)) is not None:
                self.say(
                    f"{name}: version {restore} of the sink restored an older one: rows that are gone from it stay "
                    "published, and flows do not read them again"
                )
            app = (self._places(name).application(sink), source.number)
            if counts.quarantined:
                done = self._set_apart(name, dataset, marked_rows, target, app, done)
                self.step(f"quarantined {name}")
            done = self._write(name, target, dataset, marked_rows, app, done)
        finally:
            marked_rows.unpersist()
        self.say(f"{name}: {done.summary()}")

    def _rows(self, table: str, source: Source, access: StoreAccess) -> DataFrame:
        if source.view:
            name = source.address
            name = f"{self.namespace}.{name}" if self.namespace and "." not in name else name
            if not self.spark.catalog.tableExists(name):
                raise no_such_view(table, source.address, self.graph)
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

    def _target(self, name: str, dataset: Dataset, schema: Schema) -> DeltaTable:
        address = self._address(name)
        table = table_at(address, self.access)
        if table is None:
            table = lv.create_table(
                address, schema.to_arrow(), partition_by=dataset.partition_by, properties=dict(dataset.properties),
                user=self.user, clock=self.clock, storage_options=self.access.options,
            )  # fmt: skip
        return table

    def _refuse(self, done: Publication, target: DeltaTable, counts: expectations.Counts) -> None:
        done = msgspec.structs.replace(done, rows_out=0, rows_dropped=0, rows_quarantined=0)
        self.records.add({"expectations": expectation_rows(done, target.address, None, self.clock())})
        failures = "; ".join(
            f"{o.expectation.name} ({o.expectation.text}): {o.rows_failed:,} rows" for o in counts.refusals
        )
        raise ConstraintViolationError(
            f"{done.dataset} is not published, of {counts.rows:,} rows some fail what has to hold: {failures}",
            fix="correct or delete the rows in the sink, or change the expectation; the rows are still there",
            place=done.dataset,
            kind="expectation",
        )

    def _set_apart(
        self, name: str, dataset: Dataset, marked_rows: DataFrame, target: DeltaTable, app: tuple[str, int],
        done: Publication,
    ) -> Publication:  # fmt: skip
        """Append the quarantined rows to their table, with the names of what they fail and of the run."""
        address, rules = self._places(name).quarantine, dataset.rules
        app = (self._places(name).quarantine_application(app[0], target), app[1])
        digest = msgspec.json.encode([(rule.name, rule.action, rule.text) for rule in rules]).decode()
        there = table_at(address, self.access)
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
            check_same_rules(there, digest, name)
        quarantine = delta_table(address, "written", "move it away: quarantined rows go there", self.access)
        recorded_address = relative_to(quarantine.address, self.root)
        return msgspec.structs.replace(done, quarantine=recorded_address, quarantine_version=quarantine.latest_version)

    def _write(
        self, name: str, target: DeltaTable, dataset: Dataset, marked_rows: DataFrame, app: tuple[str, int],
        done: Publication,
    ) -> Publication:  # fmt: skip
        """Commit the rows that no expectation removes; the publication as its commit records it."""
        good = marked_rows.where(~expectations.is_removed(dataset.rules)).drop(expectations.FAILED)
        if dataset.order_by:
            good = expectations.latest_of_keys(good, dataset.keys, dataset.order_by)
            if dataset.delete_when is not None:
                tombstones = self._tombstones(name, dataset, target)
                good = tombstones.newer(good)
                tombstones.add(good)
                self.step(f"tombstones of {name}")
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
        writer = rows.write.format(FORMAT).mode("append").options(**as_spark_options(self.access, writing=True))
        writer = writer.option("txnAppId", name).option("txnVersion", str(version))
        if self.user is not None:
            writer = writer.option("userName", self.user)
        # the system's time is the writer's own when it commits, which may be long after this
        return writer if self.clock is system_clock else writer.option("commitTimestamp", self.clock().isoformat())

    def _tombstones(self, name: str, dataset: Dataset, table: DeltaTable) -> Tombstones:
        return Tombstones(self.spark, self._places(name).tombstones(table), dataset, self.access, self.user, self.clock)

    def _record(self, name: str, step: str, status: str, **more: object) -> None:
        now = self.clock()
        row: Row = {"run_id": self.run_id, "dataset": name, "step": step, "status": status}
        self.records.add({"runs": [row | {"started": now, "ended": now} | more]})

    def _places(self, name: str) -> Places:
        return Places(self.pipeline, self.root, name, self.access)

    def _address(self, name: str) -> str:
        return self._places(name).address
