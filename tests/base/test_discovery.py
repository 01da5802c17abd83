"""An address to a table, and the tables below a folder."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import fsspec
import pytest

import lakeview as lv
from lakeview.discovery import TABLES, folders
from lakeview.discovery.opening import PROFILE
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, NotATableError
from lakeview.model.table import Table
from lakeview.storage import LocalStorage
from lakeview.storage.interface import FIRST_FOLDERS
from tests.builders.actions import add, metadata, protocol
from tests.builders.history import DeltaHistory
from tests.builders.iceberg_metadata import document, text

NO_TABLES: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "the folder is empty or not there"),
    "files only": (["a.parquet", "b/c.parquet"], "it holds files but neither _delta_log nor metadata of a table"),
    "an empty log": (["_delta_log/_last_checkpoint"], "its _delta_log holds neither commits nor a complete checkpoint"),
    "half a checkpoint": (
        ["_delta_log/00000000000000000003.checkpoint.0000000001.0000000002.parquet"],
        "its _delta_log holds neither commits nor a complete checkpoint",
    ),
}


@pytest.mark.parametrize(("files", "finding"), NO_TABLES.values(), ids=[f"a folder with {w}" for w in NO_TABLES])
def test_what_is_no_table_says_what_was_found(tmp_path: Path, files: list[str], finding: str) -> None:
    history = DeltaHistory(tmp_path / "x")
    for name in files:
        history.write(name, b"")
    with pytest.raises(NotATableError) as caught:
        lv.open_table(history.address)
    assert caught.value.message == f"{history.address} is no table: {finding}"
    assert caught.value.fix == (
        "give the folder that holds _delta_log or metadata, or list the tables below a folder above it"
    )
    assert (caught.value.kind, caught.value.place) == ("not-a-table", history.address)
    assert isinstance(caught.value, FileNotFoundError)


def test_a_folder_of_tables_names_some_of_them(tmp_path: Path) -> None:
    lake = tmp_path / "my lake"
    for name in ("orders", "a/b/deep", "_hidden", "a/clicks"):
        DeltaHistory(lake / name).create({"x": "long"})
    with pytest.raises(NotATableError, match=r"is no table: it is a folder of tables\n") as caught:
        lv.open_table(lake)
    assert caught.value.fix == f"open one of them, orders, below it; `lakeview tables '{lake}'` lists all"


def test_the_table_with_a_name_like_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    for name in ("flights", "weather"):
        DeltaHistory(tmp_path / name).create({"x": "long"})
    with pytest.raises(NotATableError, match="the folder is empty or not there") as caught:
        lv.open_table(tmp_path / "fligths")
    assert (caught.value.fix or "").startswith(f"perhaps {tmp_path}/flights is meant; else give the folder")
    with pytest.raises(NotATableError) as other:
        lv.open_table(tmp_path / "sales")
    assert (other.value.fix or "").startswith("give the folder")
    with pytest.raises(NotATableError) as outside:  # what lies beside an allowed root is not told
        lv.open_table(tmp_path / "fligths", config=Config(roots=(str(tmp_path / "fligths"),)))
    assert (outside.value.fix or "").startswith("give the folder")


def test_what_is_no_table_is_not_listed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStorage, "walk", None)
    for number in range(FIRST_FOLDERS + 1):
        (tmp_path / f"{number}").mkdir()
    with pytest.raises(NotATableError, match="the folder is empty or not there"):
        lv.open_table(tmp_path)
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(NotATableError, match="it holds files but neither"):
        lv.open_table(tmp_path)
    with pytest.raises(NotATableError, match="it is a file"):
        lv.open_table(tmp_path / "f")


def test_a_profile_is_no_table_and_leads_to_its_tables(tmp_path: Path) -> None:
    profile = tmp_path / "team.share"
    profile.write_text("{}")
    with pytest.raises(NotATableError, match=r"team\.share is the profile of a share, not a table") as caught:
        lv.open_table(profile)
    assert f"lakeview tables {profile}" in (caught.value.fix or "")
    assert caught.value.kind == PROFILE


def test_a_profile_in_a_store_is_no_table_either(tmp_path: Path) -> None:
    address = f"memory://{tmp_path.name}/team.share"
    with pytest.raises(NotATableError, match="the folder is empty or not there"):
        lv.open_table(address)
    fsspec.filesystem("memory").pipe(address, b"{}")
    with pytest.raises(NotATableError, match=r"team\.share is the profile of a share, not a table"):
        lv.open_table(address)


@pytest.mark.parametrize(
    "inside", ["_delta_log", "_delta_log/00000000000000000000.json", "data.parquet", "a=1", "a=1/b=2/gone.parquet"]
)
def test_what_lies_inside_a_table_is_no_table_and_the_table_is_named(tmp_path: Path, inside: str) -> None:
    history = DeltaHistory(tmp_path / "x").create().write("data.parquet", b"").write("a=1/b=2/y.parquet", b"")
    with pytest.raises(NotATableError) as caught:
        lv.open_table(f"{history.address}/{inside}")
    assert caught.value.message == f"{history.address}/{inside} is no table, but lies in one"
    assert caught.value.fix == f"open {history.address}"


def test_a_table_above_that_may_not_be_read_is_not_named(tmp_path: Path) -> None:
    DeltaHistory(tmp_path / "x").create().write("a=1/y.parquet", b"")
    with pytest.raises(NotATableError, match="it holds files but neither"):
        lv.open_table(tmp_path / "x/a=1", config=Config(roots=(str(tmp_path / "x/a=1"),)))


@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}/.", "file://{}", "file:{}", "{}/../x y"])
def test_an_address_may_be_spelled_in_several_ways(tmp_path: Path, spelling: str) -> None:
    history = DeltaHistory(tmp_path / "x y").create()
    table = lv.open_table(spelling.format(history.address))
    assert isinstance(table, Table)
    assert (table.address, table.format, table.latest_version) == (history.address, "delta", 0)


def test_tables_below_a_folder_are_found_by_name(tmp_path: Path) -> None:
    for name in ("b", "a/deep/er", "a b", "c"):
        DeltaHistory(tmp_path / name).create()
    DeltaHistory(tmp_path / "checkpoint only").create().checkpoint().without(0)
    DeltaHistory(tmp_path / "empty log").write("_delta_log/info.txt", b"")
    DeltaHistory(tmp_path / "files").write("x.parquet", b"")
    tables = lv.find_tables(str(tmp_path))
    assert tables.schema == TABLES
    assert tables["name"].to_list() == ["a b", "a/deep/er", "b", "c", "checkpoint only"]
    assert tables["format"].unique().to_list() == ["delta"]
    for address in tables["address"]:
        assert lv.open_table(address).address == address


def test_tables_are_found_by_depth_in_so_many_folders_and_not_inside_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/deep/er", "b", "b/inside", "c/in", "day=1/x"):
        DeltaHistory(tmp_path / name).create()
    assert lv.find_tables(tmp_path, depth=2).rows() == [
        (f"{tmp_path}/b", "delta", "b"),
        (f"{tmp_path}/c/in", "delta", "c/in"),
    ]
    assert lv.find_tables(tmp_path / "b", depth=0)["name"].to_list() == ["b"]
    monkeypatch.setattr(folders, "MOST_LOOKED", 3)  # the root, a and b
    assert lv.find_tables(tmp_path, depth=2)["name"].to_list() == ["b"]


def test_tables_in_hidden_folders_are_listed_from_there_only(tmp_path: Path) -> None:
    for name in ("shown", "_lakeview/runs", "a/.half built", "_hidden"):
        DeltaHistory(tmp_path / name).create()
    assert lv.find_tables(str(tmp_path))["name"].to_list() == ["shown"]
    assert lv.find_tables(str(tmp_path / "_lakeview"))["name"].to_list() == ["runs"]


def test_a_folder_that_is_a_table_finds_itself(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "x").create()
    assert lv.find_tables(history.address).rows() == [(history.address, "delta", "x")]


def test_a_folder_without_tables_gives_none(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "nowhere"):
        tables = lv.find_tables(str(root))
        assert (tables.schema, tables.height) == (TABLES, 0)


def test_only_allowed_roots_are_looked_into(tmp_path: Path) -> None:
    DeltaHistory(tmp_path / "lake/x").create()
    config = Config(roots=(str(tmp_path / "lake"),))
    assert lv.find_tables(str(tmp_path / "lake"), config=config).height == 1
    with pytest.raises(AccessDeniedError, match="lies outside the allowed roots") as caught:
        lv.find_tables(str(tmp_path), config=config)
    assert caught.value.fix == "open a table below one of them, or add its folder to LAKEVIEW_ROOTS"


def iceberg(place: Path) -> Path:
    (place / "metadata").mkdir(parents=True)
    (place / "metadata" / "v1.metadata.json").write_bytes(text(document()))
    return place


def iceberg_view(place: Path, name: str = "00000-6f2a.metadata.json") -> None:
    (place / "metadata").mkdir(parents=True)
    view = {"view-uuid": "0f2a", "format-version": 1, "location": str(place), "versions": [], "schemas": []}
    packed = gzip.compress if ".gz." in name else bytes
    (place / "metadata" / name).write_bytes(packed(json.dumps(view).encode()))


@pytest.mark.parametrize("depth", [None, 2])
def test_a_view_of_iceberg_is_not_listed(tmp_path: Path, depth: int | None) -> None:
    iceberg(tmp_path / "ns/orders")
    iceberg_view(tmp_path / "ns/late orders")
    iceberg_view(tmp_path / "ns/packed", "00001-6f2a.gz.metadata.json")
    (iceberg(tmp_path / "ns/broken") / "metadata/v1.metadata.json").write_bytes(b"{")
    assert lv.find_tables(tmp_path, depth=depth)["name"].to_list() == ["ns/broken", "ns/orders"]


@pytest.mark.parametrize("beside", ["snap-1.avro", "version-hint.text"])
@pytest.mark.parametrize("depth", [None, 0])
def test_a_folder_with_manifests_or_a_hint_is_a_table_unopened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str, depth: int | None
) -> None:
    (iceberg(tmp_path / "orders") / "metadata" / beside).write_bytes(b"")
    monkeypatch.setattr(LocalStorage, "read_range", None)
    assert lv.find_tables(tmp_path / "orders", depth=depth)["name"].to_list() == ["orders"]


def test_an_iceberg_table_is_opened_by_its_folder_or_a_metadata_file(tmp_path: Path) -> None:
    place = iceberg(tmp_path / "x y")
    for address in (str(place), f"file://{place}/", str(place / "metadata"), str(place / "metadata/v1.metadata.json")):
        table = lv.open_table(address)
        assert isinstance(table, Table)
        assert (table.format, table.latest_version) == ("iceberg", -1)
    with pytest.raises(NotATableError, match="but lies in one"):
        lv.open_table(place / "data/00000.parquet")


def test_a_folder_with_both_logs_is_a_delta_table(tmp_path: Path) -> None:
    DeltaHistory(iceberg(tmp_path / "x")).create()
    assert lv.open_table(str(tmp_path / "x")).format == "delta"
    assert lv.find_tables(str(tmp_path))["format"].to_list() == ["delta"]


def test_tables_of_both_formats_are_found_below_one_folder(tmp_path: Path) -> None:
    DeltaHistory(tmp_path / "a").create()
    iceberg(tmp_path / "b/deep")
    iceberg(tmp_path / "c")
    tables = lv.find_tables(str(tmp_path))
    assert tables.schema == TABLES
    assert tables.select("format", "name").rows() == [("delta", "a"), ("iceberg", "b/deep"), ("iceberg", "c")]


METADATA_NAMES = [
    "v1.metadata.json", "v1.gz.metadata.json", "v1.metadata.json.gz", "00003-0b0c.metadata.json",
    "00003-0b0c.gz.metadata.json", "00003-0b0c.metadata.json.gz", "anything.metadata.json",
]  # fmt: skip


@pytest.mark.parametrize("name", METADATA_NAMES)
def test_an_iceberg_table_is_found_by_any_name_of_its_metadata(tmp_path: Path, name: str) -> None:
    (tmp_path / "a/t/metadata").mkdir(parents=True)
    data = text(document())
    (tmp_path / "a/t/metadata" / name).write_bytes(gzip.compress(data) if "gz" in name else data)
    tables = lv.find_tables(tmp_path)
    assert tables.rows() == [(f"{tmp_path}/a/t", "iceberg", "a/t")]
    assert lv.open_table(tables["address"][0]).format == "iceberg"


def test_partitions_of_a_table_are_not_looked_through_for_tables_and_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DeltaHistory(tmp_path / "year=2026/outer").create()
    iceberg(tmp_path / "year=2026/ice")
    for place in ("year=2026/outer/day=1", "year=2026/ice/data/day=1", "year=2026/outer/plain"):
        DeltaHistory(tmp_path / place / "t").create()
    (tmp_path / "metadata").mkdir()  # of no table
    looked: list[str] = []
    scan = os.scandir

    def noted(folder: str) -> Any:
        looked.append(folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", noted)
    tables = lv.find_tables(tmp_path)
    assert tables["name"].to_list() == ["year=2026/ice", "year=2026/outer", "year=2026/outer/plain/t"]
    assert not [folder for folder in looked if "day=1" in folder]


def test_tables_inside_the_folders_of_others_are_found(tmp_path: Path) -> None:
    DeltaHistory(tmp_path / "outer").create()
    iceberg(tmp_path / "outer/inner")
    DeltaHistory(tmp_path / "outer/inner/data/innermost").create()
    assert lv.find_tables(tmp_path).select("format", "name").rows() == [
        ("delta", "outer"),
        ("iceberg", "outer/inner"),
        ("delta", "outer/inner/data/innermost"),
    ]
    for address, format_ in lv.find_tables(tmp_path).select("address", "format").iter_rows():
        assert lv.open_table(address).format == format_


def test_a_metadata_folder_without_a_metadata_file_is_no_table(tmp_path: Path) -> None:
    for name in ("version-hint.text", "snap-1.avro", "v1.metadata.json.crc", "metadata.json"):
        (tmp_path / "t/metadata").mkdir(parents=True, exist_ok=True)
        (tmp_path / "t/metadata" / name).write_bytes(b"1")
    assert lv.find_tables(tmp_path).is_empty()
    with pytest.raises(NotATableError):
        lv.open_table(tmp_path / "t")


def test_a_metadata_file_that_is_not_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(NotATableError, match=r"v9.metadata.json"):
        lv.open_table(str(iceberg(tmp_path / "x") / "metadata/v9.metadata.json"))


def test_a_path_object_is_an_address(tmp_path: Path) -> None:
    DeltaHistory(tmp_path / "orders").commit(protocol(), metadata(), add("a.parquet"))
    assert lv.open_table(tmp_path / "orders").snapshot().num_files == 1
    assert lv.find_tables(tmp_path)["name"].to_list() == ["orders"]
