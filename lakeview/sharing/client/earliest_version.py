"""A shared table to what its server gives of its past: the first version that may be read, found by asking."""

from __future__ import annotations

import polars as pl

from lakeview.model.errors import SharingError, VersionNotFoundError
from lakeview.model.findings import Finding, Severity
from lakeview.model.frames import VERSIONS
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.profile import TableName
from lakeview.sharing.client.state import head_of

_MAX_VERSIONS = 1_000
"""Versions that are listed at most: a server tells nothing about each of them."""


def shared_versions(client: SharingClient, table: TableName, latest: int, *, look: bool) -> pl.DataFrame:
    """VERSIONS, newest first, at most a thousand; their commit times are not shared. With `look=False` nothing is
    requested, and `readable` is null."""
    numbers = range(latest, max(-1, latest - _MAX_VERSIONS), -1)
    if not look:
        return pl.DataFrame([(v, None, None, None) for v in numbers], schema=VERSIONS, orient="row")
    shared, reason = first_version(client, table, latest)
    first = latest if shared is None else shared
    rows = [(v, None, v >= first, None if v >= first else reason) for v in numbers]
    return pl.DataFrame(rows, schema=VERSIONS, orient="row")


def history_findings(client: SharingClient, table: TableName, latest: int) -> list[Finding]:
    """What of the past is not shared, in the server's words."""
    first, reason = first_version(client, table, latest)
    if reason is None:
        return []
    return [
        Finding(
            "history-partly-shared",
            Severity.NOTE,
            "Its history is not shared" if first is None else "Only a part of its history is shared",
            reason,
            remedy="ask the data provider, if earlier versions are needed",
            page="timeline",
        )
    ]


def first_version(client: SharingClient, table: TableName, latest: int) -> tuple[int | None, str | None]:
    """The first version that the server gives, None if it gives none by its number; and why not those before.

    Found by halving: about ten requests, one where no history is shared. Nothing is cached: grants change.
    """
    reason = _refusal(client, table, latest)
    if reason is not None:
        return None, reason
    low, high = max(0, latest - _MAX_VERSIONS + 1), latest
    reason = _refusal(client, table, low) if low < high else None
    if reason is None:
        return low, None
    while high - low > 1:
        middle = (low + high) // 2
        refusal = _refusal(client, table, middle)
        if refusal is None:
            high = middle
        else:
            low, reason = middle, refusal
    return high, reason


def _refusal(client: SharingClient, table: TableName, version: int) -> str | None:
    """Why the server gives no such version, None if it does."""
    try:
        head_of(client, table, version)
    except VersionNotFoundError as error:
        cause = error.__cause__
        return cause.message if isinstance(cause, SharingError) else error.message
    return None
