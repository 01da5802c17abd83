"""Every order of the Storage calls of two writers of an Iceberg table in a folder: no law is violated.

The bound of the suite: two writers in every order; one writer with one fault at each of its calls; and two with a fault
by chance. Breadth has one fault at any call of two writers, and tables with position deletes and deletion vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement

import pytest

from tests.simulation.chance import Record, schedules_by_chance
from tests.simulation.explore import Scenario, Simulation
from tests.simulation.writers import simulated_surroundings

MATRIX = ("append", "overwrite", "delete")
FAULTS = {"crash", "lost reply", "stale listing"}
PAIRS = [*combinations_with_replacement(MATRIX, 2), ("ingest", "ingest")]
WITH_DELETES = [f"delete+prune@{layout}" for layout in ("iceberg-deletes", "iceberg-vectors")]
"""Each rewrites a data file or removes one, so that delete files apply to nothing any more."""


@pytest.fixture(autouse=True)
def surroundings() -> Iterator[None]:
    with simulated_surroundings():
        yield


@pytest.mark.parametrize("pair", PAIRS, ids=map("+".join, PAIRS))
def test_no_order_of_two_commits_violates_a_law(pair: tuple[str, str], record_property: Record) -> None:
    simulation, scenario = Simulation("iceberg"), Scenario(pair, "iceberg")
    report = simulation.explore(replace(scenario, faults=0))
    record_property("schedules", report.schedules)
    record_property("states", report.states)
    assert report.schedules > 1
    assert schedules_by_chance(simulation, scenario, set(), record_property, seeds=3)


@pytest.mark.parametrize("name", MATRIX)
def test_no_fault_at_any_call_of_one_writer_violates_a_law(name: str) -> None:
    report = Simulation("iceberg").explore(Scenario((name,), "iceberg"))
    assert {kind for _, kind in report.cells} == FAULTS


@pytest.mark.slow
@pytest.mark.breadth
@pytest.mark.parametrize("text", [*("+".join(pair) + "@iceberg" for pair in PAIRS), *WITH_DELETES])
def test_no_fault_at_any_call_of_two_writers_violates_a_law(text: str) -> None:
    scenario = Scenario.of(text)
    report = Simulation(scenario.layout).explore(scenario)
    assert {(name, kind) for name in scenario.operations for kind in FAULTS} <= set(report.cells)


@pytest.mark.parametrize("text", ["append+append@iceberg-catalog!0", "append+delete@iceberg-catalog!0",
    "append@iceberg-catalog!1", "delete@iceberg-catalog!1"])  # fmt: skip
def test_no_order_of_commits_by_a_catalog_violates_a_law(text: str) -> None:
    """Conflicts, and answers that are lost before and after the change."""
    scenario = Scenario.of(text)
    assert Simulation(scenario.layout).explore(scenario).schedules > 1


@pytest.mark.slow
@pytest.mark.breadth
@pytest.mark.parametrize("pair", PAIRS, ids=map("+".join, PAIRS))
def test_no_fault_of_two_commits_by_a_catalog_violates_a_law(pair: tuple[str, str]) -> None:
    scenario = Scenario(pair, "iceberg-catalog")
    assert Simulation(scenario.layout).explore(scenario).schedules > 1


@pytest.mark.breadth
def test_the_reduction_loses_no_end() -> None:
    simulation, scenario = Simulation("iceberg"), Scenario.of("delete+delete@iceberg!0")
    reduced, whole = (simulation.ends(scenario, reduced=each) for each in (True, False))
    assert reduced == whole
