"""States of a simulation to the states that may follow: every order of calls, each law checked on each.

Reduction: where a writer's next call commutes with all that the others may still do, only that call follows. Such are

- reads of a file that is there, unless the laws allow another writer to delete it: commits, checkpoints and data files
  never change (a Violation where one does, so that the reduction holds for faulty code too). `_last_checkpoint` does;
- puts and deletes of data files, deletion vectors and sidecars: their names are unique, and others learn them only from
  a commit, which comes later in the same writer; unless another writer has yet to list the table's folder, which each
  does once at most (an AssertionError where one does it again);
- a kill is offered right after a call that changed the store: later, before the next change, it leaves the same.

States that are equal (the same files, each writer at the same place of its tree, as many faults left) are entered once.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial

from tests.simulation.laws import Violation
from tests.simulation.operations import NOW_MS, Operation
from tests.simulation.store import LISTINGS, Call, Failure, Files, LogNames, Reply, effect, reply
from tests.simulation.worlds import FormatLaws, World, world_of
from tests.simulation.writers import Outcome, Place, Program

SLOTS = "abcd"
FAULTS = ("crash", "lost reply", "stale listing", "delayed listing")
"""The kinds of faults; `none` beside them."""

_KINDS = {
    "crash": "crash", "lost": "lost reply", "never": "lost reply", "late": "lost reply", "stale": "stale listing",
    "older": "stale listing", "gap": "delayed listing",
}  # fmt: skip

_DEPTH = 20_000
"""Calls of the longest schedule, one within the other."""


@contextmanager
def _deep_calls() -> Iterator[None]:
    """Within it calls may be nested as deep as schedules are long; other tests rely on the usual limit."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_DEPTH)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@dataclass(frozen=True)
class Scenario:
    """A table and who writes to it at once, with so many faults at most of these kinds.

    `failing`: the kinds of calls whose replies are lost.

    Its id: operations joined by `+`, `@` and the layout, `!` and the number of faults where it is not one.
    """

    operations: tuple[str, ...]
    layout: str = "plain"
    faults: int = 1
    kinds: tuple[str, ...] = FAULTS
    reduced: bool = True
    remote: bool = True
    failing: tuple[str, ...] = ("put", "create", "delete")

    def __str__(self) -> str:
        place = "" if self.remote else "/local"
        return f"{'+'.join(self.operations)}@{self.layout}{place}!{self.faults}"

    @staticmethod
    def of(text: str) -> Scenario:
        """The scenario of an id."""
        operations, _, rest = text.partition("@")
        layout, _, faults = rest.partition("!")
        layout, _, place = layout.partition("/")
        return Scenario(tuple(operations.split("+")), layout, int(faults or 1), remote=place != "local")


