"""The reference client against our server, over plain http: its calls give the rows that delta-rs reads.

It has an environment of its own, because it contradicts ours; all calls are made in one run of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from tests.server.conftest import RunningServer, listening
from tests.server.shared_lake import configuration

pytestmark = pytest.mark.slow

PYTHON = Path(sys.prefix) / "sharing" / "bin" / "python"
SCRIPT = Path(__file__).with_name("real_client.py")
MOMENT = datetime(2013, 1, 1, 10, 0, 0, 123456, tzinfo=UTC)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "place": pa.array(["x", "y=1 %", None, "a/b"]),
        "day": pa.array([date(2013, 1, 1), None, date(2013, 1, 3), date(2013, 1, 4)]),
        "at": pa.array([MOMENT, None, MOMENT + timedelta(days=1), MOMENT], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.50"), None, Decimal("-0.01"), Decimal("9.99")], pa.decimal128(10, 2)),
        "share": pa.array([0.5, None, -1.0, 2.25]),
        "flag": pa.array([True, None, False, True]),
        "raw": pa.array([b"\x00", None, b"", b"ab"]),
        "small": pa.array([1, 2, 3, 4], pa.int16()),
    }
)
TABLES = ("typed", "months", "fed", "vectors", "mapped", "empty")

MONTH_3 = {
    "op": "equal",
    "children": [
        {"op": "column", "name": "month", "valueType": "int"}, {"op": "literal", "value": "3", "valueType": "int"},
    ],
}  # fmt: skip


@dataclass(frozen=True)
class ClientRun:
    """What the client got by the name of the call."""

    folder: Path
    answers: dict[str, Any]

    def rows(self, name: str) -> pl.DataFrame:
        assert "error" not in self.answers[name], self.answers[name]
        return pl.read_ipc(self.folder / f"{name}.arrow")

    def error(self, name: str) -> str:
        message: str = self.answers[name]["error"]
        return message


@pytest.fixture(scope="module")
def served(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The lake, and a table of every type that delta-rs wrote in two versions."""
    folder = tmp_path_factory.mktemp("real")
    address = str(folder / "typed")
    deltalake.write_deltalake(address, ROWS, partition_by=["place"])
    deltalake.write_deltalake(address, ROWS.slice(0, 2), mode="append")
    document = configuration(lake)
    document["shares"][0]["schemas"][0]["tables"].append(
        {"name": "typed", "location": address, "historyShared": True}
    )  # fmt: skip
    with listening(folder, lake, document) as server:
        yield server


def location(served: RunningServer, name: str) -> str:
    """Where a shared table lies."""
    return str((served.profile.parent if name == "typed" else served.lake) / name)


