"""One Spark process: started, given jobs, and ended with all that it started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO

import msgspec

from lakeview.jobs.messages import Report, ToWorker

WORKER = "lakeview.spark.jobs"
"""The module that the process runs."""

_END_SECONDS = 20.0
_JVM_SECONDS = 10.0
_LAST_LINES = 5


class SparkProcess:
    """A process that runs `module`, whose engine gets the settings. One thread calls `on_report` with each report, and
    `on_end` once, with words on how the process ended."""

    def __init__(
        self,
        module: str,
        settings: Mapping[str, str],
        on_report: Callable[[SparkProcess, Report], object],
        on_end: Callable[[SparkProcess, str], object],
    ) -> None:
        self._folder = tempfile.mkdtemp(prefix="lakeview-spark-jobs-")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, self._folder, msgspec.json.encode(settings).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # the paths of this process: the program may run from a folder that is no installed package
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            # a Ctrl-C in the terminal is for the program, which then cancels its job
            start_new_session=True,
        )
        self.is_ready = False
        """Whether it has said that its session has started."""
        self._on_report = on_report
        self._on_end = on_end
        self._noise: deque[str] = deque(maxlen=_LAST_LINES)
        self._sending = threading.Lock()
        self._noise_reader = threading.Thread(target=self._read_noise, name="lakeview-spark-noise", daemon=True)
        self._reader = threading.Thread(target=self._read_reports, name="lakeview-spark-reports", daemon=True)
        self._noise_reader.start()
        self._reader.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def send(self, message: ToWorker) -> None:
        """Gives it a job, or cancels one. One that has ended takes nothing: `on_end` is called, or was."""
        with self._sending, suppress(BrokenPipeError, ValueError):  # ValueError: closed by `end`
            stdin = _pipe(self._process.stdin)
            stdin.write(msgspec.json.encode(message) + b"\n")
            stdin.flush()

    def kill(self) -> None:
        """Ends it at once: with its JVM where its session has not started, for such a JVM may not read its input yet.
        One that does ends when that closes, and removes what it wrote."""
        if self._process.returncode is None:  # not Popen.kill, which collects a process that has ended
            with suppress(ProcessLookupError, PermissionError):  # macOS permits no signal to a group that has ended
                (os.kill if self.is_ready else os.killpg)(self._process.pid, signal.SIGKILL)  # its group is its own

    def end(self) -> None:
        """Asks it to end, and waits until it has, with its JVM; kills it where that takes too long."""
        with self._sending:
            _close(self._process.stdin)
        if threading.current_thread() is self._reader:
            return
        self._reader.join(_END_SECONDS)
        if self._reader.is_alive():
            self.kill()
            self._reader.join(_END_SECONDS)

    def _read_reports(self) -> None:
        stdout, decoder = _pipe(self._process.stdout), msgspec.json.Decoder(Report)
        try:
            for line in stdout:
                self._on_report(self, decoder.decode(line))
        finally:  # also where a report cannot be taken: no job may wait for ever
            stdout.close()
            _close(self._process.stdin)
            code = self._exit_code()
            shutil.rmtree(self._folder, ignore_errors=True)
            try:
                self._on_end(self, self._last_words(code))
            finally:
                self._end_group()

    def _exit_code(self) -> int:
        """Waits for the end of the process, and does not collect it: until then no other gets its number, which is that
        of its group."""
        try:
            result = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:  # the program ignores SIGCHLD, or waits for all its children
            return self._process.wait()
        assert result is not None
        return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status

    def _end_group(self) -> None:
        """Ends a JVM that hangs, and does not find its input closed: it is of the group of the process, and has the
        same descriptor of standard error."""
        self._noise_reader.join(_JVM_SECONDS)
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _last_words(self, code: int) -> str:
        self._noise_reader.join(1.0)  # its JVM has the same descriptor, and may live a little longer
        how = f"by the signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        noise = " ".join(line for line in self._noise if line)
        return f"{how} ({noise})" if noise and code > 0 else how

    def _read_noise(self) -> None:
        with _pipe(self._process.stderr) as stderr:
            for line in stderr:
                self._noise.append(line.decode("utf-8", "replace").strip())


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _close(pipe: IO[bytes] | None) -> None:
    with suppress(BrokenPipeError):  # what was not yet sent finds no reader
        _pipe(pipe).close()
