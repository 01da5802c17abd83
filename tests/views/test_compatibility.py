"""Who can read and write a table, which feature is to blame, and whether the rules tell the truth."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from lakeview import views
from lakeview.iceberg.opening import open_iceberg
from lakeview.model.data_types import ArrayType, Field, PrimitiveType, StructType
from lakeview.model.frames import COMMITS, FILES, RULES
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.table_metadata import TableMetadata, TableProtocol
from lakeview.views.engines.requirements import Origin
from lakeview.views.engines.rules import engines
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


def delta(*features: str, reading: bool = True) -> TableProtocol:
    return TableProtocol(3 if reading else 1, 7, features if reading else None, features)


def iceberg(version: int) -> TableProtocol:
    return TableProtocol(format_version=version)


def answers(table_snapshot: Snapshot, engine: str, **more: Any) -> dict[str, Any]:
    verdicts = views.engines.compatibility.compatibility(
        views.engines.requirements.needs(table_snapshot, **more), table_snapshot.format
    )
    return verdicts.filter(pl.col("engine") == engine).row(0, named=True)


def test_a_plain_table_is_read_by_everybody() -> None:
    verdicts = views.engines.compatibility.compatibility(
        views.engines.requirements.needs(snapshot(TableProtocol(1, 2))), "delta"
    )
    assert set(verdicts["read"]) == {"yes"}
    assert set(verdicts["write"]) == {"yes", "never", "unknown"}


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
    verdicts = answers(snapshot(protocol), engine)
    assert (verdicts["read"], verdicts["write"]) == (read, write)
    assert because is None or because in verdicts["because"]


def test_the_commit_that_turned_a_feature_on_is_named() -> None:
    moment = datetime(2026, 7, 1, tzinfo=UTC)
    protocols = [
        (0, moment, "li", TableProtocol(1, 2)),
        (4, moment, "mo", delta("typeWidening")),
        (9, moment, "li", delta("columnMapping", "typeWidening")),
    ]
    origins = views.engines.requirements.protocol_origins(protocols, "delta", whole=True)
    assert {f: o.version for f, o in origins.items()} == {"columnMapping": 9, "typeWidening": 4}
    verdicts = answers(snapshot(delta("columnMapping", "typeWidening")), "polars", origins=origins)
    assert (verdicts["blame"], verdicts["since"], verdicts["writer"]) == ("columnMapping", 9, "li")


def test_what_was_on_before_the_log_begins_has_no_origin() -> None:
    protocols = [(40, None, None, delta("columnMapping")), (44, None, None, delta("columnMapping", "typeWidening"))]
    assert list(views.engines.requirements.protocol_origins(protocols, "delta", whole=False)) == ["typeWidening"]


def test_a_feature_that_was_dropped_and_came_back_is_new() -> None:
    on, off = delta("columnMapping"), delta("appendOnly")
    protocols = [(0, None, None, on), (3, None, None, off), (7, None, None, on)]
    assert views.engines.requirements.protocol_origins(protocols, "delta", whole=True)["columnMapping"].version == 7


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
    monkeypatch: pytest.MonkeyPatch, rules: list[Any], properties: dict[str, str], write: str
) -> None:
    (ours,) = (engine for engine in engines("delta") if engine.name == "lakeview")
    table_snapshot = snapshot(
        TableProtocol(1, 6), properties=properties, rules=pl.DataFrame(rules, schema=RULES, orient="row")
    )
    assert answers(table_snapshot, "lakeview")["write"] == "yes", "it writes them all"
    source = msgspec.structs.replace(ours.sources[0], writes=("appendOnly",))
    lesser = msgspec.structs.replace(ours, sources=(source,))
    monkeypatch.setattr("lakeview.views.engines.compatibility.engines", lambda _: (lesser,))
    assert answers(table_snapshot, "lakeview")["write"] == write


def deletes(*kinds: str) -> pl.DataFrame:
    return pl.DataFrame({"path": kinds, "content": kinds})


@pytest.mark.parametrize(
    ("facts", "features"),
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
def test_what_a_table_uses_is_found_where_no_protocol_names_it(facts: dict[str, Any], features: list[str]) -> None:
    version = facts.pop("version")
    assert (
        views.engines.requirements.needs(snapshot(iceberg(version), table_format="iceberg", **facts))[
            "feature"
        ].to_list()
        == features
    )


def test_a_schema_of_a_thousand_levels_is_walked() -> None:
    deep: Any = PrimitiveType("variant")
    for _ in range(5000):
        deep = ArrayType(deep)
    table_snapshot = snapshot(iceberg(3), table_format="iceberg", schema=Schema((Field("a", deep),)))
    assert views.engines.requirements.needs(table_snapshot)["feature"].to_list() == ["format version 3", "variant"]


def test_the_first_commit_with_deletes_is_found_in_its_metrics() -> None:
    rows = [
        {"version": 30, "position": 0, "metrics": '{"added-data-files":2}', "engine": "spark"},
        {"version": 10, "position": 1, "metrics": '{"added-equality-deletes":1}', "engine": "flink"},
        {"version": 20, "position": 2, "metrics": '{"added-equality-delete-files":3,"added-dvs":0}', "engine": "spark"},
    ]
    origins_found = views.engines.requirements.usage_origins(
        pl.DataFrame(rows, schema=COMMITS), [(20, None, Schema())], "iceberg"
    )
    assert origins_found == {"equality deletes": Origin(10, None, "flink")}


def test_a_format_without_rules_is_unknown_and_not_fine() -> None:
    table_snapshot = snapshot(TableProtocol(1, 2), table_format="another")
    assert views.engines.requirements.needs(table_snapshot).is_empty()
    assert views.engines.compatibility.compatibility(
        views.engines.requirements.needs(table_snapshot), "another"
    ).is_empty()
    assert views.engines.requirements.shared_needs(table_snapshot).is_empty()
    assert views.engines.compatibility.recipients(
        views.engines.requirements.shared_needs(table_snapshot), "another"
    ).is_empty()


def sharing(*features: str, version: int = 3, with_features: bool = True) -> Snapshot:
    """As a recipient is told of it: in the log's own words, or as plain files."""
    protocol = TableProtocol(version, reader_features=features or None) if with_features else TableProtocol(1)
    return snapshot(protocol, table_format="sharing")


