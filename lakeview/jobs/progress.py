"""Where a job is, and how far."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is: its state, what it does now, its tasks until now and those of them that are complete."""

    state: State
    step: str = ""
    tasks: int = 0
    completed_tasks: int = 0

    @property
    def share(self) -> float:
        """The share of its tasks that are complete, 0 to 1; there may be more tasks later."""
        return min(self.completed_tasks / self.tasks, 1.0) if self.tasks else 0.0

    @property
    def text(self) -> str:
        """One line, such as `values of all columns: 12 of 40 tasks`."""
        if self.state is State.WAITING:
            return "waiting for other jobs to end"
        return f"{self.step}: {self.completed_tasks:,} of {self.tasks:,} tasks" if self.tasks else self.step
