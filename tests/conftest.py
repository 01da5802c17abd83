"""What all tests share: their order, their groups, the loopback fence, a browser, and the golden summary."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import re
import shutil
import socket
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # it says nothing of its types

from tests.fixtures_demo import demo_lake

__all__ = ["demo_lake"]

gc.disable()
"""Until the tests are collected: what is made until then stays to the end, and is not to be looked through again."""

hypothesis.settings.register_profile(
    "lakeview",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # seconds of a busy machine say nothing about a strategy
)
hypothesis.settings.load_profile("lakeview")

COSTS = ("golden", "app", "slow", "spark", "browser")
"""Markers by what their tests cost: unmarked tests come first, the browser last."""

SHARED = (
    (re.compile(r"mark\.spark|\bspark: "), "spark"),
    (re.compile(r"\bdemo_lake: "), "demo"),
)
"""Words of files that share a session or a lake that is costly to make: their tests stay on one worker."""

ALONE = re.compile(r"mark\.browser")
"""Words of a file whose tests go to workers one by one whatever they share: they come last and take longest; each
worker has a browser of its own, and all share one server. Those of any other file stay on one worker: each worker would
make again what a module makes once, and what is sent for each test alone takes a millisecond of it."""


FIXTURES = {"spark": "spark", "browser": "browser", "demo_lake": "slow"}
"""Fixtures that mark the tests which ask for them, directly or through another fixture."""


FOLDERS = {"pages": "app"}
"""Folders of tests/ that mark all of their tests."""


class OutsideConnectionError(RuntimeError):
    """A test reached for an address outside this machine."""


def _loopback_only(connect: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    """(An audit hook would be called for each file that is opened and each `id()`, too: a hundredth of all time.)"""

    def checked(self: socket.socket, address: Any) -> Any:
        if isinstance(address, tuple):
            host = str(address[0])
            try:
                inside = ipaddress.ip_address(host).is_loopback
            except ValueError:
                inside = host == "localhost"
            if not inside:
                raise OutsideConnectionError(f"tests talk to this machine only, not to {host}")
        return connect(self, address)

    return checked


for _name in ("connect", "connect_ex"):
    setattr(socket.socket, _name, _loopback_only(getattr(socket.socket, _name)))


@cache
def _group(path: Path) -> str | None:
    """With which tests those of a file stay on one worker; None: they go to workers one by one."""
    text = path.read_text(encoding="utf-8")
    return None if ALONE.search(text) else next((group for words, group in SHARED if words.search(text)), str(path))


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fast tests first, but of the browser's, which are the last, those that take longest: a worker that began one of
    them at the end would be alone with it. Tests that share something costly are marked. Of several workers, one begins
    with those of the Spark session, by far the longest group: the others would wait for it at the end."""

    def cost(item: pytest.Item) -> tuple[int, bool]:
        marks = {mark.name for mark in item.iter_markers()}
        return max((COSTS.index(name) + 1 for name in marks & set(COSTS)), default=0), "long" not in marks

    for item in items:
        if item.path.parent.name in FOLDERS:
            item.add_marker(FOLDERS[item.path.parent.name])
        for fixture in FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(FIXTURES[fixture])
    items.sort(key=cost)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _group(item.path) != "spark")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Ten thousand tests and the modules they need: a collector that goes through them takes a tenth of all time."""
    gc.freeze()
    gc.set_threshold(10_000)  # instead of 700: what tests make is dropped soon, and most collections free nothing
    gc.enable()
    # Streamlit's sixty loggers give nothing on, and pytest would hang its two handlers on each, three times a test.
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("streamlit."):
            logging.getLogger(name).propagate = True


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist says nothing of its types
    """Tests to workers by their groups. (xdist's own groups are marks that it writes into the ids of tests, where
    pytest keeps them no more.)"""

    def _split_scope(self, nodeid: str) -> str:
        return _group(self.config.rootpath / nodeid.partition("::")[0]) or nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: those that drive a browser, or wait for Spark, leave a core idle."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Which worker gets which tests."""
    return GroupScheduling(config, log)


@pytest.fixture(scope="session")
def chromium() -> str | None:
    """The system's Chromium, of several the one without windows, which takes a tenth less CPU time; None means the one
    that Playwright installed."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Golden tables in one line for each format, and what is still expected to fail, by feature."""
    outcomes: dict[str, Counter[str]] = {}
    features: Counter[tuple[str, str]] = Counter()
    for category in ("passed", "failed", "xfailed"):
        for report in terminalreporter.stats.get(category, []):
            properties = dict(getattr(report, "user_properties", ()))
            if "golden" in properties and report.when == "call":
                outcomes.setdefault(properties["golden"], Counter())[category] += 1
                if category == "xfailed":
                    features.update((properties["golden"], feature) for feature in properties["excuses"])
    for name, counts in sorted(outcomes.items()):
        terminalreporter.section(f"golden tables: {name}")
        terminalreporter.line(
            f"{counts['passed']} read right or refused as they must be, {counts['failed']} failed, "
            f"{counts['xfailed']} expected to fail, by the feature they need:"
        )
        for (table_format, feature), count in features.most_common():
            if table_format == name:
                terminalreporter.line(f"  {feature}: {count}")
