"""Checkpoints of few rows, of which no null count is looked at: they give what null counts tell of larger ones."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import lakeview as lv
from lakeview.delta.log import checkpoint_files, checkpoint_footer
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import CorruptTableError, LakeviewError
from tests.builders.actions import add, metadata, protocol, remove
from tests.builders.history import DeltaHistory
from tests.golden.conformance import GoldenTable, delta_tables

TABLES = [t for t in delta_tables() if list(Path(t.path).glob("_delta_log/*.checkpoint*.parquet"))]
COLUMNS = ["size", "modified", "data_change", "partition_values", "tags", "base_row_id", "records", "vector", "stats"]


def listings(address: str) -> list[pl.DataFrame | str]:
    """All that a table reads of its checkpoint, or why it does not."""
    table = lv.open_table(address)
    assert isinstance(table, DeltaTable)
    try:
        state = table.state()
        frames = [state.adds(COLUMNS), state.adds([]), state.removes(), table.statistics(), table.files()]
        actions = pl.concat(state.each_action(["size", "modified", "tags"]), how="diagonal_relaxed")
        return [*frames, actions, state.transactions(), state.domain_metadata()]
    except LakeviewError as error:
        return [str(error)]


@pytest.mark.parametrize("golden", TABLES, ids=lambda golden: golden.name)
def test_rows_tell_what_null_counts_tell(golden: GoldenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    by_rows = listings(golden.path)
    monkeypatch.setattr(checkpoint_footer, "FEW_ROWS", -1)
    monkeypatch.setattr(checkpoint_footer, "FIRST_READ", -1)
    monkeypatch.setattr(checkpoint_files, "_FEW_PATHS", -1)
    for one, other in zip(by_rows, listings(golden.path), strict=True):
        if isinstance(one, str) or isinstance(other, str):
            assert one == other
        else:
            assert_frame_equal(one, other)


@pytest.mark.parametrize("few_rows", [-1, 2_000], ids=["by null counts", "by rows"])
@pytest.mark.parametrize("kind", ["add", "remove"])
def test_an_action_without_a_path_is_named(
    history: DeltaHistory, monkeypatch: pytest.MonkeyPatch, kind: str, few_rows: int
) -> None:
    monkeypatch.setattr(checkpoint_footer, "FEW_ROWS", few_rows)
    action = (add if kind == "add" else remove)("b")
    action[kind]["path"] = None
    actions = [protocol(), metadata(), add("a"), action]
    history.commit(protocol(), metadata()).checkpoint(actions=actions).without(0).commit(add("c"))
    table = lv.open_table(history.address)
    with pytest.raises(CorruptTableError, match=f"one of its {kind} actions has no path"):
        _ = table.snapshot().tombstones if kind == "remove" else table.files()


@pytest.mark.parametrize(
    "path", ["", None, "a/b", "é/x", ".hidden", "/a", "a%20b", "s3://a", "a/./b", "a//b", "a/.b", "a.b/c", "a\n/b"]
)
def test_few_paths_are_plain_as_many_are(path: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = []
    for few in (256, -1):
        monkeypatch.setattr(checkpoint_files, "_FEW_PATHS", few)
        spelling = checkpoint_files.Spelling()
        spelling.look(pa.array(["part-0.parquet", path, "day=1/part-1.parquet"]))
        verdicts.append(spelling.plain)
    assert verdicts[0] == verdicts[1]


def test_a_filter_that_is_asked_again_reads_nothing_of_the_log(tmp_path: Path) -> None:
    writer = lv.create_table(str(tmp_path), {"id": pl.Int64()})
    for number in range(3):
        writer.append(pl.DataFrame({"id": [number]}))
    writer.checkpoint()
    table = lv.open_table(str(tmp_path))
    assert isinstance(table, DeltaTable)
    counts = []
    for _ in range(3):
        before = table.storage.requests.total()
        assert table.scan().filter(pl.col("id") == 1).collect().height == 1
        counts.append(table.storage.requests.total() - before)
    assert counts[1:] == [1, 1], "the data file alone"
    writer.append(pl.DataFrame({"id": [1]}))
    assert table.refresh()
    assert table.scan().filter(pl.col("id") == 1).collect().height == 2
    assert table.scan(3).filter(pl.col("id") == 1).collect().height == 1
