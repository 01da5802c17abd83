"""Manifests in Hive's symlink format: what a reader of the listed files finds is what the table holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.write.symlink_manifest import write_manifests
from lakeview.model.errors import AccessDeniedError, UnsupportedTableError
from tests.builders.actions import metadata, protocol
from tests.builders.findings import GRAVE
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table

ROWS = pl.DataFrame({"id": [1, 2, 3], "part": ["a/b", "c", None]})


def files_listed(manifest: Path) -> list[str]:
    return [line.removeprefix("file://") for line in manifest.read_text().splitlines()]


def test_the_files_of_the_latest_version_are_listed(tmp_path: Path) -> None:
    root = tmp_path / "a b%20c"
    table = lv.create_table(root, {"id": pl.Int64})
    assert write_manifests(table) == ["manifest"]
    manifest = root / "_symlink_format_manifest/manifest"
    assert manifest.read_bytes() == b""
    for number in range(3):
        table.append(pl.DataFrame({"id": [number]}))
    table.delete("id = 1")
    write_manifests(table)
    rows = duckdb.read_parquet(files_listed(manifest)).order("id").fetchall()
    assert rows == [(0,), (2,)]
    table.vacuum(dry_run=False)
    assert manifest.exists(), "a vacuum takes no manifest"
    assert [finding for finding in table.check() if finding.severity in GRAVE] == []


def test_each_partition_has_a_manifest_and_those_that_are_gone_go(tmp_path: Path) -> None:
    table = lv.create_table(tmp_path, ROWS.schema, partition_by="part")
    table.append(ROWS)
    table.append(ROWS)
    folders = ["part=__HIVE_DEFAULT_PARTITION__", "part=a%2Fb", "part=c"]
    assert write_manifests(table) == [f"{folder}/manifest" for folder in folders]
    below = tmp_path / "_symlink_format_manifest"
    assert [len(files_listed(below / folder / "manifest")) for folder in folders] == [2, 2, 2]
    assert duckdb.read_parquet(files_listed(below / folders[1] / "manifest")).select("id").fetchall() == [(1,), (1,)]
    table.delete("part = 'c'")
    assert write_manifests(table) == [f"{folder}/manifest" for folder in folders[:2]]
    assert not (below / "part=c/manifest").exists()


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"delta.columnMapping.mode": "name"}, "maps its columns"),
        ({"delta.enableDeletionVectors": "true"}, "has deletion vectors"),
    ],
)
def test_a_table_that_files_alone_do_not_give_is_refused(
    tmp_path: Path, properties: dict[str, Any], words: str
) -> None:
    table = lv.create_table(tmp_path, ROWS.schema, properties=properties)
    table.append(ROWS)
    table.delete("id = 2")
    with pytest.raises(UnsupportedTableError, match=words):
        write_manifests(table)
    assert not (tmp_path / "_symlink_format_manifest").exists()
    if "delta.enableDeletionVectors" in properties:
        table.set_properties({"delta.enableDeletionVectors": "false"})
        table.update({"part": "part"})
        assert write_manifests(table) == ["manifest"], "the way that the error names"


def test_no_link_makes_manifests_of_files_outside_of_the_table(tmp_path: Path) -> None:
    table = lv.create_table(tmp_path / "table", {"id": pl.Int64, "part": pl.String}, partition_by="part")
    manifest = tmp_path / "elsewhere/part=d/manifest"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("of another table")
    (tmp_path / "table/_symlink_format_manifest").symlink_to(tmp_path / "elsewhere")
    for rows in (ROWS.clear(), ROWS):
        table.append(rows)
        with pytest.raises(AccessDeniedError, match="is a link that leaves the table"):
            write_manifests(table)
    assert list((tmp_path / "elsewhere").iterdir()) == [manifest.parent]
    assert manifest.read_text() == "of another table"


def test_a_path_of_two_lines_names_no_second_file(history: DeltaHistory) -> None:
    history.commit(protocol(1, 2), metadata({"id": "long"}))
    history.commit(history.data("a\n/elsewhere/b", {"id": [1]}))
    table = open_delta_table(history.address)
    with pytest.raises(UnsupportedTableError, match="which no line can hold"):
        write_manifests(table)