@pytest.mark.parametrize(
    ("table_snapshot", "features"),
    [
        pytest.param(sharing(with_features=False), ["parquet responses"], id="plain files"),
        pytest.param(
            sharing("deletionVectors", "v2Checkpoint"),
            ["delta responses", "deletionVectors"],
            id="what is not the log's",
        ),
        pytest.param(sharing("v2Checkpoint"), ["parquet responses"], id="what is the log's alone asks nothing"),
        pytest.param(
            snapshot(
                TableProtocol(3, 7, ("deletionVectors",), ("deletionVectors", "inCommitTimestamp")),
                table_format="sharing",
            ),
            ["delta responses", "deletionVectors"],
            id="what writers alone need asks nothing",
        ),
    ],
)
def test_what_a_shared_table_asks_of_recipients(table_snapshot: Snapshot, features: list[str]) -> None:
    assert views.engines.requirements.needs(table_snapshot)["feature"].to_list() == features


@pytest.mark.parametrize(
    ("table_snapshot", "recipient", "read", "because"),
    [
        pytest.param(
            sharing("deletionVectors"),
            "Power BI (Delta Sharing connector)",
            "yes",
            None,
            id="one it asks its server for",
        ),
        pytest.param(
            sharing("timestampNtz"), "Power BI (Delta Sharing connector)", "no", "does not read timestampNtz", id="no"
        ),
        pytest.param(
            sharing("deletionVectors"),
            "DuckDB (duck_delta_share)",
            "no",
            "does not read delta responses",
            id="plain only",
        ),
        pytest.param(
            sharing("deletionVectors"),
            "Tableau (Delta Sharing connector)",
            "unknown",
            "unknown whether it reads delta responses",
            id="nobody says",
        ),
        pytest.param(sharing(with_features=False), "Tableau (Delta Sharing connector)", "yes", None, id="plain files"),
    ],
)
def test_who_reads_a_shared_table(table_snapshot: Snapshot, recipient: str, read: str, because: str | None) -> None:
    verdicts = answers(table_snapshot, recipient)
    assert (verdicts["read"], verdicts["write"]) == (read, "never")
    assert because is None or because in verdicts["because"]


def test_who_could_read_a_table_once_it_is_shared() -> None:
    table_snapshot = snapshot(delta("deletionVectors", "v2Checkpoint"))
    origins = {"deletionVectors": Origin(4, None, "li")}
    needs = views.engines.requirements.shared_needs(table_snapshot, origins)
    assert needs.select("feature", "since").rows() == [("delta responses", 4), ("deletionVectors", 4)]
    verdicts = (
        views.engines.compatibility.recipients(needs, "delta")
        .filter(engine="Oracle Autonomous AI Database")
        .row(0, named=True)
    )
    assert (verdicts["read"], verdicts["blame"], verdicts["since"], verdicts["writer"]) == (
        "no",
        "deletionVectors",
        4,
        "li",
    )


