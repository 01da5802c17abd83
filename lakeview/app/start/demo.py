"""Building the demo lake from the app: one process for all sessions, its progress shown while it runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import streamlit as st

import lakeview as lv
from lakeview.app import cache
from lakeview.app.components import escape
from lakeview.model import config

COMMAND = (sys.executable, "-m", "lakeview.demo")
_LINES = 12
_STEP = re.compile(r"\b(\d+)/(\d+)\b")


@dataclass(slots=True)
class Build:
    """A run of `python -m lakeview.demo`; `lines` is the end of what it said."""

    process: subprocess.Popen[str]
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LINES))
    listener: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.listener = threading.Thread(target=self.listen, daemon=True, name="demo-build")

    def wait(self) -> None:
        """Returns when the process has ended and all it said is here."""
        self.listener.join()

    def listen(self) -> None:
        """Collects what the process says until it ends."""
        with self.process as process:  # closes the pipe and waits
            for line in process.stdout or ():
                if line.strip():
                    self.lines.append(line.strip())

    @property
    def state(self) -> Literal["running", "complete", "error"]:
        """running, complete or error."""
        if self.listener.is_alive():
            return "running"
        code = self.process.poll()
        return "running" if code is None else "complete" if code == 0 else "error"


@dataclass(slots=True)
class Site:
    """The one place of this server where the demo lake is built."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    build: Build | None = None


@st.cache_resource(show_spinner=False)
def site() -> Site:
    """This server's one site."""
    return Site()


def start() -> None:
    """Starts building, unless a build is running."""
    place = site()
    with place.lock:
        if place.build is not None and place.build.state == "running":
            return
        above = str(Path(lv.__file__).parent.parent)
        paths = [above, *filter(None, [os.environ.get("PYTHONPATH")])]
        process = subprocess.Popen(
            COMMAND,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "LAKEVIEW_DEMO": config.settings().demo, "PYTHONPATH": os.pathsep.join(paths)},
        )
        place.build = Build(process)
        place.build.listener.start()


def running() -> bool:
    """Whether a build is under way, or ended without being looked at."""
    return site().build is not None


def done_share(line: str) -> float:
    """The share of steps done, from a line that counts them (`[94.2 s] 13/87 ...`); 0 before the first."""
    match = _STEP.search(line)
    return 0.0 if match is None else min(int(match[1]) / max(int(match[2]), 1), 1.0)


@st.fragment(run_every=1)
def progress() -> None:
    """What the build says; when it is done the page is drawn again, with the lake in it."""
    build = site().build
    if build is None:
        return
    state = build.state
    line = build.lines[-1] if build.lines else "starting Spark"
    words = {"running": f"Building: {escape(line)}", "complete": "Built", "error": "The build failed"}
    # not entered as a context: leaving it would call the build complete
    status = st.status(words[state], state=state, expanded=state == "error")
    status.code("\n".join(build.lines) or "nothing said yet", language=None)
    if state == "running":
        st.progress(done_share(line))
    if state == "error":
        status.button("Try again", icon=":material/refresh:", on_click=start, key="build-again")
    if state == "complete":
        site().build = None
        cache.forget_frames()
        st.rerun()
