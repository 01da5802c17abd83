"""What stops a stream, of a table of any format: rows that go, other columns, another table."""

from collections.abc import Mapping
from typing import Any

from lakeview.model.errors import InvalidRequestError, VersionNotFoundError


def no_offset(value: Mapping[str, Any]) -> InvalidRequestError:
    """The error for an offset in a checkpoint that a stream of such a table did not write."""
    return InvalidRequestError(
        f"{dict(value)!r} is no offset of a lakeview stream",
        fix="give the query a checkpoint location of its own",
        place="checkpointLocation",
    )


def other_columns(version: str, address: str) -> InvalidRequestError:
    """The error for a version that changes the columns."""
    return InvalidRequestError(
        f"{version} of {address} has other columns than the stream",
        fix="start the query again: it goes on from its checkpoint with the new columns",
        place=version,
        kind="schema-change",
    )


def removed_rows(version: str, address: str, operation: str | None, *, adds: bool) -> InvalidRequestError:
    """The error for a version that removes rows; `adds`: and adds others."""
    return InvalidRequestError(
        f"{version} of {address} takes rows away"
        f"{' and adds others' if adds else ''} ({operation or 'no operation named'}), and a stream only brings rows",
        fix="set skipChangeCommits to leave such commits out, ignoreChanges to read what they add (rows that were "
        "only moved come again)" + ("" if adds else ", or ignoreDeletes to pass over commits that only remove"),
        place=version,
        kind="change-commit",
    )


def taken_back(address: str, last: int, latest: int) -> VersionNotFoundError:
    """The error for a table whose log ends before the version `last` that a stream has read."""
    return VersionNotFoundError(
        f"{address} is at version {latest}, and the stream has read version {last}: commits were taken back",
        fix="start again with a new checkpoint location, or set failOnDataLoss to false to go on with later versions",
        place=f"version {last}",
    )


def other_table(address: str, before: str, now: str) -> InvalidRequestError:
    """The error for a table that took the place of the one that a stream began with."""
    return InvalidRequestError(
        f"{address} is another table ({now}) than the one that the stream began with ({before})",
        fix="start again with a new checkpoint location",
        place=address,
        kind="other-table",
    )
