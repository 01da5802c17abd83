"""What a pipeline did to rows of `_lakeview/runs`, `expectations` and `lineage`, each recorded once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import polars as pl

import lakeview as lv
from lakeview.delta.log.commits import info_fields
from lakeview.delta.table import DeltaTable
from lakeview.model.addresses import relative_to
from lakeview.model.clock import Clock
from lakeview.model.errors import CommitConflictError
from lakeview.model.pipelines import ADDRESSES, FOLDER, TABLES
from lakeview.spark.addresses import find_delta_table
from lakeview.storage.access import NO_OPTIONS, StoreAccess

Row = dict[str, Any]

_MANY_FILES = 50
"""Small files of a table of records from which on they are packed."""


class Records:
    """The three tables of one pipeline. They are created when the first row is recorded.

    What a commit of another table gave rise to is recorded with a transaction identifier, the number of that commit, in
    each of the three: recording it again changes nothing. The order is expectations, lineage, runs: a commit that
    `recorded` names is in all three. `user`: of the commits; `access`: what the tables are opened with.
    """

    def __init__(
        self, root: str, pipeline: str, clock: Clock, user: str | None = None, access: StoreAccess = NO_OPTIONS
    ) -> None:
        self._root = root.rstrip("/")
        self._pipeline = pipeline
        self._clock = clock
        self._user = user
        self._access = access

    def add(self, rows: Mapping[str, Sequence[Row]], mark: str | None = None, version: int = 0) -> None:
        """Append rows to the tables. With a `mark`, each table gets those of a version of what it names once."""
        for name in ("expectations", "lineage", "runs"):
            if rows.get(name):
                self._append(name, rows[name], mark, version)
        if mark is not None and not rows.get("runs"):
            self._append("runs", [], mark, version)

    def last_recorded_version(self, mark: str) -> int:
        """The last version of what `mark` names whose rows are recorded; -1 without any."""
        return transaction_version(self._open("runs"), self._app(mark))

    def has_flow_to(self, sink: str, address: str) -> bool:
        """True if a flow is recorded that wrote to this sink at this address."""
        table = self._open("runs")
        if table is None:
            return False
        flows = pl.col("pipeline") == self._pipeline, pl.col("dataset") == sink, pl.col("step") == "flow"
        outputs = table.scan().filter(*flows).select(pl.col("output").unique()).collect()["output"]
        return relative_to(address, self._root) in set(outputs)

    def unfinished_runs(self) -> list[tuple[str, datetime]]:
        """The runs whose end is not recorded, with their starts, oldest first."""
        table = self._open("runs")
        if table is None:
            return []
        own = table.scan().filter(pl.col("pipeline") == self._pipeline, pl.col("step") == "run").collect()
        ends = own.filter(pl.col("status") != "started")["run_id"]
        runs = own.filter(~pl.col("run_id").is_in(ends.implode())).sort("started")
        return list(runs.select("run_id", "started").rows())

    def owes_maintenance(self, dataset: str) -> bool:
        """True if the last publication of a dataset has no maintenance after it: its run was killed, or failed."""
        table = self._open("runs")
        if table is None:
            return False
        own = pl.col("pipeline") == self._pipeline, pl.col("dataset") == dataset, pl.col("status") == "succeeded"
        done = table.scan().filter(*own).group_by("step").agg(pl.col("started").max()).collect()
        last = dict(done.rows())
        return "publish" in last and ("maintain" not in last or last["maintain"] < last["publish"])

    def pack(self) -> None:
        """Write the small files of the tables as one where there are many."""
        for name in TABLES:
            table = self._open(name)
            if table is not None and (table.snapshot().num_files or 0) > _MANY_FILES:
                table.optimize(user=self._user)

    # -- inside

    def _app(self, mark: str) -> str:
        return f"lakeview pipeline {self._pipeline}: {mark}"

    def _append(self, name: str, rows: Sequence[Row], mark: str | None, version: int) -> None:
        schema = TABLES[name]
        frame = pl.DataFrame([self._relative_row(row) for row in rows], schema=schema)
        table, parameters = self._create_table(name), {"mode": "Append"}
        with table.transaction("WRITE", parameters=parameters, user=self._user, clock=self._clock) as txn:
            if mark is not None:
                txn.set_transaction(self._app(mark), version, once=True)
            if rows:
                txn.append(frame, fill_missing=True)

    def _relative_row(self, row: Row) -> Row:
        """A row as it is written: addresses below the root are relative to it, so that the folder may be moved."""
        addresses = {name: relative_to(row[name], self._root) for name in ADDRESSES if row.get(name) is not None}
        return {"pipeline": self._pipeline, **row, **addresses}

    def _create_table(self, name: str) -> DeltaTable:
        table = self._open(name)
        if table is None:
            schema, options = pl.DataFrame(schema=TABLES[name]).to_arrow().schema, self._access.options
            try:
                return lv.create_table(
                    self._address(name), schema, user=self._user, clock=self._clock, storage_options=options
                )
            except CommitConflictError:
                table = self._open(name)
                if table is None:  # else another pipeline of this folder was first
                    raise
        return table

    def _open(self, name: str) -> DeltaTable | None:
        fix = "move it away: pipelines record their runs there"
        return find_delta_table(self._address(name), "written", fix, self._access)

    def _address(self, name: str) -> str:
        return f"{self._root}/{FOLDER}/{name}"


def transaction_version(table: DeltaTable | None, app_id: str) -> int:
    """The version that a table has of an application; -1 for a table that is not there, and for an unknown one."""
    if table is None:
        return -1
    versions = table.snapshot().transactions.filter(pl.col("app_id") == app_id)["version"]
    return int(versions[0]) if versions.len() else -1


@dataclass(frozen=True)
class Commit:
    """What records need of a commit: `parameters`, its operationParameters; `rows` that it added, None where the log
    does not say."""

    version: int
    timestamp: datetime
    parameters: dict[str, Any]
    rows: int | None
    user_metadata: str | None


def commits_after(table: DeltaTable, version: int) -> Iterator[Commit]:
    """The commits after a version, oldest first."""
    history = table.history().filter(pl.col("version") > version).sort("version")
    for number, timestamp, parameters, rows in history.select(_OF_HISTORY).rows():
        metadata = info_fields(table.log.commit_bytes(number), number).get("userMetadata")
        values = msgspec.json.decode(parameters) if parameters else {}
        yield Commit(number, timestamp, values, rows, metadata if isinstance(metadata, str) else None)


_OF_HISTORY = ["version", "timestamp", "parameters", "records_added"]
