"""Small Delta tables written by hand, each with one thing to show or one thing wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

START = datetime(2026, 3, 1, 6, tzinfo=UTC)

FIELDS = (
    {"name": "month", "type": "integer", "nullable": True, "metadata": {}},
    {"name": "carrier", "type": "string", "nullable": True, "metadata": {"comment": "two letters"}},
    {"name": "delay", "type": "integer", "nullable": True, "metadata": {}},
)
CANCELLED = {"name": "cancelled", "type": "string", "nullable": True, "metadata": {}}


class LogWriter:
    """Writes a table commit by commit, a day apart."""

    def __init__(self, root: Path, *, partitioned: bool = True) -> None:
        self.root = root
        self.partitioned = partitioned
        self.version = -1
        (root / "_delta_log").mkdir(parents=True)

    def create(self, *, protocol: dict[str, Any] | None = None, fields: Sequence[dict[str, Any]] = FIELDS) -> LogWriter:
        return self.commit(
            "CREATE TABLE",
            {"protocol": protocol or {"minReaderVersion": 1, "minWriterVersion": 2}},
            self.metadata(fields),
        )

    def metadata(self, fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "metaData": {
                "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
                "name": "flights",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
                "partitionColumns": ["month"] if self.partitioned else [],
                "configuration": {"delta.checkpointInterval": "10"},
                "createdTime": _millis(START),
            }
        }

    def add(self, name: str, rows: pl.DataFrame, month: int, *, statistics: bool = True) -> dict[str, Any]:
        """Writes a data file and returns the action that adds it."""
        path = f"month={month}/{name}.parquet" if self.partitioned else f"{name}.parquet"
        file = self.root / path
        file.parent.mkdir(exist_ok=True)
        (rows.drop("month") if self.partitioned else rows).write_parquet(file)
        stats = {
            "numRecords": rows.height,
            "minValues": {"carrier": rows["carrier"].min(), "delay": rows["delay"].min()},
            "maxValues": {"carrier": rows["carrier"].max(), "delay": rows["delay"].max()},
            "nullCount": {"carrier": rows["carrier"].null_count(), "delay": rows["delay"].null_count()},
        }
        action = {
            "path": path,
            "partitionValues": {"month": str(month)} if self.partitioned else {},
            "size": file.stat().st_size,
            "modificationTime": _millis(self.moment(self.version + 1)),
            "dataChange": True,
        }
        return {"add": action | ({"stats": json.dumps(stats)} if statistics else {})}

    def commit(self, operation: str, *actions: dict[str, Any], user: str = "ingest", **parameters: str) -> LogWriter:
        self.version += 1
        info = {
            "timestamp": _millis(self.moment(self.version)),
            "operation": operation,
            "operationParameters": parameters,
            "operationMetrics": {"numFiles": str(sum("add" in action for action in actions))},
            "userName": user,
            "engineInfo": "a test",
        }
        lines = [json.dumps(action) for action in ({"commitInfo": info}, *actions)]
        log = self.root / "_delta_log" / f"{self.version:020}.json"
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return self

    def moment(self, version: int) -> datetime:
        return START + timedelta(days=version)


def flights(month: int, rows: int = 20) -> pl.DataFrame:
    """Rows of one month; every fifth delay is null."""
    return pl.DataFrame(
        {
            "month": [month] * rows,
            "carrier": [("AA", "B6", "UA")[i % 3] for i in range(rows)],
            "delay": [None if i % 5 == 0 else i * month for i in range(rows)],
        },
        schema={"month": pl.Int32, "carrier": pl.String, "delay": pl.Int32},
    )


def good(root: Path) -> Path:
    """Seven versions: three months, a new column, a removed load."""
    table = LogWriter(root).create()
    for month in (1, 2, 3):
        table.commit("WRITE", table.add(f"load-{month}", flights(month), month))
    table.commit("ADD COLUMNS", table.metadata([*FIELDS, CANCELLED]), user="li")
    load = table.add("load-4", flights(4, 60), 4)
    table.commit("WRITE", load)
    table.commit("DELETE", remove(load), user="li", predicate='["month = 4"]')
    return root


def remove(action: dict[str, Any]) -> dict[str, Any]:
    """The action that removes what another added."""
    added = action["add"]
    fields = {key: added[key] for key in ("path", "partitionValues", "size", "dataChange")}
    return {"remove": fields | {"deletionTimestamp": _millis(START), "extendedFileMetadata": True}}


def spoilt(root: Path) -> Path:
    """Nine alike loads, then one without a single delay, taken back by the next."""
    log = LogWriter(root).create()
    for number in range(9):
        log.commit("WRITE", log.add(f"load-{number}", flights(1), 1))
    bad = log.add("bad", flights(1).with_columns(delay=pl.lit(None, pl.Int32)), 1)
    log.commit("WRITE", bad, user="night-feed")
    log.commit("DELETE", remove(bad), user="li")
    return log.root


def append_to(root: Path, version: int) -> None:
    """One more commit, as another writer would make it."""
    table = LogWriter.__new__(LogWriter)
    table.root, table.partitioned, table.version = root, True, version - 1
    table.commit("WRITE", table.add(f"late-{version}", flights(5), 5), user="late-ingest")


def empty(root: Path) -> Path:
    """A table that was created and never written to: no rows, no partitions, no statistics."""
    LogWriter(root, partitioned=False).create()
    return root


def silent(root: Path) -> Path:
    """A table whose writer left statistics out."""
    table = LogWriter(root, partitioned=False).create()
    table.commit("WRITE", table.add("load", flights(1), 1, statistics=False))
    return root


def unsupported(root: Path) -> Path:
    """A table that needs a reader feature nobody has heard of."""
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timeTurner"],
        "writerFeatures": ["timeTurner"],
    }
    table = LogWriter(root).create(protocol=protocol)
    table.commit("WRITE", table.add("load-1", flights(1), 1))
    return root


def corrupt(root: Path) -> Path:
    """A table whose log lost its second commit."""
    good(root)
    (root / "_delta_log" / f"{1:020}.json").unlink()
    return root


def file_missing(root: Path) -> Path:
    """A table whose log is whole and whose first data file is gone."""
    good(root)
    (root / "month=1" / "load-1.parquet").unlink()
    return root


def _millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
