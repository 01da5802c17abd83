"""The sharing server with a table of 10,000 files: answers a second, first byte, cost of a URL, memory, many clients.

Usage: PYTHONPATH=. python benches/bench_sharing.py [--seconds 60] [--requests 10000]
The server is a process of its own, started as a user starts it; clients are threads of this one.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakeview.sharing.server.lines import closing, encode_rows, parquet_row, rows_frame
from lakeview.sharing.server.signing import FileSigner, Grant, Keys, url_of
from lakeview.storage import open_storage

FILES, COMMITS, COLUMNS = 10_000, 100, ("id", "fare", "distance", "tip", "tolls")
TABLE = "/shares/lake/schemas/default/tables/wide"


def build(folder: Path) -> None:
    """A Delta log of 100 commits of 100 files each, with five columns' statistics; no data is needed to list it."""
    log = folder / "wide" / "_delta_log"
    log.mkdir(parents=True)
    first: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        metadata({}),
    ]
    write(log / f"{0:020d}.json", first)
    for commit in range(COMMITS):
        write(log / f"{commit + 1:020d}.json", [add(commit * 100 + i) for i in range(FILES // COMMITS)])


def metadata(configuration: dict[str, str]) -> dict[str, object]:
    """The metaData action of the bench's tables."""
    fields = [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in (*COLUMNS, "month")]
    return {
        "metaData": {
            "id": "7f3a6b1e-0d0f-4a54-9a1f-2b1c5f9d6e01", "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": ["month"],
            "configuration": configuration, "createdTime": 1_700_000_000_000,
        }
    }  # fmt: skip


def write(path: Path, actions: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def add(number: int) -> dict[str, object]:
    stats = {
        "numRecords": 1000,
        "minValues": dict.fromkeys(COLUMNS, number * 1000),
        "maxValues": dict.fromkeys(COLUMNS, number * 1000 + 999),
        "nullCount": dict.fromkeys(COLUMNS, 0),
    }
    month = number % 12
    return {
        "add": {
            "path": f"month={month}/part-{number:05d}-7f3a6b1e-0d0f-4a54-9a1f-2b1c5f9d6e01.c000.snappy.parquet",
            "partitionValues": {"month": str(month)}, "size": 1_000_000, "modificationTime": 1_700_000_000_000,
            "dataChange": True, "stats": json.dumps(stats),
        }
    }  # fmt: skip


@dataclass(frozen=True)
class Server:
    """A running server: where it listens, the token, and its process."""

    host: str
    port: int
    prefix: str
    token: str
    process: subprocess.Popen[bytes]

    def ask(self, method: str, path: str, body: object = None, *, gzip: bool = False) -> tuple[float, int]:
        """Seconds to the first byte of the body, and bytes of it; an error for anything but 200."""
        first, _, size = self.timed(method, path, body, gzip=gzip)
        return first, size

    def timed(self, method: str, path: str, body: object = None, *, gzip: bool = False) -> tuple[float, float, int]:
        """Seconds to the first byte of the body and to its end, and bytes of it; an error for anything but 200."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            start = time.perf_counter()
            data = None if body is None else json.dumps(body)
            connection.request(
                method, self.prefix + path, data, headers | ({"Accept-Encoding": "gzip"} if gzip else {})
            )
            answer = connection.getresponse()
            size = len(answer.read(1))
            waited = time.perf_counter() - start
            while part := answer.read(1 << 20):
                size += len(part)
            if answer.status != 200:
                raise RuntimeError(f"{method} {path}: {answer.status}")
            return waited, time.perf_counter() - start, size
        finally:
            connection.close()

    def query(self, body: object = None, *, gzip: bool = False) -> tuple[float, int]:
        """A query; all files without a body."""
        return self.ask("POST", f"{TABLE}/query", body or {}, gzip=gzip)

    def memory(self) -> float:
        """MiB that the process holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def peak(self) -> float:
        """MiB that the process held at most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def server(folder: Path, load_ahead: int = 1) -> Iterator[Server]:
    """A server for the tables of a folder, ended with the block."""
    import yaml

    from lakeview.cli.share import _now
    from lakeview.sharing.server.tokens import TokenFile

    with __import__("socket").create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    table = {"name": "wide", "location": str(folder / "wide"), "historyShared": True}
    document = {
        "version": 1, "port": port, "tokens": "tokens.json",
        "shares": [{"name": "lake", "schemas": [{"name": "default", "tables": [table]}]}],
        "recipients": [{"name": "bench", "shares": ["*"]}],
        "loadAhead": load_ahead, "limits": {"apiRate": 1_000_000, "apiBurst": 1_000_000},
    }  # fmt: skip
    (folder / "server.yaml").write_text(yaml.safe_dump(document))
    token, _ = TokenFile(folder / "tokens.json", _now).create("bench")
    command = [sys.executable, "-m", "lakeview", "share", "serve", str(folder / "server.yaml")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    target = Server("127.0.0.1", port, "/delta-sharing", token, process)
    try:
        wait(target)
        yield target
    finally:
        process.terminate()
        process.wait(30)


def wait(target: Server) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            target.ask("GET", "/shares")
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def rate(target: Server, at_once: int, count: int, *, gzip: bool) -> float:
    """Full answers a second."""
    start = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda _: target.query(gzip=gzip), range(count)))
    return count / (time.perf_counter() - start)


def url_cost() -> tuple[float, float]:
    """Microseconds to sign one URL, and to write one line, its URL signed."""
    body = {"partitionValues": {"month": "1"}, "size": 1_000_000, "stats": "x" * 300}
    rows = rows_frame([parquet_row("file", f"month=1/part-{i:05d}.parquet", body, "parquet") for i in range(FILES)])
    signer, grant = FileSigner(Keys.new().files), Grant("table", "recipient", 1)
    paths = rows["path"].to_list()
    url = url_of(open_storage("."), signer, grant, "http://127.0.0.1", 0, None)
    signing = min(timed(lambda: signer.queries(grant, paths)) for _ in range(5))
    writing = min(timed(lambda: encode_rows(rows, url, closing(1))) for _ in range(5))
    return signing / FILES * 1e6, writing / FILES * 1e6


def timed(action: object) -> float:
    assert callable(action)
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def mixed(target: Server, chance: random.Random) -> None:
    """One request as clients send them: mostly versions, some filtered queries, now and then every file."""
    kind = chance.random()
    if kind < 0.8:
        target.ask("GET", f"{TABLE}/version")
    elif kind < 0.99:
        month = chance.randrange(12)
        target.query({"predicateHints": [f"month = {month}", f"id > {chance.randrange(10**7)}"], "limitHint": 20_000})
    else:
        target.query(gzip=True)


def crowd(target: Server, clients: int, seconds: float) -> tuple[int, int, float]:
    """Requests answered, errors, and the slowest answer in seconds, of so many clients at once for so long."""
    end = time.monotonic() + seconds
    counts, errors, slowest = [0] * clients, [0] * clients, [0.0] * clients

    def client(number: int) -> None:
        chance = random.Random(number)
        while time.monotonic() < end:
            start = time.perf_counter()
            try:
                mixed(target, chance)
                counts[number] += 1
            except (OSError, RuntimeError, http.client.HTTPException):
                errors[number] += 1
            slowest[number] = max(slowest[number], time.perf_counter() - start)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts), sum(errors), max(slowest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=10_000)
    options = parser.parse_args()
    signing, writing = url_cost()
    print("| measured | found | goal |\n|---|---|---|")
    print(f"| one signed URL | {signing:.2f} us | |\n| one line with its URL | {writing:.2f} us | |", flush=True)
    with tempfile.TemporaryDirectory() as home:
        build(Path(home))
        with server(Path(home)) as target:
            cold, size = target.query()
            print(f"| first byte, cold | {cold * 1000:.0f} ms | |\n| an answer | {size / 1e6:.1f} MB | |")
            warm = sorted(target.query()[0] for _ in range(40))
            print(f"| first byte, warm, median | {statistics.median(warm) * 1000:.1f} ms | 20 |")
            print(f"| first byte, warm, slowest of 40 | {warm[-1] * 1000:.1f} ms | |")
            for at_once in (1, 4):
                for gzip in (False, True):
                    speed = rate(target, at_once, 40, gzip=gzip)
                    print(
                        f"| full answers a second, {at_once} at once{', gzip' * gzip} | {speed:.1f} | 10 |", flush=True
                    )
            some = sorted(target.query({"predicateHints": ["month = 3 AND id > 5000000"]})[0] for _ in range(20))
            print(f"| a filtered query, median | {statistics.median(some) * 1000:.1f} ms | |", flush=True)
            chance = random.Random(1)
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda _: mixed(target, chance), range(options.requests // 10)))
                before = target.memory()
                list(pool.map(lambda _: mixed(target, chance), range(options.requests)))
            grown = target.memory() - before
            print(f"| memory before {options.requests:,} requests, and grown by | {before:.0f}, {grown:+.0f} MiB | 0 |")
            before = target.memory()
            count, errors, slowest = crowd(target, 100, options.seconds)
            grown = target.memory() - before
            print(f"| 100 clients for {options.seconds:.0f} s: answers | {count:,} | |\n| errors | {errors} | 0 |")
            print(f"| slowest answer | {slowest:.1f} s | |\n| memory grown by | {grown:+.0f} MiB | 0 |")


if __name__ == "__main__":
    main()
