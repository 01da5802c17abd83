"""Views whose tables change under them, that are copied by several at once, or asked for more than they show."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from threading import Barrier
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.model.clock import system_clock
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.sharing.server.settings import TableEntry, ViewEntry
from lakeview.sharing.server.shared_views import ViewSource
from tests.builders.actions import metadata, protocol
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.builders.mapped import field as mapped_field
from tests.builders.mapped import mapped
from tests.server.conftest import Api, lines
from tests.server.shared_lake import TABLE, months
from tests.server.test_queries import DELTA, share


def source(address: str, folder: Path, view: ViewEntry) -> ViewSource:
    """A view as one process of a server has it."""
    return ViewSource(TableEntry("v", address, id="v", view=view), lv.open_table(address), str(folder / "views"))


def rows_of(api: Api, table: str) -> pl.DataFrame:
    return pl.concat(pl.read_parquet(BytesIO(api.client.get(f["url"]).content)) for f in api.files(table))


def one_file(folder: Path, **columns: str) -> DeltaHistory:
    history = DeltaHistory(folder).create(dict(columns))
    return history.commit(history.data("a.parquet", {"id": [1, 2]}))


@pytest.mark.parametrize(
    "where",
    ["id = 'x'", "city = 3", "month", "id IN ('a')", "NOT city", "city > DATE '2020-01-01'", "CAST(city AS INT) = 1",
     "id > (SELECT 1)", "NULL", "1"],
)  # fmt: skip
def test_a_condition_that_cannot_be_evaluated_is_a_permanent_fault(api: Api, tmp_path: Path, where: str) -> None:
    months(tmp_path / "base")
    share(api, tmp_path, "base", view={"where": where})
    for _ in range(2):
        assert api.refused("base") == (
            400, "INVALID_PARAMETER_VALUE", "the request cannot be carried out for this table (bad-predicate)",
        )  # fmt: skip


@pytest.mark.parametrize(
    "where", ["id > 1 AND day >= CURRENT_DATE", "day > current_date() - 7", "t < NOW( )", "t < localtimestamp"]
)
def test_a_view_does_not_depend_on_the_moment_it_is_copied(api: Api, tmp_path: Path, where: str) -> None:
    months(tmp_path / "base")
    share(api, tmp_path, "base", view={"where": where})
    assert api.refused("base")[2].endswith("(bad-predicate)")


def test_words_in_quotes_mean_no_moment(api: Api, tmp_path: Path) -> None:
    months(tmp_path / "base")
    share(api, tmp_path, "base", view={"where": "city <> 'now()' AND city <> 'it''s current_date'"})
    assert rows_of(api, "base").height == 12


def test_processes_that_copy_a_view_for_the_first_time_at_once_share_one_copy(tmp_path: Path) -> None:
    base = months(tmp_path / "base")
    together = Barrier(4)

    def first(_: int) -> tuple[int, int]:
        together.wait()
        view = source(base.address, tmp_path, ViewEntry(where="id > 9"))
        version = view.refresh()
        return version, view.at(version).index.facts.height

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(first, range(4))) == [(1, 1)] * 4


def test_a_view_copies_no_variants(tmp_path: Path) -> None:
    base = lv.create_table(str(tmp_path / "base"), Schema((Field("v", PrimitiveType("variant")),)))
    with pytest.raises(UnsupportedTableError, match="column v of the view is a variant"):
        source(base.address, tmp_path, ViewEntry()).refresh()
    assert not (tmp_path / "views").exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"id": "long", "x": "string"}, {"id": "long"}),
        ({"id": "long", "x": "string"}, {"id": "long", "x": "integer"}),
        ({"id": "long", "x": "integer"}, {"id": "long", "x": "long"}),
        ({"id": "long", "x": "long"}, {"x": "long", "id": "long"}),
        ({"id": "long"}, {"id": "long", "x": "date"}),
    ],
    ids=["dropped", "of another type", "widened", "in another order", "added"],
)
def test_a_view_follows_its_table_to_another_schema(
    api: Api, tmp_path: Path, before: dict[str, str], after: dict[str, str]
) -> None:
    history = one_file(tmp_path / "base", **before)
    share(api, tmp_path, "base", view={"where": "id > 1"})
    assert rows_of(api, "base").columns == list(before)
    first = api.post(TABLE.format("base") + "/query", {}).headers["delta-table-version"]
    history.commit(metadata(after))
    rows = rows_of(api, "base")
    assert rows.columns == list(after)
    assert rows["id"].to_list() == [2]
    second = api.post(TABLE.format("base") + "/query", {}).headers["delta-table-version"]
    assert int(second) > int(first)  # clients look for a version that is higher


def test_copies_that_nobody_reads_any_more_are_removed(tmp_path: Path) -> None:
    base = one_file(tmp_path / "base", id="long")
    moment = [system_clock()]
    entry = TableEntry("v", base.address, id="v", view=ViewEntry(where="id > 0"))
    view = ViewSource(entry, lv.open_table(base.address), str(tmp_path / "views"), lambda: moment[0])

    def copies(count: int) -> int:
        for _ in range(count):
            base.commit(base.data(f"x{base.version}.parquet", {"id": [7]}))
            view.refresh()
        return len(list((tmp_path / "views").rglob("part-*.parquet")))

    assert copies(9) == 10  # what the last week's URLs and page tokens name
    moment[0] += timedelta(days=8)
    assert copies(10) == 11  # the last one of before, which was live eight days ago
    assert view.at(view.refresh()).index.facts["records"].sum() == 21


def test_neither_log_nor_lines_of_a_view_name_what_it_hides(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "base")
    hidden = mapped_field("salary", "long", 2)
    note = {"delta.generationExpression": "salary * 2", "comment": "a number"}
    history.commit(*mapped("name", mapped_field("id", "long", 1, **note), hidden))
    stats = {"numRecords": 3, "minValues": {"col-2": 1111}, "maxValues": {"col-2": 9999}}
    history.commit(history.data("m.parquet", {"col-1": [1, 2, 3], "col-2": [1111, 5555, 9999]}, stats=stats))
    share(api, tmp_path, "base", view={"columns": ["id"], "where": "salary > 2000"})
    for headers in ({}, DELTA):
        answer = api.post(TABLE.format("base") + "/query", {}, headers)
        assert '\\"maxValues\\":{\\"id\\":3}' in answer.text
        text = re.sub(r"[0-9a-f]{13,}", "", answer.text)  # digests and moments contain any four digits now and then
        for word in (
            "salary",
            "1111",
            "5555",
            "9999",
            "col-",
            "columnMapping",
            "generationExpression",
            "lakeview-view",
        ):
            assert word not in text, word
    data = api.client.get(api.files("base")[0]["url"]).content
    assert b"salary" not in data
    assert b"col-" not in data


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("query", {"version": 0}),
        ("query", {"timestamp": "2026-01-01T00:00:00Z"}),
        ("query", {"startingVersion": 0}),
        ("changes", {"startingVersion": 0}),
        ("version", {"startingTimestamp": "2020-01-01T00:00:00Z"}),
        ("metadata", {"version": 0}),
    ],
)
def test_a_view_shared_with_its_history_has_none(api: Api, tmp_path: Path, what: str, body: dict[str, Any]) -> None:
    months(tmp_path / "base")
    share(api, tmp_path, "base", view={"columns": ["id"]})  # which shares history, as far as the entry says
    path = f"{TABLE.format('base')}/{what}"
    answer = api.post(path, body) if what == "query" else api.get(path, **body)
    assert answer.status_code == 400
    refused = "cdf is not enabled on table" if what == "changes" else "Reading table by version or timestamp is not"
    assert refused in answer.json()["message"]


def test_filters_on_hidden_columns_tell_nothing(api: Api, tmp_path: Path) -> None:
    months(tmp_path / "base")
    share(api, tmp_path, "base", view={"columns": ["id"], "where": "month < 3"})
    for value in range(6):
        assert len(api.files("base", predicateHints=[f"month = {value}"])) == 1


def test_a_url_and_a_page_token_of_a_table_open_nothing_of_the_view_that_takes_its_place(
    api: Api, tmp_path: Path
) -> None:
    months(tmp_path / "base")
    share(api, tmp_path, "base")
    answer = lines(api.post(TABLE.format("base") + "/query", {"maxFiles": 1}))
    url, token = answer[2]["file"]["url"], answer[-1]["endStreamAction"]["nextPageToken"]
    assert api.client.get(url).status_code == 200
    share(api, tmp_path, "base", view={"where": "id < 3"})
    assert len(api.files("base")) == 1
    assert api.client.get(url).status_code == 404
    status, _, message = api.refused("base", maxFiles=1, pageToken=token)
    assert (status, message) == (
        400, "The table specified in the page token does not match the table being queried",
    )  # fmt: skip


def test_a_view_on_an_iceberg_table_is_a_table_of_the_protocol(api: Api, tmp_path: Path) -> None:
    fields = [{"id": 1, "name": "id", "type": "long", "required": False}]
    history = IcebergHistory(tmp_path / "ice", fields)
    history.append("a.parquet", [{"id": i} for i in (1, 2, 3)])
    history.delete_positions("d.parquet", {next(iter(history._live)): [0]})  # which no plain table could tell
    share(api, tmp_path, "ice", view={"where": "id < 3"})
    assert rows_of(api, "ice")["id"].to_list() == [2]


def test_a_view_on_an_empty_table_is_empty(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "base")
    history.commit(protocol(), metadata({"id": "long"}))
    share(api, tmp_path, "base", view={"where": "id < 3"})
    assert [next(iter(line)) for line in api.query("base")][:2] == ["protocol", "metaData"]
