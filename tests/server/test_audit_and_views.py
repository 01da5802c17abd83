"""The audit log as a table, views as copies, Iceberg tables and tables in other stores."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.applications import Starlette

import lakeview as lv
from lakeview.sharing.server.audit import AUDIT, AuditLog, Entry
from lakeview.sharing.server.delta_source import DeltaSource
from lakeview.sharing.server.settings import TableEntry, ViewEntry
from lakeview.sharing.server.shared_views import ViewSource
from lakeview.storage import Storage
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.server.conftest import Api, Clock, hub_of
from tests.server.shared_lake import TABLE, configuration, months
from tests.server.test_queries import DELTA, share

# -- audit


@pytest.fixture
def audited(api: Api) -> Path:
    """Where the log of this server's requests will lie."""
    path = api.folder / "audit"
    api.hub.audit = AuditLog(str(path), api.clock)
    return path


def rows(path: Path) -> pl.DataFrame:
    return lv.open_table(path).scan().collect()


def test_every_request_is_a_row(api: Api, audited: Path) -> None:
    api.get("shares", headers={"User-Agent": "tester/1"})
    api.files("months", predicateHints=["month = 3"], limitHint=5)
    api.get("shares/lake/schemas/default/tables/fed/changes", startingVersion=1, endingVersion=2)
    api.get("shares/other")
    api.get("shares", "wrong")
    assert api.hub.audit is not None
    assert api.hub.audit.flush() == 5
    log_rows = rows(audited)
    assert log_rows.schema == AUDIT
    assert log_rows["action"].to_list() == ["list", "query", "changes", "list", "list"]
    assert log_rows["status"].to_list() == [200, 200, 200, 404, 401]
    assert log_rows["recipient"].to_list() == ["ann"] * 4 + [None]
    assert log_rows["agent"][0] == "tester/1"
    query = log_rows.row(1, named=True)
    assert (query["share"], query["schema"], query["table"], query["version"], query["files"]) == (
        "lake", "default", "months", 2, 1,
    )  # fmt: skip
    assert query["hints"] == '{"predicateHints":["month = 3"],"limitHint":5}'
    assert query["bytes"] > 100
    assert (log_rows["version"][2], log_rows["end_version"][2]) == (1, 2)
    assert log_rows["request_id"].n_unique() == 5


def test_reads_of_a_file_are_added_up(api: Api, audited: Path) -> None:
    file = api.files("months")[0]
    for _ in range(3):
        api.client.get(file["url"])
    api.client.get(file["url"], headers={"Range": "bytes=0-9"})
    assert api.hub.audit is not None
    api.hub.audit.flush()
    (file_reads,) = rows(audited).filter(pl.col("action") == "file").to_dicts()
    assert (file_reads["recipient"], file_reads["file"]) == ("ann", "month=5/part-5.parquet")
    assert (file_reads["requests"], file_reads["bytes"]) == (4, 3 * file["size"] + 10)


def test_the_log_grows_by_a_commit_a_flush_and_none_for_nothing(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path / "audit"), Clock())
    assert log.flush() == 0
    log.add(Entry(Clock()(), "1"))
    log.flush()
    log.flush()
    log.add(Entry(Clock()(), "2"))
    log.flush()
    assert lv.open_table(tmp_path / "audit").latest_version == 2


def test_what_cannot_be_written_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "audit").write_text("in the way")
    log = AuditLog(str(tmp_path / "audit"), Clock())
    log.add(Entry(Clock()(), "1"))
    assert log.flush() == 0
    assert "the audit log cannot be written" in caplog.text
    (tmp_path / "audit").unlink()
    assert log.flush() == 1


def test_the_log_is_written_when_the_server_ends(api: Api, audited: Path) -> None:
    from starlette.testclient import TestClient

    from lakeview.sharing.server.app import application

    app: Starlette = application(api.hub)
    with TestClient(app) as client:
        client.get("/delta-sharing/shares", headers=api.headers())
    assert rows(audited).height == 1


# -- views


