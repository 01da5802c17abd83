"""New data files of Iceberg tables lie where the table's properties ask for, and nowhere else."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from pyiceberg.table import StaticTable
from pyiceberg.table.locations import ObjectStoreLocationProvider

from lakeview.iceberg.write.context import DataLocations
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, CorruptTableError, LakeviewError, UnsupportedTableError
from lakeview.model.findings import Severity
from tests.builders.opening import open_iceberg_table
from tests.differential.iceberg_oracles import duckdb_with_iceberg
from tests.iceberg.test_append import PLAIN, files_below, latest, make_table

HASHED = {"write.object-storage.enabled": "true"}
UNPARTITIONED = {"write.object-storage.partitioned-paths": "false"}
ENTROPY = "[01]{4}/[01]{4}/[01]{4}/[01]{8}"
UUID = "[0-9a-f-]{36}"


@pytest.mark.parametrize(("properties", "pattern"), [
    ({}, rf"t/data/name=a/{UUID}\.parquet"),
    ({"write.folder-storage.path": "{}/t/rows/"}, rf"t/rows/name=a/{UUID}\.parquet"),
    ({"write.object-storage.path": "{}/objects", "write.data.path": "{}/t/d"}, rf"t/d/name=a/{UUID}\.parquet"),
    ({"write.object-storage.path": "{}/objects"}, rf"t/data/name=a/{UUID}\.parquet"),
    (HASHED, rf"t/data/{ENTROPY}/name=a/{UUID}\.parquet"),
    (HASHED | UNPARTITIONED, rf"t/data/{ENTROPY}-{UUID}\.parquet"),
    (UNPARTITIONED, rf"t/data/name=a/{UUID}\.parquet"),
    (HASHED | {"write.object-storage.path": "{}/objects", "write.folder-storage.path": "{}/t/rows"},
        rf"objects/{ENTROPY}/PARENT/t/name=a/{UUID}\.parquet"),
    (HASHED | UNPARTITIONED | {"write.data.path": "{}/t2"}, rf"t2/{ENTROPY}/PARENT/t/{UUID}\.parquet"),
    ({"write.metadata.path": "{}/t/metadata/"}, rf"t/data/name=a/{UUID}\.parquet"),
])  # fmt: skip
def test_files_lie_where_the_properties_ask(tmp_path: Path, properties: dict[str, str], pattern: str) -> None:
    properties_given = {name: text.format(tmp_path) for name, text in properties.items()}
    place = make_table(tmp_path / "t", PLAIN, [(2, "identity", "name")], properties=properties_given)
    trusted = {"s3://none": str(tmp_path)}  # beside the table's folder too
    table = open_iceberg_table(str(place), relocate=trusted)
    for number in (1, 2):
        table.append(pl.DataFrame({"id": [number], "name": ["a"]}))
    pattern = pattern.replace("PARENT", tmp_path.name)
    names = [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.parquet")]
    assert [bool(re.fullmatch(pattern, name)) for name in names] == [True, True], names
    assert table.scan().collect()["id"].sort().to_list() == [1, 2]
    rows = StaticTable.from_metadata(latest(place)).scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [1, 2]
    by_duckdb = duckdb_with_iceberg().cursor().execute("SELECT id FROM iceberg_scan(?)", [latest(place)])
    assert sorted(i for (i,) in by_duckdb.fetchall()) == [1, 2]
    assert [f for f in table.check() if f.severity is not Severity.PASS] == []


@pytest.mark.parametrize("name", ["a", "b.parquet", "00001-5-9c1f.parquet", "é"])
def test_hashes_are_those_that_pyiceberg_computes(name: str) -> None:
    ours = DataLocations("s3://b/t/data", "", hashes_names=True)
    theirs = ObjectStoreLocationProvider("s3://b/t", {})
    assert f"s3://b/t/data/{ours.name('', name)}" == theirs.new_data_location(name)
    theirs = ObjectStoreLocationProvider("s3://b/t", UNPARTITIONED)
    assert f"s3://b/t/data/{replace(ours, partition_folders=False).name('k=1', name)}" == theirs.new_data_location(name)


@pytest.mark.parametrize(("properties", "kind", "expected"), [
    ({"write.data.path": "{}/elsewhere"}, "outside-roots", AccessDeniedError),
    ({"write.data.path": "s3://bucket/t"}, "outside-roots", AccessDeniedError),
    ({"write.folder-storage.path": "{}/t/../elsewhere"}, "unsafe-path", CorruptTableError),
    (HASHED | {"write.object-storage.path": "{}"}, "outside-roots", AccessDeniedError),
    (HASHED | {"write.object-storage.path": "objects"}, "unsupported-property", UnsupportedTableError),
    ({"write.metadata.path": "{}/t/other"}, "unsupported-property", UnsupportedTableError),
])  # fmt: skip
def test_a_table_chooses_no_folder_that_its_reader_does_not_trust(
    tmp_path: Path, properties: dict[str, str], kind: str, expected: type[LakeviewError]
) -> None:
    place = make_table(tmp_path / "t", PLAIN, properties={n: text.format(tmp_path) for n, text in properties.items()})
    before = files_below(tmp_path)
    with pytest.raises(expected) as caught:
        open_iceberg_table(place).append(pl.DataFrame({"id": [1]}))
    assert caught.value.kind == kind
    assert files_below(tmp_path) == before


def test_the_doctor_names_what_no_snapshot_names_below_a_hash(tmp_path: Path) -> None:
    table = open_iceberg_table(make_table(tmp_path / "t", PLAIN, properties=HASHED))
    table.append(pl.DataFrame({"id": [1]}))
    (file,) = (tmp_path / "t/data").rglob("*.parquet")
    file.with_name("left.parquet").write_bytes(file.read_bytes())
    (finding,) = [f for f in table.check() if f.severity is not Severity.PASS]
    assert (finding.id, finding.place) == (
        "snapshot-orphan-files",
        str(file.with_name("left.parquet").relative_to(tmp_path / "t")),
    )
    table.overwrite(pl.DataFrame({"id": [2]}))
    assert table.scan().collect()["id"].to_list() == [2]


@pytest.mark.parametrize(("properties", "folder"), [
    ({"write.data.path": "{}/data"}, "data/gone.parquet"),
    (HASHED | {"write.data.path": "{}/data"}, "data/0000/0000/0000/00000000/PARENT/t/gone.parquet"),
    ({"write.data.path": "{}"}, "gone.parquet"),
])  # fmt: skip
def test_the_doctor_names_what_no_snapshot_names_below_another_data_path(
    tmp_path: Path, properties: dict[str, str], folder: str
) -> None:
    """Other tables have files there too, as far as their metadata or the folder after the hash says so."""
    properties_given = {name: text.format(tmp_path) for name, text in properties.items()}
    place = make_table(tmp_path / "t", PLAIN, properties=properties_given)
    table = open_iceberg_table(str(place), relocate={"s3://none": str(tmp_path)})
    table.append(pl.DataFrame({"id": [1]}))
    orphan = tmp_path / folder.replace("PARENT", tmp_path.name)
    other = "data/0000/0000/0000/00000000/PARENT/t2/f.parquet" if "0000" in folder else "data/t2/data/f.parquet"
    for file in (orphan, tmp_path / other, tmp_path / "data/t2/metadata/v1.metadata.json", orphan.with_name("_hidden")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"1234")
    now = datetime.now(UTC)  # noqa: TID251 (files have the system's times)
    (finding,) = [f for f in table.check(now + timedelta(days=2)) if f.severity is not Severity.PASS]
    assert (finding.id, finding.place) == ("data-path-orphan-files", str(orphan))
    assert "1 file below the data path" in finding.claim
    assert (finding.evidence, "no other table" in str(finding.remedy)) == (f"4 bytes; older than a day: {orphan}", True)
    assert [f.severity for f in table.check(now)] == [Severity.PASS], "a write may be under way"
    with_roots = open_iceberg_table(str(place), config=Config(roots=(str(place),)))
    assert "data-path-orphan-files" not in {f.id for f in with_roots.check(now + timedelta(days=2))}
