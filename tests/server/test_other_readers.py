"""Signed URLs of our server in the hands of others: DuckDB with its httpfs extension, and polars, both by ranges."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import deltalake
import duckdb
import duckdb_extension_httpfs
import polars as pl
import pytest

from tests.server.conftest import RunningServer
from tests.server.shared_lake import TABLE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    """DuckDB with the extension of its package: nothing is fetched."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    (extension,) = Path(duckdb_extension_httpfs.__path__[0]).glob("extensions/*/httpfs.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    return connection


@pytest.fixture(scope="module")
def urls(running: RunningServer) -> dict[str, str]:
    """The signed URLs of the table `months`, by month."""
    request = urllib.request.Request(
        f"{running.endpoint}/{TABLE.format('months')}/query",
        data=b"{}",
        headers={"Authorization": f"Bearer {running.token}", "Content-Type": "application/json"},
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        lines = [json.loads(line) for line in answer.read().splitlines()]
    return {line["file"]["partitionValues"]["month"]: line["file"]["url"] for line in lines if "file" in line}


@pytest.fixture(scope="module")
def expected(running: RunningServer) -> list[tuple[int, str]]:
    """The rows as delta-rs reads them; the month is in no file."""
    rows = pl.DataFrame(deltalake.DeltaTable(str(running.lake / "months")).scan())
    return sorted(rows.select("id", "city").rows())


def test_duckdb_reads_them(
    duck: duckdb.DuckDBPyConnection, urls: dict[str, str], expected: list[tuple[int, str]]
) -> None:
    rows = duck.execute("SELECT id, city FROM read_parquet(?) ORDER BY id", [list(urls.values())]).fetchall()
    assert rows == expected
    one = duck.execute("SELECT sum(id) FROM read_parquet(?) WHERE id > 6", [urls["3"]]).fetchone()
    assert one == (7,)


def test_a_url_changed_to_another_file_gives_duckdb_nothing(
    duck: duckdb.DuckDBPyConnection, urls: dict[str, str]
) -> None:
    with pytest.raises(duckdb.HTTPException, match="HTTP GET error on"):  # it hides the status behind a range
        duck.execute("FROM read_parquet(?)", [urls["3"].replace("month=3/part-3", "month=4/part-4")])


def test_polars_reads_them(urls: dict[str, str], expected: list[tuple[int, str]]) -> None:
    scans = [pl.scan_parquet(url) for url in urls.values()]
    assert sorted(pl.concat(scans).select("id", "city").collect().rows()) == expected
    assert pl.scan_parquet(urls["5"]).filter(pl.col("id") > 10).select("city").collect().rows() == [("c11",)]
    assert pl.scan_parquet(urls["0"]).select(pl.len()).collect().item() == 2


def test_a_url_changed_to_another_file_is_forbidden(urls: dict[str, str]) -> None:
    changed = urls["3"].replace("month=3/part-3", "month=4/part-4")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError, match="403"):
        opener.open(changed, timeout=30)
