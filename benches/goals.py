"""What is measured against whom, and how many times less lakeview is to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LARGE = 1_000_000
"""Files from which the goals for large tables hold; below, lakeview must not be slower."""

MANY_COMMITS = 5_000


@dataclass(frozen=True)
class Peer:
    """An engine's job beside ours. Goals by kind of table, the empty name for all kinds; none: for information.

    `small_goal`: what is asked for on tables below those that the goals are for; None: nothing. `least`: from how many
    on the goals hold; without it as for logs.
    """

    engine: str
    job: str
    label: str
    goals: Mapping[str, float] | None = None
    memory_goal: float | None = None
    small_goal: float | None = 1.0
    least: int | None = None

    def goal(self, kind: str, count: int) -> float | None:
        """Times less CPU that are asked for on a table of so many files or commits."""
        if self.goals is None:
            return None
        if count < (self.least or (MANY_COMMITS if kind == "commits" else LARGE)):
            return self.small_goal
        return self.goals.get(kind, self.goals.get("", 1.0))

    def memory(self, kind: str, count: int) -> float | None:
        """Times less memory that are asked for."""
        return self.memory_goal if kind != "commits" and count >= LARGE else None


@dataclass(frozen=True)
class Task:
    """A line of the table for each peer; `ours` is lakeview's job.

    `earlier`: an earlier version is listed. `up_to`: the most files that it is measured with; `brief`: done with every
    layout however many files there are.
    """

    title: str
    ours: str
    peers: tuple[Peer, ...]
    earlier: bool = False
    up_to: int = 10**9
    brief: bool = False
    kinds: tuple[str, ...] = ()

    @property
    def jobs(self) -> list[tuple[str, str]]:
        """What its peers do: engine and job."""
        return [(peer.engine, peer.job) for peer in self.peers]

    def applies(self, kind: str, count: int) -> bool:
        """Whether it is measured on such a table."""
        return (
            count <= self.up_to and (not self.kinds or kind in self.kinds) and (self.brief or not _repeats(kind, count))
        )


def _repeats(kind: str, count: int) -> bool:
    """Layouts that differ little from V1 once a peer takes 20 s for a measurement."""
    return count >= LARGE and kind in ("parts", "v2")


def _delta_rs(job: str, goals: Mapping[str, float], memory: float | None = None) -> Peer:
    return Peer("delta-rs", job, "delta-rs", goals, memory)


_KERNEL = "kernel (polars-deltalake)"
# decoding the leaf columns that a task needs, and nothing else: what a reader on pyarrow cannot go below
_NOT_TWICE_THE_LIMIT = {"": 0.5}

FILE_TASKS = (
    Task(
        "open: protocol and schema",
        "open",
        (_delta_rs("open", {"": 300}), Peer("kernel", "open", _KERNEL, {"": 5})),
        brief=True,
    ),
    Task(
        "list: path, size, partition",
        "list",
        (
            _delta_rs("list", {"": 25}, memory=6),
            Peer("pyarrow", "list", "limit: decoding those columns", _NOT_TWICE_THE_LIMIT, small_goal=None),
        ),
        brief=True,
    ),
    Task("list with records", "records", (_delta_rs("list", {"": 8, "parsed": 25}, memory=6),), brief=True),
    Task("list, one column's statistics", "one column", (_delta_rs("list", {"": 5}),)),
    Task("list, all 18 columns' statistics", "all columns", (_delta_rs("list", {"": 2}),)),
    Task("files of a middle version", "files before", (_delta_rs("files before", {}),), earlier=True, up_to=100_000),
    Task("history of the tail", "history", (_delta_rs("history", {}),), up_to=100_000),
    Task(  # for information: no peer of the kernel's lists more than bare paths
        "list: path, size, partition", "list", (Peer("DuckDB", "list", "kernel (DuckDB), paths only"),),
        up_to=100_000, kinds=("v1",),
    ),
)  # fmt: skip

COMMIT_TASKS = (
    Task("open: protocol and schema", "open", (_delta_rs("open", {}), Peer("kernel", "open", _KERNEL, {}))),
    Task("list: path, size, partition", "list", (_delta_rs("list", {}),)),
    Task("history, cold", "history", (_delta_rs("history", {"": 12}),)),
    Task("history, loaded", "history, loaded", (_delta_rs("history, loaded", {"": 7}),)),
    Task("files of a middle version", "files before", (_delta_rs("files before", {}),), earlier=True),
    Task(
        "trend: every version, all 18 columns",
        "trend",
        (
            Peer("delta-rs", "trend", "delta-rs, extrapolated from 5 versions", {}),
            Peer("lakeview", "list", "one listing of ours, of which it may take 3", {"": 1 / 3}, small_goal=None),
        ),
    ),
    Task(
        "schema of a middle version",
        "schema before",
        (_delta_rs("schema before", {}), Peer("kernel", "schema before", _KERNEL, {})),
    ),
)
