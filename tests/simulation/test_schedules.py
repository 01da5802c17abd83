"""Every order of the Storage calls of two writers, with at most one fault: no law is violated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.breadth import with_breadth
from tests.simulation.chance import schedules_by_chance
from tests.simulation.explore import FAULTS, Scenario, Simulation, packed, unpacked
from tests.simulation.laws import Violation
from tests.simulation.operations import OPERATIONS
from tests.simulation.writers import simulated_surroundings

MATRIX = ("append", "delete", "update", "merge", "optimize", "vacuum", "checkpoint")
"""The operations of which every pair is explored here, in a table with deletion vectors: each order of their calls.

The bound: two writers, and at most one fault. Beside an append, and beside itself, faults come at any call: each writer
has each of its calls fail there. In the other pairs each kind of fault comes in SEEDS schedules by chance; breadth has
it at any call (beside a vacuum for a delete alone), and `python -m tests.simulation pairs` has no exception.
"""

FAULTS_AT_EVERY_CALL = {("delete", "delete"), ("optimize", "optimize"), ("checkpoint", "checkpoint")} | {
    ("append", name) for name in MATRIX if name != "vacuum"
}
EXHAUSTIVE_VACUUM = ("delete", "vacuum")

OTHERS = [
    "append+delete@plain", "append+append@due", "restore+delete@vectors", "restore+checkpoint@vectors",
    "replace+append@feed", "create+clone@empty", "convert+convert@parquet", "create+create@empty/local",
    "vacuum@tracked", "restore+clean@due", "restore+clean@tracked",
]  # fmt: skip
"""Pairs beyond the matrix, and a vacuum alone, with at most one fault at any call."""

FAULTS_BY_CHANCE = with_breadth(
    [
        "delete+update@plain", "append+append@tracked", "ingest+ingest@plain", "prune+append@plain",
        "overwrite+delete@vectors", "widen+mark@plain", "policy+unvector@vectors", "protect+delete@plain",
        "read+rework@plain", "fill+delete@vectors", "order+delete@vectors", "rewind+delete@vectors",
        "rewind+vacuum@plain", "clean+append@due", "append+append@plain/local", "update+optimize@partitioned",
    ],
    [
        "delete+delete@plain", "delete+merge@plain", "delete+optimize@plain", "delete+vacuum@plain",
        "delete+optimize@tracked", "widen+policy@plain", "restore+optimize@vectors", "restore+vacuum@vectors",
        "restore+rework@vectors", "rewind+vacuum@vectors", "merge+delete@feed", "delete+vacuum@feed",
    ],
)  # fmt: skip
"""Pairs beyond the matrix, in every order, and with a fault in SEEDS schedules: each operation and layout in the suite,
more pairs of them in breadth; `python -m tests.simulation pairs` explores all, and the rest."""

Record = Callable[[str, object], None]
PAIRS = [(first, second) for at, first in enumerate(MATRIX) for second in MATRIX[at:]]


@pytest.fixture(autouse=True)
def surroundings() -> Iterator[None]:
    with simulated_surroundings():
        yield


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=["+".join(pair) for pair in PAIRS])
def test_no_order_and_no_fault_violates_a_law(first: str, second: str, record_property: Record) -> None:
    faults = int((first, second) in FAULTS_AT_EVERY_CALL)
    simulation, scenario, covered = _explored(first, second, faults, record_property)
    expected = _faults_of_both(first, second)
    if not faults:
        covered = schedules_by_chance(simulation, scenario, expected, record_property)
    assert not expected - covered, "a cell of the matrix is not covered"


MORE_FAULTS = [
    pair for pair in PAIRS
    if pair not in FAULTS_AT_EVERY_CALL and ("vacuum" not in pair or pair == EXHAUSTIVE_VACUUM)
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.breadth
@pytest.mark.parametrize(("first", "second"), MORE_FAULTS, ids=["+".join(pair) for pair in MORE_FAULTS])
def test_no_fault_at_any_call_violates_a_law(first: str, second: str, record_property: Record) -> None:
    _, _, covered = _explored(first, second, 1, record_property)
    assert not _faults_of_both(first, second) - covered, "a cell of the matrix is not covered"


def _explored(
    first: str, second: str, faults: int, record_property: Record
) -> tuple[Simulation, Scenario, set[tuple[str, str]]]:
    """Every order of two operations with so many faults; which operations met which kind of fault."""
    simulation, scenario = Simulation("vectors"), Scenario((first, second), "vectors")
    # beside a vacuum, other puts fail as beside other operations
    failing = replace(scenario, failing=("create",)) if "vacuum" in (first, second) else scenario
    report = simulation.explore(replace(failing, faults=faults))
    record_property("schedules", report.schedules)
    record_property("states", report.states)
    assert report.schedules > 1
    return simulation, scenario, set(report.cells)


def _faults_of_both(first: str, second: str) -> set[tuple[str, str]]:
    return {(name, kind) for name in (first, second) for kind in _faults_of(first, second, name)}


def _faults_of(first: str, second: str, name: str) -> tuple[str, ...]:
    """The faults that can meet an operation beside another: a listing is old only where there is something new."""
    if (first, second) == ("optimize", "optimize"):
        return "crash", "lost reply", "stale listing"  # one finds nothing to do: there are no two commits
    commits = OPERATIONS[first].commits + OPERATIONS[second].commits
    by_other = commits - OPERATIONS[name].commits
    listings = ("stale listing",) * (commits > 0) + ("delayed listing",) * (commits > 1 and by_other > 0)
    return ("crash", "lost reply", *listings)


@pytest.mark.slow
@pytest.mark.parametrize("text", OTHERS)
def test_other_pairs_violate_no_law_either(text: str, record_property: Record) -> None:
    scenario = Scenario.of(text)
    report = Simulation(scenario.layout).explore(scenario)
    record_property("schedules", report.schedules)
    record_property("states", report.states)
    assert {kind for _, kind in report.cells} <= set(FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("text", FAULTS_BY_CHANCE)
def test_more_pairs_violate_no_law_in_any_order_nor_with_faultsschedules_by_chance(
    text: str, record_property: Record
) -> None:
    scenario = Scenario.of(text)
    simulation = Simulation(scenario.layout)
    report = simulation.explore(replace(scenario, faults=0))
    record_property("schedules", report.schedules)
    record_property("states", report.states)
    assert report.schedules > 1
    assert schedules_by_chance(simulation, scenario, set(), record_property)


@pytest.mark.parametrize("seed", range(6))
def test_three_writersschedules_by_chance(seed: int) -> None:
    names = list(OPERATIONS)
    scenario = Scenario(tuple(names[(seed * 5 + step) % len(names)] for step in (0, 3, 7)), "vectors", faults=2)
    simulation = Simulation("vectors")
    assert len({simulation.walk(scenario, each) for each in range(5)}) > 1
    simulation.stop()


@pytest.mark.parametrize("text", ["append+delete@vectors!0", "delete+update@vectors!0", "append+vacuum@plain!0"])
def test_the_reduction_loses_no_end(text: str) -> None:
    scenario = Scenario.of(text)
    simulation = Simulation(scenario.layout)
    reduced, whole = (simulation.ends(scenario, reduced=each) for each in (True, False))
    assert reduced == whole


def test_a_pair_beyond_the_bound_of_states_is_told_and_ends() -> None:
    scenario = Scenario.of("append+append@plain!0")
    bounded, whole = (Simulation("plain").explore(scenario, states) for states in (20, None))
    assert not bounded.exhaustive
    assert whole.exhaustive
    assert bounded.states == 20 < whole.states


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
