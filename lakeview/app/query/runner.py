"""A request to rows, in a process of its own: stopped by a budget of seconds, ended with the page that waits for it.

Streamlit ends a run of a page by an exception at its next call, whenever its reader presses a button, goes elsewhere or
closes the window. The wait here calls `on_wait` several times a second and ends the process on any exception, so that a
button drawn before it cancels.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from time import monotonic
from typing import IO

import msgspec
import polars as pl

from lakeview import views
from lakeview.app.query import sandbox
from lakeview.app.query.worker import MARK, Answer, Request
from lakeview.discovery import readable_folders
from lakeview.model import errors

MEMORY = 4 << 30
"""Bytes that one query may take, unless the operator gave the whole app less."""

AT_ONCE = 4
"""Queries that may run at the same time, of all who use this app."""

STEP = 0.2
START_SECONDS, GRACE = 60.0, 2.0
"""Seconds that a process may take to start, and that one has after its time to give the rows it has read."""
_PLACES = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a query is: seconds since it was asked, rows it has read, and whether it has begun."""

    seconds: float
    rows: int
    begun: bool


def run(request: Request, *, seconds: float, on_wait: Callable[[Progress], object]) -> Answer:
    """The rows, and what was counted. Any LakeviewError of the table; InvalidRequestError of kind over-budget for what
    takes longer than `seconds` or more memory than there is for it. `on_wait` may raise, which ends the query."""
    began = monotonic()
    while not _PLACES.acquire(timeout=STEP):
        on_wait(Progress(monotonic() - began, 0, begun=False))
        if monotonic() - began > seconds:
            raise _over(f"{AT_ONCE} other queries were running for {seconds:g} seconds", "run it again")
    try:
        return _watched(request, seconds, on_wait)
    finally:
        _PLACES.release()


def _watched(request: Request, seconds: float, on_wait: Callable[[Progress], object]) -> Answer:
    # the paths of this process: the app may run from a folder that is no installed package
    folders = readable_folders(request.address)
    known = _without_credentials(os.environ) if folders else os.environ
    environment = {**known, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        # -P: the sandbox's own folder holds modules with names of the standard library's
        [sys.executable, "-P", sandbox.__file__, "lakeview.app.query.worker", *folders],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        bounded = msgspec.structs.replace(request, seconds=seconds)
        patience = seconds + (GRACE if bounded.can_stop else 0.0)
        watch = _Watch(process, msgspec.json.encode(bounded))
        try:
            began = monotonic()
            while not watch.done.wait(STEP):
                # a process takes a second to start, longer on a busy machine: that is no time of the query
                taken = 0.0 if watch.ready is None else monotonic() - watch.ready
                on_wait(Progress(taken, watch.rows, begun=True))
                if watch.ready is None and monotonic() - began > START_SECONDS:
                    raise _over(f"the process of the query did not start in {START_SECONDS:g} seconds", "try again")
                if taken > patience:
                    raise _stopped(request, seconds, watch.rows)
            return _answer(watch, process.wait(), request.memory)
        finally:
            process.kill()
            watch.end()


def _without_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """What the process of a query over a table on this machine needs: it takes no credentials."""
    return {name: value for name, value in environment.items() if name.startswith(_PASSED)}


_PASSED = (
    "PATH", "HOME", "LANG", "LC_", "TZ", "TMPDIR", "LD_", "DYLD_", "SYSTEMROOT", "PYTHON", "VIRTUAL_ENV", "LAKEVIEW_",
    "POLARS_", "RAYON_", "ARROW_", "OMP_", "OPENBLAS_", "MALLOC_", "MIMALLOC_", "_RJEM_",
)  # fmt: skip
"""Beginnings of the names of variables that such a process is given."""

_NO_MEMORY = "memory allocation of"
"""What the libraries' last words begin with."""


class _Watch:
    """Reads both outputs of the process in threads, so that neither fills up."""

    def __init__(self, process: subprocess.Popen[bytes], request: bytes) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("the process has no pipes")
        self.ready: float | None = None
        self.rows = 0
        self.counts: dict[str, int] = {}
        self.error: dict[str, str | None] | None = None
        self.noise = ""
        self.output = b""
        self.done = threading.Event()
        self._threads = (
            threading.Thread(target=self._talk, args=(process.stdin, request, process.stdout), daemon=True),
            threading.Thread(target=self._listen, args=(process.stderr,), daemon=True),
        )
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Waits for the threads of a process that has ended."""
        for thread in self._threads:
            thread.join()

    def _talk(self, stdin: IO[bytes], request: bytes, stdout: IO[bytes]) -> None:
        try:
            stdin.write(request)
            stdin.close()
        except BrokenPipeError:  # it ended before it read; the other pipe says why
            pass
        self.output = stdout.read()
        self._threads[1].join()
        self.done.set()

    def _listen(self, stderr: IO[bytes]) -> None:
        for line in stderr:
            text = line.decode("utf-8", "replace")
            if not text.startswith(MARK):
                if _NO_MEMORY not in self.noise:  # after it comes only what its writer could not tell
                    self.noise = text.strip() or self.noise
                continue
            said = json.loads(text.removeprefix(MARK))
            if "ready" in said:
                self.ready = monotonic()
            self.rows = said.get("read", self.rows)
            self.counts = said.get("counts", self.counts)
            self.error = said.get("error", self.error)


def _answer(watch: _Watch, code: int, memory: int) -> Answer:
    if watch.error is not None:
        kind = getattr(errors, watch.error["type"] or "", errors.InvalidRequestError)
        raise kind(
            watch.error["message"] or "",
            fix=watch.error["fix"],
            place=watch.error["place"],
            kind=watch.error["kind"],
        )
    if code != 0:
        raise _over(
            f"the query ended without an answer ({watch.noise[:200] or f'exit code {code}'}): it needed more than the"
            f" {views.units.format_bytes(memory)} there are for one",
            "ask for fewer rows or columns, or filter first",
        )
    return Answer(pl.read_ipc_stream(BytesIO(watch.output)), watch.counts)


def _stopped(request: Request, seconds: float, rows: int) -> errors.InvalidRequestError:
    read = f"was stopped after {seconds:g} seconds, when it had read {views.units.counted(rows, 'row')}"
    if request.base is not None:
        return _over(
            f"the comparison {read}: which rows differ is known only when all are read",
            "allow it more seconds, or compare versions closer together",
        )
    cheaper = "choose fewer commits" if request.start is not None else "filter by columns that skip files"
    return _over(f"the query {read}", f"allow it more seconds, or {cheaper}")


def _over(message: str, fix: str) -> errors.InvalidRequestError:
    return errors.InvalidRequestError(message, fix=fix, place="query", kind="over-budget")
