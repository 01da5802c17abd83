"""Tables on web servers: found by pages about folders, and without such pages by the names that a log must have."""

from __future__ import annotations

import socket
from pathlib import Path

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.log.probing import probe_log
from lakeview.model.config import Config
from lakeview.model.errors import InvalidRequestError, NotATableError, StoreUnavailableError, UnsupportedTableError
from lakeview.storage import LocalStorage, open_storage
from lakeview.storage.directory_index import IndexEntry, parse_index
from tests.builders.catalogs import table
from tests.builders.web import web_server

SERVERS = {
    "shows folders, gives parts": (True, True),
    "shows folders, whole files": (True, False),
    "no folders": (False, True),
}


def orders(folder: Path, appends: int = 12) -> Path:
    """A Delta table of some appends of one row; the tenth writes a checkpoint."""
    new_table = lv.create_table(folder, pa.schema([("id", pa.int64()), ("day", pa.string())]), partition_by=["day"])
    for number in range(appends):
        new_table.append(pa.table({"id": [number], "day": [f"a b%{number % 2}"]}))
    return folder


@pytest.mark.parametrize(("lists", "ranges"), SERVERS.values(), ids=SERVERS)
def test_a_delta_table_is_read(tmp_path: Path, lists: bool, ranges: bool) -> None:
    orders(tmp_path / "lake/orders")
    with web_server(tmp_path, lists=lists, ranges=ranges) as server:
        opened_table = lv.open_table(f"{server.address}/lake/orders")
        assert (opened_table.format, opened_table.latest_version) == ("delta", 12)
        assert sorted(opened_table.scan().collect()["id"].to_list()) == list(range(12))
        assert sorted(opened_table.scan(3).collect()["id"].to_list()) == [0, 1, 2]
        assert opened_table.snapshot().timestamp is not None
        assert opened_table.history()["version"].to_list() == list(range(12, -1, -1))
        versions = opened_table.versions()
        assert versions["timestamp"].null_count() == 0
        assert versions["readable"].to_list() == [True if lists else None] * 13
        lv.open_table(tmp_path / "lake/orders").append(pa.table({"id": [12], "day": ["c"]}))  # type: ignore[union-attr]
        assert opened_table.refresh()
        assert opened_table.snapshot().num_records == 13


def test_tables_are_found_where_folders_are_shown(tmp_path: Path) -> None:
    orders(tmp_path / "lake/orders", 1)
    table(tmp_path / "lake/iceberg", rows=2)
    with web_server(tmp_path) as server:
        assert lv.find_tables(server.address)["name"].to_list() == ["lake/iceberg", "lake/orders"]
        # its log names files by an address on a disk: what is shown is what the log holds
        assert lv.open_table(f"{server.address}/lake/iceberg").snapshot().num_files == 2
        with pytest.raises(NotATableError, match="it holds files but neither"):
            lv.open_table(f"{server.address}/lake")
    with (
        web_server(tmp_path, lists=False) as server,
        pytest.raises(UnsupportedTableError, match="shows no listing of the folder") as caught,
    ):
        lv.find_tables(server.address)
    assert "directory listing" in str(caught.value.fix)


def test_an_iceberg_table_without_listings_is_found_by_its_hint(tmp_path: Path) -> None:
    history = table(tmp_path / "orders", rows=2)
    newest = max((history.root / "metadata").glob("v*.metadata.json")).name
    with web_server(tmp_path, lists=False) as server:
        with pytest.raises(NotATableError):
            lv.open_table(f"{server.address}/orders")
        explicit = lv.open_table(f"{server.address}/orders/metadata/{newest}")
        (history.root / "metadata/version-hint.text").write_text(newest[1:].partition(".")[0])
        assert lv.open_table(f"{server.address}/orders").snapshot().version == explicit.snapshot().version


def test_what_is_no_table_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    for lists in (True, False):
        with web_server(tmp_path, lists=lists) as server, pytest.raises(NotATableError):
            lv.open_table(f"{server.address}/nowhere")


