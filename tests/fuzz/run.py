"""Runs one target under a coverage-guided fuzzer: `python -m tests.fuzz.run commit --seconds 60`.

An input that ends in anything but a value or a LakeviewError, or takes more than a minute or two gigabytes, stops
the run with an exit code, and is kept in `fuzz-findings/`. Put it into tests/fuzz/found.py, and it is a test.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import atheris

SECONDS, MEGABYTES, LONGEST = 60, 2048, 16384


def main() -> None:
    """Fuzz one target from its seeds; ends by itself only at the number of runs or seconds asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", help="a name in tests/fuzz/targets.py, or all")
    parser.add_argument("--seconds", type=int, default=0, help="stop after so many seconds")
    parser.add_argument("--runs", type=int, default=-1, help="stop after so many runs")
    parser.add_argument("--seed", type=int, default=0, help="repeat a run; 0 takes another each time")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    given = parser.parse_args()
    if given.target == "all":
        sys.exit(_all(given.seconds, given.findings))
    with atheris.instrument_imports(include=["lakeview"]):
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.seeds import SEEDS

    given.findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(SEEDS[given.target]):
            (Path(corpus) / f"seed-{number}").write_bytes(seed)
        flags = [
            f"-max_len={LONGEST}", f"-timeout={SECONDS}", f"-report_slow_units={SECONDS}",
            f"-rss_limit_mb={MEGABYTES}", f"-runs={given.runs}", f"-max_total_time={given.seconds}",
            f"-artifact_prefix={given.findings}/{given.target}-",
        ]  # fmt: skip
        flags += [f"-seed={given.seed}"] if given.seed else []
        atheris.Setup([sys.argv[0], corpus, *flags], TARGETS[given.target])
        atheris.Fuzz()


def _all(seconds: int, findings: Path) -> int:
    """Every target in a process of its own, for the fuzzer ends the one it runs in. Returns the first bad exit code."""
    from tests.fuzz.seeds import SEEDS

    for target in SEEDS:
        sys.stderr.write(f"== {target}\n")
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.run",
            target,
            "--seconds",
            str(seconds),
            "--findings",
            str(findings),
        ]
        if code := subprocess.run(command, check=False).returncode:
            return code
    return 0


if __name__ == "__main__":
    main()
