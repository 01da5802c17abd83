"""`search`: schedules of three writers and several faults by chance, for so many seconds; `pairs`: every schedule of
every two operations, up to a bound; `replay`: one schedule, call by call."""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, count

from tests.simulation.explore import FAULTS, Scenario, Simulation, unpacked
from tests.simulation.laws import Violation
from tests.simulation.worlds import LAYOUTS, operations_of
from tests.simulation.writers import simulated_surroundings


@dataclass(frozen=True)
class Bounds:
    """How far a pair is explored: so many faults at most, so many states, and beyond them so many schedules by
    chance."""

    faults: int
    states: int
    seeds: int


def main() -> None:
    """Runs a command; a violation of a law ends it with code 1, and its schedule is printed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    search = commands.add_parser("search", help="three writers, up to two faults, by chance")
    search.add_argument("--seconds", type=float, default=60)
    search.add_argument("--seed", type=int, default=0, help="where the seeds begin")
    pairs = commands.add_parser("pairs", help="every schedule of every two operations with at most one fault")
    pairs.add_argument("--layout", choices=LAYOUTS, action="append", help="all without one")
    pairs.add_argument("--operation", action="append", help="pairs with one of these alone")
    pairs.add_argument("--faults", type=int, default=1)
    pairs.add_argument("--states", type=int, default=50_000, help="of one pair; beyond it, schedules by chance")
    pairs.add_argument("--seeds", type=int, default=200, help="schedules by chance of a pair beyond the bound")
    replay = commands.add_parser("replay", help="one schedule again")
    replay.add_argument("schedule")
    options = parser.parse_args()
    try:
        with simulated_surroundings():
            if options.command == "search":
                _search(options.seconds, options.seed)
            elif options.command == "pairs":
                bounds = Bounds(options.faults, options.states, options.seeds)
                _pairs(options.layout or list(LAYOUTS), options.operation or [], bounds)
            else:
                scenario, _, schedule = options.schedule.partition(":")
                scenario_found = Scenario.of(scenario)
                Simulation(scenario_found.layout).replay(scenario_found, unpacked(schedule), _say)
    except Violation as violation:
        sys.exit(str(violation))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _search(seconds: float, seed: int) -> None:
    simulations = {layout: Simulation(layout) for layout in LAYOUTS}
    end, schedules = time.monotonic() + seconds, set()
    for number in count(seed):
        chance = random.Random(number)
        layout = chance.choice(LAYOUTS)
        operations = tuple(chance.choice(list(operations_of(layout))) for _ in range(3))
        scenario = Scenario(operations, layout, faults=chance.choice((0, 1, 2)))
        schedules |= {simulations[scenario.layout].walk(scenario, each) for each in range(10)}
        simulations[scenario.layout].stop()
        if time.monotonic() > end:
            break
    _say(f"{len(schedules):,} distinct schedules of three writers, seeds {seed} to {number}, no law violated")


def _pairs(layouts: list[str], operations: list[str], bounds: Bounds) -> None:
    for layout in layouts:
        simulation = Simulation(layout)
        for pair in combinations_with_replacement(operations_of(layout), 2):
            if not operations or set(operations) & set(pair):
                _explore(simulation, Scenario(pair, layout, bounds.faults), bounds)


def _explore(simulation: Simulation, scenario: Scenario, bounds: Bounds) -> None:
    """Every schedule of a pair, or as many as the bound lets: then every one without a fault, if that is within it, and
    some with faults by chance."""
    if _is_explored(simulation, scenario, bounds):
        return
    if scenario.faults:
        _is_explored(simulation, replace(scenario, faults=0), bounds)
    schedules = {simulation.walk(scenario, seed) for seed in range(bounds.seeds)}
    simulation.stop()
    _say(f"{scenario}: {len(schedules):,} schedules by chance")


def _is_explored(simulation: Simulation, scenario: Scenario, bounds: Bounds) -> bool:
    """Whether every schedule was followed; says what was, and which faults were met."""
    began = time.monotonic()
    report = simulation.explore(scenario, bounds.states)
    met = ", ".join(kind for kind in FAULTS if any(k == kind for _, k in report.cells)) or "none"
    followed = f"{report.schedules:,} schedules" if report.exhaustive else "more than the bound, some"
    _say(
        f"{scenario}: {followed} in {report.states:,} states and {report.runs} runs, "
        f"{time.monotonic() - began:.1f} s; faults: {met}"
    )
    return report.exhaustive


if __name__ == "__main__":
    main()
