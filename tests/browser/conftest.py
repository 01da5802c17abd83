"""A server with the demo lake, and a browser that looks at it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.visitor import Visitor, somebody

ROOT = Path(__file__).resolve().parents[2]

# a container's root, no graphics card, and no calls home
BROWSER_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def serving(demo_lake: Path) -> Iterator[str]:
    """The address of the app, just started as `streamlit run app.py` on a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = ("--server.headless=true", "--server.address=127.0.0.1", "--server.fileWatcherType=none")
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", *flags],
        cwd=ROOT,
        env={**os.environ, "LAKEVIEW_DEMO": str(demo_lake), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "http://127.0.0.1" in line:
                break
        else:
            pytest.fail(f"the app did not start:\n{''.join(said)}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=30)  # closes the pipe as well


@pytest.fixture(scope="session")
def server(demo_lake: Path) -> Iterator[str]:
    """The address of one app for all."""
    with serving(demo_lake) as address:
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


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where screenshots are kept to be looked at."""
    folder = ROOT / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
