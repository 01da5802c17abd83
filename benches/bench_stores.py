"""A Delta table on an object store, lakeview beside deltalake: requests by kind, and seconds where each takes 30 ms.

    PYTHONPATH=. python benches/bench_stores.py [--files 64] [--rounds 5] [--milliseconds 30] [--commits 20]

The store is a server of this machine in a process of its own (tests/builders/object_server.py), which waits before it
answers, and counts. Each task opens the table again; the engines take turns, their answers have to agree before
anything is timed, and the figures are medians. The second table has a call of obstore beside the same call of fsspec's
package (s3fs, adlfs), where that is installed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import deltalake
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

import lakeview as lv
from lakeview.storage import open_storage
from tests.builders.object_server import object_server

ROWS = 20_000
"""Rows of a file."""


def serve(connection: Connection) -> None:
    """Runs the server, and does what it is asked to until it is asked to end."""
    with object_server() as server:
        connection.send(server.endpoint)
        while (request := connection.recv()) is not None:
            match request:
                case ("options", kind):
                    connection.send(server.options(kind))
                case ("bucket", kind):
                    connection.send(server.bucket(kind))
                case ("copy", folder, address):
                    server.copy(folder, address)
                    connection.send(None)
                case ("seconds", seconds):
                    server.seconds = seconds
                    server.requests.clear()
                    connection.send(None)
                case _:
                    connection.send(server.count())


class Server:
    """The server in its process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.endpoint: str = connection.recv()

    def ask(self, *request: Any) -> Any:
        """Its answer."""
        self._connection.send(request)
        return self._connection.recv()


@contextmanager
def serving() -> Iterator[Server]:
    """The server, which ends with the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,))
    process.start()
    try:
        yield Server(ours)
    finally:
        ours.send(None)
        process.join()


def make_table(folder: Path, files: int) -> None:
    """A table of so many appends of one file each, with a checkpoint at its middle."""
    rng = np.random.default_rng(7)
    for number in range(files):
        rows = {"id": np.arange(number * ROWS, (number + 1) * ROWS), "value": rng.random(ROWS)}
        deltalake.write_deltalake(folder, pa.table(rows), mode="append")
        if number == files // 2:
            deltalake.DeltaTable(folder).create_checkpoint()


Task = Callable[[], object]


def tasks(address: str, options: Mapping[str, str]) -> Mapping[str, tuple[Task, Task | None]]:
    """Each task as lakeview does it and as deltalake does it, if it does; both give what is compared."""
    first = pl.col("id") < ROWS

    def ours() -> Any:
        return lv.open_table(address, storage_options=options)

    def theirs() -> deltalake.DeltaTable:
        return deltalake.DeltaTable(address, storage_options=dict(options))

    def dataset() -> Any:
        return theirs().to_pyarrow_dataset()

    return {
        "open": (lambda: ours().latest_version, lambda: theirs().version()),
        "list the files": (
            lambda: int(ours().files(columns=["path", "size"])["size"].sum()),
            lambda: int(pl.DataFrame(theirs().get_add_actions())["size_bytes"].sum()),
        ),
        "history": (lambda: ours().history().height, lambda: len(theirs().history())),
        "versions": (lambda: int(ours().versions()["readable"].sum()), None),
        "findings": (lambda: lv.inspect(ours()).health().height, None),
        "count of rows": (
            lambda: ours().scan().select(pl.len()).collect().item(),
            lambda: int(dataset().count_rows()),
        ),
        "rows of all files": (
            lambda: ours().scan().select(pl.col("id").sum()).collect().item(),
            lambda: int(np.sum(dataset().to_table(columns=["id"])["id"].to_numpy())),
        ),
        "rows of one file, by a filter": (
            lambda: ours().scan().filter(first).select(pl.col("id").sum()).collect().item(),
            lambda: int(np.sum(dataset().to_table(columns=["id"], filter=ds.field("id") < ROWS)["id"].to_numpy())),
        ),
    }


def measured(server: Server, seconds: float, rounds: int, ways: list[Task]) -> list[tuple[float, str]]:
    """Of each way the median of its seconds, and the requests of its last round; the ways take turns."""
    samples: list[list[float]] = [[] for _ in ways]
    requests = [""] * len(ways)
    for _ in range(rounds):
        for i, way in enumerate(ways):
            server.ask("seconds", seconds)
            begun = time.perf_counter()
            way()
            samples[i].append(time.perf_counter() - begun)
            requests[i] = ", ".join(f"{count} {kind}" for kind, count in server.ask("count").items())
    return [(median(times), calls) for times, calls in zip(samples, requests, strict=True)]


def bench_tasks(server: Server, files: int, rounds: int, seconds: float) -> None:
    """Prints a row for each task."""
    with tempfile.TemporaryDirectory() as folder:
        make_table(Path(folder) / "t", files)
        address = f"{server.ask('bucket', 's3')}/t"
        server.ask("copy", Path(folder) / "t", address)
    print("| task | lakeview, s | requests | deltalake, s | requests | lakeview / deltalake |")
    print("|---|---|---|---|---|---|")
    for name, (ours, theirs) in tasks(address, server.ask("options", "s3")).items():
        server.ask("seconds", 0)
        ways = [way for way in (ours, theirs) if way is not None]
        answers = [way() for way in ways]  # what is imported and started once is not measured
        if len(set(map(str, answers))) != 1:
            raise SystemExit(f"{name}: the engines do not agree: {answers}")
        medians = measured(server, seconds, rounds, ways)
        cells = " | ".join(f"{time:.2f} | {requests}" for time, requests in medians)
        ratio = f"{medians[0][0] / medians[1][0]:.2f}" if len(medians) == 2 else " | | "
        print(f"| {name} | {cells} | {ratio} |", flush=True)


def bench_commits(server: Server, commits: int, rounds: int, seconds: float) -> None:
    """Prints a row for appends of one row each."""
    options = server.ask("options", "s3")
    row = pa.table({"id": pa.array([1], pa.int64())})

    def ours() -> None:
        table = lv.create_table(f"{server.ask('bucket', 's3')}/t", row.schema, storage_options=options)
        for _ in range(commits):
            table.append(row)

    def theirs() -> None:
        address = f"{server.ask('bucket', 's3')}/t"
        theirs = {**options, "conditional_put": "etag"}
        for _ in range(commits + 1):
            deltalake.write_deltalake(address, row, mode="append", storage_options=theirs)

    medians = measured(server, seconds, max(1, rounds // 2), [ours, theirs])
    cells = " | ".join(f"{time:.2f} | {requests}" for time, requests in medians)
    print(f"| {commits} commits of one row | {cells} | {medians[0][0] / medians[1][0]:.2f} |", flush=True)


FSSPEC = {"s3": ("s3fs", "s3"), "azure": ("adlfs", "az")}
"""fsspec's package for each kind of store, and its protocol. gcsfs speaks another protocol than the server does."""


