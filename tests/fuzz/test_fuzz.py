"""Every target under the fuzzer for a moment, on its seeds, and on what fuzzing has found so far."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.regressions import REGRESSIONS
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("target", "data"), REGRESSIONS.values(), ids=REGRESSIONS)
def test_what_was_found_stays_answered(target: str, data: bytes) -> None:
    TARGETS[target](data)


@pytest.mark.parametrize("target", TARGETS)
def test_sound_inputs_are_answered(target: str) -> None:
    for seed in SEEDS[target]:
        TARGETS[target](seed)


@pytest.mark.slow
def test_a_moment_under_the_fuzzer(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.run", "all", "--moment", "--seed", "7", "--findings", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [line.removeprefix("== ") for line in done.stderr.splitlines() if line.startswith("== ")] == list(TARGETS)
    assert list(tmp_path.iterdir()) == []