@dataclass(frozen=True)
class State:
    """Where a simulation is. `places`: of each writer, None once it was killed; `late`: creations under way that their
    writer gave up; `changed`: whether a writer's last call changed the store."""

    files: Files
    places: tuple[Place | None, ...]
    faults: int
    late: tuple[tuple[int, Call], ...] = ()
    changed: tuple[bool, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What makes it equal to another."""
        return self.files.key, tuple(map(id, self.places)), self.faults, self.late, self.changed


@dataclass
class Report:
    """What an exploration covered. `cells`: how often each kind of fault was taken, by the operation that met it;
    `exhaustive`: whether every schedule was followed; `schedules`: those followed to an end, where not."""

    exhaustive: bool = True
    schedules: int = 0
    states: int = 0
    runs: int = 0
    cells: Counter[tuple[str, str]] = field(default_factory=Counter)


_world = cache(world_of)


class Simulation:
    """Explores scenarios of one layout; the writers' histories are remembered from one to the next."""

    def __init__(self, layout: str) -> None:
        self.world: World = _world(layout)
        self.base = self.world.base
        self._laws: tuple[tuple[str, ...], FormatLaws] | None = None
        self._programs: dict[tuple[str, str, bool], Program] = {}

    def program(self, operation: str, slot: str, *, remote: bool) -> Program:
        """The writer of an operation in a slot."""
        key = (operation, slot, remote)
        if key not in self._programs:
            run, table = self.world.operations[operation].run, self.world.table
            self._programs[key] = Program(slot, lambda storage: run(table(storage, slot)), remote=remote)
        return self._programs[key]

    def laws(self, operations: tuple[str, ...]) -> FormatLaws:
        """The laws, and what they remember of the same operations: files of others may have the same names."""
        if self._laws is None or self._laws[0] != operations:
            self._laws = operations, self.world.laws()
        return self._laws[1]

    def stop(self) -> None:
        """End the threads of writers that wait; their histories stay."""
        for program in self._programs.values():
            program.stop()

    @property
    def runs(self) -> int:
        """How often real code was begun."""
        return sum(program.runs for program in self._programs.values())

    def explore(self, scenario: Scenario, bound: int | None = None) -> Report:
        """Every schedule of a scenario, or those through so many states; a Violation ends with the id of the schedule
        that shows it."""
        run = _Run(self, scenario, bound)
        before = self.runs
        with _deep_calls():
            run.report.schedules = run.count(run.start())
        run.report.runs = self.runs - before
        self.stop()
        return run.report

    def ends(self, scenario: Scenario, *, reduced: bool) -> set[object]:
        """The ends that the schedules of a scenario come to: the files, and what writers reported."""
        run = _Run(self, replace(scenario, reduced=reduced))
        with _deep_calls():
            run.count(run.start())
        self.stop()
        return run.ends

    def walk(self, scenario: Scenario, seed: int) -> str:
        """One schedule by chance; returns its id. The writers' threads wait on, for the next one: see `stop`."""
        run = _Run(self, scenario)
        chance = random.Random(f"{scenario} {seed}")
        state = run.start()
        while steps := run.steps(state):
            faults = [step for step in steps if "!" in step[0]]
            plain = [step for step in steps if "!" not in step[0]]
            token, following = chance.choice(faults if faults and (not plain or chance.random() < 0.1) else plain)
            if len(steps) > 1:
                run.path.append(token)
            state = following()
        run.end(state)
        return run.schedule

    def replay(self, scenario: Scenario, tokens: Sequence[str], tell: Callable[[str], None]) -> None:
        """One schedule again, told call by call; beyond its tokens the first writer goes first."""
        run = _Run(self, scenario)
        state = run.start()
        remaining = list(tokens)
        while steps := run.steps(state):
            forced = len(steps) == 1
            name = steps[0][0] if forced or not remaining else remaining.pop(0)
            match = next((step for step in steps if step[0] == name), None)
            if match is None:
                raise ValueError(f"{name} is none of {[token for token, _ in steps]}: the code has changed since")
            tell(f"{name:10} {run.call_of(state, name)}")
            if not forced:
                run.path.append(name)
            state = match[1]()
        for slot, outcome in run.outcomes(state).items():
            tell(f"{slot}: {outcome}")
        run.end(state)
        self.stop()


class _Run:
    def __init__(self, simulation: Simulation, scenario: Scenario, bound: int | None = None) -> None:
        self._simulation = simulation
        self._bound = bound
        self._scenario = scenario
        self._laws = simulation.laws(scenario.operations)
        self._names = simulation.world.names
        self._programs = [
            simulation.program(operation, slot, remote=scenario.remote)
            for operation, slot in zip(scenario.operations, SLOTS, strict=False)
        ]
        self._operations = [simulation.world.operations[name] for name in scenario.operations]
        self._has_walker = any(operation.walks for operation in self._operations)
        self._counts: dict[tuple[object, ...], int] = {}
        self.ends: set[object] = set()
        self.report = Report()
        self.path: list[str] = []

    @property
    def schedule(self) -> str:
        """The id of the schedule so far: choices alone, repeated ones counted."""
        return f"{self._scenario}:{packed(self.path)}"

    def start(self) -> State:
        places = tuple(program.start for program in self._programs)
        return State(self._simulation.base.files, places, self._scenario.faults, changed=(False,) * len(places))

    def count(self, state: State) -> int:
        """How many schedules lead from here to an end, each checked by the laws."""
        count = self._counts.get(state.key)
        if count is not None:
            return count
        if self.report.states == self._bound:
            self.report.exhaustive = False
            return 0
        self.report.states += 1
        steps = self.steps(state)
        if not steps:
            self.end(state)
        total = 0 if steps else 1
        for token, following in steps:
            if not self.report.exhaustive:
                return 0
            if len(steps) > 1:
                self.path.append(token)
            total += self.count(following())
            if len(steps) > 1:
                self.path.pop()
        self._counts[state.key] = total
        return total

    def end(self, state: State) -> None:
        """Hold the laws against an end."""
        outcomes = self.outcomes(state)
        key = (state.files.key, tuple(map(id, state.places)), state.faults)
        if key in self.ends:
            return
        self.ends.add(key)
        slots = dict(zip(SLOTS, self._operations, strict=False))
        with self._blamed():
            self._laws.check_end(state.files, slots, outcomes, faulty=state.faults < self._scenario.faults)

    def outcomes(self, state: State) -> dict[str, Outcome | None]:
        """What each writer reported, None for one that was killed."""
        return {
            slot: None if place is None or isinstance(place.next, Call) else place.next
            for slot, place in zip(SLOTS, state.places, strict=False)
        }

    def steps(self, state: State) -> list[tuple[str, Callable[[], State]]]:
        """The choices from a state: a token, and what leads to the next state."""
        waiting = [
            (at, place, place.next)
            for at, place in enumerate(state.places)
            if place is not None and isinstance(place.next, Call)
        ]
        alone = len(waiting) == 1 and not state.late
        for at, place, call in waiting:
            others = [self._operations[other] for other, _, _ in waiting if other != at]
            walkers = [where for other, where, _ in waiting if other != at and self._may_walk(other, where)]
            commutes = alone or (self._scenario.reduced and self._commutes(state.files, call, others, walkers))
            if commutes:
                return list(self._of_writer(state, at, place, call))
        steps = [step for at, place, call in waiting for step in self._of_writer(state, at, place, call)]
        for slot, call in state.late:
            steps.append((f"*{SLOTS[slot]}", partial(self._arrive, state, slot, call)))
        return steps

    def _may_walk(self, at: int, place: Place) -> bool:
        return self._operations[at].walks and not place.walked

    def _commutes(self, files: Files, call: Call, others: Sequence[Operation], walkers: Sequence[Place]) -> bool:
        if call.kind in ("read", "range"):
            return (
                call.path in files.content
                and not self._names.is_hint(call.path)
                and self._stays(files, call.path, others)
            )
        if call.kind in ("put", "create", "delete"):
            return not self._names.is_log(call.path) and not walkers
        return False

    def _stays(self, files: Files, path: str, others: Sequence[Operation]) -> bool:
        """Whether the laws forbid the others to delete a file."""
        names = self._names
        if path.startswith(names.folder):
            recent = names.is_commit(path) and names.version_of(path) >= self._simulation.base.version
            return recent or not any(operation.cleans for operation in others)
        return self._laws.needs(files, path) or not any(operation.deletes for operation in others)

    def _of_writer(self, state: State, at: int, place: Place, call: Call) -> Iterator[tuple[str, Callable[[], State]]]:
        slot = SLOTS[at]
        yield slot, lambda: self._answered(state, at, place, call, call, self._reply(state.files, call))
        if not state.faults:
            return
        for fault, after in self._faults(state, at, place, call):
            kind = fault.rstrip("0123456789")
            if _KINDS[kind] in self._scenario.kinds:
                self.report.cells[self._scenario.operations[at], _KINDS[kind]] += 1
                yield f"{slot}!{fault}", after

    def _faults(self, state: State, at: int, place: Place, call: Call) -> Iterator[tuple[str, Callable[[], State]]]:
        failing = replace(state, faults=state.faults - 1)
        if state.changed[at]:
            places = (*state.places[:at], None, *state.places[at + 1 :])
            yield "crash", lambda: replace(failing, places=places)
        if call.kind in self._scenario.failing:
            error = Failure("unavailable", call.path)
            if (
                self._names.is_log(call.path) or self._has_walker
            ):  # of other files no writer learns whether they are there
                yield "lost", lambda: self._answered(failing, at, place, call, call, error)
            yield "never", lambda: self._answered(failing, at, place, call, None, error)
            if call.kind == "create" and self._names.is_log(call.path) and self._scenario.remote:
                late = replace(failing, late=(*failing.late, (at, call)))
                yield "late", lambda: self._answered(late, at, place, call, None, error)
        if self._names.lists_late and call.kind in LISTINGS and call.path in ("", self._names.folder):
            whole = self._reply(state.files, call)
            for fault, files in _unseen(state.files, self._simulation.base.files, self._names):
                answer = self._reply(files, call)
                if answer != whole:
                    yield fault, partial(self._answered, failing, at, place, call, None, answer)

    def _reply(self, files: Files, call: Call) -> Reply:
        """What a call gets, a listing without the names that no writer looks for."""
        if call.kind == "list" and self._names.is_listed is not None:
            files = files.only(self._names.is_listed)
        return reply(files, call)

    def _answered(
        self, state: State, at: int, place: Place, call: Call, call_sent: Call | None, answer: Reply
    ) -> State:
        """The state after a call; `sent`: None if it never reached the store."""
        files = state.files if call_sent is None else self._effect(state, at, call_sent)
        following = self._programs[at].after(place, answer)
        changed = files is not state.files
        return State(
            files,
            (*state.places[:at], following, *state.places[at + 1 :]),
            state.faults,
            state.late,
            (*state.changed[:at], changed and isinstance(following.next, Call), *state.changed[at + 1 :]),
        )

    def _arrive(self, state: State, at: int, call: Call) -> State:
        late = tuple(each for each in state.late if each != (at, call))
        return replace(state, files=self._effect(state, at, call), late=late)

    def _effect(self, state: State, at: int, call: Call) -> Files:
        files = effect(state.files, call, NOW_MS)
        if files is not state.files:
            with self._blamed():
                self._laws.check_effect(SLOTS[at], self._operations[at], state.files, call, files)
                if self._names.is_log(call.path) and not self._names.is_commit(call.path):
                    self._laws.check_opens(files)
        return files

    def _blamed(self) -> _Blame:
        return _Blame(self)

    def call_of(self, state: State, token: str) -> str:
        """The call that a token stands for."""
        place = state.places[SLOTS.index(token.strip("*")[0])]
        return "" if place is None else str(place.next)


class _Blame:
    """Adds the schedule to a Violation."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Violation):
            raise Violation(f"{error}\n  again: python -m tests.simulation replay '{self._run.schedule}'") from error


def _unseen(files: Files, base: Files, names: LogNames) -> Iterator[tuple[str, Files]]:
    """What an old listing shows: without the newest commit, without all new ones, without one while later ones show."""
    came = files.content.keys() - base.content.keys()
    new = sorted(name for name in came if names.is_log(name) and not names.is_hint(name))
    if not new:
        return
    yield "stale", files.without(max((n for n in new if names.is_commit(n)), default=new[-1], key=names.version_of))
    if len(new) > 1:
        yield "older", Files({name: file for name, file in files.content.items() if name not in new})
        for at, name in enumerate(new[:-1]):
            yield f"gap{at}", files.without(name)


def packed(path: Sequence[str]) -> str:
    """Tokens in one text, repetitions counted: a, a, a, b is `a3.b`."""
    groups: list[list[str]] = []
    for token in path:
        if groups and groups[-1][0] == token and "!" not in token:
            groups[-1].append(token)
        else:
            groups.append([token])
    return ".".join(group[0] + (str(len(group)) if len(group) > 1 else "") for group in groups)


def unpacked(text: str) -> list[str]:
    """The tokens of `packed`."""
    tokens: list[str] = []
    for part in filter(None, text.split(".")):
        if "!" in part:
            tokens.append(part)
        else:
            name = part.rstrip("0123456789")
            tokens += [name] * int(part[len(name) :] or 1)
    return tokens
