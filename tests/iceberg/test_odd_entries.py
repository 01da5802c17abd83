"""Manifest entries that no writer should make: rows that were deleted never come back, and no row vanishes unsaid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.iceberg.manifests import tree
from lakeview.iceberg.manifests.partitions import PartitionColumn, typed_partition
from lakeview.iceberg.metadata.partition_fields import PartitionField
from lakeview.iceberg.metadata.transforms import parse_transform
from lakeview.model.errors import CorruptTableError
from lakeview.model.findings import Severity
from tests.builders.iceberg import IcebergHistory

FIELDS: list[dict[str, Any]] = [{"id": 1, "name": "id", "required": False, "type": "long"}]
Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


class Odd(IcebergHistory):
    """A table whose manifests hold other entries than they should; `listing`: what its list says of them instead."""

    change: Change | None = None
    listing: Mapping[str, Any] | None = None

    def _manifest(self, entries: list[dict[str, Any]], *rest: Any) -> dict[str, Any]:
        if self.change is not None:
            files = self.change([e["data_file"] for e in entries])
            entries = [{**entries[0], "data_file": f} for f in files]
        return super()._manifest(entries, *rest) | dict(self.listing or {})


def odd(root: Path) -> Odd:
    return Odd(root / "t", FIELDS, version=3)


def test_a_vector_may_serve_two_files(tmp_path: Path) -> None:
    history = odd(tmp_path)
    first, second = (history.append(name, [{"id": i} for i in range(3)]) for name in ("a", "b"))
    history.change = lambda files: [files[0], {**files[0], "referenced_data_file": second}]
    history.delete_vectors("v", {first: [1]})
    table = lv.open_table(history.address)
    assert sorted(table.scan().collect()["id"]) == [0, 0, 2, 2]
    assert table.snapshot().files["deleted_records"].to_list() == [1, 1]
    assert table.snapshot().num_records == 4
    lives = table.lifetimes()
    assert lives.filter(lives["removed"].is_null())["records"].to_list() == [2, 2]


def test_a_vector_that_does_not_say_whose_rows_it_deletes_is_refused_and_files_still_show(tmp_path: Path) -> None:
    history = odd(tmp_path)
    path = history.append("a", [{"id": i} for i in range(3)])
    history.change = lambda files: [{**f, "referenced_data_file": None} for f in files]
    history.delete_vectors("v", {path: [1]})
    table = lv.open_table(history.address)
    with pytest.raises(CorruptTableError, match="does not say which data file it deletes from"):
        table.scan().collect()
    assert table.snapshot().files["deleted_records"].to_list() == [None]
    assert table.snapshot().num_records is None


def test_a_vector_whose_count_no_file_has_leaves_the_number_of_rows_unknown(tmp_path: Path) -> None:
    history = odd(tmp_path)
    first, second = (history.append(name, [{"id": i} for i in range(3)]) for name in ("a", "b"))
    history.change = lambda files: [{**files[0], "record_count": -1}, files[1]]
    history.delete_vectors("v", {first: [1], second: [1]})
    snapshot = lv.open_table(history.address).snapshot()
    assert dict(snapshot.files.select("path", "deleted_records").rows()) == {first: None, second: 1}
    assert snapshot.num_records is None


@pytest.mark.parametrize(
    ("change", "list_entry", "message"),
    [
        pytest.param({"content": 9}, {}, "neither data nor deletes", id="content that nobody knows"),
        pytest.param({}, {"content": 0}, "a manifest of the other kind", id="deletes listed as data"),
        pytest.param({}, {"content": 2}, "neither data nor deletes", id="a manifest of content that nobody knows"),
    ],
)
def test_entries_that_would_be_passed_over_are_corrupt(
    tmp_path: Path, change: Mapping[str, Any], list_entry: Mapping[str, Any], message: str
) -> None:
    history = odd(tmp_path)
    path = history.append("a", [{"id": i} for i in range(3)])
    history.change, history.listing = lambda files: [{**f, **change} for f in files], list_entry
    history.delete_positions("d", {path: [1]})
    with pytest.raises(CorruptTableError, match=message):
        lv.open_table(history.address).scan().collect()


@pytest.mark.parametrize("read", [lambda t: t.scan().collect(), lambda t: t.plan("id = 1")], ids=["scan", "plan"])
def test_data_that_its_list_calls_deletes_is_no_empty_table(tmp_path: Path, read: Callable[[lv.Table], object]) -> None:
    history = odd(tmp_path)
    history.listing = {"content": 1}
    history.append("a", [{"id": i} for i in range(3)])
    with pytest.raises(CorruptTableError, match="a manifest of the other kind"):
        read(lv.open_table(history.address))


@pytest.mark.parametrize("size", [-5, 2**48 + 1, 2**63 - 1])
def test_a_size_that_no_file_has_is_unknown(tmp_path: Path, size: int) -> None:
    history = odd(tmp_path)
    history.change = lambda files: [{**f, "file_size_in_bytes": size} for f in files]
    history.append("a", [{"id": i} for i in range(3)])
    table = lv.open_table(history.address)
    assert (table.snapshot().num_records, table.snapshot().size_bytes) == (3, None)
    assert table.lifetimes()["size"].to_list() == [None]
    assert table.plan("id = 1")["size"].to_list() == [None]
    assert table.scan().collect()["id"].to_list() == [0, 1, 2]
    claims = [(f.severity, f.claim, f.evidence) for f in table.check()]
    claim = "Files of the current snapshot are listed with sizes that no file has"
    assert claims == [(Severity.BROKEN, claim, table.snapshot().files["path"][0])]


def test_fewer_records_than_none_are_unknown(tmp_path: Path) -> None:
    history = odd(tmp_path)
    history.change = lambda files: [{**f, "record_count": -3} for f in files]
    history.append("a", [{"id": 1}])
    table = lv.open_table(history.address)
    assert table.snapshot().files["records"].to_list() == [None]
    assert table.snapshot().num_records is None
    assert table.scan().collect().rows() == [(1,)]


def test_days_are_told_where_the_first_manifest_has_nothing_but_removed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_CHUNK_BYTES", 1)  # as manifests of megabytes are, each decoded by itself
    days: list[dict[str, Any]] = [{"id": 1, "name": "id", "required": False, "type": "date"}]
    history = IcebergHistory(tmp_path / "t", days, [(1, "day", "day")])
    history.remove(history.append("a", [{"id": date(2024, 1, 1)}]))
    for day in (2, 3):
        history.append(f"b{day}", [{"id": date(2024, 1, day)}])
    assert lv.open_table(history.address).files()["partition_text"].to_list() == ["day=2024-01-02", "day=2024-01-03"]


def test_a_manifest_of_two_lists_has_the_sequence_number_that_each_gives_it(tmp_path: Path) -> None:
    """As one that was added on two branches: a delete is newer than its files on one of them alone."""
    history = Odd(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1}])
    history.delete_equal("d", [history.fields["id"]], [{"id": 1}])
    (data, deletes), history._manifests = history._manifests, []
    history._manifests = [data | {"sequence_number": 2}, deletes]
    history._commit("append", [], 0, {})
    opened = lv.open_table(history.address)
    assert [opened.scan(version).collect().height for version in (1002, 1003)] == [0, 1]


def test_bytes_of_an_unknown_transform_are_equal_whatever_lies_beside_them() -> None:
    """A delete applies to the files of its partition, by the values of transforms that are not known too."""
    part = PartitionField(1000, "w", parse_transform("weird"), (1,))
    column = PartitionColumn(part, "w", pl.String(), None, (0,))

    def typed(*values: bytes) -> list[Any]:
        entries = pl.DataFrame({"partition": [{"f1000": value} for value in values]})
        return typed_partition(entries, (column,), "m.avro")["partition"].struct.field("f1000").to_list()

    assert typed(b"ab", b"\xff")[0] == typed(b"ab")[0]


def test_a_file_that_is_listed_twice_is_gone_between_its_stays(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "id", "required": False, "type": "long"}])
    path = history.append("a", [{"id": 1}])
    history._commit("append", [history._live[path][0]], 0, {})  # as a broken writer does
    manifests, history._manifests = history._manifests, []
    history._commit("delete", [], 0, {})
    history._manifests = manifests[:1] * 2
    history._commit("append", [], 0, {})
    rows = lv.open_table(history.address).lifetimes().select("path", "added", "removed").rows()
    assert rows == [(path, 1001, 1003), (path, 1004, None)]
