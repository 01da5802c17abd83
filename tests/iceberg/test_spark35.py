"""Tables by the reference implementation, at every snapshot and ref, as it reads them itself.

The oracle of last resort: Spark 3.5 with the Iceberg runtime has an environment of its own, where spark35_tables.py ran
when the environment was made.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeview.iceberg.opening import open_iceberg
from lakeview.iceberg.table import IcebergTable
from lakeview.model.findings import Severity
from tests.golden.rows import differences, net

pytestmark = pytest.mark.slow

TABLES_FOLDER = Path(sys.prefix) / "spark35-tables"
TABLES = (
    "upgraded", "positions", "partition_positions", "avro", "orc", "vectors", "partitions", "columns", "branches",
)  # fmt: skip
FILTERS = (
    pl.col("id") < 7,
    pl.col("id").is_in([3, 17, 33]),
    (pl.col("id") >= 10) & (pl.col("even")),
    pl.col("at") < pl.datetime(1970, 1, 1, 3, time_zone="UTC"),
    pl.col("day") > pl.date(1969, 12, 31),
    pl.col("amount") == 7.5,
    pl.col("data").is_null(),
)


@pytest.fixture(scope="module")
def tables_folder() -> Path:
    """All tables, as they were written and read when the environment was made."""
    if not (TABLES_FOLDER / "told.json").exists():
        pytest.skip(f"the tables of Spark 3.5 are not in {TABLES_FOLDER}: make install-test writes them")
    return TABLES_FOLDER


@cache
def open_by_name(folder: Path, name: str) -> IcebergTable:
    return open_iceberg(str(folder / "warehouse" / "db" / name))


@cache
def rows_here(folder: Path, name: str, version: int) -> pl.DataFrame:
    """What we read there, whole."""
    return open_by_name(folder, name).scan(version).collect()


def description(folder: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "told.json").read_text())[name]
    return document


def rows(folder: Path, name: str, at: str | int) -> pa.Table:
    """What Spark read there."""
    place = folder / "rows" / name / f"_read={str(at).replace('%', '%25')}"
    return pq.ParquetDataset(place, partitioning=None).read()


@pytest.mark.parametrize("name", TABLES)
def test_the_history_is_the_one_it_tells(tables_folder: Path, name: str) -> None:
    ours = (
        open_by_name(tables_folder, name)
        .history()
        .select("version", "parent", "operation", pl.col("timestamp").dt.epoch("ms"))
    )
    theirs = [
        (s["snapshot_id"], s["parent_id"], s["operation"], s["at"])
        for s in description(tables_folder, name)["snapshots"]
    ]
    assert sorted(ours.iter_rows()) == sorted(theirs)


@pytest.mark.parametrize("name", TABLES)
def test_every_snapshot_has_its_rows_and_files(tables_folder: Path, name: str) -> None:
    table = open_by_name(tables_folder, name)
    for text, files in description(tables_folder, name)["files"].items():
        version = int(text)
        assert differences(rows(tables_folder, name, version), rows_here(tables_folder, name, version)) == [], version
        snapshot = table.snapshot(version)
        data, deletes = snapshot.files, snapshot.delete_files
        assert sorted(zip(data["path"], data["records"], strict=True)) == sorted((p, n) for c, p, n in files if c == 0)
        deletes_found = sorted(zip(deletes["path"], deletes["records"], strict=True))
        assert deletes_found == sorted((p, n) for c, p, n in files if c != 0)
        assert snapshot.num_files == data.height
        assert snapshot.num_records in (None, table.scan(version).select(pl.len()).collect().item())


@pytest.mark.parametrize("name", TABLES)
def test_the_changes_of_every_snapshot_are_the_difference_from_its_parent(tables_folder: Path, name: str) -> None:
    table = open_by_name(tables_folder, name)
    history = table.history()
    for version, parent in (
        history.filter(pl.col("parent").is_in(history["version"])).select("version", "parent").rows()
    ):
        columns = table.snapshot(version).schema.names
        changed, between = table.changes(version, version).collect(), table.difference(parent, version).collect()
        assert net(changed, columns) == net(between, columns), version


@pytest.mark.parametrize("name", TABLES)
def test_every_branch_and_tag_has_its_rows(tables_folder: Path, name: str) -> None:
    table = open_by_name(tables_folder, name)
    refs = description(tables_folder, name)["refs"]
    assert {ref: table.snapshot(ref=ref).version for ref in refs} == refs
    for ref in refs:
        key = "latest" if ref == "main" else ref
        assert differences(rows(tables_folder, name, key), table.scan(ref=ref).collect()) == [], ref
    assert differences(rows(tables_folder, name, "latest"), table.scan().collect()) == []


@pytest.mark.parametrize("name", TABLES)
def test_what_a_filter_spares_holds_no_row_it_keeps(tables_folder: Path, name: str) -> None:
    table = open_by_name(tables_folder, name)
    versions = sorted(map(int, description(tables_folder, name)["files"]))
    for number, version in enumerate(versions):
        whole = rows_here(tables_folder, name, version)
        for condition in FILTERS[number % 3 :: 3]:  # a third of them at each version
            rows_read = table.scan(version).filter(condition).collect()
            assert differences(whole.filter(condition).to_arrow(), rows_read) == [], (version, condition)


@pytest.mark.parametrize("name", TABLES)
def test_the_doctor_has_nothing_against_it(tables_folder: Path, name: str) -> None:
    findings = open_by_name(tables_folder, name).check()
    assert [f.claim for f in findings if f.severity in (Severity.BROKEN, Severity.ATTENTION)] == []


@pytest.mark.parametrize("name", ["upgraded", "vectors"])
def test_rows_are_numbered_as_it_numbers_them(tables_folder: Path, name: str) -> None:
    numbered = open_by_name(tables_folder, name).scan(row_tracking=True).collect()
    ours = numbered.select("id", "_row_id", "_last_updated_sequence_number").rows()
    theirs = [tuple(row) for row in description(tables_folder, name)["lineage"]]
    assert sorted(ours, key=str) == sorted(theirs, key=str)