def test_a_view_shares_its_columns_and_rows_and_no_others(api: Api) -> None:
    (file,) = api.files("some")
    frame = pl.read_parquet(BytesIO(api.client.get(file["url"]).content))
    assert frame.sort("id").to_dicts() == [{"id": 0, "month": 0}, {"id": 1, "month": 0}, {"id": 2, "month": 1}]


def test_a_view_keeps_its_ids_while_its_base_stays_and_follows_it(api: Api, tmp_path: Path) -> None:
    history = months(tmp_path / "base")
    share(api, tmp_path, "base", view={"where": "id > 9"})
    first = api.files("base")
    assert api.files("base") == first
    history.commit(history.data("month=9/x.parquet", {"id": [100], "city": ["x"]}, partition={"month": "9"}))
    second = api.files("base")
    assert {f["id"] for f in first}.isdisjoint(f["id"] for f in second)
    frames = [pl.read_parquet(BytesIO(api.client.get(f["url"]).content)) for f in second]
    assert sorted(pl.concat(frames)["id"]) == [10, 11, 100]


def test_two_processes_of_a_server_share_one_copy(tmp_path: Path) -> None:
    base = months(tmp_path / "base")
    entry = TableEntry("v", base.address, id="v", view=ViewEntry(where="id > 9"))

    def source() -> ViewSource:
        return ViewSource(entry, lv.open_table(base.address), str(tmp_path / "views"))

    one, other = source(), source()
    assert one.refresh() == other.refresh() == 1
    base.commit(base.data("month=9/x.parquet", {"id": [100], "city": ["x"]}, partition={"month": "9"}))
    with ThreadPoolExecutor(2) as pool:
        copies = list(pool.map(ViewSource.refresh, [one, other]))
    assert copies == [one.refresh()] * 2
    assert one.at(copies[0]).index.facts["path"].equals(other.at(copies[1]).index.facts["path"])


def test_a_view_of_columns_whose_names_are_patterns_to_polars(tmp_path: Path) -> None:
    base = str(tmp_path / "base")
    lv.create_table(base, {"^id$": pl.Int64, "id": pl.Int64}).append(pl.DataFrame({"^id$": [1], "id": [2]}))
    entry = TableEntry("v", base, id="v", view=ViewEntry(columns=["^id$"]))
    ViewSource(entry, lv.open_table(base), str(tmp_path / "views")).refresh()
    (copy,) = lv.find_tables(str(tmp_path / "views"))["address"]
    assert lv.scan(copy).collect().to_dict(as_series=False) == {"^id$": [1]}


def test_files_are_found_by_a_partition_column_whose_name_is_a_pattern_to_polars(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"^x$": pl.Int64, "id": pl.Int64}, partition_by=["^x$"])
    table.append(pl.DataFrame({"^x$": [1, 2], "id": [1, 2]}))
    bounds = DeltaSource(table).at(1).index.bounds(("^x$",))
    assert bounds is not None
    assert sorted(bounds.low) == [1, 2]


def test_the_past_of_a_view_is_not_shared(api: Api, tmp_path: Path) -> None:
    months(tmp_path / "base")
    share(api, tmp_path, "base", view={"columns": ["id"]})
    assert "history sharing is not enabled" in api.refused("base", version=0)[2]


@pytest.mark.parametrize("view", [{"columns": ["nothing"]}, {"where": "nothing = 1"}, {"where": "id = "}], ids=repr)
def test_a_view_that_cannot_be_made_is_refused_and_leaks_nothing(
    api: Api, tmp_path: Path, view: dict[str, Any]
) -> None:
    months(tmp_path / "base")
    share(api, tmp_path, "base", view=view)
    status, code, message = api.refused("base")
    assert (status, code) == (400, "INVALID_PARAMETER_VALUE")
    assert str(tmp_path) not in message


# -- other formats and stores


def field(number: int, name: str, type_: str) -> dict[str, Any]:
    return {"id": number, "name": name, "type": type_, "required": False}


def iceberg(folder: Path, *fields: dict[str, Any]) -> IcebergHistory:
    """Two files of whole numbers: 1 2 3, and 7 8."""
    history = IcebergHistory(folder / "ice", [field(1, "id", "long"), *fields])
    history.append("a.parquet", [{"id": i} for i in (1, 2, 3)])
    history.append("b.parquet", [{"id": i} for i in (7, 8)])
    return history


