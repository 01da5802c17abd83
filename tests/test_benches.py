"""The benches' tables and jobs: what is measured exists, and engines agree on it."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeview as lv
from benches import bench_checkpoints, bench_iceberg, bench_quality, iceberg_tasks, make_tables, trips
from benches.answers import Answer, disagreements
from benches.goals import COMMIT_TASKS, FILE_TASKS, Task
from benches.make_iceberg import IcebergDescribed, iceberg_files, iceberg_snapshots
from benches.tasks import JOBS


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are made in a folder of the test's."""
    monkeypatch.setattr(make_tables, "HOME", tmp_path)


def answer(engine: str, name: str, table: make_tables.Described) -> Answer:
    """What an engine's job tells of a table."""
    job = JOBS[engine][name]
    return job.answer(job.run(job.prepare(str(table.path))))


def iceberg_answer(engine: str, name: str, table: IcebergDescribed) -> Answer:
    """The same of an Iceberg table."""
    job = iceberg_tasks.JOBS[engine][name]
    return job.answer(job.run(job.prepare(str(table.metadata))))


def agreed(tasks: tuple[Task, ...], table: make_tables.Described) -> None:
    """Every job of the tasks gives what ours gives."""
    for task in tasks:
        ours = answer("lakeview", task.ours, table)
        for engine, job in task.jobs:
            if engine != "lakeview":
                assert disagreements(ours, answer(engine, job, table)) == [], f"{task.title}, {engine}, {job}"


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("layout", make_tables.LAYOUTS)
def test_engines_agree_on_tables_of_many_files(layout: str) -> None:
    table = make_tables.files_table(500, layout)
    snapshot = lv.open_table(str(table.path)).snapshot()
    assert (snapshot.version, snapshot.num_files) == (table.version, table.num_files)
    agreed(FILE_TASKS, table)


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("checkpoints", [False, True], ids=["without checkpoints", "with checkpoints"])
def test_engines_agree_on_tables_of_many_commits(monkeypatch: pytest.MonkeyPatch, checkpoints: bool) -> None:
    monkeypatch.setattr(make_tables, "CHECKPOINT_EVERY", 40)
    table = make_tables.commits_table(105, checkpoints=checkpoints)
    snapshot = lv.open_table(str(table.path)).snapshot()
    assert (snapshot.version, snapshot.num_files) == (table.version, table.num_files)
    agreed(COMMIT_TASKS, table)


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("case", bench_checkpoints.CASES, ids=[case.title for case in bench_checkpoints.CASES])
def test_engines_agree_on_checkpoints(tmp_path: Path, case: bench_checkpoints.Case) -> None:
    for engine, job in [("lakeview", case.ours)] + ([("deltalake", case.peer)] if case.peer is not None else []):
        copy = bench_checkpoints.prepared(300, case, tmp_path / "copies")
        bench_checkpoints.JOBS[engine, job](str(copy))
        bench_checkpoints.agree(copy, 300)


def test_goals_hold_for_large_tables_and_small_ones_are_not_to_be_slower() -> None:
    delta_rs = FILE_TASKS[0].peers[0]
    assert [delta_rs.goal("v1", count) for count in (10_000, 1_000_000)] == [1.0, 300]
    listing = FILE_TASKS[1].peers[0]
    assert [listing.memory("v1", count) for count in (10_000, 1_000_000)] == [None, 6]


@pytest.mark.usefixtures("_elsewhere")
def test_engines_agree_on_iceberg_tables() -> None:
    files = [iceberg_files(120, 50), iceberg_files(60, 20, deletes=True)]
    cases = [(table, task) for table in files for task in bench_iceberg.TASKS]
    cases += [(iceberg_snapshots(7), task) for task in bench_iceberg.SNAPSHOT_TASKS]
    for table, task in cases:
        ours = iceberg_answer("lakeview", task.ours, table)
        assert ours.get("files", table.num_files) == table.num_files or task.earlier
        for engine, job in task.jobs:
            assert disagreements(ours, iceberg_answer(engine, job, table)) == [], f"{task.title}, {engine}, {job}"


@pytest.mark.usefixtures("_elsewhere")
def test_the_quality_of_every_version_is_told_of_both_formats() -> None:
    cases = {case.title: case for case in bench_quality.cases([105], [10], [])}
    assert list(cases) == ["105 commits", "10 snapshots"]
    columns = len(trips.COLUMNS)
    job = JOBS["lakeview"]["quality"]
    answers = [job.answer(job.run(job.prepare(str(case.address)))) for case in cases.values()]
    assert answers == [
        {"columns": columns, "versions": 106, "loads": 105},
        {"columns": columns, "versions": 10, "loads": 1},
    ]
