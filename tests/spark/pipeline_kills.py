"""A run of a pipeline in a process that ends itself by SIGKILL at a step.

python -m tests.spark.pipeline_kills FOLDER STEP
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path


def main() -> None:
    from lakeview.spark.pipelines.run import Where, run_pipeline

    folder, last = sys.argv[1:]

    def step(name: str) -> None:
        if name == last:
            os.kill(os.getpid(), signal.SIGKILL)

    run_pipeline(Path(folder), Where(), clock=lambda: datetime.now(UTC), say=print, step=step)  # noqa: TID251


if __name__ == "__main__":
    main()
