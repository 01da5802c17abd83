"""Delta tables on every object store: found, read, listed version by version, and written to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.iceberg.catalog.stores import store_options
from lakeview.model.errors import NotATableError
from lakeview.storage import open_storage
from tests.builders.object_server import ObjectServer, object_server


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    """One server for all tests of this file."""
    with object_server() as server_state:
        yield server_state


ROOTS = {
    "s3": "s3://{}", "s3a": "s3a://{}", "google": "gs://{}", "azure": "az://{}",
    "azure, with its account": "abfss://{}@account.dfs.core.windows.net",
}  # fmt: skip


@pytest.mark.parametrize("name", ROOTS)
def test_a_table_is_written_found_and_every_version_is_readable(name: str, server: ObjectServer) -> None:
    kind = {"s3a": "s3"}.get(name, name.partition(",")[0])
    options = server.options(kind)
    root = ROOTS[name].format(server.bucket(kind).partition("://")[2])
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    created = lv.create_table(f"{root}/lake/orders", schema, partition_by=["day"], storage_options=options)
    for number in range(3):
        created.append(pa.table({"id": [number], "day": [f"d {number}"]}))
    table = lv.open_table(f"{root}/lake/orders", storage_options=options)
    assert table.versions()["readable"].to_list() == [True] * 4
    assert sorted(table.scan().collect()["id"].to_list()) == [0, 1, 2]
    assert [finding.id for finding in table.check() if "missing" in finding.id] == []
    for above in (root, f"{root}/lake"):
        assert lv.find_tables(above, storage_options=options)["address"].to_list() == [f"{root}/lake/orders"]


def test_a_folder_that_is_called_like_a_profile_is_listed(server: ObjectServer) -> None:
    root, options = f"{server.bucket('s3')}/team.share", server.options("s3")
    address = lv.create_table(f"{root}/t", pa.schema([("id", pa.int64())]), storage_options=options).address
    assert lv.find_tables(root, storage_options=options)["address"].to_list() == [address]
    with pytest.raises(NotATableError, match=r"there is no profile at .*/none\.share"):
        lv.find_tables(f"{server.bucket('s3')}/none.share", storage_options=options)


def test_a_table_that_was_copied_there_is_read_with_its_history(server: ObjectServer, tmp_path: Path) -> None:
    source_table = lv.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]))
    source_table.append(pa.table({"id": [1]}))
    address = f"{server.bucket('azure')}/t"
    server.copy(tmp_path / "t", address)
    table = lv.open_table(address, storage_options=server.options("azure"))
    assert table.history()["operation"].to_list() == source_table.history()["operation"].to_list()


def test_addresses_are_signed_where_the_credentials_can(server: ObjectServer) -> None:
    signed = {}
    for kind in ("s3", "azure", "google"):
        store = open_storage(f"{server.bucket(kind)}/t", options=server.options(kind))
        store.put("a b", b"whole")
        signed[kind] = store.signed_url("a b", 60)
    assert "X-Amz-Signature=" in str(signed["s3"])
    assert "sig=" in str(signed["azure"])
    assert signed["google"] is None, "a bearer token signs nothing"
    with urlopen(str(signed["s3"])) as answer:
        assert answer.read() == b"whole"


def test_a_bucket_is_a_folder_too(server: ObjectServer) -> None:
    for kind in ("s3", "azure"):
        store = open_storage(server.bucket(kind), options=server.options(kind))
        store.put("a", b"1")
        store.put("b/c", b"22")
        assert store.list_from("")["name"].to_list() == ["a"]
        assert store.list_from("", "b")["name"].to_list() == []
        assert store.walk().select("name", "size").rows() == [("a", 1), ("b/c", 2)]


HANDED_OUT = {
    "Google": (
        "gs://b/t", {"gcs.oauth2.token": "t", "gcs.project-id": "p"}, {"bearer_token": "t"},
    ),
    "Azure, for its host": (
        "abfss://c@a.dfs.core.windows.net/t",
        {"adls.sas-token.a.dfs.core.windows.net": "s", "adls.sas-token.b.dfs.core.windows.net": "of another"},
        {"sas_key": "s"},
    ),
    "Azure, for its account": (
        "abfss://c@a.dfs.core.windows.net/t", {"adls.sas-token.a": "s", "adls.account-name": "a"},
        {"sas_key": "s", "account_name": "a"},
    ),
    "a store that catalogs know nothing of": ("hdfs://h/t", {"gcs.oauth2.token": "t"}, {}),
}  # fmt: skip


@pytest.mark.parametrize(("location", "properties", "expected"), HANDED_OUT.values(), ids=HANDED_OUT)
def test_what_a_catalog_hands_out_becomes_storage_options(
    location: str, properties: dict[str, str], expected: dict[str, str]
) -> None:
    assert store_options(location, properties) == expected
