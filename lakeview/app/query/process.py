"""One process for one query: restricted when it starts, given its request later, ended by its caller.

Starting one and loading what it needs takes a second, so that one may be started before its request is known.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import IO

from lakeview.app.query import sandbox

MARK = "\x01"
"""What the lines begin with in which the process reports on itself."""

_PASSED = (
    "PATH", "HOME", "LANG", "LC_", "TZ", "TMPDIR", "LD_", "DYLD_", "SYSTEMROOT", "PYTHON", "VIRTUAL_ENV", "LAKEVIEW_",
    "POLARS_", "RAYON_", "ARROW_", "OMP_", "OPENBLAS_", "MALLOC_", "MIMALLOC_", "_RJEM_",
)  # fmt: skip
"""Beginnings of the names of variables that a process over a table on this machine is given."""

_NO_MEMORY = "memory allocation of"
"""What the libraries' last words begin with."""


class QueryProcess:
    """A process that reads these folders alone, without folders any place. Threads read both its outputs, so that
    neither fills up.

    `ready`: when it could read a request, by the monotonic clock; `rows`, `counts`, `error` and `noise`: what it
    reported; `output` is whole when `done` is set.
    """

    def __init__(self, folders: tuple[str, ...]) -> None:
        # the paths of this process: the app may run from a folder that is no installed package
        environment = _without_credentials(os.environ) if folders else os.environ
        self._process = subprocess.Popen(
            # -P: the sandbox's own folder holds modules with names of the standard library's
            [sys.executable, "-P", sandbox.__file__, "lakeview.app.query.worker", *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        self.ready: float | None = None
        self.rows = 0
        self.counts: dict[str, int] = {}
        self.error: dict[str, str | None] | None = None
        self.noise = ""
        self.output = b""
        self.done = threading.Event()
        self._threads = [threading.Thread(target=self._listen, args=(_pipe(self._process.stderr),), daemon=True)]
        self._threads[0].start()

    @property
    def is_alive(self) -> bool:
        """True if the process has not ended."""
        return self._process.poll() is None

    def send(self, request: bytes) -> None:
        """Gives it its one request, a line of JSON."""
        pipes = _pipe(self._process.stdin), request, _pipe(self._process.stdout)
        self._threads.append(threading.Thread(target=self._talk, args=pipes, daemon=True))
        self._threads[-1].start()

    def cancel(self, seconds: float) -> bool:
        """Asks for the rows so far; True if `output` is whole within `seconds`."""
        if self.ready is None:
            return False
        with suppress(BrokenPipeError):
            _pipe(self._process.stdin).close()
        return self.done.wait(seconds)

    def exit_code(self) -> int:
        """Waits until it has ended."""
        return self._process.wait()

    def end(self) -> None:
        """Kills it, and waits until nothing of it is left."""
        self._process.kill()
        for thread in reversed(self._threads):
            thread.join()
        with self._process:  # closes its pipes
            pass

    def _talk(self, stdin: IO[bytes], request: bytes, stdout: IO[bytes]) -> None:
        try:
            stdin.write(request + b"\n")
            stdin.flush()
        except BrokenPipeError:  # it ended before it read; the other pipe says why
            with suppress(BrokenPipeError):  # what was not written is dropped
                stdin.close()
        self.output = stdout.read()
        self._threads[0].join()
        self.done.set()

    def _listen(self, stderr: IO[bytes]) -> None:
        for line in stderr:
            text = line.decode("utf-8", "replace")
            if not text.startswith(MARK):
                if _NO_MEMORY not in self.noise:  # after it comes only what its writer could not tell
                    self.noise = text.strip() or self.noise
                continue
            try:
                report = json.loads(text.removeprefix(MARK))
            except json.JSONDecodeError:  # a library's line that begins alike
                continue
            if "ready" in report:
                self.ready = monotonic()
            self.rows = report.get("read", self.rows)
            self.counts = report.get("counts", self.counts)
            self.error = report.get("error", self.error)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the process has no pipes")
    return pipe


def _without_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """What the process of a query over a table on this machine needs: it takes no credentials."""
    return {name: value for name, value in environment.items() if name.startswith(_PASSED)}
