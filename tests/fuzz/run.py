"""Runs a target, or all, under a coverage-guided fuzzer: `python -m tests.fuzz.run commit --seconds 60`.

An input that ends in anything but a value or a LakeviewError, or takes more than a minute or two gigabytes, stops
the run with an exit code, and is kept in `fuzz-findings/`. Put it into tests/fuzz/regressions.py, and it is a test.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import atheris

SECONDS, MEGABYTES, LONGEST = 60, 2048, 16384

RUNS = {
    "statistics": 20, "partition_value": 30, "table": 10, "checkpoint": 10, "path": 500, "avro_container": 200,
    "manifest": 100, "manifest_list": 100, "single_values": 50, "iceberg_table": 15, "puffin_vector": 500,
    "footer": 300,
}  # fmt: skip
"""Runs of slow targets that take a moment; of the others it is two thousand."""


def main() -> None:
    """Fuzz targets from their seeds; ends by itself only at the number of runs or seconds asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", help="a name in tests/fuzz/targets.py, or all")
    parser.add_argument("--seconds", type=int, default=0, help="stop after so many seconds of each target")
    parser.add_argument("--runs", type=int, default=-1, help="stop after so many runs of each target")
    parser.add_argument("--moment", action="store_true", help="stop each target after some hundred runs")
    parser.add_argument("--seed", type=int, default=0, help="repeat a run; 0 takes another each time")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    options = parser.parse_args()
    with atheris.instrument_imports(include=["lakeview"]):
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.seeds import SEEDS

    options.findings.mkdir(parents=True, exist_ok=True)
    names = list(TARGETS) if options.target == "all" else [options.target]
    for name in names:
        flags = [
            f"-max_len={LONGEST}", f"-timeout={SECONDS}", f"-report_slow_units={SECONDS}",
            f"-rss_limit_mb={MEGABYTES}", f"-max_total_time={options.seconds}",
            f"-artifact_prefix={options.findings}/{name}-",
            f"-runs={RUNS.get(name, 2000) if options.moment else options.runs}",
        ]  # fmt: skip
        flags += [f"-seed={options.seed}"] if options.seed else []
        if code := _fuzz(name, TARGETS[name], SEEDS[name], flags):
            sys.exit(code)


def _fuzz(name: str, target: Callable[[bytes], None], seeds: Sequence[bytes], flags: Sequence[str]) -> int:
    """The exit code of a process of its own, for the fuzzer ends the one it runs in; it has all imports already."""
    sys.stderr.write(f"== {name}\n")
    sys.stderr.flush()
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds):
            (Path(corpus) / f"seed-{number}").write_bytes(seed)
        child = os.fork()
        if not child:
            atheris.Setup([sys.argv[0], corpus, *flags], target)
            atheris.Fuzz()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
