"""Building the demo lake from the app: one process for all sessions, its progress shown while it runs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import streamlit as st

import lakeview as lv
from lakeview import config
from lakeview.ui import cache
from lakeview.ui.components import escape

_LINES = 12


@dataclass(slots=True)
class Build:
    """A run of `python -m lakeview.demo`; `lines` is the end of what it said."""

    process: subprocess.Popen[str]
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LINES))

    def listen(self) -> None:
        """Collects what the process says until it ends."""
        for line in self.process.stdout or ():
            if line.strip():
                self.lines.append(line.strip())
        self.process.wait()

    @property
    def state(self) -> Literal["running", "complete", "error"]:
        """running, complete or error."""
        code = self.process.poll()
        return "running" if code is None else "complete" if code == 0 else "error"


@dataclass(slots=True)
class Site:
    """The one place of this server where the demo lake is built."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    build: Build | None = None


@st.cache_resource(show_spinner=False)
def _site() -> Site:
    return Site()


def start() -> None:
    """Starts building, unless a build is running."""
    site = _site()
    with site.lock:
        if site.build is not None and site.build.state == "running":
            return
        above = str(Path(lv.__file__).parent.parent)
        paths = [above, *filter(None, [os.environ.get("PYTHONPATH")])]
        process = subprocess.Popen(
            [sys.executable, "-m", "lakeview.demo"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "LAKEVIEW_DEMO": config.settings().demo, "PYTHONPATH": os.pathsep.join(paths)},
        )
        site.build = Build(process)
        threading.Thread(target=site.build.listen, daemon=True, name="demo-build").start()


def running() -> bool:
    """Whether a build is under way, or ended without being looked at."""
    return _site().build is not None


@st.fragment(run_every=1)
def progress() -> None:
    """What the build says; when it is done the page is drawn anew, with the lake in it."""
    build = _site().build
    if build is None:
        return
    state = build.state
    said = build.lines[-1] if build.lines else "starting Spark"
    words = {"running": f"Building: {escape(said)}", "complete": "Built", "error": "The build failed"}
    with st.status(words[state], state=state, expanded=state == "error"):
        st.code("\n".join(build.lines) or "nothing said yet", language=None)
        if state == "error":
            st.button("Try again", icon=":material/refresh:", on_click=start, key="build-again")
    if state == "complete":
        _site().build = None
        cache.forget_frames()
        st.rerun()
