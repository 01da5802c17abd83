"""The audit of Iceberg tables: good snapshots are proven, each planted violation is found where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import lakeview as lv
from lakeview.errors import VersionNotFoundError
from lakeview.model.frames import AUDIT
from lakeview.model.laws import ICEBERG, LAWS
from tests.builders.iceberg import IcebergHistory

FIELDS = [{"id": 1, "name": "id", "required": False, "type": "long"}]
EXISTING, ADDED, DELETED = 0, 1, 2


class History(IcebergHistory):
    """A table whose manifests can be rewritten in any way, right or wrong."""

    def rewrite(self, operation: str, entries: Sequence[tuple[int, str, int]], summary: Mapping[str, str]) -> None:
        """A snapshot with one data manifest: (status, file name, rows) each, statistics as they were."""
        number = self.document["last-sequence-number"] + 1
        own, spec = self.first_id + number, self.document["partition-specs"][-1]
        rewritten_entries = [self._entry(status, name, rows, own, number) for status, name, rows in entries]
        manifest = self._manifest(rewritten_entries, 0, own + 500_000, number, spec) | {"added_snapshot_id": own}
        self._manifests = [manifest, *(m for m in self._manifests if m["content"] == 1)]
        self._commit(operation, [], 0, summary)
        self._manifests = [m for m in self._manifests if sum(m[f"{s}_files_count"] for s in _STATUSES)]

    def _entry(self, status: int, name: str, rows: int, own: int, number: int) -> dict[str, Any]:
        path = f"{self.location}/data/{name}"
        if path in self._entries_by_path:
            file, snapshot, sequence = self._entries_by_path[path]
        else:
            file, snapshot, sequence = self._data(name, [{"id": i} for i in range(rows)], (), True), own, number
            self._entries_by_path[path] = file, own, number
        fields_by_name = {"sequence_number": sequence, "file_sequence_number": sequence, "data_file": file}
        return {"status": status, "snapshot_id": snapshot if status == EXISTING else own, **fields_by_name}

    def load(self, name: str, rows: int) -> str:
        """Append a file of so many rows."""
        path = self.append(name, [{"id": i} for i in range(rows)])
        file, snapshot, sequence, _ = self._live[path]
        self._entries_by_path.setdefault(path, (file, snapshot, sequence))
        return path

    def delete_rows_of(self, path: str, name: str, count: int) -> None:
        """A position delete file that records which data file it is about."""
        table = pa.table({"file_path": [path] * count, "pos": list(range(count))})
        entry = self._file(name, table, 1, {}) | {"referenced_data_file": path}
        self._commit("delete", [entry], 1, {"added-delete-files": "1"})

    @property
    def _entries_by_path(self) -> dict[str, tuple[dict[str, Any], int, int]]:
        return self.__dict__.setdefault("entries_by_path", {})  # type: ignore[no-any-return]  # made here


_STATUSES = ("existing", "added", "deleted")


def history(root: Path, version: int = 2) -> History:
    """Two loads, deletes of rows, a file that is deleted, and a compaction."""
    table = History(root / "t", FIELDS, version=version, location=str(root / "t"))
    first = table.load("a.parquet", 10)
    table.load("b.parquet", 5)
    table.delete_rows_of(first, "d.parquet", 2)
    table.rewrite(
        "delete", [(EXISTING, "a.parquet", 10), (DELETED, "b.parquet", 5)],
        {"deleted-data-files": "1", "deleted-records": "5", "total-data-files": "1", "total-records": "10"},
    )  # fmt: skip
    table.rewrite("replace", [(DELETED, "a.parquet", 10), (ADDED, "c.parquet", 8)], {"total-data-files": "1"})
    return table


def audited(table: History) -> pl.DataFrame:
    return lv.open_table(table.address).audit()


def violations(verdicts: pl.DataFrame) -> list[tuple[str, int]]:
    wrong = verdicts.filter(pl.col("verdict") == "violated")
    return list(zip(wrong["law"], wrong["position"], strict=True))


def test_good_snapshots_are_proven(tmp_path: Path) -> None:
    verdicts = audited(history(tmp_path))
    assert verdicts.schema == AUDIT
    assert violations(verdicts) == []
    assert verdicts.filter(pl.col("verdict") == "unknowable").is_empty()
    laws = {law.id for law in LAWS.values() if law.table_format == ICEBERG}
    assert laws - set(verdicts["law"]) == {"one-vector-per-file"}


def test_files_of_snapshots_between_expired_ones_are_not_convicted(tmp_path: Path) -> None:
    table = History(tmp_path / "t", FIELDS, location=str(tmp_path / "t"))
    for name in "abcd":
        table.load(name, 1)
    del table.document["snapshots"][2], table.document["snapshots"][0]
    table._write()
    verdicts = audited(table)
    assert violations(verdicts) == []
    for law in ("file-added-once", "append-deletes-nothing", "sequence-numbers-increase"):
        assert verdicts.filter(pl.col("law") == law)["verdict"].to_list() == ["unknowable", "unknowable"]


def test_vectors_that_replace_nothing_are_proven(tmp_path: Path) -> None:
    table = History(tmp_path / "t", FIELDS, version=3, location=str(tmp_path / "t"))
    table.delete_vectors("v.puffin", {table.load("a.parquet", 10): [1, 2]})
    verdicts = audited(table)
    assert violations(verdicts) == []
    assert {"one-vector-per-file", "deletes-not-stranded"} <= set(verdicts["law"])


def last_summary(table: History) -> dict[str, str]:
    summary: dict[str, str] = table.document["snapshots"][-1]["summary"]
    return summary


def renumber(table: History) -> None:
    table.document["snapshots"][-1]["sequence-number"] = 4
    table._write()


def miscount(table: History) -> None:
    last_summary(table)["total-data-files"] = "7"
    table._write()


LIVE = (EXISTING, "c.parquet", 8)
VIOLATIONS: list[Any] = [
    pytest.param(
        lambda t: t.rewrite("overwrite", [LIVE, (EXISTING, "b.parquet", 5)], {"total-data-files": "2"}),
        "entries-not-resurrected", id="an entry is resurrected",
    ),
    pytest.param(
        lambda t: t.rewrite("delete", [LIVE, (DELETED, "b.parquet", 5)], {"total-data-files": "1"}),
        "delete-names-live-file", id="a file is deleted twice",
    ),
    pytest.param(lambda t: t.load("c.parquet", 8), "file-added-once", id="a file is added twice"),
    pytest.param(
        lambda t: t.delete_rows_of(f"{t.location}/data/b.parquet", "e.parquet", 1), "deletes-not-stranded",
        id="deletes for a file that is gone",
    ),
    pytest.param(renumber, "sequence-numbers-increase", id="a sequence number is used again"),
    pytest.param(miscount, "summary-adds-up", id="a summary counts wrongly"),
    pytest.param(
        lambda t: t.rewrite("append", [(DELETED, "c.parquet", 8), (ADDED, "n.parquet", 1)], {"total-data-files": "1"}),
        "append-deletes-nothing", id="an append deletes",
    ),
    pytest.param(
        lambda t: t.rewrite("replace", [(DELETED, "c.parquet", 8), (ADDED, "n.parquet", 7)], {"total-data-files": "1"}),
        "replace-conserves-rows", id="a replace loses a row",
    ),
    pytest.param(
        lambda t: t.rewrite("replace", [LIVE, (ADDED, "n.parquet", 8)], {"total-data-files": "2"}),
        "replace-conserves-rows", id="a replace leaves its source",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "law"), VIOLATIONS)
def test_a_planted_violation_is_found(plant: Callable[[History], object], law: str, tmp_path: Path) -> None:
    table = history(tmp_path)
    plant(table)
    verdicts = audited(table)
    position = verdicts["position"].max()
    assert (law, position) in violations(verdicts)


def test_a_replace_that_brings_deleted_rows_back(tmp_path: Path) -> None:
    table = history(tmp_path)
    table.delete_rows_of(f"{table.location}/data/c.parquet", "e.parquet", 3)
    table.rewrite("replace", [(DELETED, "c.parquet", 8), (ADDED, "n.parquet", 9)], {"total-data-files": "1"})
    row = audited(table).filter(pl.col("law") == "replace-conserves-rows").row(-1, named=True)
    assert (row["verdict"], row["expected"], row["found"]) == ("violated", "5 to 8", "9")


def test_a_second_vector_of_one_file(tmp_path: Path) -> None:
    table = History(tmp_path / "t", FIELDS, version=3, location=str(tmp_path / "t"))
    path = table.load("a.parquet", 10)
    table.delete_vectors("v.puffin", {path: [1]})
    table.delete_vectors("w.puffin", {path: [2]})
    assert ("one-vector-per-file", 2) in violations(audited(table))


def test_a_range_of_snapshots(tmp_path: Path) -> None:
    table = lv.open_table(history(tmp_path).address)
    ids = table.history()["version"].reverse().to_list()
    assert table.audit(ids[1], ids[2])["version"].unique(maintain_order=True).to_list() == ids[1:3]
    with pytest.raises(VersionNotFoundError):
        table.audit(5)


def test_what_pyiceberg_writes_is_not_convicted(tmp_path: Path) -> None:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("n")
    rows = pa.table({"id": pa.array(range(10), pa.int64()), "day": pa.array([i % 2 for i in range(10)], pa.int64())})
    table = catalog.create_table("n.t", schema=rows.schema)
    table.append(rows)
    table.append(rows)
    table.delete("id = 3")
    table.overwrite(rows.slice(0, 4), overwrite_filter="day = 1")
    table.overwrite(rows)
    verdicts = lv.open_table(table.metadata_location).audit()
    assert violations(verdicts) == []
    assert verdicts.height > 20
    catalog.engine.dispose()


def test_a_total_that_is_wrong_is_the_fault_of_the_snapshot_that_made_it_wrong(tmp_path: Path) -> None:
    table = history(tmp_path)
    for name, total in (("e.parquet", 4), ("f.parquet", 5)):
        table.load(name, 1)
        last_summary(table)["total-data-files"] = str(total)  # of 2 and 3
    table._write()
    verdicts = audited(table)
    assert violations(verdicts) == [("summary-adds-up", 5)]
    row = verdicts.filter(pl.col("law") == "summary-adds-up").row(-1, named=True)
    assert (row["position"], row["verdict"]) == (6, "unknowable")
    assert row["reason"] == "total-data-files differs from the manifests as it did in the parent's summary"


def test_snapshots_after_one_that_cannot_be_read_are_not_convicted(tmp_path: Path) -> None:
    """They share its manifest: what they count is not known while it is there, and is again without it."""
    table = history(tmp_path)
    table.load("e.parquet", 3)
    broken = table.root / "metadata" / f"manifest-{table.first_id + 6}.avro"
    table.delete_rows_of(f"{table.location}/data/e.parquet", "f.parquet", 1)
    table.rewrite("overwrite", [(ADDED, "g.parquet", 4)], {"total-data-files": "1", "total-records": "4"})
    table.rewrite("delete", [(DELETED, "g.parquet", 4)], {"total-data-files": "0", "deleted-records": "4"})
    broken.write_bytes(broken.read_bytes()[:100])
    verdicts = audited(table)
    assert violations(verdicts) == []
    by_position = verdicts.filter(pl.col("law") == "summary-adds-up").sort("position")["verdict"].to_list()
    assert by_position == ["proven"] * 5 + ["unknowable"] * 2 + ["proven"] * 2
