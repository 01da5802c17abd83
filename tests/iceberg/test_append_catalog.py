"""Appends through a REST catalog: the catalog makes the commit, or says that another was first, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from pyiceberg.table import StaticTable

from lakeview.model.errors import AccessDeniedError, CommitConflictError, NotATableError, StoreUnavailableError
from lakeview.model.findings import Severity
from tests.builders.catalogs import RestState, newest, rest_catalog, table
from tests.builders.opening import open_iceberg_table

ORDERS = "catalog://prod/sales.orders"
NAMES = ("sales", "orders")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again costs no time."""
    for module in ("storage.retries", "iceberg.write.snapshot_commit", "iceberg.write.commits"):
        monkeypatch.setattr(f"lakeview.{module}.back_off", lambda *_, **__: None)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestState]:
    """A catalog by the name `prod` with one table of the rows 0 and 1."""
    catalog_state = RestState([("sales",)], {NAMES: newest(table(tmp_path / "orders", rows=2))})
    with rest_catalog(catalog_state) as address:
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", address)
        yield catalog_state


def rows(*ids: int) -> pl.DataFrame:
    return pl.DataFrame({"id": ids})


def ids() -> list[int]:
    ids_read: list[int] = sorted(open_iceberg_table(ORDERS).scan().collect()["id"])
    return ids_read


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_the_catalog_makes_the_commit(state: RestState) -> None:
    opened_table = open_iceberg_table(ORDERS)
    first, second = opened_table.append(rows(2)), opened_table.append(rows(3, 4))
    assert first is not None
    assert second == opened_table.latest_version == open_iceberg_table(ORDERS).latest_version
    assert ids() == [0, 1, 2, 3, 4]
    by_pyiceberg = StaticTable.from_metadata(str(state.tables[NAMES])).scan().to_arrow()
    assert sorted(by_pyiceberg["id"].to_pylist()) == [0, 1, 2, 3, 4]
    assert [f for f in opened_table.check() if f.severity is not Severity.PASS] == []
    assert set(opened_table.audit()["verdict"]) == {"proven"}


def test_an_append_follows_what_another_writer_committed_meanwhile(state: RestState) -> None:
    stale = open_iceberg_table(ORDERS)
    writers = [open_iceberg_table(ORDERS) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(writer.append, rows(10 + i)) for i, writer in enumerate(writers)]:
            done.result()
    stale.append(rows(20))
    assert ids() == [0, 1, 10, 11, 12, 20]
    assert len({s["sequence-number"] for s in snapshots(state)}) == 6


def snapshots(state: RestState) -> list[dict[str, int]]:
    snapshots_found = StaticTable.from_metadata(str(state.tables[NAMES])).metadata.snapshots
    return [{"sequence-number": s.sequence_number or 0} for s in snapshots_found]


def test_a_lost_answer_does_not_double_the_snapshot(state: RestState) -> None:
    state.losses = 1
    open_iceberg_table(ORDERS).append(rows(2))
    assert ids() == [0, 1, 2]
    assert state.requests["POST tables/table"] == 1


@pytest.mark.parametrize("status", [409, 408, 418, 301, 400, 504])
def test_a_change_that_is_made_is_a_commit_whatever_the_answer(state: RestState, status: int) -> None:
    """A proxy may repeat a request, whose second answer is then that a requirement is not met; or give up too early."""
    state.answers = [status]
    open_iceberg_table(ORDERS).append(rows(2))
    assert ids() == [0, 1, 2]
    by_pyiceberg = StaticTable.from_metadata(str(state.tables[NAMES])).scan().to_arrow()
    assert sorted(by_pyiceberg["id"].to_pylist()) == [0, 1, 2]
    assert state.requests["POST tables/table"] == 1


@pytest.mark.parametrize("answers", [[], [301] * 3], ids=["that it was", "that it is elsewhere"])
def test_a_change_that_is_not_made_is_no_commit_whatever_the_answer(state: RestState, answers: list[int]) -> None:
    state.applies, state.answers = False, answers
    with pytest.raises(StoreUnavailableError, match="was committed is not known") as caught:
        open_iceberg_table(ORDERS).append(rows(2))
    assert (caught.value.kind, ids()) == ("outcome-unknown", [0, 1])


def test_a_catalog_that_falls_silent_after_a_commit_does_not_hide_it(
    state: RestState, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_table = open_iceberg_table(ORDERS)
    pointer = opened_table.pointer
    assert pointer is not None
    commit = pointer.commit

    def commit_and_fail(*change: object) -> bool:
        answer = commit(*change)  # type: ignore[arg-type]  # handed on
        state.failing = [(503, "ServiceUnavailable")] * 20
        return answer

    monkeypatch.setattr(pointer, "commit", commit_and_fail)
    assert opened_table.append(rows(2)) is not None
    state.failing = []
    assert ids() == [0, 1, 2]


def test_an_answer_that_never_comes_keeps_the_files(
    state: RestState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_table, before = open_iceberg_table(ORDERS), files_below(tmp_path)
    monkeypatch.setattr(opened_table.pointer, "commit", unanswered)
    with pytest.raises(StoreUnavailableError, match=r"whether .* was committed is not known") as caught:
        opened_table.append(rows(2))
    assert caught.value.kind == "outcome-unknown"
    assert ids() == [0, 1]
    suffixes = sorted(path.suffix for path in files_below(tmp_path) - before)
    assert suffixes == [".avro", ".avro", ".parquet"]


def unanswered(*_: object) -> bool:
    raise StoreUnavailableError("no answer")


def test_a_catalog_that_may_only_be_read_leaves_nothing_behind(state: RestState, tmp_path: Path) -> None:
    opened_table, before = open_iceberg_table(ORDERS), files_below(tmp_path)
    state.denies = True
    with pytest.raises(AccessDeniedError, match="the catalog prod refuses access"):
        opened_table.append(rows(2))
    assert files_below(tmp_path) == before


def test_a_table_that_is_dropped_meanwhile_leaves_nothing_behind(
    state: RestState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_table, before = open_iceberg_table(ORDERS), files_below(tmp_path)
    pointer = opened_table.pointer
    assert pointer is not None
    commit = pointer.commit

    def drop_first(*change: object) -> bool:
        state.tables.clear()
        return commit(*change)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(pointer, "commit", drop_first)
    with pytest.raises(NotATableError, match="the catalog holds no table of this name"):
        opened_table.append(rows(2))
    assert files_below(tmp_path) == before


def test_other_columns_meanwhile_are_a_conflict(
    state: RestState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_table, before = open_iceberg_table(ORDERS), files_below(tmp_path)
    pointer = opened_table.pointer
    assert pointer is not None
    commit = pointer.commit

    def change_first(*change: object) -> bool:
        file = Path(str(state.tables[NAMES]))
        newer = file.with_name("00090-other.metadata.json")
        text = file.read_text().replace('"current-schema-id": 0', '"current-schema-id": 1')
        newer.write_text(text.replace('"schemas": [', '"schemas": [{"type": "struct", "schema-id": 1, "fields": []}, '))
        state.tables[NAMES] = str(newer)
        return commit(*change)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(pointer, "commit", change_first)
    with pytest.raises(CommitConflictError, match="changed while the rows were written"):
        opened_table.append(rows(2))
    assert files_below(tmp_path) == before | {Path(str(state.tables[NAMES]))}
