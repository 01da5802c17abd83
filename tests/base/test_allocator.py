"""Arrow takes an allocator that returns pages that are free, unless the environment names another."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"
ARENAS = "JE_ARROW_MALLOC_CONF"
POOL = "pyarrow.default_memory_pool().backend_name"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="its wheel of pyarrow has no jemalloc"
)


@pytest.mark.parametrize(
    ("chosen", "statements", "expected"),
    [
        ("", f"import lakeview, pyarrow; print({POOL})", "jemalloc"),
        ("system", f"import lakeview, pyarrow; print({POOL})", "system"),
        ("", f"import pyarrow, lakeview, os; print({POOL} != 'jemalloc', '{VARIABLE}' in os.environ)", "True False"),
    ],
    ids=["lakeview's choice", "the user's choice", "Arrow is there already"],
)
def test_arrow_returns_free_pages_unless_another_allocator_was_chosen(
    chosen: str, statements: str, expected: str
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if chosen:
        environment[VARIABLE] = chosen
    done = subprocess.run(
        [sys.executable, "-c", statements], env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip(), done.stderr) == (expected, "")


@pytest.mark.parametrize(
    ("chosen", "expected"), [({}, f"narenas:{os.cpu_count()}"), ({ARENAS: "narenas:99"}, "narenas:99")]
)
def test_each_core_has_an_arena_unless_the_environment_says_otherwise(chosen: dict[str, str], expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != ARENAS} | chosen
    program = f"import lakeview, os; print(os.environ['{ARENAS}'])"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == (expected, "")
