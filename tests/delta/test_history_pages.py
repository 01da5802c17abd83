"""History by page: the same rows as the whole, from as few files of the log as it takes."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakeview as lv
from lakeview.delta.table import DeltaTable
from tests.builders.actions import add, info, metadata, remove
from tests.builders.history import DeltaHistory, log_name
from tests.builders.stores import FarStorage
from tests.delta.test_refresh import Watched


def by_page(address: object, size: int) -> pl.DataFrame:
    """The whole history, page by page, each on a table of its own."""
    pages: list[pl.DataFrame] = []
    before: int | None = None
    while True:
        page = lv.open_table(str(address)).history(size, before=before)
        if not page.height:
            return pl.concat(pages)
        assert page.height <= size
        pages.append(page)
        before = page["version"][-1]


def busy(history: DeltaHistory) -> DeltaHistory:
    """Files come, go, come back and are replaced; the schema changes twice; one commit is broken."""
    history.create()
    for version in range(1, 31):
        actions: list[Any] = [
            info(operation="WRITE", timestamp=version),
            add(f"f{version}", records=version, size=version),
        ]
        if version % 3 == 0:
            actions.append(remove(f"f{version - 2}"))
        if version % 7 == 0:
            actions += [remove(f"f{version - 1}"), add(f"f{version - 2}", records=100, size=100)]
        if version in (11, 22):
            actions.append(metadata({f"c{version}": "long"}))
        if version == 12:
            actions.append(metadata({"c11": "long"}, properties={"k": "v"}))
        history.commit(*actions)
    return history


@pytest.mark.parametrize("size", [1, 4, 7, 30, 100])
@pytest.mark.parametrize("shape", ["commits alone", "checkpoints", "cleaned up", "a gap", "a broken commit"])
def test_pages_add_up_to_the_whole(history: DeltaHistory, shape: str, size: int) -> None:
    busy(history)
    if shape != "commits alone":
        history.checkpoint(10).checkpoint(20)
    if shape == "cleaned up":
        history.without(*range(10))
    if shape == "a gap":
        history.without(15)
    if shape == "a broken commit":
        history.write(log_name(17), b"{")
    whole = lv.open_table(history.address).history()
    paged = by_page(history.address, size)
    assert paged["version"].to_list() == whole["version"].to_list()
    differing = [c for c in whole.columns if not paged[c].equals(whole[c], null_equal=True)]
    assert differing == []


def test_a_page_of_appends_reads_its_own_commits(history: DeltaHistory) -> None:
    history.create()
    for version in range(1, 301):
        history.commit(info(operation="WRITE"), add(f"f{version}", records=1))
    history.checkpoint(290).hint({"version": 290, "size": 1})
    store = Watched(history.address)
    table = DeltaTable(store)
    store.calls.clear()
    assert table.history(5)["version"].to_list() == [300, 299, 298, 297, 296]
    assert sorted(s for s in store.calls if s.endswith(".json")) == [log_name(v) for v in range(296, 301)]
    store.calls.clear()
    assert table.history(5, before=100)["version"].to_list() == [99, 98, 97, 96, 95]
    assert sorted(s for s in store.calls if s.endswith(".json")) == [log_name(v) for v in range(95, 100)]
    store.calls.clear()
    assert table.history(5).height == 5
    assert store.calls == [], "a page that was read is not read again"


def test_a_page_looks_for_what_it_removed_no_further_than_it_must(history: DeltaHistory) -> None:
    history.create()
    for version in range(1, 41):
        history.commit(info(operation="WRITE"), add(f"f{version}", records=version, size=version))
    history.commit(remove("f38"))
    history.checkpoint(30).commit(remove("f5"))
    store = Watched(history.address)
    page = DeltaTable(store).history(1, before=42)
    assert page.row(0, named=True)["records_removed"] == 38
    paths_read = [s for s in store.calls if s.endswith(".json")]
    assert log_name(38) in paths_read
    assert log_name(30) not in paths_read
    store.calls.clear()
    page = DeltaTable(store).history(1)
    assert page.row(0, named=True)["records_removed"] == 5, "the checkpoint knows"
    paths_read = [s for s in store.calls if s.endswith(".json")]
    assert log_name(30) not in paths_read
    assert log_name(30, "checkpoint.parquet") in store.calls


def test_a_page_is_bounded_by_what_is_there(history: DeltaHistory) -> None:
    table = lv.open_table(busy(history).address)
    assert table.history(0).height == 0
    assert table.history(5, before=0).height == 0
    assert table.history(5, before=-3).height == 0
    assert table.history(5, before=10**18)["version"][0] == 30
    assert table.history(before=3)["version"].to_list() == [2, 1, 0]


def test_the_second_time_nothing_is_read(history: DeltaHistory) -> None:
    store = FarStorage(busy(history).address)
    table = DeltaTable(store)
    first = table.history()
    reads = store.requests.copy()
    assert table.history().equals(first)
    assert table.history(3).height == 3
    assert store.requests == reads


@given(st.data())
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@pytest.mark.slow
def test_whatever_happened_pages_add_up_to_the_whole(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    names = st.sampled_from(["a", "b", "./a", "c"])
    action = st.one_of(
        st.builds(lambda n, r: add(n, records=r, size=10), names, st.none() | st.integers(0, 9)),
        st.builds(remove, names),
    )
    history = DeltaHistory(tmp_path_factory.mktemp("pages")).create()
    for actions in data.draw(st.lists(st.lists(action, max_size=3), min_size=1, max_size=8)):
        history.commit(*actions)
    whole = lv.open_table(history.address).history()
    assert by_page(history.address, data.draw(st.integers(1, 4))).equals(whole)
