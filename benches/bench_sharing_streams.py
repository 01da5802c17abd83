"""The sharing server with 200,000 files: memory above idle, first byte and total time, cold and warm, many clients.

Usage: PYTHONPATH=. python benches/bench_sharing_streams.py [--files 200000] [--clients 4]
Each request has a server process of its own. Both shapes of a log are measured: one commit that adds every file, and
commits of 100 files each. Memory is the peak of the resident set above that of the server before its first request.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benches.bench_sharing import TABLE, Server, add, metadata, server, write

GOAL_MIB, GOAL_SECONDS = 200, 2.0
Ask = Callable[[Server], tuple[float, float, int]]
REQUESTS: dict[str, Ask] = {
    "all files": lambda target: target.timed("POST", f"{TABLE}/query", {}),
    "startingVersion 0": lambda target: target.timed("POST", f"{TABLE}/query", {"startingVersion": 0}),
    "changes from 0": lambda target: target.timed("GET", f"{TABLE}/changes?startingVersion=0"),
}


def build(folder: Path, files: int, a_commit: int) -> None:
    """A table that records changes, `files` files in commits of so many; no data files, which nothing here reads."""
    log = folder / "wide" / "_delta_log"
    log.mkdir(parents=True)
    start: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}},
        metadata({"delta.enableChangeDataFeed": "true"}),
    ]
    for version, first in enumerate(range(0, files, a_commit)):
        info: dict[str, object] = {
            "commitInfo": {"timestamp": 1_700_000_000_000 + version * 60_000, "operation": "WRITE"}
        }
        adds = [add(number) for number in range(first, min(first + a_commit, files))]
        path = log / f"{version:020d}.json"
        write(path, [info, *start, *adds])
        os.utime(path, (1_700_000_000 + version * 60,) * 2)
        start = []


def row(shape: str, name: str, values: tuple[float, float, float, float, float, float]) -> str:
    cold_first, cold, warm_first, warm, alone, crowd = values
    return (
        f"| {shape} | {name} | {alone:.0f} MiB | {crowd:.0f} MiB | {cold_first:.2f} s | {cold:.1f} s "
        f"| {warm_first:.2f} s | {warm:.1f} s |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--clients", type=int, default=4)
    options = parser.parse_args()
    print(f"Goals: {GOAL_MIB} MiB above idle, first byte warm {GOAL_SECONDS:.0f} s. {options.files:,} files.\n")
    print(f"| log | request | peak above idle, 1 client | {options.clients} clients | first byte, cold | total, cold "
          "| first byte, warm | total, warm |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for shape, a_commit in (("one commit", options.files), (f"{options.files // 100:,} commits", 100)):
        with tempfile.TemporaryDirectory() as home:
            build(Path(home), options.files, a_commit)
            for name, ask in REQUESTS.items():
                with server(Path(home), load_ahead=0) as target:
                    idle = target.peak()
                    cold_first, cold, size = ask(target)
                    warm_first, warm, again = ask(target)
                    if not size == again > options.files * 500:
                        raise RuntimeError(f"{name}: {size} bytes, then {again}")
                    alone = target.peak() - idle
                    with ThreadPoolExecutor(options.clients) as pool:
                        list(pool.map(lambda _, ask=ask, target=target: ask(target), range(options.clients)))
                    crowd = target.peak() - idle
                print(row(shape, name, (cold_first, cold, warm_first, warm, alone, crowd)), flush=True)
                (Path(home) / "tokens.json").unlink()


if __name__ == "__main__":
    main()
