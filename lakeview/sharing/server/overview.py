"""A server's configuration to what its operator sees: what is shared with whom, and which tokens there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import polars as pl

from lakeview.model.clock import Clock
from lakeview.sharing.server.catalogue import Catalogue
from lakeview.sharing.server.config_file import read_settings
from lakeview.sharing.server.settings import Settings, TableEntry
from lakeview.sharing.server.tokens import TokenFile, endpoint_of, new_profile

_MOMENT = pl.Datetime("us", "UTC")

SHARED = pl.Schema(
    {
        "share": pl.String(), "schema": pl.String(), "table": pl.String(), "location": pl.String(),
        "history": pl.String(), "view": pl.String(), "recipients": pl.String(),
    }
)  # fmt: skip
"""One row a table. `history`: how much of its past is shared, in words; `view`: what of the table is shared, null for
all of it; `recipients`: who may read it, by name."""

TOKENS = pl.Schema(
    {"recipient": pl.String(), "id": pl.String(), "state": pl.String(), "created": _MOMENT, "expires": _MOMENT}
)
"""One row a token, none of them the token itself. `state`: live, expired or revoked; `expires` null: never."""

RECIPIENTS = pl.Schema(
    {"recipient": pl.String(), "shares": pl.String(), "state": pl.String(), "live_tokens": pl.Int64()}
)
"""`state`: blocked, reads (a live token), or no token."""


@dataclass(frozen=True)
class ShareConfiguration:
    """One configuration, as its file was when it was read. `path`: the file; `warnings`: what in it has no effect."""

    path: Path
    settings: Settings
    warnings: list[str]

    @staticmethod
    def read(path: str) -> ShareConfiguration:
        """InvalidRequestError for a file that is no configuration."""
        return ShareConfiguration(Path(path), *read_settings(Path(path)))

    @property
    def endpoint(self) -> str:
        """Where clients reach the server."""
        return endpoint_of(self.settings)

    def shared_tables(self) -> pl.DataFrame:
        """SHARED, in the configuration's order."""
        catalogue = Catalogue(self.settings)
        grants = {name: {s.name for s in catalogue.shares(r)} for name, r in catalogue.recipients.items()}
        rows = [
            (
                place.share.name, place.schema.name, place.table.name, place.table.location,
                _history(place.table), _view(place.table),
                ", ".join(name for name, shares in grants.items() if place.share.name in shares),
            )
            for place in catalogue.tables()
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=SHARED, orient="row")

    def tokens(self, clock: Clock) -> pl.DataFrame:
        """TOKENS, oldest first. InvalidRequestError if their file is none."""
        if self.settings.tokens is None:
            return pl.DataFrame(schema=TOKENS)
        now = clock()
        tokens = TokenFile(Path(self.settings.tokens), clock).tokens()
        rows = [(t.recipient, t.id, t.state(now), t.created, t.expires) for t in tokens]
        return pl.DataFrame(rows, schema=TOKENS, orient="row")

    def recipients(self, clock: Clock) -> pl.DataFrame:
        """RECIPIENTS, in the configuration's order; `bearer` stands for the one token of `authorization`."""
        live = dict(self.tokens(clock).filter(state="live").group_by("recipient").len().iter_rows())
        rows = []
        for name, recipient in Catalogue(self.settings).recipients.items():
            count = live.get(name, 0)
            has_one = count or name not in {r.name for r in self.settings.recipients}
            state = "blocked" if recipient.blocked else "reads" if has_one else "no token"
            rows.append((name, ", ".join(recipient.shares), state, count))
        return pl.DataFrame(rows, schema=RECIPIENTS, orient="row")

    def new_profile(self, recipient: str, life: timedelta | None, clock: Clock) -> bytes:
        """A new token for a recipient, as the profile file to send; it is kept nowhere else.

        InvalidRequestError if there is no such recipient, no file for tokens, or two live ones already.
        """
        return new_profile(self.path, self.settings, recipient, clock, lambda book: book.create(recipient, life))[0]


def _history(table: TableEntry) -> str:
    if table.view is not None or not table.history_shared:
        return "latest version only"
    return f"from v{table.start_version} on" if table.start_version else "all versions"


def _view(table: TableEntry) -> str | None:
    if table.view is None:
        return None
    columns = "all columns" if table.view.columns is None else ", ".join(table.view.columns)
    return columns if table.view.where is None else f"{columns} where {table.view.where}"
