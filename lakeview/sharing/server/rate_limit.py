"""Rate limits: token buckets that refill with time, one for each caller."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable

from lakeview.sharing.protocol.messages import ErrorCode
from lakeview.sharing.server.refusals import Refusal

_MAX_CALLERS = 10_000


class RateLimit:
    """So many requests a second for each caller, with a burst. Safe to use from several threads.

    `clock` gives seconds that only ever grow.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str) -> None:
        """Count one request. 429 says after how many seconds the next one will do."""
        with self._lock:
            allowance = self._now(caller)
            if allowance >= 1:
                self._put(caller, allowance - 1)
                return
            wait = math.ceil((1 - allowance) / self._rate)
        raise Refusal(
            429, ErrorCode.RESOURCE_EXHAUSTED, f"too many requests, try again in {wait} s", {"Retry-After": str(wait)}
        )

    def spent(self, caller: str) -> bool:
        """Whether the next request would be refused; counts nothing."""
        with self._lock:
            return self._now(caller) < 1

    def _now(self, caller: str) -> float:
        now = self._clock()
        allowance, then = self._buckets.get(caller, (float(self._burst), now))
        return min(self._burst, allowance + (now - then) * self._rate)

    def _put(self, caller: str, allowance: float) -> None:
        self._buckets[caller] = (allowance, self._clock())
        self._buckets.move_to_end(caller)
        while len(self._buckets) > _MAX_CALLERS:
            self._buckets.popitem(last=False)
