"""Settings to what a recipient sees: shares, schemas and tables by name in any case, in the configuration's order."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakeview.sharing.server.refusals import bad_parameter, not_there
from lakeview.sharing.server.settings import Recipient, SchemaEntry, Settings, ShareEntry, TableEntry

E = TypeVar("E", ShareEntry, SchemaEntry, TableEntry)

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
        self._tables = {
            place.id: place
            for share in settings.shares
            for schema in share.schemas
            for place in (Place(share, schema, t) for t in schema.tables)
        }

    def shares(self, recipient: Recipient) -> list[ShareEntry]:
        """The shares a recipient may read."""
        names = {name.lower() for name in recipient.shares}
        return [s for s in self.settings.shares if "*" in names or s.name.lower() in names]

    def share(self, recipient: Recipient, name: str) -> ShareEntry:
        """One share. 404 if it is not there, or not granted: the answer is the same."""
        share = _by_name(self.shares(recipient), name)
        if share is None:
            raise not_there("Share", name)
        return share

    def schema(self, recipient: Recipient, share: str, name: str) -> tuple[ShareEntry, SchemaEntry]:
        """One schema; 404 as above."""
        entry = _by_name(self.shares(recipient), share)
        schema = None if entry is None else _by_name(entry.schemas, name)
        if entry is None or schema is None:
            raise not_there("Share/Schema", f"{share}/{name}")
        return entry, schema

    def table(self, recipient: Recipient, share: str, schema: str, name: str) -> Place:
        """One table; 404 as above."""
        entry = _by_name(self.shares(recipient), share)
        group = None if entry is None else _by_name(entry.schemas, schema)
        table = None if group is None else _by_name(group.tables, name)
        if entry is None or group is None or table is None:
            raise not_there("Share/Schema/Table", f"{share}/{schema}/{name}")
        return Place(entry, group, table)

    def table_of(self, recipient: Recipient, number: str) -> Place | None:
        """A table by its id, if the recipient may read its share."""
        place = self._tables.get(number)
        return place if place is not None and place.share in self.shares(recipient) else None

    def tables(self) -> Sequence[Place]:
        """Every table."""
        return list(self._tables.values())


def _by_name(entries: Iterable[E], name: str) -> E | None:
    return next((entry for entry in entries if entry.name.lower() == name.lower()), None)
