"""Page and refresh tokens: where an answer goes on, bound to who asked what of which table."""

from __future__ import annotations

import msgspec

from lakeview.sharing.server.context import Context
from lakeview.sharing.server.refusals import bad_parameter
from lakeview.sharing.server.source import CommitRow


class Position(msgspec.Struct, frozen=True, array_like=True):
    """Where an answer of several pages goes on. `checksum` is that of everything else the request asked.

    `version`, `end`: what the answer is about, whatever has been committed since; `expires` in seconds since 1970.
    `commit`: of changes, the version from which on `row` counts, so that a page reads no commit of the pages before it;
    negative: from `version` on.
    """

    table: str
    recipient: str
    checksum: str
    version: int
    end: int
    row: int
    expires: int
    commit: int = -1

    def begin(self, start: int) -> CommitRow:
        """Where a page of the changes from a version on begins."""
        return CommitRow(start if self.commit < 0 else self.commit, self.row)


def seal_position(context: Context, purpose: str, position: Position) -> str:
    """The token for a position."""
    return context.hub.sealer.seal(purpose, position)


def open_position(context: Context, purpose: str, token: str | None, table: str, checksum: str) -> Position | None:
    """The position in a token, None without one. 400 for one that is none of ours, of another table or recipient, made
    for another request, or too old."""
    if not token:
        return None
    name = "page token" if purpose == "pages" else "refresh token"
    found = context.hub.sealer.open(purpose, token, Position)
    if found is None or found.recipient != context.caller.recipient.name:
        raise bad_parameter(f"Error decoding the {name}: it is none of this server's")
    if found.table != table:
        raise bad_parameter(f"The table specified in the {name} does not match the table being queried")
    if found.expires <= context.hub.seconds():
        raise bad_parameter(f"The {name} has expired. Please restart the query.")
    if found.checksum != checksum:
        raise bad_parameter(f"Query parameter mismatch detected for the {name}: go on with what you began with")
    return found
