"""Every order of the Storage calls of two writers, with at most one fault: no law is violated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.simulation.explore import FAULTS, Scenario, Simulation, packed, unpacked
from tests.simulation.laws import Violation
from tests.simulation.operations import OPERATIONS
from tests.simulation.writers import simulated_surroundings

MATRIX = ("append", "delete", "update", "merge", "optimize", "vacuum", "checkpoint")
"""The operations of which every pair is explored here, in a table with deletion vectors.

The bound: two writers, each order of their calls, at most one fault at any call. Where a vacuum is one of them, replies
are lost of creations alone (other puts fail as beside other operations); two vacuums meet a crash at any call, and
other faults by chance. `python -m tests.simulation pairs` has no such exception.
"""

OTHERS = [
    "append+delete@plain", "delete+delete@plain", "delete+update@plain", "delete+merge@plain", "delete+optimize@plain",
    "delete+vacuum@plain", "append+append@due", "append+append@tracked", "delete+optimize@tracked",
    "ingest+ingest@plain", "prune+append@plain", "fill+delete@vectors", "overwrite+delete@vectors",
    "order+delete@vectors", "widen+mark@plain", "widen+policy@plain", "policy+unvector@vectors", "protect+delete@plain",
    "read+rework@plain", "restore+delete@vectors", "restore+optimize@vectors", "restore+vacuum@vectors",
    "restore+rework@vectors!0", "rewind+delete@vectors", "rewind+vacuum@vectors!0", "restore+checkpoint@vectors",
    "clean+append@due", "append+append@plain/local",
]  # fmt: skip
"""Pairs beyond the matrix; `python -m tests.simulation pairs` explores the rest."""

Record = Callable[[str, object], None]
PAIRS = [(first, second) for at, first in enumerate(MATRIX) for second in MATRIX[at:]]


@pytest.fixture(autouse=True)
def surroundings() -> Iterator[None]:
    with simulated_surroundings():
        yield


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=["+".join(pair) for pair in PAIRS])
def test_no_order_and_no_fault_violates_a_law(first: str, second: str, record_property: Record) -> None:
    simulation = Simulation("vectors")
    scenario = Scenario((first, second), "vectors")
    vacuums = (first, second).count("vacuum")
    if vacuums and "checkpoint" not in (first, second):
        scenario = replace(scenario, failing=("create",))
    if vacuums > 1:
        scenario = replace(scenario, kinds=("crash",))
    report = simulation.explore(scenario)
    record_property("schedules", report.schedules)
    record_property("states", report.states)
    assert report.schedules > 100
    missing = {(name, kind) for name in (first, second) for kind in _faults_of(first, second, name)} - set(report.cells)
    for _, kind in [cell for cell in missing if vacuums > 1]:
        found = {simulation.walk(replace(scenario, kinds=(kind,)), seed) for seed in range(20)}
        missing = {cell for cell in missing if cell[1] != kind or not any("!" in s.partition(":")[2] for s in found)}
    simulation.stop()
    assert not missing, "a cell of the matrix is not covered"


def _faults_of(first: str, second: str, name: str) -> tuple[str, ...]:
    """The faults that can meet an operation beside another: a listing is old only where there is something new."""
    if (first, second) == ("optimize", "optimize"):
        return "crash", "lost reply", "stale listing"  # one finds nothing to do: there are no two commits
    made = OPERATIONS[first].commits + OPERATIONS[second].commits
    by_other = made - OPERATIONS[name].commits
    listings = ("stale listing",) * (made > 0) + ("delayed listing",) * (made > 1 and by_other > 0)
    return ("crash", "lost reply", *listings)


@pytest.mark.slow
@pytest.mark.parametrize("text", OTHERS)
def test_other_pairs_violate_no_law_either(text: str, record_property: Record) -> None:
    scenario = Scenario.of(text)
    report = Simulation(scenario.layout).explore(scenario)
    record_property("schedules", report.schedules)
    record_property("states", report.states)
    assert {kind for _, kind in report.cells} <= set(FAULTS)


@pytest.mark.parametrize("seed", range(6))
def test_three_writers_by_chance(seed: int) -> None:
    names = list(OPERATIONS)
    scenario = Scenario(tuple(names[(seed * 5 + step) % len(names)] for step in (0, 3, 7)), "vectors", faults=2)
    simulation = Simulation("vectors")
    assert len({simulation.walk(scenario, each) for each in range(5)}) > 1
    simulation.stop()


@pytest.mark.parametrize("text", ["append+delete@vectors!0", "delete+update@vectors!0"])
def test_the_reduction_loses_no_end(text: str) -> None:
    scenario = Scenario.of(text)
    simulation = Simulation(scenario.layout)
    reduced, whole = (simulation.ends(scenario, reduced=each) for each in (True, False))
    assert reduced == whole


def test_a_violation_is_told_with_a_schedule_that_shows_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.delta.write.pending_commit.check_conflict", lambda *_: None)
    with pytest.raises(Violation) as caught:
        Simulation("plain").explore(Scenario.of("prune+append@plain!0"))
    schedule = str(caught.value).partition("replay '")[2].rstrip("'")
    text, _, tokens = schedule.partition(":")
    lines: list[str] = []
    with pytest.raises(Violation):
        Simulation("plain").replay(Scenario.of(text), unpacked(tokens), lines.append)
    assert any("create _delta_log/" in line for line in lines)


def test_schedules_are_texts() -> None:
    path = ["a", "a", "b!lost", "b!lost", "*b", "a"]
    assert packed(path) == "a2.b!lost.b!lost.*b.a"
    assert unpacked(packed(path)) == path
