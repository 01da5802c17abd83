"""Tables that are deleted and made anew, or lie elsewhere by now: nothing of the table before is given."""

from __future__ import annotations

import shutil
from io import BytesIO
from pathlib import Path

import polars as pl

from tests.builders.actions import metadata, protocol
from tests.builders.feeds import ids_file
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.server.conftest import Api
from tests.server.shared_lake import TABLE
from tests.server.test_queries import share


def write_table(folder: Path, name: str, *ids: int, number: str = "first") -> DeltaHistory:
    """A table of one file."""
    history = DeltaHistory(folder / "t").commit(protocol(), metadata({"id": "long"}, id=number))
    return history.commit(ids_file(history, name, *ids))


def rows(api: Api) -> list[int]:
    frames = [pl.read_parquet(BytesIO(api.client.get(f["url"]).content)) for f in api.files("t")]
    return sorted(pl.concat(frames)["id"])


def test_a_table_made_anew_at_the_same_version_gives_its_own_rows(api: Api, tmp_path: Path) -> None:
    write_table(tmp_path, "a.parquet", 1, 2)
    share(api, tmp_path, "t")
    assert rows(api) == [1, 2]
    shutil.rmtree(tmp_path / "t")
    write_table(tmp_path, "another.parquet", 7, number="second")
    assert rows(api) == [7]
    assert '"id":"second"' in api.get(TABLE.format("t") + "/metadata").text


def test_a_table_made_anew_with_fewer_or_more_versions_is_followed(api: Api, tmp_path: Path) -> None:
    history = write_table(tmp_path, "a.parquet", 1)
    history.commit(ids_file(history, "b.parquet", 2))
    share(api, tmp_path, "t")
    assert rows(api) == [1, 2]
    shutil.rmtree(tmp_path / "t")
    history = write_table(tmp_path, "c.parquet", 3)
    assert rows(api) == [3]
    assert api.get(TABLE.format("t") + "/version").headers["delta-table-version"] == "1"
    shutil.rmtree(tmp_path / "t")
    history = write_table(tmp_path, "dd.parquet", 4)
    for name in ("e", "f", "g"):
        history.commit(ids_file(history, name, ord(name)))
    assert rows(api) == [4, 101, 102, 103]


def test_a_table_that_is_taken_away_is_told_and_comes_back(api: Api, tmp_path: Path) -> None:
    write_table(tmp_path, "a.parquet", 1)
    share(api, tmp_path, "t")
    assert rows(api) == [1]
    shutil.move(tmp_path / "t", tmp_path / "aside")
    for _ in range(2):
        status, code, message = api.refused("t")
        assert (status, code) == (400, "INVALID_PARAMETER_VALUE")
        assert message.startswith("table files missing")
    shutil.move(tmp_path / "aside", tmp_path / "t")
    assert rows(api) == [1]


def test_the_copy_of_a_view_follows_a_base_made_anew(api: Api, tmp_path: Path) -> None:
    write_table(tmp_path, "a.parquet", 1, 2)
    share(api, tmp_path, "t", view={"where": "id > 1"})
    assert rows(api) == [2]
    shutil.rmtree(tmp_path / "t")
    write_table(tmp_path, "another.parquet", 7, 8, number="second")
    assert rows(api) == [7, 8]


def test_an_iceberg_table_made_anew_is_opened_anew(api: Api, tmp_path: Path) -> None:
    fields = [{"id": 1, "name": "id", "type": "long", "required": False}]
    IcebergHistory(tmp_path / "t", fields).append("a.parquet", [{"id": 1}])
    share(api, tmp_path, "t")
    assert rows(api) == [1]
    shutil.rmtree(tmp_path / "t")
    history = IcebergHistory(tmp_path / "t", fields)
    history.document["table-uuid"] = "0f0f0f0f-0000-4000-8000-000000000001"
    history.append("b.parquet", [{"id": 5}])
    history.append("c.parquet", [{"id": 6}])
    assert rows(api) == [5, 6]


def test_a_table_that_lies_elsewhere_by_now_gives_what_lies_there(api: Api, tmp_path: Path) -> None:
    write_table(tmp_path / "one", "a.parquet", 1)
    write_table(tmp_path / "two", "b.parquet", 2)
    share(api, tmp_path / "one", "t")
    assert rows(api) == [1]
    share(api, tmp_path / "two", "t")  # the same names, so the same id, and the same version
    assert rows(api) == [2]
