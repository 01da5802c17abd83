"""Logs of many files and of many commits, lakeview beside delta-rs and the Delta kernel: a table of ratios and goals.

Usage: python benches/bench_logs.py [--quick] [--files 10000 ...] [--commits 1000 ...] [--layouts v1 ...] [--output X]

Each measurement is a fresh process (worker.py); engines take turns, and the order turns round with every round. CPU
seconds are user and system of all threads; memory is the peak above what the process held before. Answers are compared
before a figure counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benches.goals import COMMIT_TASKS, FILE_TASKS, LARGE, Task
from benches.make_tables import LAYOUTS, Described, commits_table, files_table
from benches.tasks import disagreements

WORKER = Path(__file__).with_name("worker.py")
FILE_ROUNDS = ((LARGE, 2), (100_000, 3), (0, 5))
COMMIT_ROUNDS = ((5_000, 3), (0, 5))
"""Rounds by the number of files or commits from which they hold."""

FILE_PLAN: tuple[tuple[int, str], ...] = (
    *((10_000, "v1"), (100_000, "v1"), (100_000, "parsed")),
    *((LARGE, "v1"), (LARGE, "parsed"), (LARGE, "parts"), (LARGE, "v2")),
)
COMMIT_PLAN: tuple[tuple[int, bool], ...] = ((1_000, False), (5_000, False), (20_000, True))
"""What the whole run measures: numbers of files with layouts, numbers of commits with and without checkpoints."""

QUICK_FILES, QUICK_COMMITS = FILE_PLAN[:1], COMMIT_PLAN[:1]


@dataclass(frozen=True)
class Cost:
    """Medians over the rounds: CPU and wall seconds, bytes."""

    cpu: float
    wall: float
    memory: float


@dataclass(frozen=True)
class Case:
    """A table, a small one of the same kind to warm up on, and what is done with it."""

    title: str
    kind: str
    count: int
    table: Described
    warm: Described
    tasks: Sequence[Task]
    rounds: int


def cases(files: Iterable[tuple[int, str]], commits: Iterable[tuple[int, bool]]) -> Iterator[Case]:
    """Every table that is asked for, made if it is not there."""
    for count, layout in files:
        tasks = [task for task in FILE_TASKS if task.applies(layout, count)]
        rounds = _rounds(FILE_ROUNDS, count)
        table, warm = files_table(count, layout), files_table(1_000, layout)
        yield Case(f"{count:,} files, {_LAYOUT_TITLES[layout]}", layout, count, table, warm, tasks, rounds)
    for count, checkpoints in commits:
        title = f"{count:,} commits, {'a checkpoint each 1,000' if checkpoints else 'no checkpoint'}"
        rounds = _rounds(COMMIT_ROUNDS, count)
        table, warm = commits_table(count, checkpoints=checkpoints), commits_table(100, checkpoints=False)
        yield Case(title, "commits", count, table, warm, COMMIT_TASKS, rounds)


_LAYOUT_TITLES = {"v1": "V1", "parsed": "V1 with stats_parsed", "parts": "multi-part", "v2": "V2 with sidecars"}


def _rounds(table: Iterable[tuple[int, int]], count: int) -> int:
    return next(rounds for least, rounds in table if count >= least)


def measured(case: Case) -> dict[tuple[str, str], Cost]:
    """What every job of a case costs; SystemExit if engines do not agree."""
    jobs = list(dict.fromkeys(job for task in case.tasks for job in (("lakeview", task.ours), *task.jobs)))
    samples: dict[tuple[str, str], list[dict[str, Any]]] = {job: [] for job in jobs}
    for number in range(case.rounds):
        for job in jobs if number % 2 == 0 else reversed(jobs):
            samples[job].append(_once(*job, case))
        if number == 0:
            _agree(case, {job: found[0]["answer"] for job, found in samples.items()})
    return {
        job: Cost(*(median(sample[what] for sample in found) for what in ("cpu", "wall", "memory")))
        for job, found in samples.items()
    }


def _once(engine: str, job: str, case: Case) -> dict[str, Any]:
    command = [sys.executable, str(WORKER), engine, job, str(case.table.path), str(case.warm.path)]
    environment = {**os.environ, "PYTHONPATH": str(WORKER.parents[1])}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if ended.returncode:
        raise SystemExit(f"{engine}, {job}, {case.title}:\n{ended.stderr}")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def _agree(case: Case, answers: dict[tuple[str, str], dict[str, Any]]) -> None:
    for task in case.tasks:
        ours = answers["lakeview", task.ours]
        if not task.earlier and ours.get("files", case.table.num_files) != case.table.num_files:
            raise SystemExit(f"{case.title}: {ours['files']} files, made with {case.table.num_files}")
        for engine, job in task.jobs:
            if engine == "lakeview":
                continue  # another task of ours, as a measure
            if wrong := disagreements(ours, answers[engine, job]):
                raise SystemExit(f"{case.title}, {task.title}: lakeview and {engine} differ: {'; '.join(wrong)}")


HEADER = (
    "| table | task | peer | lakeview, CPU s | peer, CPU s | peer / lakeview, CPU | goal | reached | wall "
    "| lakeview, MB | peer, MB | memory | goal | reached |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def rows(case: Case, costs: dict[tuple[str, str], Cost]) -> Iterator[str]:
    """Lines of the table: a task beside each of its peers; ratios say how many times less lakeview takes."""
    for task in case.tasks:
        ours = costs["lakeview", task.ours]
        for peer in task.peers:
            theirs = costs[peer.engine, peer.job]
            cpu, memory = theirs.cpu / ours.cpu, theirs.memory / max(ours.memory, 2**20)
            cells = [
                *(
                    case.title,
                    task.title,
                    peer.label,
                    f"{ours.cpu:.3f}",
                    f"{theirs.cpu:.3f}",
                    f"{cpu:.1f}" if cpu >= 1 else f"{cpu:.2f}",
                ),
                *_judged(cpu, peer.goal(case.kind, case.count)),
                *(f"{theirs.wall / ours.wall:.1f}", f"{ours.memory / 2**20:.0f}", f"{theirs.memory / 2**20:.0f}"),
                *(f"{memory:.1f}", *_judged(memory, peer.memory(case.kind, case.count))),
            ]
            yield f"| {' | '.join(cells)} |"


def _judged(ratio: float, goal: float | None) -> tuple[str, str]:
    return ("", "") if goal is None else (f"{goal:.3g}", "yes" if ratio >= goal else "NO")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 files and 1,000 commits only")
    parser.add_argument("--files", type=int, nargs="*")
    parser.add_argument("--commits", type=int, nargs="*")
    parser.add_argument("--layouts", nargs="*", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--output", type=Path, help="a file that gets the table as well")
    asked = parser.parse_args()
    files, commits = (QUICK_FILES, QUICK_COMMITS) if asked.quick else (FILE_PLAN, COMMIT_PLAN)
    if asked.files is not None or asked.commits is not None:
        files = tuple((count, layout) for count in asked.files or () for layout in asked.layouts)
        commits = tuple((count, checkpoints) for count in asked.commits or () for checkpoints in (False, True))
    lines = [HEADER]
    print(HEADER, flush=True)
    for case in cases(files, commits):
        for row in rows(case, measured(case)):
            lines.append(row)
            print(row, flush=True)
    if asked.output:
        asked.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
