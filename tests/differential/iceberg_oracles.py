"""An Iceberg table's metadata file and snapshot to what other engines find there: pyiceberg, DuckDB, Sail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table

SAIL = Path(sys.prefix) / "sail" / "bin" / "python"
"""The interpreter of Sail's own environment (tests/environments/sail.txt)."""


@cache
def duckdb_with_iceberg() -> duckdb.DuckDBPyConnection:
    """DuckDB with the iceberg extension of its package, and that of avro, which it stands on: nothing is fetched."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    for package in (duckdb_extension_avro, duckdb_extension_iceberg):
        (extension,) = Path(package.__path__[0]).glob("extensions/*/*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def duckdb_rows(metadata_file: str, snapshot_id: int) -> pa.Table | None:
    """Through DuckDB; None for a snapshot written before an upgrade from version 1, which it refuses.

    Such a manifest list has no sequence numbers, and each is to be read as 0 (iceberg spec, Appendix E).
    """
    cursor = duckdb_with_iceberg().cursor()
    query = "FROM iceberg_scan(?, snapshot_from_id => ?)"
    try:
        return cursor.execute(query, [metadata_file, snapshot_id]).to_arrow_table()
    except duckdb.Error as error:
        if "required field 'sequence_number' is NULL" in str(error):
            return None
        raise


def pyiceberg_rows(table: Table, snapshot_id: int) -> pa.Table:
    """Through pyiceberg."""
    return table.scan(snapshot_id=snapshot_id).to_arrow()


def sail_rows(requests: Sequence[tuple[str, int]], folder: Path) -> list[pa.Table | str]:
    """Through Sail: for each address and snapshot the rows, or why it has none; all of them in one run."""
    return sail_answers([("iceberg", address, {"snapshotId": str(snapshot)}) for address, snapshot in requests], folder)


def sail_answers(requests: Sequence[tuple[str, str, Mapping[str, str]]], folder: Path) -> list[pa.Table | str]:
    """Through Sail: for each format, address and options as `sail_rows`."""
    folder.mkdir()
    targets = [folder / str(number) for number in range(len(requests))]
    lines = [
        {"format": kind, "address": address, "options": dict(options), "target": str(target)}
        for (kind, address, options), target in zip(requests, targets, strict=True)
    ]
    done = subprocess.run(
        [SAIL, Path(__file__).with_name("sail_rows.py")], input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        pq.read_table(target) if answer is None else str(answer)
        for answer, target in zip(answers, targets, strict=True)
    ]
