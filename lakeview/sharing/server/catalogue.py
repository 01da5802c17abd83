"""Settings to what a recipient sees: shares, schemas and tables by name in any case, in the configuration's order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from lakeview.sharing.server.refusals import bad_parameter, not_there
from lakeview.sharing.server.settings import Recipient, SchemaEntry, Settings, ShareEntry, TableEntry

BEARER = Recipient("bearer", ["*"], id="bearer")
"""Who shows the one token of `authorization`."""


@dataclass(frozen=True, slots=True)
class Place:
    """A table in its schema and share."""

    share: ShareEntry
    schema: SchemaEntry
    table: TableEntry

    @property
    def id(self) -> str:
        """The table's id."""
        assert self.table.id is not None
        return self.table.id

    @property
    def full_name(self) -> str:
        """share.schema.table, as configured."""
        return f"{self.share.name}.{self.schema.name}.{self.table.name}"

    @property
    def share_key(self) -> str:
        """Its id and what is shared under it: a page token of a table is none for the view that takes its place."""
        what = hashlib.sha256(repr((self.table.location, self.table.view)).encode()).hexdigest()
        return f"{self.id}/{what[:12]}"

    @property
    def _has_history(self) -> bool:
        return self.table.history_shared and self.table.view is None

    def require_history(self) -> None:
        """400 unless the table is shared with its history; a view never is. Needs no request to the table's store.

        The reference server's words, which clients match, and its order: before a timestamp is parsed.
        """
        if not self._has_history:
            raise bad_parameter(
                "Reading table by version or timestamp is not supported because history sharing is not enabled on "
                f"table: {self.full_name}"
            )

    def require_changes(self) -> None:
        """400 unless the table's changes may be asked for: they are part of its history. In the reference server's
        words, whether or not the table records a change data feed."""
        if not self._has_history:
            raise bad_parameter(f"cdf is not enabled on table {self.full_name}")


class Catalogue:
    """What is shared with whom. Immutable."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        recipients = [*settings.recipients, *([BEARER] if settings.authorization.bearer_token else [])]
        self.recipients = {r.name: r for r in recipients}
        self.recipients_by_id = {r.id: r for r in recipients}
        """By what stands in signed URLs."""
        self._shares = {s.name.lower(): s for s in settings.shares}
        self._tables = {
            place.id: place
            for share in settings.shares
            for schema in share.schemas
            for place in (Place(share, schema, t) for t in schema.tables)
        }

    def shares(self, recipient: Recipient) -> list[ShareEntry]:
        """The shares a recipient may read."""
        granted = {name.lower() for name in recipient.shares}
        return [s for s in self.settings.shares if "*" in granted or s.name.lower() in granted]

    def share(self, recipient: Recipient, name: str) -> ShareEntry:
        """One share. 404 if it is not there, or not granted: the answer is the same."""
        found = self._shares.get(name.lower())
        if found is None or found not in self.shares(recipient):
            raise not_there("Share", name)
        return found

    def schema(self, recipient: Recipient, share: str, name: str) -> tuple[ShareEntry, SchemaEntry]:
        """One schema; 404 as above."""
        granted = self._granted_share(recipient, share)
        found = [] if granted is None else [c for c in granted.schemas if c.name.lower() == name.lower()]
        if granted is None or not found:
            raise not_there("Share/Schema", f"{share}/{name}")
        return granted, found[0]

    def table(self, recipient: Recipient, share: str, schema: str, name: str) -> Place:
        """One table; 404 as above."""
        granted = self._granted_share(recipient, share)
        for found in () if granted is None else granted.schemas:
            if granted is not None and found.name.lower() == schema.lower():
                for table in found.tables:
                    if table.name.lower() == name.lower():
                        return Place(granted, found, table)
        raise not_there("Share/Schema/Table", f"{share}/{schema}/{name}")

    def table_of(self, recipient: Recipient, number: str) -> Place | None:
        """A table by its id, if the recipient may read its share."""
        found = self._tables.get(number)
        return found if found is not None and found.share in self.shares(recipient) else None

    def tables(self) -> Sequence[Place]:
        """Every table."""
        return list(self._tables.values())

    def _granted_share(self, recipient: Recipient, name: str) -> ShareEntry | None:
        found = self._shares.get(name.lower())
        return found if found is not None and found in self.shares(recipient) else None
