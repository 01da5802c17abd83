"""Tables of SQL and Glue catalogs, and of a pyiceberg that is not installed: found, and never written to."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from click.testing import CliRunner
from moto import mock_aws

import lakeview as lv
from lakeview.app.code_samples import View, snippets
from lakeview.cli import main
from lakeview.model.config import Config
from lakeview.model.errors import (
    AccessDeniedError,
    InvalidRequestError,
    MissingExtraError,
    NotATableError,
    StoreUnavailableError,
    UnsupportedTableError,
)
from tests.builders.catalogs import newest, sqlite_catalog, table

ORDERS = "catalog://prod/sales.eu.orders"
REGION = "eu-central-1"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again costs no time."""
    monkeypatch.setattr("lakeview.storage.retries.back_off", lambda *_, **__: None)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A SQLite catalog with one table of two rows, configured by the name `prod` as pyiceberg has it configured."""
    path = tmp_path / "the catalog #1 100%.db"
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{path}")
    with sqlite_catalog(path, {("sales", "eu", "orders"): newest(table(tmp_path / "orders", rows=2))}):
        pass
    return path


def test_a_sqlite_catalog_gives_its_tables(database: Path) -> None:
    assert lv.find_tables("catalog://prod").rows() == [(ORDERS, "iceberg", "sales.eu.orders")]
    assert lv.find_tables("catalog://prod/sales")["name"].to_list() == ["eu.orders"]
    opened_table = lv.open_table(ORDERS)
    assert opened_table.address == ORDERS
    assert sorted(opened_table.scan().collect()["id"].to_list()) == [0, 1]


def test_what_pyiceberg_writes_through_a_catalog_is_followed(database: Path) -> None:
    with sqlite_catalog(database, {}) as catalog:
        new_table = catalog.create_table("sales.eu.new", pa.schema([("id", pa.int64())]))
        opened_table = lv.open_table("catalog://prod/sales.eu.new")
        assert opened_table.scan().collect().is_empty()
        assert not opened_table.refresh()
        new_table.append(pa.table({"id": [1, 2]}))
        assert opened_table.refresh()
        assert opened_table.scan().collect()["id"].to_list() == [1, 2]
        catalog.rename_table("sales.eu.new", "sales.eu.newer")
        with pytest.raises(NotATableError, match="no longer in its catalog"):
            opened_table.refresh()


def test_a_catalog_is_only_read(database: Path, tmp_path: Path) -> None:
    before = database.read_bytes()
    lv.find_tables("catalog://prod")
    lv.open_table(ORDERS).refresh()
    assert database.read_bytes() == before
    own = Config(catalogs={"prod": {"uri": f"sqlite:///{tmp_path}/gone.db"}})
    with pytest.raises(StoreUnavailableError, match="the catalog prod did not answer: OperationalError"):
        lv.find_tables("catalog://prod", config=own)
    assert not (tmp_path / "gone.db").exists()
    sqlite3.connect(tmp_path / "empty.db").close()
    with pytest.raises(StoreUnavailableError):
        lv.find_tables("catalog://prod", catalog={"uri": f"sqlite:///{tmp_path}/empty.db"})
    assert (tmp_path / "empty.db").stat().st_size == 0, "no tables were created in it"


def test_pyiceberg_opens_no_file_of_a_table(database: Path, tmp_path: Path) -> None:
    """Its metadata is read by lakeview, below the allowed roots: what pyiceberg does not know does not matter."""
    with pytest.raises(AccessDeniedError, match=f"{ORDERS} lies at {tmp_path}/orders, outside the allowed roots"):
        lv.open_table(ORDERS, config=Config(roots=("/nowhere",)))
    with sqlite_catalog(database, {}) as catalog:
        catalog.properties["py-io-impl"] = "os.path.join"
    properties = {"py-io-impl": "os.path.join"}
    assert lv.open_table(ORDERS, catalog=properties).scan().collect().height == 2


MISSING = {
    "sales.eu.nothing": "catalog://prod/sales.eu.nothing is not there: the catalog holds no table of this name",
    "sales.us.orders": "catalog://prod/sales.us is not there: the catalog holds no such namespace",
}


@pytest.mark.parametrize(("names", "message"), MISSING.items(), ids=list(MISSING))
def test_a_name_that_is_not_there_is_told(database: Path, names: str, message: str) -> None:
    with pytest.raises(NotATableError) as caught:
        lv.open_table(f"catalog://prod/{names}")
    assert caught.value.message == message


def test_the_command_line_and_the_app_take_such_addresses(database: Path) -> None:
    done = CliRunner().invoke(main, ["show", ORDERS])
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["address", ORDERS] in lines
    assert ["format", "iceberg"] in lines
    done = CliRunner().invoke(main, ["show", "catalog://prod/sales.eu.nothing"])
    assert done.exit_code == 2
    assert "error: catalog://prod/sales.eu.nothing is not there" in done.stderr
    code = snippets(View("data", "iceberg", ORDERS, 1002))
    assert sorted(code) == ["PySpark", "lakeview", "pyiceberg"]
    assert ".table('prod.sales.eu.orders')" in code["PySpark"]
    assert "load_catalog('prod').load_table('sales.eu.orders')" in code["pyiceberg"]
    assert list(snippets(View("data", "iceberg", "catalog://prod/a.b%2Ec", 1))) == ["lakeview"]


# -- Glue


@pytest.fixture
def glue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A Glue catalog in this process: an Iceberg table of two rows, a Hive table, and one with no location."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    tables = {
        "orders": {"table_type": "ICEBERG", "metadata_location": newest(table(tmp_path / "orders", rows=2))},
        "hive": {"table_type": "HIVE"},
        "lost": {"table_type": "ICEBERG"},
    }
    with mock_aws():
        client = boto3.client("glue", region_name=REGION)
        client.create_database(DatabaseInput={"Name": "sales"})
        for name, parameters in tables.items():
            client.create_table(DatabaseName="sales", TableInput={"Name": name, "Parameters": parameters})
        yield {"type": "glue", "glue.region": REGION}


def test_a_glue_catalog_gives_its_iceberg_tables(glue: dict[str, str], tmp_path: Path) -> None:
    addresses = lv.find_tables("catalog://aws/", catalog=glue)
    assert set(addresses["name"]) == {"sales.lost", "sales.orders"}
    opened = lv.open_table("catalog://aws/sales.orders", catalog=glue)
    assert sorted(opened.scan().collect()["id"].to_list()) == [0, 1]
    assert not opened.refresh()
    boto3.client("glue", region_name=REGION).update_table(
        DatabaseName="sales",
        TableInput={
            "Name": "orders",
            "Parameters": {
                "table_type": "ICEBERG",
                "metadata_location": f"{tmp_path}/orders/metadata/v2.metadata.json",
            },
        },
    )
    assert opened.refresh()
    assert opened.scan().collect()["id"].to_list() == [0]


@pytest.mark.parametrize("name", ["hive", "lost"])
def test_what_is_no_iceberg_table_in_glue_is_told(glue: dict[str, str], name: str) -> None:
    with pytest.raises(UnsupportedTableError) as caught:
        lv.open_table(f"catalog://aws/sales.{name}", catalog=glue)
    assert caught.value.message == f"catalog://aws/sales.{name} is in the catalog, but it is no Iceberg table"


def test_what_is_not_in_glue_is_told(glue: dict[str, str]) -> None:
    for names, words in {"sales.x": "no table of this name", "x.orders": "no such namespace"}.items():
        with pytest.raises(NotATableError, match=words):
            lv.open_table(f"catalog://aws/{names}", catalog=glue)
    with pytest.raises(NotATableError, match="no such namespace"):
        lv.find_tables("catalog://aws/x", catalog=glue)


def test_glue_without_a_region_or_that_is_down_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(InvalidRequestError, match="could not be asked: NoRegionError"):
        lv.open_table("catalog://aws/a.b", catalog={"type": "glue"})
    down: dict[str, Any] = {
        "type": "glue", "glue.region": REGION, "glue.endpoint": "http://127.0.0.1:9", "glue.max-retries": 1,
        "glue.access-key-id": "s3cr3t-id", "glue.secret-access-key": "s3cr3t-key",
    }  # fmt: skip
    with pytest.raises(StoreUnavailableError, match="did not answer: EndpointConnectionError") as caught:
        lv.open_table("catalog://aws/a.b", catalog=down)
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(InvalidRequestError, match="could not be asked: ValueError"):
        lv.open_table("catalog://aws/a.b", catalog=down | {"glue.max-retries": "1"})


# -- what is not installed

ABSENT = """
import sys
sys.modules["pyiceberg"] = None
import lakeview as lv
for ask in (lv.open_table, lv.find_tables):
    try:
        ask("catalog://prod/a.b", catalog={"uri": "http://127.0.0.1:9"})
    except lv.errors.MissingExtraError as error:
        print(error.message, "|", error.fix)
"""


def test_without_pyiceberg_the_extra_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", ABSENT], capture_output=True, text=True, check=True)
    assert (
        done.stdout.splitlines()
        == ["opening the catalog prod needs pyiceberg, which is not installed | pip install 'lakeview[catalogs]'"] * 2
    )


def test_a_type_whose_package_is_not_installed_is_told() -> None:
    with pytest.raises(MissingExtraError, match="is of a type whose package is not installed"):
        lv.open_table("catalog://prod/a.b", catalog={"uri": "thrift://127.0.0.1:9"})


def test_a_broken_configuration_of_pyiceberg_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG", "s3cr3t")
    with pytest.raises(InvalidRequestError, match="pyiceberg's configuration cannot be read") as caught:
        lv.open_table("catalog://prod/a.b")
    assert "s3cr3t" not in str(caught.value)
