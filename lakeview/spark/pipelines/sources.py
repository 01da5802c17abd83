"""What of a pipeline's results is new: the sources of a dataset's next publications, and the places these go to."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lakeview.delta.table import DeltaTable
from lakeview.model.change_columns import CHANGE_TYPE
from lakeview.model.errors import InvalidRequestError, VersionNotFoundError
from lakeview.model.pipelines import FOLDER
from lakeview.model.schema import quote_name
from lakeview.spark.addresses import find_delta_table
from lakeview.spark.pipelines.checks import no_such_sink
from lakeview.spark.pipelines.config import Dataset, Mode
from lakeview.spark.pipelines.graph import Graph
from lakeview.spark.pipelines.publication import Read, publication_in
from lakeview.spark.pipelines.records import commits_after, transaction_version
from lakeview.storage.access import NO_OPTIONS, StoreAccess

_PIPELINE = "lakeview pipeline "
_RECENT = 100
"""So many commits of a published table are looked through for its last publication: maintenance may follow it."""


@dataclass(frozen=True)
class Source:
    """What of a result is published: of a sink the rows of version `last` that version `first` has not (all without
    `first`), or all rows of a view. `number`: what the published table records as the version of the application."""

    address: str
    number: int
    reads: tuple[Read, ...]
    first: int | None = None
    view: bool = False


@dataclass(frozen=True)
class Places:
    """Where a pipeline publishes the dataset `name` below `root`, whose tables are opened with `access`."""

    pipeline: str
    root: str
    name: str
    access: StoreAccess = NO_OPTIONS

    @property
    def address(self) -> str:
        """The published table."""
        return f"{self.root.rstrip('/')}/{self.name}"

    @property
    def quarantine(self) -> str:
        """The table of the rows that were quarantined."""
        return f"{self.root.rstrip('/')}/{FOLDER}/quarantine/{self.name}"

    def tombstones(self, target: DeltaTable) -> str:
        """The table of the deletions that were merged into a published table: one that is created again begins
        without."""
        return f"{self.root.rstrip('/')}/{FOLDER}/tombstones/{self.name}/{target.snapshot().id}"

    def application(self, sink: DeltaTable | None) -> str:
        """The application id of publications from a sink, or from a view without one."""
        return self._applications + ("the view" if sink is None else str(sink.snapshot().id))

    def quarantine_application(self, application: str, target: DeltaTable) -> str:
        """The application id in the quarantine. A published table that is created again gets all rows, which are
        divided again: the expectations may have changed, and unique keys be those of other rows."""
        return f"{application} to {target.snapshot().id}"

    @property
    def _applications(self) -> str:
        return f"{_PIPELINE}{self.pipeline}: {self.name} from "

    def sources(self, dataset: Dataset, graph: Graph) -> list[Source]:
        """The publications that are due, oldest first; rows of an earlier run that were quarantined but not published
        are one of their own. InvalidRequestError where the pipeline has no such sink, or it is another table now."""
        if dataset.view is not None:
            reads = tuple(Read(each.address, None, each.version) for each in graph.inputs_of(dataset.view))
            last = self._last_number(self.application(None), table_at(self.address, self.access))
            return [Source(dataset.view, last + 1, reads, view=True)]
        path = graph.sinks.get(dataset.sink or "")
        if not path:
            raise no_such_sink(self.name, dataset.sink, graph)
        sink = table_at(path, graph.access_to(dataset.sink))
        if sink is None:
            return []
        application, last = self.application(sink), sink.latest_version
        target = table_at(self.address, self.access)
        after = transaction_version(target, application)
        half = self._last_quarantined(application, target)
        self._check_not_itself(dataset, sink, target)
        self._check_same_sink(dataset, application, sink, after)
        self._check_not_older(dataset, sink, target, max(after, half))
        ends = [end for end in sorted({half, last}) if after < end <= last]
        if dataset.publish is Mode.OVERWRITE:
            ends = [end for end in (last,) if after < end]
        sources = []
        for end in ends:
            first = None if after < 0 or dataset.publish is Mode.OVERWRITE else after
            reads = (Read(sink.address, None if first is None else first + 1, end, _digest(sink, end)),)
            sources.append(Source(sink.address, end, reads, first))
            after = end
        return sources

    def _last_number(self, application: str, target: DeltaTable | None) -> int:
        """The number of the last publication whose rows are in the published table, or in the quarantine."""
        return max(transaction_version(target, application), self._last_quarantined(application, target))

    def _last_quarantined(self, application: str, target: DeltaTable | None) -> int:
        """The number of the last publication whose rows are in the quarantine; -1 without any."""
        if target is None:
            return -1
        quarantine = table_at(self.quarantine, self.access)
        return transaction_version(quarantine, self.quarantine_application(application, target))

    def _check_not_itself(self, dataset: Dataset, sink: DeltaTable, target: DeltaTable | None) -> None:
        """Each run would append the rows of a sink to the sink."""
        if target is not None and target.snapshot().id == sink.snapshot().id:
            raise InvalidRequestError(
                f"{target.address} is the sink {dataset.sink} itself, or a copy of it",
                fix="name another folder as output: the published table is a table of its own",
                place=self.name,
                kind="sink-as-output",
            )

    def check_sink(self, dataset: Dataset, graph: Graph) -> None:
        """InvalidRequestError where the sink ends before a version that was published. To be called before flows write
        to it: the numbers of their versions would be those of published ones."""
        sink = table_at(graph.sinks.get(dataset.sink or "", ""), graph.access_to(dataset.sink))
        target = table_at(self.address, self.access)
        if sink is not None and target is not None:
            self._check_not_older(dataset, sink, target, self._last_number(self.application(sink), target))

    def _check_not_older(self, dataset: Dataset, sink: DeltaTable, target: DeltaTable | None, last: int) -> None:
        """Rows of the versions that come again would be taken for published ones."""
        if last > sink.latest_version:
            problem = f"ends at version {sink.latest_version}, and its version {last} has been"
        elif self._has_other_commit(sink, target):
            problem = "has another commit under the number of the version that was last"
        else:
            return
        raise InvalidRequestError(
            f"the sink {dataset.sink} at {sink.address} {problem} published to {self.address}: an older state of the "
            "sink was restored",
            fix="restore the newer state of the sink; or move the published table away, which then gets the rows "
            "that the sink has now: flows do not read again what they have read",
            place=self.name,
            kind="older-sink",
        )

    def _has_other_commit(self, sink: DeltaTable, target: DeltaTable | None) -> bool:
        """Whether the version of the sink that was last published is there, and not by the commit that was read."""
        after = transaction_version(target, self.application(sink))
        if target is None or after < 0:
            return False
        recent = commits_after(target, target.latest_version - _RECENT)
        done = [publication_in(commit.user_metadata, self.pipeline, self.name) for commit in recent]
        # several where another sink was published to this table, too
        digests = {read.commit for each in done if each is not None for read in each.inputs if read.last == after}
        return bool(digests) and None not in digests and _digest(sink, after) not in {None, *digests}

    def _check_same_sink(self, dataset: Dataset, application: str, sink: DeltaTable, after: int) -> None:
        """Rows of a sink that was deleted and is filled again, or of a pipeline that was renamed, would be appended a
        second time."""
        table = table_at(self.address, self.access)
        if dataset.publish is not Mode.APPEND or table is None or after >= 0:
            return
        applications = table.snapshot().transactions["app_id"].to_list()
        if any(each.startswith(self._applications) for each in applications):
            raise InvalidRequestError(
                f"{sink.address} is another table than the one that {table.address} was appended from",
                fix="move the published table away, or publish by merge or overwrite",
                place=self.name,
                kind="other-table",
            )
        of_sink = application.removeprefix(f"{_PIPELINE}{self.pipeline}")
        names = [each[len(_PIPELINE) : -len(of_sink)] for each in applications if each.endswith(of_sink)]
        if names:
            raise InvalidRequestError(
                f"the pipeline {names[0]} has appended the rows of {sink.address} to {table.address}",
                fix=f"name this pipeline {names[0]} again, move the published table away, or publish by merge",
                place=self.name,
                kind="other-pipeline",
            )


def restored_at(sink: DeltaTable, source: Source) -> int | None:
    """The last version of those that a source covers by which the sink was restored to an older one; None without."""
    if source.first is None:
        return None
    restores = _commits(sink, source).filter(operation="RESTORE")["version"]
    return max(restores.to_list(), default=None)


def only_grew(sink: DeltaTable, source: Source) -> bool:
    """Whether no commit that a source covers removed a file of the sink."""
    return not (_commits(sink, source)["files_removed"].fill_null(1) > 0).any()


def _commits(sink: DeltaTable, source: Source) -> pl.DataFrame:
    return sink.history().filter(pl.col("version") > source.first, pl.col("version") <= source.number)


def _digest(sink: DeltaTable, version: int) -> str | None:
    """The digest of a commit; None where its file is gone."""
    try:
        return blake2b(sink.log.commit_bytes(version), digest_size=16).hexdigest()
    except VersionNotFoundError:
        return None


def table_at(address: str, access: StoreAccess) -> DeltaTable | None:
    """The Delta table at an address; None where there is none."""
    return find_delta_table(address, "published", "publish to another folder, or write the sink as Delta", access)


_COUNT = "\1count"


def added_rows(difference: DataFrame, names: Sequence[str], *, only_grew: bool) -> DataFrame:
    """The rows of a difference that were inserted, once for each time that they were not deleted as well: rows that a
    rearrangement of files copied are on both sides. `names`: of their columns; `only_grew`: that none was deleted."""
    # by position: a column that is called as one of CHANGES is suffixed there
    columns = [f.col(quote_name(name)).alias(column) for name, column in zip(difference.columns, names, strict=False)]
    is_insert = f.col(CHANGE_TYPE) == "insert"
    if only_grew:
        return difference.where(is_insert).select(*columns)
    counts = difference.select(*columns, f.when(is_insert, 1).otherwise(-1).alias(_COUNT))
    # as exceptAll, which takes no maps
    rows = counts.groupBy(*[f.col(quote_name(name)) for name in names]).agg(f.sum(_COUNT).cast("int").alias(_COUNT))
    times = f.array_repeat(f.lit(0), f.col(_COUNT))
    return rows.where(f.col(_COUNT) > 0).withColumn(_COUNT, f.explode(times)).drop(_COUNT)
