"""How much time a request's hints may take: what is not evaluated by then skips no file."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]

PARSING_CPU = 0.2
PRUNING_CPU, PRUNING_WALL = 0.5, 10.0
"""Seconds. What clients send takes a tenth of them: 300 comparisons joined by AND are parsed in 15 ms, and held against
the statistics of 10,000 files in 90 ms."""


class Budget:
    """CPU seconds of the calling thread, and seconds of the wall clock, from now on. For one thread only.

    CPU time bounds what others wait for: a thread that parses holds the interpreter's lock. The wall clock bounds what
    reads statistics for a filter. A wait for the processor spends nothing of the first.
    """

    def __init__(
        self, cpu: float, wall: float = 60.0, cpu_clock: Clock = time.thread_time, clock: Clock = time.monotonic
    ) -> None:
        self._cpu_clock, self._clock = cpu_clock, clock
        self._cpu_end, self._end = cpu_clock() + cpu, clock() + wall

    @property
    def is_spent(self) -> bool:
        """True once either is used up."""
        return self._cpu_clock() > self._cpu_end or self._clock() > self._end
