"""Checkpoints of tables of many files, and vacuums of them: time and peak memory, lakeview beside deltalake (delta-rs).

Usage: python benches/bench_checkpoints.py [--files 100000 1000000] [--rounds 3] [--vacuum 100000]

Every job runs in a fresh process, engines by turns. A table (`make_tables.py`) has a checkpoint of all its files with
statistics of 18 columns, and ten commits after it; the job writes the checkpoint of the last one. What each engine
wrote is read by the other one before its time counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from benches.make_tables import files_table
from benches.memory import peak, settled

if TYPE_CHECKING:
    from lakeview.delta.table import DeltaTable

Job = Callable[[str], Any]

GOAL_MEMORY = 1 << 30
"""Bytes that the process of a checkpoint of a million files may hold at its peak, imports included."""


@dataclass(frozen=True)
class Case:
    """A job of ours, the peer's job if it has one, and what is changed in the table before it."""

    title: str
    ours: str
    peer: str | None
    protocol: dict[str, Any] | None = None
    properties: dict[str, str] | None = None


V2 = {
    "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"],
    "writerFeatures": ["v2Checkpoint", "appendOnly", "invariants"],
}  # fmt: skip
CASES = (
    Case("one file", "checkpoint", "checkpoint"),
    Case("one file, statistics as structs too", "checkpoint", None,
         properties={"delta.checkpoint.writeStatsAsStruct": "true"}),
    Case("ten parts", "parts", None),
    Case("V2 with sidecars", "checkpoint", None, V2, {"delta.checkpointPolicy": "v2"}),
)  # fmt: skip


def delta_table(address: str) -> DeltaTable:
    """The table at an address, by lakeview."""
    import lakeview as lv

    table = lv.open_table(address)
    assert table.format == "delta"
    return cast("DeltaTable", table)


def _ours_checkpoint(address: str) -> object:
    return delta_table(address).checkpoint()


def _ours_parts(address: str) -> object:
    return delta_table(address).checkpoint(parts=10)


def _ours_vacuum(address: str) -> object:
    return delta_table(address).vacuum(timedelta(0), allow_short_retention=True).height


def _peer_checkpoint(address: str) -> object:
    import deltalake

    deltalake.DeltaTable(address).create_checkpoint()
    return None


def _peer_vacuum(address: str) -> object:
    import deltalake

    return len(deltalake.DeltaTable(address).vacuum(0, dry_run=True, enforce_retention_duration=False, full=True))


JOBS: dict[tuple[str, str], Job] = {
    ("lakeview", "checkpoint"): _ours_checkpoint,
    ("lakeview", "parts"): _ours_parts,
    ("lakeview", "vacuum"): _ours_vacuum,
    ("deltalake", "checkpoint"): _peer_checkpoint,
    ("deltalake", "vacuum"): _peer_vacuum,
}


def work(engine: str, job: str, address: str, warm: str) -> None:
    """One job in this process alone, after a small one, to a line of JSON."""
    JOBS[engine, job](warm)
    before = settled()
    cpu, wall = time.process_time(), time.perf_counter()
    answer = JOBS[engine, job](address)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(json.dumps({"cpu": cpu, "wall": wall, "memory": max(0, peak() - before), "peak": peak(), "answer": answer}))


def run(engine: str, job: str, address: Path, warm: Path) -> dict[str, Any]:
    """The costs of a job in a fresh process."""
    words = [sys.executable, __file__, "--work", engine, job, str(address), str(warm)]
    process = subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": "."})
    costs: dict[str, Any] = json.loads(process.stdout)
    return costs


def prepared(count: int, case: Case, folder: Path) -> Path:
    """A copy of the table, with a commit for what the case changes; the checkpoint of its last version is not there."""
    source = files_table(count)
    copy = folder / f"{count}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source.path, copy, copy_function=os.link)
    if case.properties is not None:
        lines = (line for p in sorted((copy / "_delta_log").glob("*.json")) for line in p.read_text().splitlines())
        entries = (json.loads(line)["metaData"] for line in lines if '"metaData"' in line)
        metadata = next(entries, None) or _metadata(copy)
        actions = [{"metaData": {**metadata, "configuration": case.properties}}]
        actions += [{"protocol": case.protocol}] if case.protocol is not None else []
        name = f"{source.version + 1:020d}.json"
        (copy / "_delta_log" / name).write_text("".join(json.dumps(action) + "\n" for action in actions))
    hint = copy / "_delta_log/_last_checkpoint"
    hint.write_bytes(unlinked(hint))
    return copy


