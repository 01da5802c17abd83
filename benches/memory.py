"""This process to the memory that it holds, now and at most."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def memory(line: str, status: Path = _STATUS) -> int:
    """Bytes in a line of a process's status, such as VmHWM; of this one without a file."""
    (amount,) = (text.split()[1] for text in status.read_text().splitlines() if text.startswith(f"{line}:"))
    return int(amount) * 1024


def peak_of(process: int) -> int:
    """Most memory that another process has held so far, in bytes; Linux alone says it, elsewhere 0."""
    status = Path(f"/proc/{process}/status")
    return memory("VmHWM", status) if status.exists() else 0


def peak() -> int:
    """Most memory held so far; Linux says it of this process alone, elsewhere it is since its start."""
    return memory("VmHWM") if _STATUS.exists() else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def settled() -> int:
    """Memory held now, from where the peak is counted again."""
    gc.collect()
    if not _CLEAR.exists():
        return peak()
    _CLEAR.write_text("5")  # the peak starts again from what is held now (proc(5), clear_refs)
    return memory("VmRSS")
