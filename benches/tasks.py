"""A job's name to what lakeview or a peer does for it, and to the figures on which they must agree.

A job is prepared (not measured), run (measured) and answered for (not measured). Whatever it gives is in memory when it
ends: nothing lazy is left for later.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from benches import trips
from benches.answers import Answer, Job
from benches.make_tables import COMPACTED_EVERY

ONE_COLUMN = "fare"
LISTED = ["path", "size", "partition"]
SAMPLED = 5


def middle(address: str) -> int:
    """A version halfway between the oldest and the newest, not one that has just been compacted."""
    log = Path(address) / "_delta_log"
    bases = [int(path.name[:20]) for path in log.glob("*.checkpoint*.parquet")]
    commits = [int(path.name[:20]) for path in log.glob("*.json") if path.name[:20].isdecimal()]
    first = 0 if 0 in commits else min(bases)
    return (first + max(commits)) // 2 // COMPACTED_EVERY * COMPACTED_EVERY + (COMPACTED_EVERY - 1 if first == 0 else 5)


def sampled(address: str) -> list[int]:
    """Five versions from the second to the newest: a peer that loads each by itself is timed on these."""
    newest = max(int(path.stem) for path in (Path(address) / "_delta_log").glob("*.json") if path.stem.isdecimal())
    return [1 + (newest - 1) * part // (SAMPLED - 1) for part in range(SAMPLED)]


def at_middle(address: str) -> tuple[str, int]:
    return address, middle(address)


def columns_of(schema: Any) -> Answer:
    """Schemas of lakeview and polars are counted, deltalake's holds a list."""
    return {"columns": len(getattr(schema, "fields", schema))}


# -- lakeview


@cache
def _lakeview() -> Any:
    import lakeview as lv

    return lv


def _ours(address: str) -> Any:
    return _lakeview().open_table(address)


def _ours_open(address: str, version: int | None = None) -> Any:
    snapshot = _ours(address).snapshot(version)
    assert snapshot.protocol is not None
    return snapshot.schema


