"""The app on a port of this machine: for one test, or one for all processes of a run."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest

from tests.fixtures_demo import exclusive

ROOT = Path(__file__).resolve().parents[2]

_ADDRESS, _USERS, _LOCK = "app.address", "app.users", "app.lock"
"""Files in the folder of a run: the server's address while it serves; a lock that each process which uses it shares; a
lock for the start."""


_PORTS = range(20_000, 32_000)
"""Below the ephemeral ports, of which systems give one to each connection: Streamlit binds the port some seconds after
it was chosen."""


def _free_port() -> int:
    """A port of this machine on which no server listens."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    pytest.fail(f"a server listens on every port from {_PORTS.start} to {_PORTS.stop - 1}")


@contextmanager
def serving(demo_lake: Path) -> Iterator[str]:
    """The address of the app, just started as `streamlit run app.py` on a free port of this machine."""
    port = _free_port()
    flags = ("--server.headless=true", "--server.address=127.0.0.1")
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", *flags],
        cwd=ROOT,
        env={**os.environ, "LAKEVIEW_DEMO": str(demo_lake), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    reader = Thread(target=process.stdout.read, daemon=True)  # a full pipe would stop the server
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "http://127.0.0.1" in line:
                break
        else:
            pytest.fail(f"the app did not start:\n{''.join(lines)}")
        reader.start()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)
        if reader.is_alive():
            reader.join()
        process.stdout.close()


@contextmanager
def shared(demo_lake: Path, folder: Path) -> Iterator[str]:
    """The address of the app that all processes with this folder use: the first starts it in a process of its own,
    which ends it when no user is left. The system lifts the lock of a user that dies."""
    keeper = None
    with (folder / _USERS).open("a") as users:
        with exclusive(folder / _LOCK):
            fcntl.flock(users, fcntl.LOCK_SH)  # waits while a server that had no user is ended
            if not (folder / _ADDRESS).exists():
                keeper = _start_keeper(demo_lake, folder)
        yield (folder / _ADDRESS).read_text("utf-8")
    if keeper is not None:
        keeper.communicate()


def _start_keeper(demo_lake: Path, folder: Path) -> subprocess.Popen[str]:
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.browser.app_server", str(demo_lake), str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert keeper.stdout is not None
    if not keeper.stdout.readline():
        pytest.fail(f"the app did not start: its process ended with {keeper.wait()}")
    return keeper


def _keep(demo_lake: Path, folder: Path) -> None:
    """Serves until no process shares the lock of users."""
    with serving(demo_lake) as address, (folder / _USERS).open("a") as users:
        (folder / _ADDRESS).write_text(address, "utf-8")
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        fcntl.flock(users, fcntl.LOCK_EX)
        (folder / _ADDRESS).unlink()


if __name__ == "__main__":
    _keep(Path(sys.argv[1]), Path(sys.argv[2]))
