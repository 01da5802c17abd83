"""A shared table to what its server gives of its past: the first version that may be read, found by asking."""

from __future__ import annotations

import polars as pl

from lakeview.model.errors import SharingError, VersionNotFoundError
from lakeview.model.findings import Finding, Severity
from lakeview.model.frames import VERSIONS
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.profile import TableName
from lakeview.sharing.client.state import head_of

_MOST_VERSIONS = 1_000
"""Versions that are listed at most: a server tells nothing about each of them."""


class SharedPast:
    """The earlier versions of one table, as far as they are shared. Nothing is remembered: grants change."""

    def __init__(self, client: SharingClient, table: TableName) -> None:
        self._client = client
        self._table = table

    def versions(self, latest: int, *, look: bool = True) -> pl.DataFrame:
        """VERSIONS, newest first, at most a thousand; when they were committed is not told."""
        numbers = range(latest, max(-1, latest - _MOST_VERSIONS), -1)
        if not look:
            return pl.DataFrame([(v, None, None, None) for v in numbers], schema=VERSIONS, orient="row")
        shared, reason = self.first(latest)
        first = latest if shared is None else shared
        rows = [(v, None, v >= first, None if v >= first else reason) for v in numbers]
        return pl.DataFrame(rows, schema=VERSIONS, orient="row")

    def findings(self, latest: int) -> list[Finding]:
        """What of the past is not shared, in the server's words."""
        first, reason = self.first(latest)
        if reason is None:
            return []
        return [
            Finding(
                "history-partly-shared",
                Severity.NOTE,
                "Its history is not shared" if first is None else "Only a part of its history is shared",
                reason,
                remedy="ask whoever shares the table, if earlier versions are needed",
                page="timeline",
            )
        ]

    def first(self, latest: int) -> tuple[int | None, str | None]:
        """The first version that the server gives, None if it gives none by its number; and why not those before.

        Found by halving: about ten requests, one where no history is shared.
        """
        reason = self._refusal(latest)
        if reason is not None:
            return None, reason
        low, high = max(0, latest - _MOST_VERSIONS + 1), latest
        reason = self._refusal(low) if low < high else None
        if reason is None:
            return low, None
        while high - low > 1:
            middle = (low + high) // 2
            refused = self._refusal(middle)
            if refused is None:
                high = middle
            else:
                low, reason = middle, refused
        return high, reason

    def _refusal(self, version: int) -> str | None:
        """Why the server gives no such version, None if it does."""
        try:
            head_of(self._client, self._table, version)
        except VersionNotFoundError as error:
            told = error.__cause__
            return told.message if isinstance(told, SharingError) else error.message
        return None
