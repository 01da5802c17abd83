"""Tables that ask more than this reader knows: refused by name, their log still shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

import lakeview as lv
from lakeview.model.errors import CorruptTableError, LakeviewError, UnsupportedTableError
from tests.builders.actions import Action, add, info, metadata, protocol
from tests.builders.history import START, DeltaHistory


def with_features(*names: str) -> Action:
    return protocol(3, 7, readerFeatures=list(names), writerFeatures=list(names))


REFUSED: dict[str, tuple[Action, dict[str, str | None], str, str]] = {
    "reader version 99": (
        protocol(99, 2), {}, "unsupported-reader-version",
        "needs Delta reader version 99; this reader implements 1 to 3",
    ),
    "reader version 4": (protocol(4, 7), {}, "unsupported-reader-version", "needs Delta reader version 4"),
    "reader version 0": (protocol(0, 2), {}, "unsupported-reader-version", "needs Delta reader version 0"),
    "an unknown feature": (
        with_features("timeMachine"), {}, "unsupported-reader-feature",
        "needs the Delta reader feature timeMachine, which this reader does not implement",
    ),
    "two unknown features": (
        with_features("zeta", "alpha", "timestampNtz"), {}, "unsupported-reader-feature",
        "needs the Delta reader features alpha, zeta, which",
    ),
    "many unknown features": (
        with_features(*(f"f{i:03}" for i in range(500))), {}, "unsupported-reader-feature",
        "f008, f009 and 490 more, which this reader does not implement",
    ),
    "a catalog": (
        with_features("catalogManaged"), {}, "catalog-managed",
        "is managed by a catalog (catalogManaged): only the catalog knows its versions",
    ),
    "a catalog, in its older name": (with_features("catalogOwned-preview", "zeta"), {}, "catalog-managed", "catalog"),
    "a way of mapping columns that no one knows": (
        protocol(2, 5), {"delta.columnMapping.mode": "sound"}, "unsupported-column-mapping",
        "maps its columns by sound; this Delta reader knows by name and by id",
    ),
}  # fmt: skip


@pytest.mark.parametrize("base", ["commits", "a checkpoint"])
@pytest.mark.parametrize(
    ("action", "properties", "kind", "words"), REFUSED.values(), ids=[f"a table that needs {w}" for w in REFUSED]
)
def test_it_is_refused_by_name_and_its_log_still_shown(
    history: DeltaHistory, action: Action, properties: dict[str, str | None], kind: str, words: str, base: str
) -> None:
    history.commit(info(operation="CREATE"), action, metadata(properties=properties)).commit(
        info(operation="WRITE"), history.data("f", {"id": [1]}, stats={"numRecords": 1})
    )
    if base == "a checkpoint":
        history.commit(add("g")).checkpoint().without(0, 1)
    table = lv.open_table(history.address)
    for use in (table.snapshot, table.files, table.statistics, table.scan, lambda: table.plan("id = 1")):
        with pytest.raises(UnsupportedTableError) as caught:
            use()
        assert caught.value.kind == kind
        assert words in caught.value.message
        assert history.address in caught.value.message
        assert caught.value.fix is not None
        assert caught.value.place is not None
    newest = table.latest_version
    assert table.history().height == (2 if base == "commits" else 1)
    assert table.commit(newest).height > 0
    assert table.schemas().height == 1
    assert table.lifetimes().height == (1 if base == "commits" else 2)
    versions = table.versions()
    if kind == "catalog-managed":
        return  # by number its published versions are certain: below
    assert not versions["readable"].any()
    assert versions["reason"].str.contains("Delta reader|catalog").all()


FINE: dict[str, tuple[Action, dict[str, str | None]]] = {
    "column mapping that is not in use": (protocol(2, 5), {}),
    "column mapping that is off": (with_features("columnMapping"), {"delta.columnMapping.mode": "none"}),
    "timestamps without zone": (with_features("timestampNtz"), {}),
    "the vacuum check": (with_features("vacuumProtocolCheck"), {}),
    "a writer feature no one knows": (protocol(1, 7, writerFeatures=["timeMachine"]), {}),
    "writer version 8": (protocol(1, 8), {}),
    "no feature in its lists": (with_features(), {}),
}


@pytest.mark.parametrize(("action", "properties"), FINE.values(), ids=[f"a table with {w}" for w in FINE])
def test_it_is_read(history: DeltaHistory, action: Action, properties: dict[str, str | None]) -> None:
    history.commit(action, metadata({"id": "long"}, properties=properties)).commit(history.data("f", {"id": [1]}))
    table = lv.open_table(history.address)
    assert table.scan().collect().rows() == [(1,)]
    assert table.versions()["readable"].all()


def test_ids_and_physical_names_count_only_while_column_mapping_is_on(history: DeltaHistory) -> None:
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {"delta.columnMapping.physicalName": "col-9"}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    history.commit(protocol(), metadata(schema=schema)).commit(history.data("f", {"id": [1], "col-9": [2]}))
    assert lv.open_table(history.address).scan().collect().rows() == [(1,)]


def test_reader_version_3_without_its_features_is_corrupt(history: DeltaHistory) -> None:
    history.commit(protocol(3, 7), metadata())
    with pytest.raises(CorruptTableError, match="declares reader version 3 without readerFeatures") as caught:
        lv.open_table(history.address).snapshot()
    assert (caught.value.kind, caught.value.place) == ("invalid-protocol", "protocol.readerFeatures")


def test_each_version_is_judged_by_its_own_protocol(history: DeltaHistory) -> None:
    history.create().commit(history.data("f", {"id": [1], "city": ["x"]})).commit(with_features("timeMachine"))
    history.commit(add("g")).commit(protocol(1, 2))
    table = lv.open_table(history.address)
    assert table.snapshot(1).num_files == 1
    assert table.snapshot(4).num_files == 2
    for version in (2, 3):
        with pytest.raises(UnsupportedTableError, match="timeMachine"):
            table.snapshot(version)
    reasons = dict(table.versions().select("version", "reason").iter_rows())
    assert reasons[1] is None
    assert reasons[2] == reasons[3]
    assert "timeMachine" in str(reasons[2])


def test_rows_in_another_encoding_are_refused_and_the_log_shown(history: DeltaHistory) -> None:
    history.commit(protocol(), metadata(provider="csv")).commit(add("f", records=2))
    table = lv.open_table(history.address)
    assert table.snapshot().num_records == 2
    assert table.snapshot().data_format == "csv"
    with pytest.raises(UnsupportedTableError) as caught:
        table.scan()
    assert caught.value.message == f"{history.address} keeps its rows in csv files, which this reader does not read"
    assert (caught.value.kind, caught.value.place) == ("unsupported-data-format", "metaData.format.provider")
    assert caught.value.fix == "its log can be shown; read the rows with the engine that wrote them"


@pytest.mark.parametrize("type_", ["interval", "wish(4326)", {"type": "array", "elementType": "interval"}])
def test_a_type_no_one_knows_is_shown_and_its_rows_refused(history: DeltaHistory, type_: Any) -> None:
    history.create({"id": "long", "x": type_}).commit(history.data("f", {"id": [1]}))
    table = lv.open_table(history.address)
    assert table.snapshot().schema.names == ["id", "x"]
    assert table.snapshot().files.height == 1
    with pytest.raises(UnsupportedTableError, match=r"values of type (interval|wish\(4326\)) cannot be read") as caught:
        table.scan().collect()
    assert caught.value.kind == "unsupported-type"


def test_an_unsupported_table_still_knows_its_other_errors(history: DeltaHistory) -> None:
    history.commit(protocol(99), metadata())
    table = lv.open_table(history.address)
    with pytest.raises(LakeviewError, match="is not in the log"):
        table.snapshot(7)


def test_published_versions_of_a_catalog_managed_table_open_by_number(history: DeltaHistory) -> None:
    first = protocol(3, 7, readerFeatures=["catalogManaged"], writerFeatures=["catalogManaged", "inCommitTimestamp"])
    history.commit(first, metadata()).commit(add("f", records=3)).write("f", b"")
    history.write("_delta_log/_staged_commits/00000000000000000002.0b1c5a6e-58a4-4a5f-8f3c-6d1d0f0f0f0f.json", b"{")
    table = lv.open_table(history.address)
    future = datetime(2100, 1, 1, tzinfo=UTC)
    changes = (lambda: table.changes_plan(0), lambda: table.changes_plan(0, future))
    for latest in (table.snapshot, table.files, lambda: table.snapshot(at=future), *changes):
        with pytest.raises(UnsupportedTableError, match="is managed by a catalog") as caught:
            latest()
        assert caught.value.kind == "catalog-managed"
        assert caught.value.fix is not None
        assert "versions up to 1 are published and open by their number" in caught.value.fix
    assert table.snapshot(1).num_records == 3
    assert table.snapshot(at=START).version == 0
    assert table.changes_plan(0, 1)["version"].to_list() == [1]
    assert table.versions()["readable"].to_list() == [True, True]
    assert table.history()["version"].to_list() == [1, 0]