def _calls(served: RunningServer) -> Iterator[tuple[str, str, dict[str, Any]]]:
    yield "listed", "list", {}
    for name in TABLES:
        table = {"table": f"lake.default.{name}"}
        yield f"version of {name}", "get_table_version", table
        yield f"metadata of {name}", "get_table_metadata", table
        yield f"protocol of {name}", "get_table_protocol", table
        yield f"{name}", "load_as_pandas", table
        yield f"{name} as delta", "load_as_pandas", {**table, "use_delta_format": True}
    first = lv.open_table(location(served, "typed")).versions().filter(pl.col("version") == 0)["timestamp"][0]
    months, fed = {"table": "lake.default.months"}, {"table": "lake.default.fed"}
    for kind, options in (("", {}), (" as delta", {"use_delta_format": True})):
        yield f"limit{kind}", "load_as_pandas", {**months, **options, "limit": 3}
        yield f"version 1{kind}", "load_as_pandas", {**months, **options, "version": 1}
        yield f"hint{kind}", "load_as_pandas", {**months, **options, "jsonPredicateHints": json.dumps(MONTH_3)}
        typed = {"table": "lake.default.typed", **options}
        yield f"moment{kind}", "load_as_pandas", {**typed, "timestamp": first.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        yield f"changes{kind}", "load_table_changes_as_pandas", {**fed, **options, "starting_version": 1}
        yield f"changes 1 to 2{kind}", "load_table_changes_as_pandas", {
            **fed, **options, "starting_version": 1, "ending_version": 2,
        }  # fmt: skip
    yield "batches", "load_as_pandas", {**months, "convert_in_batches": True}
    yield "a view", "load_as_pandas", {"table": "lake.default.some"}
    yield "since a moment", "get_table_version", {**months, "starting_timestamp": "2000-01-01T00:00:00Z"}
    yield "not there", "load_as_pandas", {"table": "lake.default.nothing"}
    yield "not granted", "load_as_pandas", {"table": "other.default.Secret"}
    yield "broken", "load_as_pandas", {"table": "lake.default.broken"}
    yield "no feed", "load_table_changes_as_pandas", {**months, "starting_version": 1}
    yield "mapped as parquet", "load_as_pandas", {"table": "lake.default.mapped", "use_delta_format": False}
    yield "too new", "load_as_pandas", {**months, "version": 99}
    yield "no history", "load_as_pandas", {"table": "lake.default.mapped", "version": 0}


@pytest.fixture(scope="module")
def client_run(served: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> ClientRun:
    if not PYTHON.exists():
        pytest.skip(f"the reference client has an environment of its own, which is not there: {PYTHON} (make test)")
    folder = tmp_path_factory.mktemp("told")
    calls = [{"name": name, "call": call, "arguments": arguments} for name, call, arguments in _calls(served)]
    (folder / "calls.json").write_text(json.dumps(calls))
    done = subprocess.run(
        [PYTHON, SCRIPT, folder / "calls.json", served.profile, folder],
        capture_output=True, text=True, errors="replace", timeout=300, check=False,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return ClientRun(folder, json.loads((folder / "answers.json").read_text()))


def oracle(served: RunningServer, name: str, version: int | None = None) -> pl.DataFrame:
    """What delta-rs reads."""
    return pl.DataFrame(deltalake.DeltaTable(location(served, name), version=version).scan())


def same(actual: pl.DataFrame, expected: pl.DataFrame) -> None:
    """The same rows in any order; pandas has no integers, booleans and dates beside a null, so values are cast back."""
    assert sorted(actual.columns) == sorted(expected.columns)
    theirs = pl.DataFrame(
        {name: _typed(actual[name], expected.schema[name]) for name in expected.columns}, schema=expected.schema
    )
    order = expected.columns
    assert theirs.sort(order).rows() == expected.sort(order).rows()


def _typed(values: pl.Series, type_: pl.DataType) -> pl.Series:
    if values.dtype.is_temporal() and isinstance(type_, pl.Datetime):
        values = values.dt.cast_time_unit("us")
    return values.cast(type_)


def test_it_lists_what_is_granted(client_run: ClientRun) -> None:
    listing = client_run.answers["listed"]
    names = ["months", "fed", "vectors", "mapped", "empty", "broken", "odd", "some", "typed"]
    assert listing["shares"] == ["lake"]
    assert listing["schemas"] == [["lake", "default"]]
    assert listing["tables"] == listing["all_tables"] == [["lake", "default", name] for name in names]


@pytest.mark.parametrize("name", TABLES)
def test_it_learns_version_and_metadata(name: str, client_run: ClientRun, served: RunningServer) -> None:
    theirs = deltalake.DeltaTable(location(served, name))
    assert client_run.answers[f"version of {name}"] == theirs.version()
    answer = client_run.answers[f"metadata of {name}"]
    assert answer["id"] == str(theirs.metadata().id)
    assert answer["partition_columns"] == theirs.metadata().partition_columns
    assert [f["name"] for f in answer["schema"]["fields"]] == [f.name for f in theirs.schema().fields]
    assert client_run.answers[f"protocol of {name}"]["min_reader_version"] == {"vectors": 3, "mapped": 2}.get(name, 1)


@pytest.mark.parametrize("form", ["", " as delta"])
@pytest.mark.parametrize("name", TABLES)
def test_it_reads_the_rows_that_delta_rs_reads(
    name: str, form: str, client_run: ClientRun, served: RunningServer
) -> None:
    same(client_run.rows(f"{name}{form}"), oracle(served, name))


@pytest.mark.parametrize("form", ["", " as delta"])
def test_it_travels_in_time(form: str, client_run: ClientRun, served: RunningServer) -> None:
    same(client_run.rows(f"version 1{form}"), oracle(served, "months", 1))
    same(client_run.rows(f"moment{form}"), oracle(served, "typed", 0))
    assert client_run.answers["since a moment"] == 0


@pytest.mark.parametrize("form", ["", " as delta"])
def test_limits_and_hints_give_rows_of_the_table(form: str, client_run: ClientRun, served: RunningServer) -> None:
    assert client_run.rows(f"limit{form}").height == 3
    assert set(client_run.rows(f"limit{form}")["id"]) < set(oracle(served, "months")["id"])
    assert sorted(client_run.rows(f"hint{form}")["id"]) == [6, 7]  # it filters no rows: the files of one month came


@pytest.mark.parametrize("form", ["", " as delta"])
@pytest.mark.parametrize(("name", "until"), [("changes", None), ("changes 1 to 2", 2)])
def test_it_reads_changes(
    name: str, until: int | None, form: str, client_run: ClientRun, served: RunningServer
) -> None:
    theirs = pl.DataFrame(deltalake.DeltaTable(location(served, "fed")).load_cdf(1, until).read_all())
    columns = ["_commit_version", "_change_type", "id"]
    rows = client_run.rows(f"{name}{form}").select(columns).with_columns(pl.col("id", "_commit_version").cast(pl.Int64))
    assert rows.sort(columns).rows() == theirs.select(columns).sort(columns).rows()


def test_batches_and_views(client_run: ClientRun, served: RunningServer) -> None:
    same(client_run.rows("batches"), oracle(served, "months"))
    assert sorted(client_run.rows("a view").select("id", "month").rows()) == [(0, 0), (1, 0), (2, 1)]


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("not there", 404, "'lake/default/nothing' does not exist"),
        ("not granted", 404, "'other/default/Secret' does not exist"),
        ("broken", 400, ""),
        ("no feed", 400, "recorded for version [1]"),
        ("mapped as parquet", 400, "Unsupported Delta Table Properties"),
        ("too new", 400, "99"),
        ("no history", 400, ""),
    ],
)
def test_it_is_told_at_once_what_is_wrong(
    name: str, status: int, words: str, client_run: ClientRun, served: RunningServer
) -> None:
    message = client_run.error(name)
    assert str(status) in message
    assert words in message
    assert str(served.lake) not in message
