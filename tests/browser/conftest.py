"""A server with the demo lake, and a browser that looks at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.app_server import shared
from tests.browser.visitor import PATIENCE, Visitor, somebody
from tests.fixtures_demo import run_folder

expect.set_options(timeout=PATIENCE)

# a container's root, no graphics card, and no calls home
BROWSER_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # most scripts run for a second: optimizing compilers take more than they bring, and what is new is seldom collected
    "--js-flags=--max-opt=1 --min-semi-space-size=32",
)


@pytest.fixture(scope="session")
def server(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one app for all processes of a run."""
    with shared(demo_lake, run_folder(tmp_path_factory)) as address:
        yield address


@pytest.fixture(scope="session")
def browser(chromium: str | None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=list(BROWSER_FLAGS))
        yield launched
        launched.close()


@pytest.fixture
def visitor(browser: Browser, server: str) -> Iterator[Visitor]:
    """Somebody with a wide screen; nothing may have gone wrong in their browser when they leave."""
    visitor = somebody(browser, server)
    yield visitor
    visitor.close()
