"""`python -m lakeview.demo [--path DIR]`: build the demo lake, with a line for each step."""

import argparse
import logging
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from lakeview.demo.build import build
from lakeview.demo.place import demo_path, find_demo
from lakeview.model.errors import LakeviewError

_WAITING = ("gateway.py", "selectors.py", "socket.py", "subprocess.py", "threading.py")
"""Where a build waits: for Java, for Spark's answers, for pipelines, and for its own other thread."""
_LATER = 0.02
"""Seconds."""


def main() -> int:
    """0 when the lake is there afterwards, 1 with the reason on standard error when not, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="python -m lakeview.demo", description="Build the demo lake.")
    parser.add_argument("--path", type=Path, default=demo_path(), help="where to (default: LAKEVIEW_DEMO, %(default)s)")
    path: Path = parser.parse_args().path
    if find_demo(path) is not None:
        print(f"the demo lake is there: {path}")
        return 0
    # Asked to end, by a terminal or by the app that started us: clear up first.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _interrupt)
    # py4j logs, with a traceback, what it then raises: an interruption too.
    logging.getLogger().setLevel(logging.CRITICAL)
    try:
        build(path, now=datetime.now(UTC), progress=_say)
    except LakeviewError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: nothing was built", file=sys.stderr)
        return 130
    return 0


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt where this thread waits for another process or thread, which it soon does: amid an import
    or a log call it could keep a lock, for which the thread beside it would wait for ever."""
    if frame is not None and Path(frame.f_code.co_filename).name in _WAITING:
        raise KeyboardInterrupt
    signal.setitimer(signal.ITIMER_REAL, _LATER)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
