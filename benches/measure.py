"""Two ways of doing the same thing, timed by turns: medians and their ratio, which hold on a noisy machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

ROUNDS = 15


@dataclass(frozen=True)
class Comparison:
    """Medians of CPU seconds (user and system, all threads) and of wall seconds, ours and the peer's."""

    task: str
    ours: float
    peer: float
    ours_wall: float
    peer_wall: float

    @property
    def row(self) -> str:
        """One line of a Markdown table; the ratio says how many times less CPU ours takes."""
        return (
            f"| {self.task} | {self.ours * 1000:.1f} | {self.peer * 1000:.1f} | {self.peer / self.ours:.1f} "
            f"| {self.peer_wall / self.ours_wall:.1f} |"
        )


HEADER = (
    "| task | lakeview, CPU ms | peer, CPU ms | peer / lakeview, CPU | peer / lakeview, wall |\n|---|---|---|---|---|"
)


def compare(task: str, ours: Callable[[], object], peer: Callable[[], object], rounds: int = ROUNDS) -> Comparison:
    """Time both by turns; which goes first changes each round. One unmeasured round comes before."""
    ours(), peer()
    times: dict[str, list[tuple[float, float]]] = {"ours": [], "peer": []}
    for i in range(rounds):
        pair = [("ours", ours), ("peer", peer)]
        for name, action in pair if i % 2 else reversed(pair):
            cpu, wall = time.process_time(), time.perf_counter()
            action()
            times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    cpu_of, wall_of = ({name: statistics.median(t[k] for t in rows) for name, rows in times.items()} for k in (0, 1))
    return Comparison(task, cpu_of["ours"], cpu_of["peer"], wall_of["ours"], wall_of["peer"])
