"""One job of one engine on one table, in this process alone, to its cost: a line of JSON.

Usage: python benches/worker.py ENGINE JOB ADDRESS WARM

The job is done on a small table first (WARM), so that neither imports nor thread pools are measured.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from pathlib import Path

from benches import iceberg_tasks, tasks

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def memory(line: str) -> int:
    """Bytes in a line of this process's status, such as VmHWM."""
    (found,) = (text.split()[1] for text in _STATUS.read_text().splitlines() if text.startswith(f"{line}:"))
    return int(found) * 1024


def peak() -> int:
    """Most memory held so far; Linux says it of this process alone, elsewhere it is since its start."""
    return memory("VmHWM") if _STATUS.exists() else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def settled() -> int:
    """Memory held now, from where the peak is counted anew."""
    gc.collect()
    if not _CLEAR.exists():
        return peak()
    _CLEAR.write_text("5")  # the peak starts again from what is held now (proc(5), clear_refs)
    return memory("VmRSS")


def main(engine: str, name: str, address: str, warm: str) -> None:
    job = {**tasks.JOBS.get(engine, {}), **iceberg_tasks.JOBS.get(engine, {})}[name]
    job.answer(job.run(job.prepare(warm)))
    given = job.prepare(address)
    before = settled()
    cpu, wall = time.process_time(), time.perf_counter()
    found = job.run(given)
    cpu, wall, held = time.process_time() - cpu, time.perf_counter() - wall, max(0, peak() - before)
    times = job.times(address)
    spent = {"cpu": cpu * times, "wall": wall * times, "memory": held}
    print(json.dumps({**spent, "answer": job.answer(found)}, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
