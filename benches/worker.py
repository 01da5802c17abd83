"""One job of one engine on one table, in this process alone, to its cost: a line of JSON.

Usage: python benches/worker.py ENGINE JOB ADDRESS WARM

The job is done on a small table first (WARM), so that neither imports nor thread pools are measured.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

from benches.memory import peak, settled


def main(engine: str, name: str, address: str, warm: str) -> None:
    if engine == "lakeview":
        import_module("lakeview")  # before pyarrow, which the tables' maker imports: Arrow's allocator is chosen there
    from benches import iceberg_tasks, tasks

    job = {**tasks.JOBS.get(engine, {}), **iceberg_tasks.JOBS.get(engine, {})}[name]
    job.answer(job.run(job.prepare(warm)))
    target = job.prepare(address)
    before = settled()
    cpu, wall = time.process_time(), time.perf_counter()
    output = job.run(target)
    cpu, wall, memory = time.process_time() - cpu, time.perf_counter() - wall, max(0, peak() - before)
    times = job.times(address)
    spent = {"cpu": cpu * times, "wall": wall * times, "memory": memory}
    print(json.dumps({**spent, "answer": job.answer(output)}, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
