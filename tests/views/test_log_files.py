"""What the log itself takes: told by one listing, of both formats."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import lakeview as lv
from lakeview.iceberg.opening import open_iceberg
from lakeview.model.frames import LOG_FILES
from lakeview.sharing.client.table import SharedTable
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.delta.test_v2_checkpoints import FILES, STATE, UUID, write_history


def test_commits_and_checkpoints_of_a_log_are_listed(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path).create({"a": "long"})
    history.commit(history.data("f", {"a": [1]}))
    history.checkpoint(1)
    files = lv.open_table(str(tmp_path)).log_files()
    assert files.schema == LOG_FILES
    assert files.select("kind", "version").rows() == [("commit", 0), ("checkpoint", 1), ("commit", 1)]
    log = tmp_path / "_delta_log"
    assert files["size"].sum() == sum(f.stat().st_size for f in log.iterdir() if not f.name.startswith("_"))


@pytest.mark.parametrize("name", ["checkpoint.parquet", f"checkpoint.{UUID}.parquet"], ids=["classic", "unique"])
def test_sidecars_are_listed_whatever_the_name_of_their_checkpoint(tmp_path: Path, name: str) -> None:
    history = write_history(DeltaHistory(tmp_path), name=name, sidecars=2)
    files = lv.open_table(history.address).log_files()
    assert files.filter(pl.col("name").str.starts_with("part-"))["kind"].to_list() == ["checkpoint"] * 2


def test_sidecars_of_an_older_classic_checkpoint_are_listed(tmp_path: Path) -> None:
    history = write_history(DeltaHistory(tmp_path), name="checkpoint.parquet", sidecars=2)
    history.checkpoint(3, actions=[*STATE, *FILES])
    files = lv.open_table(history.address).log_files()
    assert files.filter(pl.col("name").str.starts_with("part-"))["kind"].to_list() == ["checkpoint"] * 2


def test_a_metadata_folder_is_listed(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "id", "required": False, "type": "long"}])
    history.append("a", [{"id": 1}])
    files = open_iceberg(history.address).log_files()
    assert files.schema == LOG_FILES
    assert files["size"].sum() == sum(f.stat().st_size for f in (tmp_path / "t" / "metadata").iterdir())
    assert set(files["kind"]) == {"commit", "other"}


def test_a_log_out_of_sight_is_unknown() -> None:
    assert lv.Table.log_files(object.__new__(SharedTable)).equals(pl.DataFrame(schema=LOG_FILES))
