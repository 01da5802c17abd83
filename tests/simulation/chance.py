"""Schedules with a fault by chance, where faults are not explored at every call."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tests.simulation.explore import FAULTS, Scenario, Simulation, unpacked

SEEDS = 10
"""Schedules by chance of one kind of fault."""

Record = Callable[[str, object], None]


def schedules_by_chance(
    simulation: Simulation,
    scenario: Scenario,
    pairs: AbstractSet[tuple[str, str]],
    record_property: Record,
    seeds: int = SEEDS,
) -> set[tuple[str, str]]:
    """The operations and the kinds of faults that they met in `seeds` schedules of each kind, or up to five times as
    many to meet those `wanted`; a kind that chance did not bring to one of them is explored at every call."""
    covered: set[tuple[str, str]] = set()
    schedules: set[str] = set()
    for kind in FAULTS:
        for seed in range(seeds * 5):
            if seed >= seeds and not {cell for cell in pairs - covered if cell[1] == kind}:
                break
            schedule = simulation.walk(replace(scenario, kinds=(kind,)), seed)
            schedules.add(schedule)
            met = [token[0] for token in unpacked(schedule.partition(":")[2]) if "!" in token]
            covered |= {(scenario.operations["ab".index(slot)], kind) for slot in met}
    rare = tuple({kind for _, kind in pairs - covered})
    if rare:
        covered |= set(simulation.explore(replace(scenario, kinds=rare)).cells)
    simulation.stop()
    record_property("schedules by chance", len(schedules))
    return covered