def test_an_iceberg_table_without_deletes_is_shared_as_parquet(api: Api, tmp_path: Path) -> None:
    iceberg(tmp_path)
    share(api, tmp_path, "ice")
    files = api.files("ice")
    ids = [i for f in files for i in pl.read_parquet(BytesIO(api.client.get(f["url"]).content))["id"]]
    assert sorted(ids) == [1, 2, 3, 7, 8]
    assert json.loads(files[0]["stats"])["numRecords"] in (2, 3)
    assert len(api.files("ice", predicateHints=["id > 5"])) == 1
    assert len(api.files("ice", limitHint=1)) == 1


def test_an_iceberg_table_has_no_delta_format_and_no_changes(api: Api, tmp_path: Path) -> None:
    iceberg(tmp_path)
    share(api, tmp_path, "ice")
    answer = api.post(TABLE.format("ice") + "/query", {}, DELTA)
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "UNSUPPORTED_OPERATION")
    assert answer.json()["message"] == "this table is given in responseformat=parquet only"
    assert api.get(TABLE.format("ice") + "/changes", startingVersion=0).status_code == 400


def test_versions_of_an_iceberg_table_are_its_snapshots(api: Api, tmp_path: Path) -> None:
    history = iceberg(tmp_path)
    share(api, tmp_path, "ice")
    first, second = (s["snapshot-id"] for s in history.document["snapshots"])
    assert api.post(TABLE.format("ice") + "/query", {}).headers["delta-table-version"] == str(second)
    assert len(api.files("ice", version=first)) == 1


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("deletes", "the table has 1 delete file, which Delta Sharing cannot describe"),
        ("type", "column u has the type uuid, for which this protocol has no word"),
        ("renamed", "column number had another name once, which Delta Sharing cannot describe"),
    ],
)
def test_what_plain_parquet_cannot_tell_is_refused_by_name(
    api: Api, tmp_path: Path, trouble: str, message: str
) -> None:
    history = iceberg(tmp_path, *([field(2, "u", "uuid")] if trouble == "type" else []))
    if trouble == "deletes":
        history.delete_positions("d.parquet", {next(iter(history._live)): [0]})
    if trouble == "renamed":
        history.evolve([field(1, "number", "long")])
        history.append("c.parquet", [{"number": 1}])
    share(api, tmp_path, "ice")
    assert api.refused("ice") == (400, "UNSUPPORTED_OPERATION", message)


def test_a_table_in_memory_is_served_by_us(api: Api) -> None:
    history = DeltaHistory("memory://shared-by-the-server").create()
    history.commit(history.data("a.parquet", {"id": [1]}))
    document = configuration(api.folder)
    table = {"name": "far", "location": "memory://shared-by-the-server"}
    document["shares"] = [{"name": "lake", "schemas": [{"name": "default", "tables": [table]}]}]
    document["recipients"] = [{"name": "ann", "shares": ["lake"]}]
    hub = hub_of(api.folder, document, api.clock)
    api.hub.catalogue = hub.catalogue
    api.hub.sources.configure(hub.settings)
    (file,) = api.files("far")
    assert api.client.get(file["url"]).content[:4] == b"PAR1"
    assert api.client.get(file["url"], headers={"Range": "bytes=-4"}).content == b"PAR1"


def test_urls_of_a_store_that_signs_are_its_own(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakeview.storage import LocalStorage

    def sign(self: Storage, path: str, seconds: int) -> str:
        return f"https://store.example/{path}?X-Amz-Expires={seconds}&X-Amz-Signature=x"

    monkeypatch.setattr(LocalStorage, "signed_url", sign)
    monkeypatch.setattr(LocalStorage, "remote", property(lambda _: True))
    urls = [f["url"] for f in api.files("months")]
    assert all(u.startswith("https://store.example/month=") for u in urls)
    (line,) = api.query("vectors", DELTA)[2:]
    assert line["file"]["deltaSingleAction"]["add"]["deletionVector"]["pathOrInlineDv"].startswith(
        "https://store.example/"
    )
