"""What one recipient of a sharing server can cost the others: the delay of a version request beside the worst requests,
and the server's memory while it sends 200,000 files.

Usage: PYTHONPATH=. python benches/bench_sharing_limits.py [--seconds 3] [--clients 8] [--files 200000]
The server and every client are processes of their own on this machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benches.bench_sharing import COLUMNS, Server, add, wait

TABLES = "/shares/lake/schemas/default/tables"
SMALL, GOAL_DELAY, GOAL_MEMORY, GOAL_FIRST = 10_000, 100, 200, 2.0


def build(path: Path, files: int, commits: int) -> None:
    """A table of so many files in so many commits, with a change data feed; no data is needed to list it."""
    fields = [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in (*COLUMNS, "month")]
    metadata = {
        "id": "7f3a6b1e-0d0f-4a54-9a1f-2b1c5f9d6e01", "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": ["month"],
        "configuration": {"delta.enableChangeDataFeed": "true"}, "createdTime": 1_700_000_000_000,
    }  # fmt: skip
    log = path / "_delta_log"
    log.mkdir(parents=True)
    each = files // commits
    for commit in range(commits + 1):
        lines: list[dict[str, object]] = [
            {"commitInfo": {"timestamp": 1_700_000_000_000 + commit, "operation": "WRITE"}}
        ]
        if commit:
            lines += [add((commit - 1) * each + i) for i in range(each)]
        else:
            lines += [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, {"metaData": metadata}]
        with (log / f"{commit:020d}.json").open("w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


@contextmanager
def server(folder: Path) -> Iterator[tuple[Server, str]]:
    """A server for the tables of a folder as its first recipient sees it, and the token of the second."""
    import yaml

    from lakeview.cli.share import _now
    from lakeview.sharing.server.tokens import TokenFile

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    tables = [{"name": name, "location": str(folder / name), "historyShared": True} for name in names]
    document = {
        "version": 1, "port": port, "tokens": "tokens.json",
        "shares": [{"name": "lake", "schemas": [{"name": "default", "tables": tables}]}],
        "recipients": [{"name": "costly", "shares": ["*"]}, {"name": "other", "shares": ["*"]}],
        "limits": {"apiRate": 1_000_000, "apiBurst": 1_000_000},
    }  # fmt: skip
    (folder / "server.yaml").write_text(yaml.safe_dump(document))
    (folder / "tokens.json").unlink(missing_ok=True)
    first, second = (TokenFile(folder / "tokens.json", _now).create(name)[0] for name in ("costly", "other"))
    command = [sys.executable, "-m", "lakeview", "share", "serve", str(folder / "server.yaml")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        target = Server("127.0.0.1", port, "/delta-sharing", first, process)
        wait(target)
        yield target, second
    finally:
        process.terminate()
        process.wait(30)


@dataclass(frozen=True)
class Call:
    """A request: `body` is sent as it is, None for GET."""

    method: str
    path: str
    body: str | None = None

    def send(self, target: Server, token: str) -> tuple[int, float, float, int]:
        """Status, seconds to the first byte and in all, bytes of the answer."""
        connection = http.client.HTTPConnection(target.host, target.port, timeout=120)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            start = time.perf_counter()
            connection.request(self.method, target.prefix + self.path, self.body, headers)
            answer = connection.getresponse()
            size = len(answer.read(1))
            first = time.perf_counter() - start
            while part := answer.read(1 << 20):
                size += len(part)
            return answer.status, first, time.perf_counter() - start, size
        finally:
            connection.close()


def query(table: str, **body: Any) -> Call:
    return Call("POST", f"{TABLES}/{table}/query", json.dumps(body))


def tree(count: int) -> str:
    """A tree of comparisons joined by OR, as JSON text."""
    compared = {
        "op": "equal",
        "children": [
            {"op": "column", "name": "id", "valueType": "long"},
            {"op": "literal", "value": "5", "valueType": "long"},
        ],
    }
    return json.dumps({"op": "or", "children": [compared] * count})


def worst() -> dict[str, Call]:
    """Requests that cost as much as their sender can make them, within the limits and beyond."""
    long_list = f"id IN ({', '.join(str(i * 7919) for i in range(11_000))})"
    within = f"id IN ({', '.join(str(i * 7919) for i in range(1000))})"
    chain = " AND ".join(f"{COLUMNS[i % 5]} >= {i}" for i in range(300))
    casts = "id" + "::int" * 1900
    keys = json.dumps({f"key{i}": i for i in range(110_000)})
    return {
        "nothing": Call("GET", "/shares"),
        "4 lists of 11,000 values": query("small", predicateHints=[long_list] * 4),
        "a list of 1,000 values": query("small", predicateHints=[within]),
        "300 comparisons": query("small", predicateHints=[chain]),
        "1,900 casts": query("small", predicateHints=[casts]),
        "1,000 hints": query("small", predicateHints=["id = 5"] * 1000),
        "a tree of 800 comparisons": query("small", jsonPredicateHints=tree(800)),
        "a tree of 7,500 comparisons": query("small", jsonPredicateHints=tree(7500)),
        "a body of 2 MB, all keys": Call("POST", f"{TABLES}/small/query", keys[: 2 << 20]),
        "all files": query("many"),
        "a list, all files": query("many", predicateHints=[within, chain]),
        "all commits": query("many", startingVersion=0),
        "one huge commit": query("one", startingVersion=0),
        "changes of one huge commit": Call("GET", f"{TABLES}/one/changes?startingVersion=0"),
    }  # fmt: skip


def delays(target: Server, token: str, seconds: float) -> list[float]:
    """Milliseconds of version requests, one after the other; what a client process prints."""
    call = Call("GET", f"{TABLES}/many/version")
    end = time.monotonic() + seconds
    times: list[float] = []
    while time.monotonic() < end or len(times) < 50:
        status, _, waited, _ = call.send(target, token)
        if status != 200:
            raise RuntimeError(f"version: {status}")
        times.append(waited * 1000)
        time.sleep(0.002)
    return times


def client(port: int, token: str, kind: str, seconds: float) -> None:
    """One process: the delays of `version`, or one of the worst requests over and over."""
    target = Server("127.0.0.1", port, "/delta-sharing", token, None)  # type: ignore[arg-type]  # which it did not start
    if kind == "version":
        print(json.dumps(delays(target, token, seconds)))
        return
    call, end = worst()[kind], time.monotonic() + seconds
    while time.monotonic() < end:
        status = call.send(target, token)[0]
        if status >= 500:
            raise RuntimeError(f"{kind}: {status}")


def started(target: Server, token: str, kind: str, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--client", kind, "--port", str(target.port), "--seconds", str(seconds)]
    return subprocess.Popen([*command, "--token", token], stdout=subprocess.PIPE, text=True)


def measure_delays(target: Server, other: str, clients: int, seconds: float) -> None:
    print("| one recipient asks for | clients | version of another: median | 99th percentile, ms | goal |")
    print("|---|---|---|---|---|", flush=True)
    for kind in worst():
        for count in (1, clients):
            costly = [started(target, target.token, kind, seconds + 2) for _ in range(count)]
            time.sleep(1.0)  # until they are under way
            watcher = started(target, other, "version", seconds)
            times = sorted(json.loads(watcher.communicate(timeout=300)[0]))
            for process in costly:
                process.communicate(timeout=300)
            high = times[int(len(times) * 0.99)]
            print(f"| {kind} | {count} | {statistics.median(times):.1f} | {high:.1f} | {GOAL_DELAY} |", flush=True)


def measure_memory(folder: Path) -> None:
    print("| 200,000 files | first byte, cold, s | warm | goal | MiB above idle, warm | goal | all, s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in ("many", "one"):
        for what, call in (
            ("since version 0", query(name, startingVersion=0)),
            ("changes", Call("GET", f"{TABLES}/{name}/changes?startingVersion=0")),
            ("latest version", query(name)),
        ):
            with server(folder) as (target, _):
                idle = target.memory()
                cold = call.send(target, target.token)
                peaks: list[float] = []
                done = threading.Event()
                watcher = threading.Thread(target=watch, args=(target, peaks, done))
                watcher.start()
                warm = call.send(target, target.token)
                done.set()
                watcher.join()
            commits = "2,000 commits" if name == "many" else "one commit"
            print(
                f"| {what}, {commits} | {cold[1]:.2f} | {warm[1]:.2f} | {GOAL_FIRST} | {max(peaks) - idle:.0f} | "
                f"{GOAL_MEMORY} | {warm[2]:.1f} |",
                flush=True,
            )


def watch(target: Server, peaks: list[float], done: threading.Event) -> None:
    while not done.wait(0.01):
        peaks.append(target.memory())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--client")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default="")
    options = parser.parse_args()
    if options.client is not None:
        client(options.port, options.token, options.client, options.seconds)
        return
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        build(folder / "small", SMALL, 100)
        build(folder / "many", options.files, max(options.files // 100, 1))
        build(folder / "one", options.files, 1)
        measure_memory(folder)
        with server(folder) as (target, other):
            for table in ("small", "many", "one"):
                query(table).send(target, target.token)
            measure_delays(target, other, options.clients, options.seconds)


if __name__ == "__main__":
    main()
