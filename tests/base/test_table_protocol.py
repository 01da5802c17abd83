"""What a user of polars or pyiceberg expects of tables, snapshots and `lv.scan`, of every format."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import lakeview as lv
from lakeview.model.clock import system_clock
from lakeview.model.errors import InvalidRequestError, LakeviewError, NotATableError
from lakeview.views.health.findings import FINDINGS
from tests.builders.iceberg import IcebergHistory
from tests.pages import tables
from tests.server.conftest import listening


@pytest.fixture(scope="module", params=["delta", "iceberg", "sharing"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "iceberg":
        yield iceberg_table(folder / "t")
        return
    root = tables.good(folder / "t")
    if request.param == "delta":
        yield str(root)
        return
    shared = [{"name": "t", "location": str(root), "historyShared": True}]
    document = {
        "shares": [{"name": "lake", "schemas": [{"name": "default", "tables": shared}]}],
        "recipients": [{"name": "ann", "shares": ["lake"]}],
        "tokens": "tokens.json",
        "port": 0,
    }
    with listening(folder, folder, document) as server:
        yield f"{server.profile}#lake.default.t"


def iceberg_table(root: Path) -> str:
    fields = [
        {"id": 1, "name": "month", "required": False, "type": "int"},
        {"id": 2, "name": "carrier", "required": False, "type": "string"},
    ]
    history = IcebergHistory(root, fields, [(1, "identity", "month")], location=str(root))
    for month in (1, 2):
        history.append(f"load-{month}", [{"month": month, "carrier": carrier} for carrier in ("AA", "B6", "UA")])
    return history.address


def test_an_address_is_scanned_at_any_version(address: str) -> None:
    table = lv.open_table(address)
    for version in table.versions()["version"]:
        assert_frame_equal(lv.scan(address, version).collect(), table.scan(version).collect(), check_row_order=False)
    assert lv.scan(address).select(pl.len()).collect().item() == table.snapshot().num_records
    with pytest.raises(InvalidRequestError):
        lv.scan(address, at=datetime(2026, 1, 1))  # noqa: DTZ001 (naive on purpose)
    with pytest.raises(NotATableError):
        lv.scan(f"{address}-elsewhere")


def test_a_snapshot_reads_its_own_version(address: str) -> None:
    table = lv.open_table(address)
    for version in table.versions()["version"]:
        snapshot = table.snapshot(version)
        assert_frame_equal(snapshot.scan().collect(), table.scan(version).collect(), check_row_order=False)
        assert_frame_equal(snapshot.statistics(["carrier"]), table.statistics(version, ["carrier"]))
        assert_frame_equal(snapshot.plan("carrier = 'AA'"), table.plan("carrier = 'AA'", version))


def test_a_snapshot_that_was_pickled_says_how_to_read(address: str) -> None:
    snapshot = lv.open_table(address).snapshot()
    travelled = pickle.loads(pickle.dumps(snapshot))
    assert travelled.files.equals(snapshot.files)
    for read in (travelled.scan, travelled.statistics, lambda: travelled.plan("TRUE")):
        with pytest.raises(InvalidRequestError, match="has no table to read from") as caught:
            read()
        assert f".snapshot({snapshot.version})" in str(caught.value.fix)


def test_a_table_has_a_schema_and_health(address: str) -> None:
    table = lv.open_table(address)
    assert table.schema == table.snapshot().schema
    health = table.health()
    assert health.schema == FINDINGS
    assert health["id"].to_list() == lv.inspect(table).health()["id"].to_list()


def test_tables_and_snapshots_draw_themselves_as_plain_html(address: str) -> None:
    table = lv.open_table(address)
    assert f"<b>{table.address}</b>" in table._repr_html_()
    assert str(table.latest_version) in table._repr_html_()
    assert "carrier" in table._repr_html_()
    assert repr(table) == f"{type(table).__name__}({table.address!r}, latest={table.latest_version})"


def test_a_table_that_cannot_be_read_draws_its_error(tmp_path: Path) -> None:
    table = lv.open_table(tables.unsupported(tmp_path / "t"))
    with pytest.raises(LakeviewError) as caught:
        table.snapshot()
    assert caught.value.message.partition(" ")[0] in table._repr_html_()


def test_a_refresh_without_news_is_false(address: str) -> None:
    table = lv.open_table(address)
    assert table.refresh() is False
    # a share gives no times of its commits
    first = table.history()["timestamp"].min() or system_clock()
    assert isinstance(first, datetime)
    assert table.snapshot(at=first.astimezone(UTC)).version in table.versions()["version"]


def test_the_rows_of_chosen_files(address: str) -> None:
    table = lv.open_table(address)
    paths = table.files()["path"].to_list()
    parts = [table.scan(paths=[path]).collect() for path in paths]
    assert [part.height for part in parts] == table.files()["records"].to_list()
    assert_frame_equal(pl.concat(parts), table.scan().collect(), check_row_order=False)
    month = parts[0]["month"][0]
    assert table.scan(paths=paths[:1]).filter(month=month).collect().height == parts[0].filter(month=month).height
    with pytest.raises(InvalidRequestError, match="has no data file"):
        table.scan(paths=[*paths, "elsewhere.parquet"]).collect()
    with pytest.raises(InvalidRequestError, match="has no data file"):
        table.scan(paths=["elsewhere.parquet"]).filter(month=month).collect()
