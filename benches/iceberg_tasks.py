"""A job on an Iceberg table to what lakeview or a peer does for it; addresses are metadata files.

pyiceberg lists files with the bounds of every column, typed: it has no shorter way. DuckDB's extension lists them with
their records and no metrics. "zlib" inflates every block of every manifest: below that no reader can go that uses it.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from benches.answers import Answer, Job
from benches.make_iceberg import SYNC

BOUNDED = "fare"
FILTER = "fare > 800 and day < {}'2020-03-01'"
"""What few files can hold, by their bounds and by their days; SQL marks a date."""


# -- lakeview


@cache
def _lakeview() -> Any:
    import lakeview as lv

    return lv


def _ours(address: str) -> Any:
    return _lakeview().open_table(address)


def _ours_planned(tasks: list[Any]) -> Answer:
    counts = {"files": len(tasks), "bytes": sum(t.size for t in tasks)}
    return {**counts, "deletes": sum(len(t.deleted_rows.positions) for t in tasks if t.deleted_rows is not None)}


def _ours_listed(files: pl.DataFrame) -> Answer:
    return {"files": files.height, "bytes": files["size"].sum(), "records": files["records"].sum()}


def _ours_bounds(frames: tuple[pl.DataFrame, pl.DataFrame]) -> Answer:
    files, statistics = frames
    column = statistics[BOUNDED].struct
    bounds = {"least": column.field("min").min(), "greatest": column.field("max").max()}
    return {**_ours_listed(files), **bounds, "nulls": column.field("null_count").sum()}


def _with_statistics(address: str, columns: list[str] | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    table = _ours(address)
    statistics = table.statistics(columns=columns)
    return table.files(), statistics


_OURS = {
    "iceberg open": Job(lambda a: _ours(a).snapshot().schema, lambda schema: {"columns": len(schema.fields)}),
    "iceberg snapshots": Job(
        lambda a: _ours(a).history(),
        lambda h: {"snapshots": h.height, "newest": h["version"][0], "added": int(h["files_added"].sum())},
    ),
    "iceberg plan": Job(lambda a: _ours(a).tasks(), _ours_planned),
    "iceberg plan, filtered": Job(lambda a: _ours(a).tasks(where=FILTER.format("date ")), _ours_planned),
    "iceberg list": Job(lambda a: _ours(a).files(), _ours_listed),
    "iceberg one column": Job(lambda a: _with_statistics(a, [BOUNDED]), _ours_bounds),
    "iceberg all columns": Job(lambda a: _with_statistics(a, None), _ours_bounds),
}


# -- pyiceberg


@cache
def _pyiceberg() -> Any:
    from pyiceberg.table import StaticTable

    return StaticTable


def _theirs(address: str) -> Any:
    return _pyiceberg().from_metadata(address)


def _their_plan(tasks: list[Any]) -> Answer:
    counts = {"files": len(tasks), "bytes": sum(t.file.file_size_in_bytes for t in tasks)}
    return {**counts, "deletes": sum(len(t.delete_files) for t in tasks)}


def _their_files(table: Any) -> Answer:
    files = pl.DataFrame(pl.from_arrow(table)).filter(pl.col("content") == 0)
    column = files["readable_metrics"].struct.field(BOUNDED).struct
    totals = {"files": files.height, "bytes": files["file_size_in_bytes"].sum(), "records": files["record_count"].sum()}
    bounds = {"least": column.field("lower_bound").min(), "greatest": column.field("upper_bound").max()}
    return {**totals, **bounds, "nulls": column.field("null_value_count").sum()}


def _their_snapshots(table: Any) -> Answer:
    frame = pl.DataFrame(pl.from_arrow(table)).sort("committed_at")
    return {"snapshots": frame.height, "newest": frame["snapshot_id"][-1]}


_PYICEBERG = {
    "iceberg open": Job(lambda a: _theirs(a).schema(), lambda schema: {"columns": len(schema.fields)}),
    "iceberg snapshots": Job(lambda a: _theirs(a).inspect.snapshots(), _their_snapshots),
    "iceberg plan": Job(lambda a: list(_theirs(a).scan().plan_files()), _their_plan),
    "iceberg plan, filtered": Job(
        lambda a: list(_theirs(a).scan(row_filter=FILTER.format("")).plan_files()), _their_plan
    ),
    "iceberg files": Job(lambda a: _theirs(a).inspect.files(), _their_files),
}


# -- DuckDB


@cache
def _duckdb() -> Any:
    """DuckDB with the extensions of its packages, avro before iceberg: nothing is fetched."""
    import duckdb
    import duckdb_extension_avro
    import duckdb_extension_iceberg

    connection = duckdb.connect()
    for package in (duckdb_extension_avro, duckdb_extension_iceberg):
        (extension,) = Path(package.__path__[0]).glob("extensions/*/*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    return connection


def _duckdb_query(function: str, address: str) -> Any:
    return _duckdb().execute(f"FROM {function}(?)", [address]).to_arrow_table()


def _duckdb_files(table: Any) -> Answer:
    files = pl.DataFrame(pl.from_arrow(table)).filter(pl.col("manifest_content") == "DATA")
    return {"files": files.height, "records": files["record_count"].sum()}


_DUCKDB = {
    "iceberg snapshots": Job(
        lambda a: _duckdb_query("iceberg_snapshots", a), lambda table: {"snapshots": table.num_rows}
    ),
    "iceberg list": Job(lambda a: _duckdb_query("iceberg_metadata", a), _duckdb_files),
}


# -- the limit


def _inflated(address: str) -> int:
    size = 0
    for path in sorted([*Path(address).parent.glob("data-*.avro"), *Path(address).parent.glob("deletes-*.avro")]):
        data = path.read_bytes()
        at = data.index(SYNC) + len(SYNC)
        while at < len(data):
            _, at = _long(data, at)
            length, at = _long(data, at)
            size += len(zlib.decompress(data[at : at + length], -15))
            at += length + len(SYNC)
    return size


def _long(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number >> 1, at


JOBS: dict[str, dict[str, Job]] = {
    "lakeview": _OURS,
    "pyiceberg": _PYICEBERG,
    "DuckDB": _DUCKDB,
    "zlib": {"iceberg inflate": Job(_inflated, lambda size: {"rows decoded": size})},
}
"""Engine -> job -> what it does."""
