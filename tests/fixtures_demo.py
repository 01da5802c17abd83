"""The demo lake for tests: built once for a whole run, however many processes it has, or the one that is there."""

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakeview.demo.place import find_demo
from tests.quick_spark import QUICK_CLASSES

_BUILD_SECONDS = 1800
"""Ten minutes were too few at a load of 17 on two cores."""
_ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def demo_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole demo lake, not to be written to.

    The one LAKEVIEW_DEMO names if it is whole; else it is built beside the temporary folders of all test processes,
    by the process that comes first, in a Python of its own: it needs no Spark session here.
    """
    folder = os.environ.get("LAKEVIEW_DEMO")
    if folder and find_demo(folder) is not None:
        return Path(folder).absolute()
    shared = run_folder(tmp_path_factory)
    lake = shared / "demo-lake"
    with exclusive(shared / "demo-lake.lock"):
        if find_demo(lake) is None:
            _build(lake)
    return lake


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder that all processes of a run share: with xdist each has one of its own in it."""
    base = factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


@contextmanager
def exclusive(lock: Path) -> Iterator[None]:
    """One process at a time; the others wait. The system lifts the lock of a process that dies."""
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(lake: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lakeview.demo", "--path", str(lake)],
        cwd=_ROOT,
        env={**os.environ, "JAVA_TOOL_OPTIONS": QUICK_CLASSES},
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"the demo lake was not built:\n{done.stdout}\n{done.stderr}"
    steps = [tuple(map(int, step)) for step in re.findall(r"^\[.*\] +(\d+)/(\d+) ", done.stdout, re.MULTILINE)]
    assert sorted(steps) == [(number, len(steps)) for number in range(1, len(steps) + 1)], done.stdout
    assert sorted(path.name for path in lake.parent.glob("*demo-lake*")) == ["demo-lake", "demo-lake.lock"]
