"""A Delta table on S3, lakeview beside deltalake: requests by kind, and seconds where each request takes 30 ms.

    PYTHONPATH=. python benches/bench_s3.py [--files 64] [--rounds 3] [--milliseconds 30]

The store is an S3 server of this machine (moto) that waits before it answers, and counts. Each task opens the table
anew; answers have to agree before anything is timed. History is left out: deltalake's never ends on this server.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import deltalake
import numpy as np
import polars as pl
import pyarrow as pa
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

import lakeview as lv
from tests.builders.s3 import REGION, Bucket, new_bucket

ROWS = 20_000
"""Rows of a file."""


class SlowServer:
    """An S3 server that waits before each answer, and counts requests by kind: GET, HEAD, LIST and others."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.requests: Counter[str] = Counter()
        self._app = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        listing = "list-type=" in environ.get("QUERY_STRING", "")
        self.requests["LIST" if listing else environ["REQUEST_METHOD"]] += 1
        time.sleep(self.seconds)
        return self._app(environ, start_response)


@contextmanager
def serving(server: SlowServer) -> Iterator[str]:
    """The address of the server, which ends with the block."""
    listener = make_server("127.0.0.1", 0, server, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        listener.shutdown()
        thread.join()


def make_table(folder: Path, files: int) -> None:
    """A table of so many appends of one file each, with a checkpoint at its middle."""
    rng = np.random.default_rng(7)
    for number in range(files):
        rows = {"id": np.arange(number * ROWS, (number + 1) * ROWS), "value": rng.random(ROWS)}
        deltalake.write_deltalake(folder, pa.table(rows), mode="append")
        if number == files // 2:
            deltalake.DeltaTable(folder).create_checkpoint()


Task = Callable[[], object]


def tasks(address: str, bucket: Bucket) -> Mapping[str, tuple[Task, Task]]:
    """Each task as lakeview does it and as deltalake does it; both give what is compared."""
    options = {
        "AWS_ENDPOINT_URL": bucket.endpoint, "AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "s3cr3t",
        "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip

    def ours() -> Any:
        return lv.open_table(address, storage_options=bucket.options)

    def theirs() -> deltalake.DeltaTable:
        return deltalake.DeltaTable(address, storage_options=options)

    def dataset() -> Any:
        return theirs().to_pyarrow_dataset()

    first = pl.col("id") < ROWS
    import pyarrow.dataset as ds

    return {
        "open": (lambda: ours().latest_version, lambda: theirs().version()),
        "list the files": (
            lambda: int(ours().files(columns=["path", "size"])["size"].sum()),
            lambda: int(pl.DataFrame(theirs().get_add_actions())["size_bytes"].sum()),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--milliseconds", type=float, default=30)
    asked = parser.parse_args()
    server = SlowServer(0)
    with serving(server) as endpoint, tempfile.TemporaryDirectory() as folder:
        make_table(Path(folder) / "t", asked.files)
        bucket = new_bucket(endpoint)
        address = bucket.copy(Path(folder) / "t", "t")
        print("| task | lakeview, s | requests | deltalake, s | requests | deltalake / lakeview |")
        print("|---|---|---|---|---|---|")
        for name, ways in tasks(address, bucket).items():
            server.seconds = 0
            answers = [way() for way in ways]  # what is imported and started once is not measured
            if answers[0] != answers[1]:
                raise SystemExit(f"{name}: the engines do not agree: {answers}")
            server.seconds = asked.milliseconds / 1000
            seconds: list[list[float]] = [[], []]
            requests: list[str] = ["", ""]
            for _ in range(asked.rounds):
                for i, way in enumerate(ways):
                    server.requests.clear()
                    begun = time.perf_counter()
                    way()
                    seconds[i].append(time.perf_counter() - begun)
                    requests[i] = ", ".join(f"{count} {kind}" for kind, count in sorted(server.requests.items()))
            us, them = map(median, seconds)
            print(f"| {name} | {us:.2f} | {requests[0]} | {them:.2f} | {requests[1]} | {them / us:.1f} |", flush=True)


if __name__ == "__main__":
    main()
