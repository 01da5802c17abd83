"""A run of a pipeline, on a Spark Connect server, in a process that ends itself by SIGKILL at a step.

python -m tests.spark.pipeline_kills FOLDER STEP REMOTE
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path


def main() -> None:
    from lakeview.spark.pipelines.run import Where, run_pipeline

    folder, last, remote = sys.argv[1:]

    def step(name: str) -> None:
        if name == last:
            os.kill(os.getpid(), signal.SIGKILL)

    run_pipeline(Path(folder), Where(remote=remote), clock=lambda: datetime.now(UTC), say=print, step=step)  # noqa: TID251


if __name__ == "__main__":
    main()
