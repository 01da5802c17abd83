"""The limits of what a request may send, checked where it comes in, and of how many requests a caller may send: token
buckets that refill with time. Limits of cost and rate are settings."""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable

from lakeview.sharing.protocol.messages import ErrorCode
from lakeview.sharing.server.refusals import Refusal

HEAD_BYTES = 64 << 10
"""The request line and all headers."""

HEADERS = 200
"""Header lines; clients send about twenty."""

HTTP_VERSIONS = ("1.0", "1.1")

TOKEN_CHARACTERS = 4096
"""A bearer token."""

RESULTS = 500
"""Items of one page of a listing."""

DIGITS = 19
"""Digits of a number in a parameter, those of 2^63."""

HINTS = 1000
HINT_CHARACTERS, HINT_TOKENS = 16 << 10, 4000
"""Of all SQL hints of a request together: 300 comparisons joined by AND are 3,600 characters and 1,200 tokens. A hint
that goes beyond is dropped, later ones that fit are read."""

JSON_HINT_CHARACTERS = 128 << 10
"""Nearly a thousand comparisons. A longer tree skips no file."""


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

    def is_spent(self, caller: str) -> bool:
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