def _ours_statistics(address: str, columns: list[str] | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    table = _ours(address)
    statistics = table.statistics(columns=columns)  # first: the counts of rows come with them
    return table.files(columns=[*LISTED, "records"]), statistics


def _ours_bounds(frames: tuple[pl.DataFrame, pl.DataFrame]) -> Answer:
    files, statistics = frames
    column = statistics[ONE_COLUMN].struct
    nulls = {name: statistics[name].struct.field("null_count").sum() for name in statistics.columns if name[0] != "_"}
    answer = {
        **_ours_listed(files),
        "nulls in a column": nulls[ONE_COLUMN],
        "least": column.field("min").min(),
        "greatest": column.field("max").max(),
    }
    return answer if len(nulls) == 1 else {**answer, "nulls": sum(nulls.values())}


def _ours_loaded(address: str) -> Any:
    table = _ours(address)
    assert table.files(columns=LISTED).height
    return table


def _ours_history(history: pl.DataFrame) -> Answer:
    return {
        "commits": history.height,
        "newest": history["operation"][0],
        "oldest": history["operation"][-1],
        "written by": history["engine"].n_unique(),
    }


def _ours_listed(files: pl.DataFrame) -> Answer:
    records = {"records": files["records"].sum()} if "records" in files.columns else {}
    sizes = {"bytes": files["size"].sum(), "partitions": files["partition"].n_unique()}
    return {"files": files.height, **sizes, **records}


def _ours_trend(request: tuple[str, list[int]]) -> tuple[pl.DataFrame, list[int]]:
    lifetimes = _ours(request[0]).lifetimes([column.name for column in trips.COLUMNS])
    return _lakeview().views.timeline.trend.trend(lifetimes), request[1]


def _ours_trended(answer: tuple[pl.DataFrame, list[int]]) -> Answer:
    trend, versions = answer
    statistic = trend["statistics"].struct.field(ONE_COLUMN).struct
    rows = trend.select(
        "version", "files", "bytes", "records", least=statistic.field("min"), nulls=statistic.field("null_count")
    )
    return {str(row[0]): list(row[1:]) for row in rows.filter(rows["version"].is_in(versions)).iter_rows()}


def _ours_quality(address: str) -> list[pl.DataFrame]:
    """What the quality page shows of all versions and all loads of every column."""
    table, views = _ours(address), _lakeview().views
    lifetimes = table.lifetimes([column.name for column in trips.COLUMNS])
    timeline = views.timeline.commits.timeline(table.history(), table.lifetimes())
    loads = views.quality.column_loads.column_loads(lifetimes, timeline)
    changes = views.quality.sudden_changes.sudden_changes(loads)
    return [
        views.quality.column_states.column_states(lifetimes, timeline),
        changes,
        views.quality.trends.rows_trend(timeline),
    ]


def _ours_judged(frames: list[pl.DataFrame]) -> Answer:
    states, changes, _ = frames
    columns = states.group_by("column").len()
    return {"columns": columns.height, "versions": columns["len"].max(), "loads": changes["version"].n_unique()}


_OURS = {
    "open": Job(_ours_open, columns_of),
    "list": Job(lambda address: _ours(address).files(columns=LISTED), _ours_listed),
    "records": Job(lambda address: _ours(address).files(columns=[*LISTED, "records"]), _ours_listed),
    "one column": Job(lambda address: _ours_statistics(address, [ONE_COLUMN]), _ours_bounds),
    "all columns": Job(lambda address: _ours_statistics(address, None), _ours_bounds),
    "history": Job(lambda address: _ours(address).history(), _ours_history),
    "history, loaded": Job(lambda table: table.history(), _ours_history, prepare=_ours_loaded),
    "files before": Job(lambda at: _ours(at[0]).files(at[1], LISTED), _ours_listed, prepare=at_middle),
    "schema before": Job(lambda at: _ours_open(*at), columns_of, prepare=at_middle),
    "quality": Job(_ours_quality, _ours_judged),
    "trend": Job(_ours_trend, _ours_trended, prepare=lambda address: (address, sampled(address))),
}


# -- delta-rs


@cache
def _deltalake() -> Any:
    import deltalake

    return deltalake


def _theirs(address: str, version: int | None = None) -> Any:
    return _deltalake().DeltaTable(address, version=version)


def _their_schema(table: Any) -> Any:
    assert table.protocol() is not None
    return table.schema()


def _their_actions(address: str, version: int | None = None) -> Any:
    return _theirs(address, version).get_add_actions(flatten=True)


def _their_files(batch: Any) -> Answer:
    files = pl.DataFrame(batch)
    nulls = {name: files[name].sum() for name in files.columns if name.startswith("null_count.")}
    return {
        "files": files.height,
        "bytes": files["size_bytes"].sum(),
        "partitions": files[f"partition.{trips.PARTITION}"].n_unique(),
        "records": files["num_records"].sum(),
        "nulls": sum(nulls.values()),
        "nulls in a column": nulls[f"null_count.{ONE_COLUMN}"],
        "least": files[f"min.{ONE_COLUMN}"].min(),
        "greatest": files[f"max.{ONE_COLUMN}"].max(),
    }


def _their_history(commits: list[dict[str, Any]]) -> Answer:
    return {
        "commits": len(commits),
        "newest": commits[0]["operation"],
        "oldest": commits[-1]["operation"],
        "written by": len({commit.get("engineInfo") for commit in commits}),
    }


def _their_trended(batches: dict[int, Any]) -> Answer:
    answers = {version: _their_files(batch) for version, batch in batches.items()}
    figures = ("files", "bytes", "records", "least", "nulls in a column")
    return {str(version): [answer[figure] for figure in figures] for version, answer in answers.items()}


_DELTA_RS = {
    "open": Job(lambda address: _their_schema(_theirs(address)), columns_of),
    "list": Job(_their_actions, _their_files),
    "history": Job(lambda address: _theirs(address).history(), _their_history),
    "history, loaded": Job(lambda table: table.history(), _their_history, prepare=_theirs),
    "files before": Job(lambda at: _their_actions(*at), _their_files, prepare=at_middle),
    "schema before": Job(lambda at: _their_schema(_theirs(*at)), columns_of, prepare=at_middle),
    "trend": Job(
        lambda at: {version: _their_actions(at[0], version) for version in at[1]},
        _their_trended,
        prepare=lambda address: (address, sampled(address)),
        times=lambda address: sampled(address)[-1] / SAMPLED,
    ),
}


# -- the kernel, in polars and in DuckDB


def _kernel_schema(address: str, version: int | None = None) -> Any:
    import polars_deltalake

    return polars_deltalake.TableState(address, version).schema()


@cache
def duckdb_with_delta() -> Any:
    """DuckDB with the delta extension of its package: nothing is fetched."""
    import duckdb
    import duckdb_extension_delta

    connection = duckdb.connect()
    (extension,) = Path(duckdb_extension_delta.__path__[0]).glob("extensions/*/delta.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    return connection


_KERNEL = {
    "open": Job(_kernel_schema, columns_of),
    "schema before": Job(lambda at: _kernel_schema(*at), columns_of, prepare=at_middle),
}
_DUCKDB = {
    "list": Job(
        lambda address: duckdb_with_delta().execute("FROM delta_list_files(?)", [address]).to_arrow_table(),
        lambda files: {"files": files.num_rows},
    )
}


# -- the limit: decoding the leaf columns that are needed, and nothing else


def _decoded(address: str) -> int:
    import pyarrow.parquet as pq

    log, rows = Path(address) / "_delta_log", 0
    # one file after the other, each decoded by all threads and then dropped
    for path in sorted([*log.glob("*.checkpoint*.parquet"), *log.glob("_sidecars/*.parquet")]):
        with pq.ParquetFile(path) as file:
            if "add" in file.schema_arrow.names:
                # not `pq.read_table`: that decodes the whole struct
                rows += file.read(columns=["add.path", "add.size", "add.partitionValues"]).num_rows
    return rows


_PYARROW = {"list": Job(_decoded, lambda rows: {"rows decoded": rows})}

JOBS: dict[str, dict[str, Job]] = {
    "lakeview": _OURS,
    "delta-rs": _DELTA_RS,
    "kernel": _KERNEL,
    "DuckDB": _DUCKDB,
    "pyarrow": _PYARROW,
}
"""Engine -> job -> what it does. The kernel lists no files for polars; through DuckDB it does."""
