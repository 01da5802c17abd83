"""Tables whose files lie elsewhere than recorded: rules that say where, in this process and in one that gets tasks."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import lakeview as lv
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask
from tests.builders.iceberg import IcebergHistory

FIELDS: list[dict[str, Any]] = [{"id": 1, "name": "id", "required": False, "type": "long"}]


@pytest.fixture
def aside(tmp_path: Path) -> IcebergHistory:
    """A table of three data files, whose data folder was moved to `aside`."""
    history = IcebergHistory(tmp_path / "t", FIELDS)
    paths = [history.append(f"f{i}", [{"id": i}, {"id": i + 10}]) for i in range(3)]
    history.delete_positions("d", {paths[0]: [1]})
    (history.root / "data").rename(tmp_path / "aside")
    return history


def ids_in_another_process(tasks: list[FileTask]) -> list[int]:
    """The ids that another process reads, which has the tasks and nothing else."""
    arrived: list[FileTask] = pickle.loads(pickle.dumps(tasks))
    return sorted(i for task in arrived for batch in read_task(task) for i in batch["id"].to_pylist())


def test_rules_of_the_call_travel_with_the_tasks(aside: IcebergHistory, tmp_path: Path) -> None:
    table = lv.open_table(aside.address, relocate={f"{aside.location}/data": str(tmp_path / "aside")})
    assert sorted(table.scan().collect()["id"].to_list()) == [0, 1, 2, 11, 12]
    assert ids_in_another_process(table.tasks()) == [0, 1, 2, 11, 12]


def test_rules_of_the_configuration_hold_too_and_those_of_the_call_win(
    aside: IcebergHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEVIEW_RELOCATE", f"{aside.location}/data={tmp_path}/aside")
    assert ids_in_another_process(lv.open_table(aside.address).tasks()) == [0, 1, 2, 11, 12]
    (tmp_path / "aside").rename(tmp_path / "further")
    table = lv.open_table(aside.address, relocate={f"{aside.location}/data": str(tmp_path / "further")})
    assert table.scan().collect().height == 5


def test_the_longest_prefix_counts_and_whole_segments_only(aside: IcebergHistory, tmp_path: Path) -> None:
    rules = {
        "s3://old": "/nowhere",
        f"{aside.location}/dat": "/nowhere",
        f"{aside.location}/data": str(tmp_path / "aside"),
        f"{aside.location}/metadata": f"{aside.address}/metadata",
    }
    assert lv.open_table(aside.address, relocate=rules).scan().collect().height == 5


def test_no_rule_leads_outside_the_roots_of_the_process_that_reads(
    aside: IcebergHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {f"{aside.location}/data": str(tmp_path / "aside")}
    tasks = lv.open_table(aside.address, relocate=rules).tasks()
    with pytest.raises(AccessDeniedError, match="lies outside the table and the allowed roots") as caught:
        lv.open_table(aside.address, relocate=rules, config=Config(roots=(aside.address,))).scan().collect()
    assert caught.value.fix == "add its folder to LAKEVIEW_ROOTS if you trust this table"
    monkeypatch.setenv("LAKEVIEW_ROOTS", aside.address)
    with pytest.raises(AccessDeniedError, match="lies outside the table and the allowed roots"):
        ids_in_another_process(tasks)


def test_allowed_roots_travel_with_the_tasks(aside: IcebergHistory, tmp_path: Path) -> None:
    config = Config(roots=(str(tmp_path),), relocate={f"{aside.location}/data": str(tmp_path / "aside")})
    assert ids_in_another_process(lv.open_table(aside.address, config=config).tasks()) == [0, 1, 2, 11, 12]
