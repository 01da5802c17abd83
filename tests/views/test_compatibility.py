"""Who can read and write a table, which feature is to blame, and whether the rules tell the truth."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview import views
from lakeview.delta import features
from lakeview.frames import COMMITS, FILES, RULES
from lakeview.iceberg.opening import open_iceberg
from lakeview.schema import ArrayType, Field, PrimitiveType, Schema, StructType
from lakeview.snapshot import Snapshot, TableMetadata, TableProtocol
from lakeview.views.compatibility import Origin
from lakeview.views.engine_rules import MEASURED, engine_rules
from tests.builders.actions import metadata
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.views.story import FLIGHTS

LONG = PrimitiveType("long")


def snapshot(
    protocol: TableProtocol, *, table_format: str = "delta", schema: Schema = FLIGHTS, **more: Any
) -> Snapshot:
    frames: dict[str, pl.DataFrame] = {str(n): more.pop(n) for n in ("rules", "delete_files") if n in more}
    return Snapshot(
        TableMetadata("memory://t", table_format, 3, None, schema, protocol=protocol, **more), frames=frames
    )


def delta(*named: str, reading: bool = True) -> TableProtocol:
    return TableProtocol(3 if reading else 1, 7, named if reading else None, named)


def iceberg(version: int) -> TableProtocol:
    return TableProtocol(format_version=version)


def answers(made: Snapshot, engine: str, **more: Any) -> dict[str, Any]:
    told = views.compatibility(views.needs(made, **more), made.format)
    return told.filter(pl.col("engine") == engine).row(0, named=True)


def test_a_plain_table_is_read_by_everybody() -> None:
    told = views.compatibility(views.needs(snapshot(TableProtocol(1, 2))), "delta")
    assert set(told["read"]) == {"yes"}
    assert set(told["write"]) == {"yes", "never", "unknown"}


@pytest.mark.parametrize(
    ("protocol", "engine", "read", "write", "because"),
    [
        pytest.param(delta("typeWidening"), "deltalake (delta-rs)", "no", "no", "does not read typeWidening", id="no"),
        pytest.param(
            delta("inCommitTimestamp", reading=False),
            "Trino",
            "yes",
            "no",
            "does not write inCommitTimestamp",
            id="write",
        ),
        pytest.param(
            delta("timeTurner"),
            "Amazon Athena",
            "unknown",
            "never",
            "unknown whether it reads timeTurner",
            id="unknown",
        ),
        pytest.param(
            delta("timestampNtz"), "Microsoft Fabric SQL endpoint", "no", "never", "timestampNtz", id="refused"
        ),
        pytest.param(TableProtocol(9, 9), "Trino", "no", "no", "reader version 9", id="a version of the future"),
        pytest.param(TableProtocol(2, 5), "polars", "no", "no", "does not read columnMapping", id="a legacy version"),
        pytest.param(
            delta("columnMapping", "deletionVectors"), "Microsoft Fabric Spark", "yes", "yes", None, id="both"
        ),
    ],
)
def test_the_feature_to_blame_is_named(
    protocol: TableProtocol, engine: str, read: str, write: str, because: str | None
) -> None:
    told = answers(snapshot(protocol), engine)
    assert (told["read"], told["write"]) == (read, write)
    assert because is None or because in told["because"]


def test_the_commit_that_turned_a_feature_on_is_named() -> None:
    moment = datetime(2026, 7, 1, tzinfo=UTC)
    protocols = [
        (0, moment, "li", TableProtocol(1, 2)),
        (4, moment, "mo", delta("typeWidening")),
        (9, moment, "li", delta("columnMapping", "typeWidening")),
    ]
    origins = views.protocol_origins(protocols, "delta", whole=True)
    assert {f: o.version for f, o in origins.items()} == {"columnMapping": 9, "typeWidening": 4}
    told = answers(snapshot(delta("columnMapping", "typeWidening")), "polars", origins=origins)
    assert (told["blame"], told["since"], told["writer"]) == ("columnMapping", 9, "li")


def test_what_was_on_before_the_log_begins_has_no_origin() -> None:
    protocols = [(40, None, None, delta("columnMapping")), (44, None, None, delta("columnMapping", "typeWidening"))]
    assert list(views.protocol_origins(protocols, "delta", whole=False)) == ["typeWidening"]


def test_a_feature_that_was_dropped_and_came_back_is_new() -> None:
    on, off = delta("columnMapping"), delta("appendOnly")
    protocols = [(0, None, None, on), (3, None, None, off), (7, None, None, on)]
    assert views.protocol_origins(protocols, "delta", whole=True)["columnMapping"].version == 7


@pytest.mark.parametrize(
    ("rules", "properties", "write"),
    [
        pytest.param([], {}, "yes", id="unused"),
        pytest.param([(None, "check", "c", "a > 0")], {}, "no", id="a constraint"),
        pytest.param([], {"delta.columnMapping.mode": "name"}, "no", id="a property"),
        pytest.param([], {"delta.appendOnly": "true"}, "yes", id="one that it writes"),
    ],
)
def test_legacy_features_that_are_not_used_ask_nothing_of_who_spares_them(
    rules: list[Any], properties: dict[str, str], write: str
) -> None:
    made = snapshot(TableProtocol(1, 6), properties=properties, rules=pl.DataFrame(rules, schema=RULES, orient="row"))
    assert answers(made, "lakeview")["write"] == write


def deletes(*kinds: str) -> pl.DataFrame:
    return pl.DataFrame({"path": kinds, "content": kinds})


@pytest.mark.parametrize(
    ("made", "needed"),
    [
        pytest.param({"version": 2}, ["format version 2"], id="nothing more"),
        pytest.param(
            {"version": 3, "delete_files": deletes("deletion vector", "equality deletes")},
            ["format version 3", "deletion vectors", "equality deletes"],
            id="deletes",
        ),
        pytest.param({"version": 2, "data_format": "orc"}, ["format version 2", "ORC files"], id="another file format"),
        pytest.param(
            {
                "version": 3,
                "schema": Schema(
                    (
                        Field("a", ArrayType(StructType((Field("b", PrimitiveType("variant")),)))),
                        Field("c", LONG, metadata={"initial-default": 5}),
                    )
                ),
            },
            ["format version 3", "variant", "default values"],
            id="types, however deep",
        ),
    ],
)
def test_what_a_table_uses_is_found_where_no_protocol_names_it(made: dict[str, Any], needed: list[str]) -> None:
    version = made.pop("version")
    assert views.needs(snapshot(iceberg(version), table_format="iceberg", **made))["feature"].to_list() == needed


def test_a_schema_of_a_thousand_levels_is_walked() -> None:
    deep: Any = PrimitiveType("variant")
    for _ in range(5000):
        deep = ArrayType(deep)
    made = snapshot(iceberg(3), table_format="iceberg", schema=Schema((Field("a", deep),)))
    assert views.needs(made)["feature"].to_list() == ["format version 3", "variant"]


def test_the_first_commit_with_deletes_is_found_in_its_metrics() -> None:
    rows = [
        {"version": 30, "position": 0, "metrics": '{"added-data-files":2}', "engine": "spark"},
        {"version": 10, "position": 1, "metrics": '{"added-equality-delete-files":1}', "engine": "flink"},
        {"version": 20, "position": 2, "metrics": '{"added-equality-delete-files":3,"added-dvs":0}', "engine": "spark"},
    ]
    found = views.usage_origins(pl.DataFrame(rows, schema=COMMITS), [(20, None, Schema())], "iceberg")
    assert found == {"equality deletes": Origin(10, None, "flink")}


def test_a_format_without_rules_is_unknown_and_not_fine() -> None:
    made = snapshot(TableProtocol(1, 2), table_format="sharing")
    assert views.needs(made).is_empty()
    assert views.compatibility(views.needs(made), "sharing").is_empty()


def test_every_rule_is_dated_and_has_a_source() -> None:
    rules = engine_rules()
    assert views.rules_date() == rules.date
    for engine in rules.engines:
        assert engine.sources, engine
        assert all(s == MEASURED or s.startswith("https://") for s in engine.sources), engine
        assert engine.checked <= rules.date, engine
        assert not set(engine.reads) & set(engine.reads_not), engine
        assert engine.format in rules.formats, engine
    assert len({(e.name, e.version, e.format) for e in rules.engines}) == len(rules.engines)


def test_the_rules_about_ourselves_are_what_the_reader_and_the_writer_implement() -> None:
    (ours,) = (e for e in engine_rules().engines if e.name == "lakeview" and e.format == "delta")
    assert set(ours.reads) == features.READER_FEATURES
    assert set(ours.writes) == features.WRITER_FEATURES
    words = engine_rules().formats["delta"]
    assert {int(v): names for v, names in words.writers.items()} == features.LEGACY_WRITER_FEATURES


READER_FEATURES = sorted(features.READER_FEATURES - {"geospatial"})


@pytest.mark.parametrize("feature", READER_FEATURES)
def test_measured_rules_still_hold(feature: str, tmp_path: Path) -> None:
    """The installed packages open, or refuse, a table that declares this one feature, as the rules say."""
    history = DeltaHistory(tmp_path)
    declared = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [feature], "writerFeatures": [feature]}
    history.commit({"protocol": declared}, metadata({"a": "long"}))
    history.commit(history.data("f.parquet", {"a": [1, 2]}))
    made = lv.open_table(str(tmp_path)).snapshot()
    assert made.protocol.features == (feature,)

    def opens(read: Any) -> str:
        try:
            read()
        except (deltalake.exceptions.DeltaError, pl.exceptions.PolarsError):
            return "no"
        return "yes"

    assert (
        opens(lambda: pa.table(deltalake.DeltaTable(str(tmp_path)).scan()))
        == answers(made, "deltalake (delta-rs)")["read"]
    )
    polars_scan = pl.scan_delta  # noqa: TID251 (a peer, whose refusal is what is asked for)
    assert opens(lambda: polars_scan(str(tmp_path)).collect()) == answers(made, "polars")["read"]


def test_a_table_of_the_second_format_is_judged(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "id", "required": False, "type": "long"}])
    history.append("a", [{"id": 1}, {"id": 2}])
    history.delete_equal("d", [history.fields["id"]], [{"id": 1}])
    table = open_iceberg(history.address)
    told = answers(table.snapshot(), "PyIceberg", origins=views.usage_origins(table.history(), [], "iceberg"))
    assert (told["read"], told["blame"]) == ("no", "equality deletes")


def test_files_are_not_read_for_it() -> None:
    made = snapshot(TableProtocol(1, 2), rules=pl.DataFrame(schema=RULES))
    views.needs(made)
    assert not hasattr(made, "_files")
    assert made.files.schema == FILES
