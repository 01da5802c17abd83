"""Checkpoints that several processes write: those of one process, byte for byte, or none at all."""

from __future__ import annotations

import pickle
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.checkpoint.file_rows import Definition, shape_of
from lakeview.delta.write.checkpoint.files import finish_parts
from lakeview.delta.write.checkpoint.order import part_numbers, spark_hash
from lakeview.delta.write.checkpoint.parts import PackedActions, PartFile, part_work
from lakeview.delta.write.checkpoint.plan import CheckpointPlan, plan_checkpoint
from lakeview.model.errors import LakeviewError
from tests.builders.actions import add, txn
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table
from tests.delta.test_checkpoint_writing import state, whole_history, without_commits
from tests.golden.conformance import GoldenTable, delta_tables

TABLES = [t for t in delta_tables() if list(Path(t.path).glob("_delta_log/*.checkpoint*"))]


def written_parts(table: DeltaTable, most_parts: int) -> tuple[CheckpointPlan, list[PartFile]]:
    """What the processes of a cluster do, all but the end; what they get has been pickled."""
    replay = table.state()
    pieces, tail = replay.pieces(shape_of(Definition.of(replay)).columns)
    plan = plan_checkpoint(table, replay, most_parts=most_parts)
    work, pieces = pickle.loads(pickle.dumps((part_work(table, plan), pieces)))
    by_part: dict[int, list[PackedActions]] = defaultdict(list, {part: [] for part in range(len(plan.names))})
    newer = tail.select("key", "deletion_vector")
    for packed in (*(p for piece in pieces for p in work.of_piece(piece, newer)), *work.of_commits(tail)):
        by_part[packed.part].append(packed)
    return plan, [work.write(part, packed) for part, packed in by_part.items()]


def changed_table(address: Path, properties: dict[str, str], checkpoint: int | None) -> DeltaTable:
    """Partitions, deletion vectors, tombstones, a txn; a checkpoint in so many parts behind which commits lie."""
    rows = pl.DataFrame({"id": range(8), "part": ["a", None, "b c", "a", "%", "b c", "d", "e"]})
    table = lv.create_table(
        str(address),
        rows.to_arrow().schema,
        partition_by=["part"],
        properties={"delta.enableDeletionVectors": "true", **properties},
    )
    assert isinstance(table, DeltaTable)
    table.append(rows)
    table.append(rows)
    table.delete("id = 2")
    if checkpoint is not None:
        table.checkpoint(parts=checkpoint or None)
    table.delete("id < 2 OR id = 5")
    with table.transaction() as txn:
        txn.set_transaction("app", 3)
        txn.append(rows[:2])
    return table


