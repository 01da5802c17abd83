"""A table and tasks to a Markdown table of costs: every job in a fresh process, engines by turns, answers compared.

CPU seconds are user and system of all threads; memory is the peak above what the process held before. Engines take
turns, and the order turns round with every round (worker.py measures one job).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benches.answers import disagreements
from benches.goals import Task

WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class Cost:
    """Medians over the rounds: CPU and wall seconds, bytes."""

    cpu: float
    wall: float
    memory: float


@dataclass(frozen=True)
class Case:
    """A table, a small one of the same kind to warm up on, and what is done with it.

    `count`: of what it holds many of, by which goals are set; `num_files`: live files, None where no task finds them.
    """

    title: str
    kind: str
    count: int
    address: Path
    warm: Path
    num_files: int | None
    tasks: Sequence[Task]
    rounds: int


def rounds_of(table: Iterable[tuple[int, int]], count: int) -> int:
    """How many rounds a table of so many is measured: `table` says from how many on, and how often."""
    return next(rounds for least, rounds in table if count >= least)


def measured(case: Case) -> dict[tuple[str, str], Cost]:
    """What every job of a case costs; SystemExit if engines do not agree."""
    jobs = list(dict.fromkeys(job for task in case.tasks for job in (("lakeview", task.ours), *task.jobs)))
    samples: dict[tuple[str, str], list[dict[str, Any]]] = {job: [] for job in jobs}
    for number in range(case.rounds):
        for job in jobs if number % 2 == 0 else reversed(jobs):
            samples[job].append(_once(*job, case))
        if number == 0:
            _agree(case, {job: runs[0]["answer"] for job, runs in samples.items()})
    return {
        job: Cost(*(median(sample[what] for sample in runs) for what in ("cpu", "wall", "memory")))
        for job, runs in samples.items()
    }


def _once(engine: str, job: str, case: Case) -> dict[str, Any]:
    command = [sys.executable, str(WORKER), engine, job, str(case.address), str(case.warm)]
    environment = {**os.environ, "PYTHONPATH": str(WORKER.parents[1])}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if ended.returncode:
        raise SystemExit(f"{engine}, {job}, {case.title}:\n{ended.stderr}")
    sample: dict[str, Any] = json.loads(ended.stdout)
    return sample


def _agree(case: Case, answers: dict[tuple[str, str], dict[str, Any]]) -> None:
    for task in case.tasks:
        ours = answers["lakeview", task.ours]
        if not task.earlier and case.num_files is not None and ours.get("files", case.num_files) != case.num_files:
            raise SystemExit(f"{case.title}: {ours['files']} files, made with {case.num_files}")
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


def report(cases: Iterable[Case], output: Path | None) -> None:
    """Measure every case, print its lines as they come, and keep them in a file."""
    lines = [HEADER]
    print(HEADER, flush=True)
    for case in cases:
        for row in rows(case, measured(case)):
            lines.append(row)
            print(row, flush=True)
    if output:
        output.write_text("\n".join(lines) + "\n")