def test_a_server_that_takes_the_connection_and_is_silent_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.storage.web._READ_SECONDS", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(StoreUnavailableError, match=f"{port}/t does not answer, asked for f: ReadTimeout"):
            open_storage(f"http://127.0.0.1:{port}/t").read("f")
        silent.accept()[0].close()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_a_web_server_is_only_read_and_only_below_the_address(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    with web_server(tmp_path) as server:
        store = open_storage(f"{server.address}/")
        assert (store.read("f"), store.read_range("f", 1, 1), store.read_range("f", 9, 1)) == (b"abc", b"b", b"")
        for write in (store.put, store.put_if_absent):
            with pytest.raises(UnsupportedTableError, match="a web server is only read"):
                write("g", b"")
        small = open_storage(server.address, config=Config(max_log_file_bytes=2))
        with pytest.raises(UnsupportedTableError, match="more than the limit of 2"):
            small.read("f")
    for address, words in (("https://host/t?token=s3cr3t", "is no folder of a web server"),):
        with pytest.raises(InvalidRequestError, match=words) as caught:
            open_storage(address)
        assert "s3cr3t" not in str(caught.value)
    with pytest.raises(InvalidRequestError, match="key is no storage option of a web server"):
        open_storage("https://host/t", options={"key": "x"})


@pytest.mark.parametrize("appends", [0, 1, 5, 9, 23])
def test_a_log_is_probed_to_its_end(tmp_path: Path, appends: int) -> None:
    root = orders(tmp_path / "t", appends)
    store = LocalStorage(str(root), Config())
    names = [name for name in store.list_from("_delta_log")["name"] if name.endswith((".json", ".parquet"))]
    probed = [name for name, _, _ in probe_log(store)]
    older = [name for name in names if name.endswith("parquet")][:-1]  # the hint names the newest checkpoint
    assert probed == [name for name in names if name not in older]
    newest = [name for name, _, _ in probe_log(store, appends)]
    assert newest[0].startswith(f"{appends:020d}")


def test_a_log_whose_first_commits_are_gone_is_probed_from_its_checkpoint(tmp_path: Path) -> None:
    root = orders(tmp_path / "t", 12)
    for version in range(10):
        (root / f"_delta_log/{version:020d}.json").unlink()
    store = LocalStorage(str(root), Config())
    assert [name[18:] for name, _, _ in probe_log(store)] == ["10.checkpoint.parquet", "10.json", "11.json", "12.json"]


APACHE = """<html><head><title>Index of /t</title></head><body><h1>Index of /t</h1><pre>
<a href="?C=N;O=D">Name</a> <a href="/">Parent Directory</a>
<a href="_delta_log/">_delta_log/</a>     2026-07-15 03:25    -
<a href="a%20b.parquet">a b.parquet</a>   2026-07-15 03:25  1.5K
</pre></body></html>"""
NGINX = """<html><head><title>Index of /t/</title></head><body><h1>Index of /t/</h1><hr><pre><a href="../">../</a>
<a href="0.json">0.json</a>                      15-Jul-2026 03:25                1536
</pre></body></html>"""
AT = 1_784_085_900_000
PAGES = {
    "Apache": (APACHE, [IndexEntry("_delta_log", True, 0, AT), IndexEntry("a b.parquet", False, 0, AT)]),
    "nginx": (NGINX, [IndexEntry("0.json", False, 1536, AT)]),
    "an empty folder": ("<title>Directory listing for /t/</title>", []),
    "a page of another kind": ('<html><a href="https://elsewhere/t/x">x</a></html>', None),
    "links that climb": ('<title>Index of /t</title><a href="/t/../x">x</a><a href="//h/t/y">y</a>', []),
}


@pytest.mark.parametrize(("page", "expected"), PAGES.values(), ids=PAGES)
def test_a_page_about_a_folder_is_read(page: str, expected: list[IndexEntry] | None) -> None:
    assert parse_index(page, "https://host/t/") == expected
