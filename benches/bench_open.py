"""Opening and listing the demo lake's flights, lakeview beside deltalake (delta-rs), in one process.

Usage: python benches/bench_open.py [table]; the demo lake's `flights` without an argument.
Both must agree on version, files, bytes and rows before anything is timed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

import deltalake

import lakeview as lv
from benches.measure import HEADER, compare
from lakeview.model.config import settings


def ours_open(address: str) -> object:
    return lv.open_table(address).snapshot().schema


def peer_open(address: str) -> object:
    return deltalake.DeltaTable(address).schema()


def ours_list(address: str) -> object:
    return lv.open_table(address).files(columns=["path", "size", "partition"])


def peer_list(address: str) -> object:
    return deltalake.DeltaTable(address).get_add_actions(flatten=True)


def ours_records(address: str) -> object:
    return lv.open_table(address).files(columns=["path", "size", "partition", "records"])


def ours_history(address: str) -> object:
    return lv.open_table(address).history()


def peer_history(address: str) -> object:
    return deltalake.DeltaTable(address).history()


def ours_travel(address: str, version: int) -> object:
    return lv.open_table(address).files(version, columns=["path", "size"])


def peer_travel(address: str, version: int) -> object:
    return deltalake.DeltaTable(address, version=version).get_add_actions(flatten=True)


def agree(address: str) -> str:
    """What both say of the table; an error if they do not say the same."""
    ours, peer = lv.open_table(address).snapshot(), deltalake.DeltaTable(address)
    actions = peer.get_add_actions(flatten=True)
    own = (ours.version, ours.num_files, ours.size_bytes)
    theirs = (peer.version(), len(peer.file_uris()), sum(actions["size_bytes"].to_pylist()))
    if own != theirs:
        raise SystemExit(f"lakeview finds (version, files, bytes) {own}, deltalake {theirs}")
    return f"version {own[0]}, {own[1]:,} files, {own[2]:,} bytes, {ours.num_records} rows"


def import_milliseconds(module: str, rounds: int = 9) -> float:
    """Median wall time of `import module` in fresh interpreters, the interpreter's own start taken off."""

    def once(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    pairs = [(once(f"import {module}"), once("pass")) for _ in range(rounds)]
    return (median(a for a, _ in pairs) - median(b for _, b in pairs)) * 1000


def main(address: str) -> None:
    print(f"{agree(address)}\n\n{HEADER}")
    middle = lv.open_table(address).latest_version // 2
    comparisons = [
        ("open: protocol and schema", lambda: ours_open(address), lambda: peer_open(address)),
        ("open and list: path, size, partition", lambda: ours_list(address), lambda: peer_list(address)),
        ("the same with row counts", lambda: ours_records(address), lambda: peer_list(address)),
        ("open and whole history", lambda: ours_history(address), lambda: peer_history(address)),
        (
            f"files of version {middle}",
            lambda: ours_travel(address, middle),
            lambda: peer_travel(address, middle),
        ),
    ]
    for task, ours, peer in comparisons:
        print(compare(task, ours, peer).row)
    for module in ("lakeview", "polars"):
        print(f"import {module}: {import_milliseconds(module):.0f} ms")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else f"{settings().demo}/flights")
