"""Every mutant is killed: the simulation sees each rule, fencing step and recovery step of the writer."""

from __future__ import annotations

import pytest

from tests.simulation.explore import Scenario, Simulation
from tests.simulation.laws import Violation
from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.writers import simulated_surroundings


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_schedule_kills_each_mutant(mutant: Mutant) -> None:
    scenario = Scenario.of(mutant.scenario)
    simulation = Simulation(scenario.layout)  # its table is made before the writer is broken
    with mutant.applied(), simulated_surroundings(), pytest.raises(Violation) as caught:
        simulation.explore(scenario)
    assert "python -m tests.simulation replay" in str(caught.value)


def test_there_is_a_mutant_for_each_rule_and_step() -> None:
    assert len({mutant.name for mutant in MUTANTS}) >= 25


def test_what_a_mutant_edits_is_in_the_source() -> None:
    for mutant in MUTANTS:
        with mutant.applied():
            pass
