"""A writer's code to the tree of its histories: each run of it is one path, run once and remembered."""

from __future__ import annotations

import importlib
import io
import pkgutil
import secrets
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from queue import SimpleQueue
from typing import IO, Any
from unittest.mock import patch

import fastavro
import polars as pl

import lakeview.delta
import lakeview.iceberg
import lakeview.rows
import lakeview.storage
from lakeview.model.config import Config
from lakeview.model.errors import StoreUnavailableError
from lakeview.storage import Storage
from lakeview.storage.interface import Entry, listing_of
from tests.simulation.store import Call, Failure, Reply

ROOT = "memory://simulation/table"

Work = Callable[["SimulatedStorage"], Any]
"""What a writer does with its store; the value is what it reports."""


class Halted(BaseException):
    """Ends the thread of a writer; none of its cleanup reaches the store."""


class DivergedError(AssertionError):
    """A writer made another call than the last time it got the same replies: the simulation misses a cause."""


@dataclass(frozen=True)
class Outcome:
    """What a writer reported: a value, or an error."""

    value: Any = None
    error: BaseException | None = None


class SimulatedStorage(Storage):
    """A store each of whose calls waits for the scheduler's answer."""

    def __init__(self, ask: Callable[[Call], Reply], *, remote: bool) -> None:
        super().__init__(ROOT, Config())
        self._ask = ask
        self._remote = remote

    @property
    def remote(self) -> bool:
        return self._remote

    def _call(self, kind: str, path: str, **details: Any) -> Any:
        self.count(kind)
        full = self.resolve(path).removeprefix(ROOT).lstrip("/")
        answer = self._ask(Call(kind, full, **details))
        if isinstance(answer, Failure):
            if answer.kind == "unavailable":
                raise StoreUnavailableError(f"no answer about {path}", place=path)
            raise FileExistsError(path) if answer.kind == "present" else FileNotFoundError(path)
        return answer

    def entries_from(self, folder: str, start: str = "") -> list[Entry]:
        return list(self._call("list", folder, start=start))

    def walk(self) -> pl.DataFrame:
        entries = self._call("walk", "")
        return listing_of(entries)

    def holds_files(self) -> bool:
        return bool(self._call("walk", ""))

    def open(self, path: str, size: int = 0) -> IO[bytes]:
        return io.BytesIO(self.read(path))

    def read(self, path: str) -> bytes:
        return bytes(self._call("read", path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return bytes(self._call("range", path, first=start, length=length))

    def exists(self, path: str) -> bool:
        return bool(self._call("exists", path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._call("create", path, data=data)

    def put(self, path: str, data: bytes) -> None:
        self._call("put", path, data=data)

    def delete(self, path: str) -> None:
        self._call("delete", path)


_RUNNING = threading.local()
"""`execution`: the one whose thread this is."""

_SLOT_BITS = 32


def slot_of(number: int) -> str:
    """The writer that drew a number."""
    return chr(number >> _SLOT_BITS)


class _Execution:
    """A thread that runs a writer up to its next call."""

    def __init__(self, slot: str, work: Work, *, remote: bool) -> None:
        self._slot = slot
        self._work = work
        self._remote = remote
        self._calls: SimpleQueue[Call | Outcome] = SimpleQueue()
        self._replies: SimpleQueue[Reply] = SimpleQueue()
        self._halted = False
        self._identifiers = 0
        self._thread = threading.Thread(target=self._run, name=f"writer {slot}", daemon=True)

    def start(self) -> Call | Outcome:
        """Begin; returns the first call."""
        self._thread.start()
        return self._calls.get()

    def resume(self, answer: Reply) -> Call | Outcome:
        """Go on with an answer; returns the next call, or what the writer reports."""
        self._replies.put(answer)
        return self._calls.get()

    def stop(self) -> None:
        """End the thread."""
        if self._thread.is_alive():
            self._replies.put(Halted)
            self._thread.join()

    def identifier(self) -> uuid.UUID:
        """The writer's next identifier: the same in each run."""
        self._identifiers += 1
        return uuid.UUID(f"{self._slot * 8}-0000-4000-8000-{self._identifiers:012d}")

    def number(self) -> int:
        """As `identifier`, a number from which `slot_of` tells the writer."""
        self._identifiers += 1
        return (ord(self._slot) << _SLOT_BITS) + self._identifiers

    def _ask(self, call: Call) -> Reply:
        if self._halted:
            raise Halted
        self._calls.put(call)
        answer: Reply = self._replies.get()
        if answer is Halted:
            self._halted = True
            raise Halted
        return answer

    def _run(self) -> None:
        _RUNNING.execution = self
        try:
            outcome = Outcome(self._work(SimulatedStorage(self._ask, remote=self._remote)))
        except Halted:
            return
        except BaseException as error:  # noqa: BLE001 (panics too; the laws say which errors a writer may report)
            outcome = Outcome(error=error)
        if not self._halted:
            self._calls.put(outcome)


@dataclass(eq=False, slots=True)
class Place:
    """A writer after some replies: `next` is the call that it waits for an answer of, or what it reports; `walked`:
    whether it has listed the table's folder with all that is below, which it does once."""

    next: Call | Outcome
    came_from: Place | None = None
    answer: Reply = None
    places: dict[Reply, Place] = field(default_factory=dict)
    live: _Execution | None = None
    walked: bool = False

    def answers(self) -> list[Reply]:
        """The replies that led here."""
        places_found = []
        place = self
        while place.came_from is not None:
            places_found.append(place.answer)
            place = place.came_from
        return places_found[::-1]


def _is_walk(call: Call | Outcome) -> bool:
    return isinstance(call, Call) and call.kind == "walk"


class Program:
    """One writer: its work, and all places where any schedule has brought it. `runs`: how often it was begun."""

    def __init__(self, slot: str, work: Work, *, remote: bool = True) -> None:
        self.slot = slot
        self._work = work
        self._remote = remote
        self.runs = 0
        self._start: Place | None = None

    @property
    def start(self) -> Place:
        """Before its first reply."""
        if self._start is None:
            execution = self._begin()
            self._start = Place(execution.start(), live=execution)
        return self._start

    def after(self, place: Place, answer: Reply) -> Place:
        """The place that a reply leads to."""
        place_before = place.places.get(answer)
        if place_before is not None:
            return place_before
        execution, place.live = place.live or self._at(place), None
        place_after = Place(execution.resume(answer), place, answer, walked=place.walked or _is_walk(place.next))
        assert not (place_after.walked and _is_walk(place_after.next)), "a second walk: the reduction does not hold"
        place_after.live = execution if isinstance(place_after.next, Call) else None
        place.places[answer] = place_after
        return place_after

    def stop(self) -> None:
        """End every thread that waits."""
        pending = [] if self._start is None else [self._start]
        while pending:
            place = pending.pop()
            pending.extend(place.places.values())
            if place.live is not None:
                place.live.stop()
                place.live = None

    def _begin(self) -> _Execution:
        self.runs += 1
        return _Execution(self.slot, self._work, remote=self._remote)

    def _at(self, place: Place) -> _Execution:
        execution = self._begin()
        reached, here = execution.start(), self.start
        for answer in place.answers():
            if reached != here.next:
                execution.stop()
                raise DivergedError(f"writer {self.slot} made {reached} where it made {here.next} before")
            reached, here = execution.resume(answer), here.places[answer]
        if reached != place.next:
            raise DivergedError(f"writer {self.slot} made {reached} where it made {place.next} before")
        return execution


class _Serial:
    """An executor that does each thing at once: a writer's own threads are no matter of the schedule."""

    def __init__(self, *_: object, **__: object) -> None:
        return

    def __enter__(self) -> _Serial:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(call(*arguments))
        except Exception as error:  # noqa: BLE001 (who asks for the result gets it)
            future.set_exception(error)
        return future

    def map(self, call: Callable[..., Any], *items: Any) -> Iterator[Any]:
        return map(call, *items)

    def shutdown(self, **_: object) -> None:
        return


def _with_pools() -> Iterator[str]:
    """The modules of the writer and its readers that begin threads."""
    for package in (lakeview.delta, lakeview.iceberg, lakeview.storage, lakeview.rows):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if hasattr(importlib.import_module(module.name), "ThreadPoolExecutor"):
                yield f"{module.name}.ThreadPoolExecutor"


def _without_lock(self: cached_property[Any], instance: Any, owner: type | None = None) -> Any:
    """`cached_property.__get__` of Python 3.12: before, all instances of a class share a lock, which a writer that
    waits for the scheduler would hold against the others."""
    if instance is None:
        return self
    name = self.attrname
    assert name is not None
    if name not in instance.__dict__:
        instance.__dict__[name] = self.func(instance)
    return instance.__dict__[name]


@contextmanager
def simulated_surroundings() -> Iterator[None]:
    """Makes the writers' surroundings the simulation's: identifiers and markers by writer, no
    waiting, no threads of their own."""
    identifier, number = uuid.uuid4, secrets.randbelow

    def next_identifier() -> uuid.UUID:
        execution: _Execution | None = getattr(_RUNNING, "execution", None)
        return identifier() if execution is None else execution.identifier()

    def next_number(below: int) -> int:
        execution: _Execution | None = getattr(_RUNNING, "execution", None)
        return number(below) if execution is None else execution.number()

    with ExitStack() as stack:
        stack.enter_context(patch("uuid.uuid4", next_identifier))
        stack.enter_context(patch("secrets.randbelow", next_number))
        stack.enter_context(patch("fastavro.writer", partial(fastavro.writer, sync_marker=bytes(range(16)))))
        for module in (
            "delta.write.commit_loop", "iceberg.write.commits", "iceberg.write.snapshot_commit", "storage.exclusive",
        ):  # fmt: skip
            stack.enter_context(patch(f"lakeview.{module}.back_off", lambda *_, **__: None))
        for name in _with_pools():
            stack.enter_context(patch(name, _Serial))
        if sys.version_info < (3, 12):
            stack.enter_context(patch.object(cached_property, "__get__", _without_lock))
        yield