KINDS: dict[str, tuple[dict[str, str], int | None]] = {
    "no checkpoint before": ({}, None),
    "parts before": ({"delta.checkpoint.writeStatsAsStruct": "true"}, 3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_the_bytes_of_one_process(tmp_path: Path, kind: str) -> None:
    changed_table(tmp_path / "ours", *KINDS[kind])
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    table, version = open_delta_table(tmp_path / "ours"), open_delta_table(tmp_path / "theirs").checkpoint(parts=4)
    plan, parts = written_parts(table, 4)
    finish_parts(table, plan, parts)
    for name in (*plan.names, "_last_checkpoint"):
        ours, theirs = (tmp_path / which / "_delta_log" / name for which in ("ours", "theirs"))
        assert ours.read_bytes() == theirs.read_bytes(), name
    again = open_delta_table(tmp_path / "ours")
    assert plan_checkpoint(again, again.state(version), most_parts=4).is_present


def test_every_field_is_in_a_part(tmp_path: Path) -> None:
    whole_history(tmp_path)
    replayed = state(tmp_path)
    table = open_delta_table(tmp_path)
    finish_parts(table, *written_parts(table, 2))
    without_commits(tmp_path, 1)
    assert state(tmp_path) == replayed


@pytest.mark.parametrize("properties", [{}, {"delta.checkpointPolicy": "v2"}], ids=["parts", "sidecars"])
def test_until_the_end_there_is_no_checkpoint(tmp_path: Path, properties: dict[str, str]) -> None:
    table = changed_table(tmp_path / "table", properties, 0)
    before, hint = state(table.address), table.storage.read("_delta_log/_last_checkpoint")
    plan, parts = written_parts(table, 3)
    if plan.names:
        table.storage.delete(f"_delta_log/{plan.names[1]}")
        with pytest.raises(LakeviewError, match="2 of 3 parts of checkpoint 5 were written"):
            finish_parts(table, plan, [file for file in parts if file.part != 1])
    assert state(table.address) == before
    assert table.storage.read("_delta_log/_last_checkpoint") == hint
    if plan.is_v2:
        assert len(parts) > 1
        finish_parts(table, plan, parts)
    else:
        table.checkpoint(parts=3)  # it replaces what was left behind
    without_commits(table.address, 5)
    assert state(table.address) == before


@pytest.mark.golden
@pytest.mark.skipif(not TABLES, reason="no conformance tables: set LAKEVIEW_CONFORMANCE to their folder")
@pytest.mark.parametrize("golden", TABLES, ids=[t.name for t in TABLES])
def test_parts_of_other_writers_tables_are_those_of_one_process(golden: GoldenTable, tmp_path: Path) -> None:
    ours, theirs = (shutil.copytree(golden.path, tmp_path / name) for name in ("ours", "theirs"))
    try:
        table = open_delta_table(str(ours))
        version = open_delta_table(theirs).checkpoint()
    except LakeviewError:
        return  # the same call reports what cannot be read
    plan, parts = written_parts(table, 3)
    if plan.is_present:
        return
    finish_parts(table, plan, parts)
    state, expected = (DeltaTable(open_delta_table(folder).storage).state(version) for folder in (ours, theirs))
    of_adds = ["size", "modified", "partition_values", "stats", "tags", "vector"]
    for side, columns in (("adds", of_adds), ("removes", ["size", "modified", "partition_values", "vector"])):
        rows = [getattr(of, side)(columns).select("path", *columns) for of in (state, expected)]
        assert sorted(map(str, rows[0].rows())) == sorted(map(str, rows[1].rows()))


PARTS_IN_SPARK = {
    "": 2, "a": 0, "ab": 3, "abc": 1, "abcd": 0, "x" * 37: 2,
    "part-00000-3935a07c-416b-4344-ad97-2a38342ee2fc.c000.snappy.parquet": 1, "p=\u00e9/part-1.parquet": 4,
    "a\0uab^-aqEH.-t@S}K{vb[*k^@4": 2,
}  # fmt: skip
"""By `repartition(5, path, deletion vector)` of PySpark 4.3, paths as the log has them (`p=%C3%A9`)."""


def test_actions_are_divided_as_spark_divides_them() -> None:
    names = pl.Series([*PARTS_IN_SPARK])
    assert part_numbers(names, 5).to_list() == [*PARTS_IN_SPARK.values()]
    assert part_numbers(names, 1).to_list() == [0] * len(names)
    assert part_numbers(names[:0], 5).to_list() == []
    assert spark_hash(pl.Series(["Spark", None]), np.full(2, 42, np.uint32)).view(np.int32).tolist() == [228093765, 42]


def test_a_part_holds_the_files_that_spark_puts_there(history: DeltaHistory) -> None:
    paths = [name for name in PARTS_IN_SPARK if name and "\0" not in name and name.isascii()]
    history.create().commit(*map(add, paths), txn("app", 1))
    open_delta_table(history.address).checkpoint(parts=5)
    for part in range(5):
        file = Path(history.address) / f"_delta_log/{1:020}.checkpoint.{part + 1:010}.{5:010}.parquet"
        rows = pl.read_parquet(file)
        assert set(rows["add"].struct["path"].drop_nulls()) == {p for p in paths if PARTS_IN_SPARK[p] == part}
        assert rows["protocol"].drop_nulls().len() == rows["txn"].drop_nulls().len() == (part == 2)
