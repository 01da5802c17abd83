"""The version ranges of pyproject.toml to requirements.txt and requirements-test.txt, by one joint resolution.

Runs inside an empty environment of the oldest supported Python: what resolves there has wheels for the newer ones too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("spark", "demo", "server", "s3", "gcs", "azure")  # what `make run` needs beside the base
HEAD = "# Made by `make pins` from pyproject.toml: the pinned set for {purpose}.\n"


def resolve(requirements: list[str], constraints: dict[str, str]) -> dict[str, str]:
    """Name and version of everything that pip would install for `requirements`, each within `constraints`."""
    with tempfile.TemporaryDirectory() as folder:
        limits, report = Path(folder, "constraints.txt"), Path(folder, "report.json")
        limits.write_text(lines(constraints), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"]
        command += ["--ignore-installed", "--constraint", str(limits), "--report", str(report), *requirements]
        subprocess.run(command, check=True)
        packages = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {normalised(item["metadata"]["name"]): item["metadata"]["version"] for item in packages}


def normalised(name: str) -> str:
    """A package's name as the index spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lines(pins: dict[str, str]) -> str:
    """Pins as lines of a requirements file, by name."""
    return "".join(f"{name}=={version}\n" for name, version in sorted(pins.items()))


def main() -> None:
    """Resolve everything together, then tell apart what the app needs from what only the tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    runtime = list(project["project"]["dependencies"])
    for extra in EXTRAS:
        runtime += project["project"]["optional-dependencies"][extra]
    everything = resolve([*runtime, *project["dependency-groups"]["test"]], {})
    of_app = resolve(runtime, everything)
    tests_only = {name: version for name, version in everything.items() if name not in of_app}
    (ROOT / "requirements.txt").write_text(HEAD.format(purpose="make run") + lines(of_app), encoding="utf-8")
    (ROOT / "requirements-test.txt").write_text(
        HEAD.format(purpose="make test, beside requirements.txt") + lines(tests_only), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
