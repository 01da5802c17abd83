"""What passes between a program and its Spark process: one JSON object a line, in both directions."""

from collections.abc import Mapping
from typing import Any

import msgspec

from lakeview.model.errors import InvalidRequestError, LakeviewError


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job: its kind, one of `lakeview.spark.jobs.KINDS`, and what it is about.

    Without `version` the latest; without `columns` all of them. `storage_options` of the table go to the process
    through a pipe, and no repr shows them. InvalidRequestError for one that is an object.
    """

    kind: str
    address: str
    version: int | None = None
    where: str | None = None
    columns: tuple[str, ...] | None = None
    storage_options: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        for name, value in self.storage_options.items():
            try:
                msgspec.to_builtins(value)
            except TypeError:
                raise InvalidRequestError(
                    f"the storage option {name} is {type(value).__name__}, which another process cannot be given",
                    fix="give text, a number, true or false, or a mapping of them",
                    place=name,
                ) from None

    def __hash__(self) -> int:
        return hash((self.kind, self.address, self.version, self.where, self.columns))

    def __repr__(self) -> str:
        return f"Request({self.kind!r}, {self.address!r}, version={self.version}, where={self.where!r})"


class Run(msgspec.Struct, frozen=True, tag=True):
    """Run a job. `user`: whose jobs share a pool of Spark's scheduler."""

    id: str
    user: str
    request: Request


def require_sendable(run: Run) -> None:
    """InvalidRequestError for a job too large to send to its process, which would end the jobs of others."""
    try:
        msgspec.json.decode(msgspec.json.encode(run), type=Run)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidRequestError(
            f"the job {run.request!r} cannot be given to its process: {error}",
            fix="give address, user and where as text, version as a number, columns as a list of texts",
            place=repr(run.request.address),
            kind="bad-job",
        ) from error


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Cancel a job that may be running."""

    id: str


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The session has started: jobs run."""


class Progress(msgspec.Struct, frozen=True, tag=True):
    """How far a job is: what it does, and the tasks of its Spark jobs until now."""

    id: str
    step: str
    tasks: int = 0
    completed_tasks: int = 0


class Result(msgspec.Struct, frozen=True, tag=True):
    """A job has ended: its rows are in this Arrow file; with them what was counted."""

    id: str
    path: str
    counts: dict[str, int]


class Failure(msgspec.Struct, frozen=True, tag=True):
    """A job has ended by an error: what `error_record` makes of it."""

    id: str
    error: dict[str, str | None]


class Cancellation(msgspec.Struct, frozen=True, tag=True):
    """A job has ended because it was cancelled."""

    id: str


ToWorker = Run | Cancel
Report = Ready | Progress | Result | Failure | Cancellation


class JobCancelledError(LakeviewError):
    """The job was cancelled before it ended."""

    default_kind = "cancelled"
