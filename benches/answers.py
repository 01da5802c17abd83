"""A job of an engine, and what two of them say of a table to where they differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Answer = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """`answer(run(prepare(address)))`, of which only `run` is measured; `times`: what one run stands for."""

    run: Callable[[Any], Any]
    answer: Callable[[Any], Answer]
    prepare: Callable[[str], Any] = str
    times: Callable[[str], float] = lambda _: 1.0


def disagreements(ours: Answer, theirs: Answer) -> list[str]:
    """Figures that both tell and that differ; no figure in common is one too, unless only rows were decoded."""
    common = ours.keys() & theirs.keys()
    if not common and "rows decoded" not in theirs:
        return [f"nothing to compare {sorted(ours)} with {sorted(theirs)}"]
    return [f"{name}: {ours[name]}, they {theirs[name]}" for name in sorted(common) if ours[name] != theirs[name]]
