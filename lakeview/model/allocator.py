"""Which allocator Arrow takes: one that returns pages that are free, unless the environment names another."""

import os
import sys

_VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"
"""What Arrow reads, once, when it is loaded."""

_OPTIONS = "JE_ARROW_MALLOC_CONF"
"""What Arrow's jemalloc reads then, and no other allocator."""


def choose_allocator() -> None:
    """Have Arrow take jemalloc, unless the environment names an allocator or Arrow is loaded already.

    Its own default, mimalloc, holds back most of what a merge or an optimize has freed: with it they take half as much
    memory again, and a tenth more time (benches/bench_writer.py). Not on ARM, for which pyarrow's wheels come without
    jemalloc, and not on other systems, where nothing was measured. It gets one arena a core in place of four, unless
    the environment has options for it: each thread takes one, and each holds back free pages.
    """
    if sys.platform == "linux" and os.uname().machine == "x86_64" and "pyarrow" not in sys.modules:
        os.environ.setdefault(_VARIABLE, "jemalloc")
        os.environ.setdefault(_OPTIONS, f"narenas:{os.cpu_count() or 1}")
