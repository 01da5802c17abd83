"""What all tests share: their order, their groups, the loopback fence, a browser, and the golden summary."""

from __future__ import annotations

import ipaddress
import os
import shutil
import sys
from collections import Counter
from typing import Any

import hypothesis
import pytest

from tests.fixtures_demo import demo_lake

__all__ = ["demo_lake"]

hypothesis.settings.register_profile("lakeview", deadline=None, derandomize=os.environ.get("CI") == "true")
hypothesis.settings.load_profile("lakeview")

COSTS = ("golden", "app", "slow", "spark", "browser")
"""Markers by what their tests cost: unmarked tests come first, the browser last."""

GROUPS = ("spark", "browser")
"""Markers whose tests stay on one worker: they share a session or a server that is costly to start. Those of the browser
do so file by file: no worker is left with all of them at the end."""


FIXTURES = {"spark": "spark", "browser": "browser", "demo_lake": "slow"}
"""Fixtures that mark the tests which ask for them, directly or through another fixture."""


FOLDERS = {"pages": "app"}
"""Folders of tests/ that mark all of their tests."""


class OutsideConnectionError(RuntimeError):
    """A test reached for an address outside this machine."""


def _loopback_only(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "socket.connect" or not isinstance(arguments[1], tuple):
        return
    host = str(arguments[1][0])
    try:
        inside = ipaddress.ip_address(host).is_loopback
    except ValueError:
        inside = host == "localhost"
    if not inside:
        raise OutsideConnectionError(f"tests talk to this machine only, not to {host}")


sys.addaudithook(_loopback_only)


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first; tests that share something costly are marked, and stay on one worker."""

    def cost(item: pytest.Item) -> int:
        return max((COSTS.index(mark.name) + 1 for mark in item.iter_markers() if mark.name in COSTS), default=0)

    for item in items:
        if item.path.parent.name in FOLDERS:
            item.add_marker(FOLDERS[item.path.parent.name])
        for fixture in FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(FIXTURES[fixture])
    items.sort(key=cost)
    for item in items:
        for group in GROUPS:
            if item.get_closest_marker(group):
                name = group if group == "spark" else f"{group}-{item.path.stem}"
                item.add_marker(pytest.mark.xdist_group(name))
        if item.get_closest_marker("together"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def chromium() -> str | None:
    """The system's Chromium; None means the one that Playwright installed."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))
    return next((path for path in found if path), None)


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
