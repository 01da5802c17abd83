"""What the rules call measured, tried again: the installed engines open, or refuse, tables that need one thing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.exceptions import ValidationError
from pyiceberg.table import StaticTable

import lakeview as lv
from lakeview import views
from lakeview.iceberg.opening import open_iceberg
from lakeview.views.engines.rules import all_words, engines
from tests.builders.actions import metadata
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.builders.opening import open_delta_table
from tests.differential import iceberg_oracles, oracles

REFUSALS = (
    deltalake.exceptions.DeltaError, pl.exceptions.PolarsError, duckdb.Error, RuntimeError, ValueError, ValidationError,
)  # fmt: skip
SHARING = Path(sys.prefix) / "sharing" / "lib"
ROWS = 2

polars_delta = pl.scan_delta  # noqa: TID251 (a peer, whose refusal is what is asked for)
polars_iceberg = pl.scan_iceberg  # noqa: TID251 (a peer, whose refusal is what is asked for)

DELTA: dict[str, Callable[[str], int]] = {
    "deltalake (delta-rs)": lambda address: pa.table(deltalake.DeltaTable(address).scan()).num_rows,
    "polars": lambda address: polars_delta(address).collect().height,
    "polars-deltalake": lambda address: oracles.kernel_rows(address, 1).num_rows,
    "DuckDB delta": lambda address: oracles.duckdb_rows(address, 1).num_rows,
}
ICEBERG: dict[str, Callable[[str], int]] = {
    "PyIceberg": lambda file: StaticTable.from_metadata(file).scan().to_arrow().num_rows,
    "polars": lambda file: polars_iceberg(file).collect().height,
    "DuckDB iceberg": lambda file: len(
        iceberg_oracles.duckdb_with_iceberg().cursor().execute("FROM iceberg_scan(?)", [file]).fetchall()
    ),
}


def tried(read: Callable[[str], int], address: str) -> str:
    try:
        count = read(address)
    except REFUSALS:
        return "no"
    return "yes" if count == ROWS else f"{count} rows of {ROWS}"


def measured(table_format: str, engine: str, side: str, feature: str) -> str | None:
    """What the rules say; None where they say it by another source, or nothing."""
    (engine_rules,) = (e for e in engines(table_format) if e.name == engine)
    says, verdict = engine_rules.verdict("read" if side == "read" else "write", feature)
    return None if verdict is None or verdict.source != "measured" else "yes" if says else "no"


def delta(folder: Path, feature: str, *, reading: bool) -> str:
    history = DeltaHistory(folder)
    declared: dict[str, Any] = {"minReaderVersion": 3 if reading else 1, "minWriterVersion": 7}
    declared |= {"writerFeatures": [feature]} | ({"readerFeatures": [feature]} if reading else {})
    history.commit({"protocol": declared}, metadata({"a": "long"}))
    history.commit(history.data("f.parquet", {"a": [1, 2]}))
    return str(folder)


@pytest.mark.parametrize("feature", all_words()["delta"].features.readers)
def test_who_reads_a_delta_feature(feature: str, tmp_path: Path) -> None:
    address = delta(tmp_path, feature, reading=True)
    outcomes = {name: tried(read, address) for name, read in DELTA.items()}
    assert outcomes == {name: measured("delta", name, "read", feature) for name in DELTA}


@pytest.mark.parametrize("feature", [*all_words()["delta"].features.writers, "deletionVectors", "typeWidening"])
def test_who_appends_to_a_table_of_a_delta_feature(feature: str, tmp_path: Path) -> None:
    reading = feature in all_words()["delta"].features.readers
    more = pa.table({"a": [3]})

    def append(address: str) -> int:
        deltalake.write_deltalake(address, more, mode="append")
        return ROWS

    def append_polars(address: str) -> int:
        pl.DataFrame(more).write_delta(address, mode="append")
        return ROWS

    outcomes = {}
    for name, write in (("deltalake (delta-rs)", append), ("polars", append_polars)):
        (tmp_path / name).mkdir()
        outcomes[name] = tried(write, delta(tmp_path / name, feature, reading=reading))
    assert outcomes == {name: measured("delta", name, "write", feature) for name in outcomes}


@pytest.mark.parametrize("feature", all_words()["delta"].features.writers)
def test_what_is_said_of_ourselves_is_what_an_append_does(feature: str, tmp_path: Path) -> None:
    table = open_delta_table(delta(tmp_path, feature, reading=False))
    needs = views.engines.requirements.needs(table.snapshot())
    matrix = views.engines.compatibility.compatibility(needs, "delta").filter(engine="lakeview")
    if matrix["write"].to_list() == ["yes"]:
        assert table.append(pl.DataFrame({"a": [3]})) == 2
        return
    with pytest.raises(lv.errors.UnsupportedTableError, match=feature):
        table.append(pl.DataFrame({"a": [3]}))
    assert matrix["write"].to_list() == ["no"]


def column(number: int, name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": kind, **more}


def iceberg(folder: Path) -> Iterator[tuple[str, IcebergHistory]]:
    """A table of two rows for each feature, by its name."""

    def make(feature: str, version: int, rows: int = ROWS, *more: dict[str, Any]) -> tuple[IcebergHistory, str]:
        place = folder / feature.replace(" ", "-")
        history = IcebergHistory(place, [column(1, "id", "long"), *more], version=version, location=str(place))
        if version == 1:  # what version 1 spells in the singular
            history.document |= {"schema": history.document["schemas"][0], "partition-spec": []}
        return history, history.append("a.parquet", [{"id": n} for n in range(rows)])

    for version in (1, 2, 3):
        yield f"format version {version}", make(f"format version {version}", version)[0]
    for feature, version in (("position deletes", 2), ("equality deletes", 2), ("deletion vectors", 3)):
        history, path = make(feature, version, ROWS + 1)
        if feature == "position deletes":
            history.delete_positions("d.parquet", {path: [0]})
        elif feature == "equality deletes":
            history.delete_equal("d.parquet", [history.fields["id"]], [{"id": 0}])
        else:
            history.delete_vectors("d.puffin", {path: [0]})
        yield feature, history
    yield "nanosecond timestamps", make("nanosecond timestamps", 3, ROWS, column(2, "at", "timestamp_ns"))[0]
    added = {
        "default values": column(2, "x", "long", **{"initial-default": 7, "write-default": 7}),
        "unknown type": column(2, "x", "unknown"),
        "variant": column(2, "x", "variant"),
        "geometry": column(2, "x", "geometry(EPSG:4326)"),
        "geography": column(2, "x", "geography"),
    }
    for feature, new in added.items():
        yield feature, make(feature, 3)[0].evolve([column(1, "id", "long"), new])


def test_who_reads_an_iceberg_feature_and_whether_we_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # the other planner is a package of its own
    wrong = []
    for feature, history in iceberg(tmp_path):
        assert (
            feature in views.engines.requirements.needs(lv.open_table(history.address).snapshot())["feature"].to_list()
        )
        newest = max((history.root / "metadata").glob("v*.metadata.json"), key=lambda f: int(f.name[1:].split(".")[0]))
        for name, read in ICEBERG.items():
            claim, outcome = measured("iceberg", name, "read", feature), tried(read, str(newest))
            if claim is not None and claim != outcome:
                wrong.append((name, feature, claim, outcome))
        claim, outcome = measured("iceberg", "lakeview", "write", feature), appended(history.address)
        if claim != outcome:
            wrong.append(("lakeview", feature, str(claim), outcome))
    assert not wrong


def appended(address: str) -> str:
    """Whether we append a row."""
    try:
        open_iceberg(address).append(pl.DataFrame({"id": [9]}))
    except lv.errors.UnsupportedTableError:
        return "no"
    return "yes"


@pytest.mark.slow
def test_what_sail_reads(tmp_path: Path) -> None:
    """All in one run of its own environment."""
    requests: list[tuple[str, str, dict[str, str]]] = []
    claims: list[tuple[str, str, str]] = []
    for feature in all_words()["delta"].features.readers:
        if (says := measured("delta", "Sail", "read", feature)) is not None:
            (tmp_path / "delta" / feature).mkdir(parents=True)
            requests.append(("delta", delta(tmp_path / "delta" / feature, feature, reading=True), {}))
            claims.append(("delta", feature, says))
    for feature, history in iceberg(tmp_path / "iceberg"):
        if (says := measured("iceberg", "Sail", "read", feature)) is not None:
            requests.append(("iceberg", history.address, {}))
            claims.append(("iceberg", feature, says))
    wrong = []
    for (kind, feature, says), outcome in zip(
        claims, iceberg_oracles.sail_answers(requests, tmp_path / "rows"), strict=True
    ):
        answer = "no" if isinstance(outcome, str) else "yes" if outcome.num_rows == ROWS else f"{outcome.num_rows} rows"
        if says != answer:
            wrong.append((kind, feature, says, answer))
    assert not wrong


def test_what_the_sharing_client_asks_its_server_for() -> None:
    """Its own environment's text: a server may send no feature that is not in the header."""
    (client,) = SHARING.glob("python3*/site-packages/delta_sharing/rest_client.py")
    (line_found,) = (line for line in client.read_text().splitlines() if "DELTA_SNAPSHOT_READER_FEATURES =" in line)
    features = json.loads(line_found.split("=", 1)[1]).removeprefix("readerfeatures=").split(",")
    (engine,) = (e for e in engines("sharing") if e.name == "delta-sharing for Python (pandas)")
    assert {f.lower() for f in engine.sources[0].reads if not f.endswith(" responses")} == set(features)
