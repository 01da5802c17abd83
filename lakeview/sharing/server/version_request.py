"""What a request asks of a table to one of its versions, within what is shared of its past."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeview.sharing.server.catalogue import Place
from lakeview.sharing.server.refusals import bad_parameter
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.sharing.server.source import Source
from lakeview.sharing.server.sources import Sources


def require_history(place: Place) -> None:
    """400 unless the table is shared with its history; a view never is. Needs no request to the table's store.

    The reference server's words, which clients match, and its order: before a timestamp is parsed.
    """
    if not _history_shared(place):
        raise bad_parameter(
            "Reading table by version or timestamp is not supported because history sharing is not enabled on table: "
            f"{place.full_name}"
        )


def require_changes(place: Place) -> None:
    """400 unless the table's changes may be asked for: they are part of its history. In the reference server's words,
    whether or not the table records a change data feed."""
    if not _history_shared(place):
        raise bad_parameter(f"cdf is not enabled on table {place.full_name}")


def _history_shared(place: Place) -> bool:
    return place.table.history_shared and place.table.view is None


@dataclass(frozen=True)
class RequestedTable:
    """A table as one request sees it: open, and its latest version at that moment. All methods block."""

    place: Place
    sources: Sources
    source: Source
    latest: int

    @staticmethod
    def of(place: Place, sources: Sources) -> RequestedTable:
        """Open the table and look for newer versions. Errors of `lakeview.model.errors`."""
        return RequestedTable(place, sources, *sources.current(sources.of(place.table)))

    def version(self, version: int | None, moment: datetime | None) -> int:
        """The version that a number or a timestamp asks for, the latest without either. 400 outside what is shared."""
        if version is None and moment is None:
            return self.latest
        found = self.source.version_at(moment) if version is None and moment is not None else version
        assert found is not None
        return self.within(found)

    def within(self, version: int) -> int:
        """A version that is shared. 400 for any other."""
        self.source.require_shared(version, self.place.table.start_version, self.latest)
        return version

    def shared(self, version: int) -> SharedVersion:
        """One version, loaded or from the cache."""
        return self.sources.version(self.source, version)

    def past(self, version: int) -> SharedVersion:
        """One version whose data files all exist. 400 if some are gone."""
        if version != self.latest:
            self.source.require_files(version)
        return self.shared(version)