def bench_libraries(server: Server, rounds: int, seconds: float) -> None:
    """Prints a row for each kind of store and call."""
    print("\n| store | call | obstore, s | requests | fsspec's package, s | requests |")
    print("|---|---|---|---|---|---|")
    for kind, (package, protocol) in FSSPEC.items():
        address = server.ask("bucket", kind)
        store = open_storage(f"{address}/t", options=server.ask("options", kind))
        for number in range(16):
            store.put(f"log/{number}", b"x" * 1000)
        names = [f"log/{number}" for number in range(16)]
        calls: dict[str, list[Task]] = {
            "read a file": [partial(store.read, "log/0")],
            "list a folder": [partial(store.list_from, "log")],
            "read 16 files": [partial(store.read_all, "log", [str(number) for number in range(16)])],
        }
        if find_spec(package) is not None:
            files = _fsspec(protocol, server)
            path = f"{address.partition('://')[2]}/t"
            calls["read a file"].append(partial(files.cat_file, f"{path}/log/0"))
            calls["list a folder"].append(partial(files.ls, f"{path}/log", detail=True, refresh=True))
            calls["read 16 files"].append(partial(files.cat, [f"{path}/{name}" for name in names]))
        for name, ways in calls.items():
            for way in ways:
                way()
            cells = [f"{time * 1000:.0f} ms | {requests}" for time, requests in measured(server, seconds, rounds, ways)]
            print(f"| {kind} | {name} | {' | '.join(cells)} |" + (" | |" if len(cells) == 1 else ""), flush=True)


def _fsspec(protocol: str, server: Server) -> Any:
    import fsspec

    options = server.ask("options", {"s3": "s3", "az": "azure"}[protocol])
    arguments: dict[str, Any] = {
        "s3": {"key": "an-id", "secret": "s3cr3t", "endpoint_url": server.endpoint},
        "az": {
            "connection_string": "AccountName=account;AccountKey={};BlobEndpoint={}".format(
                options.get("AZURE_STORAGE_ACCOUNT_KEY"), options.get("AZURE_STORAGE_ENDPOINT")
            )
        },
    }[protocol]
    return fsspec.filesystem(protocol, use_listings_cache=False, skip_instance_cache=True, **arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=30)
    parser.add_argument("--commits", type=int, default=20)
    options = parser.parse_args()
    seconds = options.milliseconds / 1000
    with serving() as server:
        bench_tasks(server, options.files, options.rounds, seconds)
        bench_commits(server, options.commits, options.rounds, seconds)
        bench_libraries(server, options.rounds, seconds)
    print(json.dumps({"deltalake": deltalake.__version__, "polars": pl.__version__}))


if __name__ == "__main__":
    main()