def test_features_and_writers_of_any_length_are_cut_in_sentences() -> None:
    needs = views.engines.requirements.needs(
        snapshot(delta("f" * 10_000, reading=False)), {"f" * 10_000: Origin(3, None, "w" * 10_000)}
    )
    (feature,) = views.engines.compatibility.required_features(needs)
    ((cause, _, _),) = views.engines.compatibility.causes(views.engines.compatibility.compatibility(needs, "delta"))
    assert feature == f"{'f' * 79}\N{HORIZONTAL ELLIPSIS} (v3)"
    assert len(cause) < 200


def test_a_cause_is_told_once_with_how_many_engines_fail_and_how_many_are_unknown() -> None:
    table_snapshot = snapshot(delta("deletionVectors", "a feature of tomorrow"))
    needs_found = views.engines.requirements.needs(table_snapshot, {"deletionVectors": Origin(4, None, "li")})
    engines = views.engines.compatibility.compatibility(needs_found, "delta")
    counts = {cause: numbers for cause, *numbers in views.engines.compatibility.causes(engines)}
    for cause, (fail, unknown) in counts.items():
        of_cause = engines.filter(blame=cause.partition(" (")[0])
        assert of_cause.filter((pl.col("read") == "no") | (pl.col("write") == "no")).height == fail, cause
        assert of_cause.height == fail + unknown, cause
    assert {cause.partition(" (")[0] for cause in counts} == set(engines["blame"].drop_nulls())
    assert any(fail for fail, _ in counts.values())
    assert any(unknown for _, unknown in counts.values())


def test_a_mapping_that_a_version_only_implies_asks_nothing_of_recipients() -> None:
    assert views.engines.requirements.shared_needs(snapshot(TableProtocol(2, 5)))["feature"].to_list() == [
        "parquet responses"
    ]
    mapped = snapshot(TableProtocol(2, 5), properties={"delta.columnMapping.mode": "name"})
    assert views.engines.requirements.shared_needs(mapped)["feature"].to_list() == ["delta responses", "columnMapping"]


def test_the_sources_of_the_blame_come_first() -> None:
    verdicts = answers(snapshot(delta("variantShredding")), "Databricks Runtime")
    assert verdicts["sources"] == "https://learn.microsoft.com/azure/databricks/tables/features/variant-shredding"
    both = answers(snapshot(delta("deletionVectors", "timestampNtz")), "Databricks Runtime")
    assert both["sources"].count("https://") == 2


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        pytest.param(Origin(9, datetime(2026, 7, 1, tzinfo=UTC), "li"), "v9, li, 2026-07-01", id="a commit"),
        pytest.param(
            Origin(None, datetime(2026, 7, 1, tzinfo=UTC), None, "v3.metadata.json"),
            "v3.metadata.json, 2026-07-01",
            id="a file without one",
        ),
        pytest.param(None, "unknown", id="gone"),
    ],
)
def test_what_turned_a_feature_on_in_words(origin: Origin | None, words: str) -> None:
    origins = {} if origin is None else {"columnMapping": origin}
    needs_found = views.engines.requirements.needs(snapshot(delta("columnMapping")), origins)
    assert needs_found.select(views.engines.compatibility.turned_on()).item() == words
    assert needs_found.select(views.engines.compatibility.turned_on(brief=True)).item() == words.split(",")[0]
    verdicts = views.engines.compatibility.compatibility(needs_found, "delta").filter(engine="polars")
    assert verdicts.select(views.engines.compatibility.turned_on()).item() == words


def test_a_table_of_the_second_format_is_judged(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "id", "required": False, "type": "long"}])
    history.append("a", [{"id": 1}, {"id": 2}])
    history.delete_equal("d", [history.fields["id"]], [{"id": 1}])
    table = open_iceberg(history.address)
    verdicts = answers(
        table.snapshot(), "PyIceberg", origins=views.engines.requirements.usage_origins(table.history(), [], "iceberg")
    )
    assert (verdicts["read"], verdicts["blame"]) == ("no", "equality deletes")


def test_files_are_not_read_for_it() -> None:
    table_snapshot = snapshot(TableProtocol(1, 2), rules=pl.DataFrame(schema=RULES))
    views.engines.requirements.needs(table_snapshot)
    assert not hasattr(table_snapshot, "_files")
    assert table_snapshot.files.schema == FILES
