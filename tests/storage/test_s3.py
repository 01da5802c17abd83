"""Tables of both formats and of a catalog on S3, by moto."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.iceberg.table import IcebergTable
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, CommitConflictError, UnsupportedTableError
from lakeview.rows.parquet import read_task
from lakeview.storage import open_storage
from tests.builders.actions import add, metadata, protocol
from tests.builders.catalogs import RestState, rest_catalog, table
from tests.builders.history import DeltaHistory
from tests.builders.object_server import object_server
from tests.builders.s3 import REGION, Bucket, new_bucket, s3_server


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """One server for all tests of this file."""
    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """An empty bucket; nothing but storage options leads to it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return new_bucket(endpoint)


# -- tables


def test_a_delta_table_is_read_and_found(bucket: Bucket, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "orders").commit(protocol(), metadata(), add("a.parquet"))
    history.commit(add("b.parquet"))
    address = bucket.copy(tmp_path / "orders", "lake/orders")
    opened_table = lv.open_table(address, storage_options=bucket.options)
    assert (opened_table.address, opened_table.format, opened_table.latest_version) == (address, "delta", 1)
    assert opened_table.snapshot().num_files == 2
    assert lv.find_tables(f"s3://{bucket.name}", storage_options=bucket.options).rows() == [
        (address, "delta", "lake/orders")
    ]
    history.commit(add("c.parquet"))
    bucket.copy(tmp_path / "orders", "lake/orders")
    assert opened_table.refresh()
    assert opened_table.snapshot().num_files == 3


def test_a_delta_table_is_created_once(bucket: Bucket) -> None:
    address, schema = f"s3://{bucket.name}/new", pa.schema([("id", pa.int64())])
    created = lv.create_table(address, schema, storage_options=bucket.options)
    assert lv.open_table(address, storage_options=bucket.options).snapshot().schema == created.snapshot().schema
    with pytest.raises(CommitConflictError):
        lv.create_table(address, schema, storage_options=bucket.options)


def test_an_iceberg_table_is_read_with_its_rows(bucket: Bucket, tmp_path: Path) -> None:
    history = table(tmp_path / "orders", rows=3)
    address = bucket.copy(history.root, "orders")
    opened_table = lv.open_table(address, storage_options=bucket.options)
    assert (opened_table.address, opened_table.format) == (address, "iceberg")
    assert isinstance(opened_table, IcebergTable)
    assert sorted(opened_table.scan().collect()["id"].to_list()) == [0, 1, 2]
    assert opened_table.versions()["readable"].all()
    store = open_storage(address, options=bucket.options)
    rows = [b["id"].to_pylist() for task in opened_table.tasks() for b in read_task(task, store)]
    assert sorted(rows) == [[0], [1], [2]]


def at_catalog(bucket: Bucket, tmp_path: Path) -> RestState:
    history = table(tmp_path / "orders", rows=2)
    address = bucket.copy(history.root, "wh/orders")
    return RestState([("sales",)], {("sales", "orders"): f"{address}/metadata/v3.metadata.json"})


def settings_of(bucket: Bucket) -> dict[str, str]:
    return {
        "s3.endpoint": bucket.endpoint, "s3.access-key-id": "an-id", "s3.secret-access-key": "s3cr3t",
        "s3.region": REGION, "s3.path-style-access": "true",
    }  # fmt: skip


def test_what_a_catalog_hands_out_opens_its_store(bucket: Bucket, tmp_path: Path) -> None:
    state = at_catalog(bucket, tmp_path)
    away = settings_of(bucket) | {"s3.endpoint": "http://127.0.0.1:9"}
    longer = f"s3://{bucket.name}/wh"
    ways: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (settings_of(bucket), []),
        (away, [{"prefix": p, "config": c} for p, c in {"s3://": away, longer: settings_of(bucket)}.items()]),
    ]
    with rest_catalog(state) as uri:
        for state.config, state.credentials in ways:
            opened_table = lv.open_table("catalog://prod/sales.orders", catalog={"uri": uri})
            assert sorted(opened_table.scan().collect()["id"].to_list()) == [0, 1]
            assert not opened_table.refresh()
            assert "s3cr3t" not in repr(opened_table.snapshot())
        state.config = away
        with pytest.raises(AccessDeniedError, match="outside the allowed roots"):
            lv.open_table("catalog://prod/sales.orders", catalog={"uri": uri}, config=Config(roots=("s3://other",)))


def test_options_of_the_call_win_over_what_a_catalog_hands_out(bucket: Bucket, tmp_path: Path) -> None:
    state = at_catalog(bucket, tmp_path)
    state.config = settings_of(bucket) | {"s3.endpoint": "http://127.0.0.1:9"}
    with rest_catalog(state) as uri:
        opened_table = lv.open_table(
            "catalog://prod/sales.orders", catalog={"uri": uri}, storage_options=bucket.options
        )
        assert opened_table.snapshot().num_files == 2


def test_a_key_of_the_call_goes_without_the_session_token_of_the_catalog(tmp_path: Path) -> None:
    history = table(tmp_path / "orders", rows=1)
    with object_server() as server:
        address = f"{server.bucket()}/wh/orders"
        server.copy(history.root, address)
        state = RestState([("sales",)], {("sales", "orders"): f"{address}/metadata/v2.metadata.json"})
        state.config = {
            "s3.endpoint": server.endpoint, "s3.access-key-id": "vended", "s3.secret-access-key": "x",
            "s3.session-token": "of the catalog", "s3.region": REGION,
        }  # fmt: skip
        own = {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "s3cr3t"}
        with rest_catalog(state) as uri:
            for options, tokens in ((own, {None}), ({"AWS_REGION": REGION}, {"of the catalog"})):
                server.session_tokens.clear()
                opened_table = lv.open_table(
                    "catalog://prod/sales.orders", catalog={"uri": uri}, storage_options=options
                )
                assert opened_table.snapshot().num_files == 1
                assert server.session_tokens == tokens


def test_a_file_above_the_limit_is_refused_and_not_read_to_its_end(bucket: Bucket) -> None:
    store = open_storage(f"s3://{bucket.name}/t", options=bucket.options, config=Config(max_log_file_bytes=10))
    store.put("f", b"a" * 10)
    store.put("larger", b"a" * 1_000)
    store.put("empty", b"")
    assert (store.read("f"), store.read("empty")) == (b"a" * 10, b"")
    with pytest.raises(UnsupportedTableError, match="larger holds at least 1,000 bytes, more than the limit of 10"):
        store.read("larger")