def unlinked(path: Path) -> bytes:
    """The bytes of a file, and the file gone: it is a link to one that must not change."""
    data = path.read_bytes()
    path.unlink()
    return data


def _metadata(copy: Path) -> dict[str, Any]:
    state = delta_table(str(copy)).state()
    return {
        "id": state.metadata.id, "format": {"provider": "parquet", "options": {}},
        "schemaString": state.metadata.schema_string, "partitionColumns": state.metadata.partition_columns,
        "configuration": {}, "createdTime": state.metadata.created_time,
    }  # fmt: skip


def written_bytes(copy: Path, before: set[Path]) -> int:
    """The bytes of the files that a job has added to the log."""
    return sum(p.stat().st_size for p in set((copy / "_delta_log").rglob("*.parquet")) - before)


def agree(copy: Path, count: int) -> None:
    """Both engines find as many files from the new checkpoint alone; SystemExit if not."""
    import deltalake

    import lakeview as lv

    for commit in (copy / "_delta_log").glob("*.json"):
        commit.unlink()
    for old in (copy / "_delta_log").glob("*1000.checkpoint*"):
        old.unlink()
    counts = (lv.open_table(str(copy)).snapshot().num_files, len(deltalake.DeltaTable(str(copy)).file_uris()))
    if counts != (count, count):
        raise SystemExit(f"lakeview and deltalake find {counts} files from a checkpoint of {count:,}")


def bench_checkpoints(count: int, rounds: int, folder: Path) -> None:
    """A line for each case and engine."""
    for case in CASES:
        warm = prepared(100, case, folder / "warm")
        engines = [("lakeview", case.ours)] + ([("deltalake", case.peer)] if case.peer is not None else [])
        samples: dict[str, list[dict[str, Any]]] = {engine: [] for engine, _ in engines}
        for number in range(rounds):
            for engine, job in engines if number % 2 == 0 else reversed(engines):
                copy = prepared(count, case, folder)
                before = set((copy / "_delta_log").rglob("*.parquet"))
                sample = run(engine, job, copy, warm)
                samples[engine].append({**sample, "bytes": written_bytes(copy, before)})
                if number == 0:
                    agree(copy, count)
        for engine, runs in samples.items():
            print(row(f"{count:,} files, {case.title}", engine, runs), flush=True)


def row(title: str, engine: str, samples: list[dict[str, Any]]) -> str:
    """One line of the Markdown table."""
    cpu, wall, memory, most, size = (
        median(s.get(key, 0) for s in samples) for key in ("cpu", "wall", "memory", "peak", "bytes")
    )
    size_text = f"{size / 1e6:,.0f}" if size else ""
    return f"| {title} | {engine} | {wall:.1f} | {cpu:.1f} | {memory / 1e6:,.0f} | {most / 1e6:,.0f} | {size_text} |"


def bench_vacuum(count: int, rounds: int, folder: Path) -> None:
    """A dry run of vacuum over as many files, of which every tenth is named by no commit."""
    import lakeview as lv

    warm, copy = (prepared(number, CASES[0], folder / name) for number, name in ((100, "warm"), (count, "vacuum")))
    for place in (warm, copy):
        snapshot = lv.open_table(str(place)).snapshot()
        paths = [*snapshot.files["path"], *snapshot.tombstones["path"]]
        for parent in {(place / path).parent for path in paths}:
            parent.mkdir(parents=True, exist_ok=True)
        for number, path in enumerate(paths):
            (place / path).touch()
            if number % 10 == 0:
                (place / f"{path}.orphan.parquet").touch()
    samples: dict[str, list[dict[str, Any]]] = {"lakeview": [], "deltalake": []}
    for _ in range(rounds):
        for engine, runs in samples.items():
            runs.append(run(engine, "vacuum", copy, warm))
    answers = {engine: runs[0]["answer"] for engine, runs in samples.items()}
    if len(set(answers.values())) != 1:
        raise SystemExit(f"what a vacuum would delete: {answers}")
    for engine, runs in samples.items():
        print(row(f"dry run of vacuum, {count:,} files", engine, runs), flush=True)


def main() -> None:
    """Every size, every case; the goal at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--vacuum", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.work:
        work(*words.work)
        return
    print("| job | engine | wall s | CPU s | above idle, MB | peak, MB | written, MB |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=files_table(100).path.parents[1]) as folder:
        for count in words.files:
            bench_checkpoints(count, words.rounds, Path(folder))
        if words.vacuum:
            bench_vacuum(words.vacuum, words.rounds, Path(folder))
    print(f"goal: the peak of a million files below {GOAL_MEMORY / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
