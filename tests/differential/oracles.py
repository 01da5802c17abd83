"""A table's address and version to what other engines find there.

deltalake is one implementation; polars-deltalake and DuckDB's extension share the Rust kernel below them and differ in
how they decode Parquet: agreement of those two is one voice for the log, two for the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import duckdb
import duckdb_extension_delta
import polars as pl
import polars_deltalake
import pyarrow as pa

from lakeview.delta.table import DeltaTable
from tests.golden.rows import differences

Rows = Callable[[str, int], pa.Table]


@cache
def duckdb_with_delta() -> duckdb.DuckDBPyConnection:
    """DuckDB with the delta extension of its package: nothing is fetched."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    (extension,) = Path(duckdb_extension_delta.__path__[0]).glob("extensions/*/delta.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def deltalake_rows(address: str, version: int) -> pa.Table:
    """Through delta-rs and DataFusion."""
    return pa.table(deltalake.DeltaTable(address, version=version).scan())


def kernel_rows(address: str, version: int) -> pa.Table:
    """Through the kernel and polars."""
    return polars_deltalake.read_delta(address, version=version).to_arrow()


def duckdb_rows(address: str, version: int) -> pa.Table:
    """Through the kernel and DuckDB."""
    cursor = duckdb_with_delta().cursor()
    return cursor.execute("FROM delta_scan(?, version => ?)", [address, version]).to_arrow_table()


ORACLES: dict[str, Rows] = {"deltalake": deltalake_rows, "polars-deltalake": kernel_rows, "DuckDB": duckdb_rows}


def live_files(address: str, version: int) -> pl.DataFrame:
    """path, size, records of the live files as delta-rs lists them, sorted; it gives paths as recorded, undecoded."""
    actions = pl.DataFrame(deltalake.DeltaTable(address, version=version).get_add_actions(flatten=True))
    files = {
        "path": pl.Series([unquote(path) for path in actions["path"]], dtype=pl.String),
        "size": actions["size_bytes"].cast(pl.Int64),
        "records": actions["num_records"].cast(pl.Int64),
    }
    return pl.DataFrame(files).sort("path")


def compare_version(table: DeltaTable, address: str, version: int, oracles: dict[str, Rows] = ORACLES) -> None:
    """Rows, files, sizes, counts, columns and partitioning of one version, as everyone sees them."""
    snapshot, rows_read = table.snapshot(version), table.scan(version).collect()
    for name, rows in oracles.items():
        assert differences(rows(address, version), rows_read) == [], f"version {version}, {name}"
    theirs = deltalake.DeltaTable(address, version=version)
    assert snapshot.schema.names == [field.name for field in theirs.schema().fields]
    assert list(snapshot.partition_columns) == theirs.metadata().partition_columns
    assert snapshot.properties == theirs.metadata().configuration
    assert snapshot.files.select("path", "size", "records").sort("path").equals(live_files(address, version))
    assert snapshot.num_records == rows_read.height


def compare_history(table: DeltaTable, address: str) -> None:
    """Versions, operations, engines and recorded times of every commit."""
    commits = {
        commit["version"]: (commit.get("operation"), commit.get("engineInfo"), _moment(commit.get("timestamp")))
        for commit in deltalake.DeltaTable(address).history()
    }
    ours = table.history().select("version", "operation", "engine", "recorded_timestamp")
    assert {row[0]: row[1:] for row in ours.iter_rows()} == commits


def _moment(milliseconds: Any) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def readable(table: DeltaTable) -> list[int]:
    """The versions that can be read, oldest first; at least the latest."""
    versions = table.versions().filter("readable")["version"].sort().to_list()
    assert versions[-1] == table.snapshot().version
    return versions


def deltalake_changes(address: str, start: int, end: int) -> pa.Table:
    """The change feed through delta-rs without `_commit_timestamp`, for which it takes the writer's clock.

    It does not decode paths, so that partitions of special characters are out of its reach.
    """
    rows = pa.table(deltalake.DeltaTable(address).load_cdf(start, end)).drop_columns(["_commit_timestamp"])
    number = rows.schema.get_field_index("_commit_version")  # unsigned
    return rows.set_column(number, "_commit_version", rows.column(number).cast(pa.int64()))


def kernel_changes(address: str, start: int, end: int) -> pa.Table:
    """The change feed through the kernel and polars."""
    return polars_deltalake.read_cdf(address, start_version=start, end_version=end).to_arrow()
