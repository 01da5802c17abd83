"""Processes started ahead of their queries: for each table one that waits, two in all, for two minutes at most.

An idle process takes memory and no processor, and reads nothing: it does not count as one of the queries that may run
at the same time until it is given a request. It ends with the server, because its input is closed then.
"""

import atexit
import threading

from lakeview.app.query.process import QueryProcess

MOST = 2
SECONDS = 120.0


class IdleProcesses:
    """Processes without a request, by the folders that they may read. Safe to use from several threads."""

    def __init__(self) -> None:
        self.is_enabled = False
        self._waiting: dict[tuple[str, ...], tuple[QueryProcess, threading.Timer]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def enable(self) -> None:
        """Lets processes be started ahead, as a server that runs for long does."""
        self.is_enabled = True
        atexit.register(self.clear)

    def start(self, folders: tuple[str, ...]) -> None:
        """Starts a process for the next query over these folders, unless one waits: its time starts again."""
        if not self.is_enabled:
            return
        with self._lock:
            process = self._pop(folders)
            if process is None:
                try:
                    process = QueryProcess(folders)
                except OSError:  # no memory for it now: the next query says so, if it is still so
                    return
            while len(self._waiting) >= MOST:
                self._end(next(iter(self._waiting)))
            timer = threading.Timer(SECONDS, self._expire, (folders, process))
            timer.daemon = True
            timer.start()
            self._waiting[folders] = process, timer

    def take(self, folders: tuple[str, ...]) -> QueryProcess | None:
        """Returns the process that waits for these folders, which is the caller's from now on; None without one."""
        with self._lock:
            return self._pop(folders)

    def clear(self) -> None:
        """Ends them all."""
        with self._lock:
            for folders in list(self._waiting):
                self._end(folders)

    def _pop(self, folders: tuple[str, ...]) -> QueryProcess | None:
        process, timer = self._waiting.pop(folders, (None, None))
        if timer is not None:
            timer.cancel()
        if process is not None and not process.is_alive:
            process.end()
            return None
        return process

    def _end(self, folders: tuple[str, ...]) -> None:
        process = self._pop(folders)
        if process is not None:
            process.end()

    def _expire(self, folders: tuple[str, ...], process: QueryProcess) -> None:
        with self._lock:
            if self._waiting.get(folders, (None, None))[0] is process:
                self._end(folders)


IDLE = IdleProcesses()
"""Those of this server."""
