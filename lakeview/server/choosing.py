"""What a request asks of a table to one of its versions, within what is shared of its past."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeview.server.catalogue import Place
from lakeview.server.refusals import bad_parameter
from lakeview.server.shared_version import SharedVersion
from lakeview.server.source import Source
from lakeview.server.sources import Sources


def require_history(place: Place) -> None:
    """400 unless the table is shared with its history. Clients know the refusal by its first words."""
    if not place.shares_history:
        raise bad_parameter(
            "Reading table by version or timestamp is not supported because history sharing is not enabled on table: "
            f"{place.name}"
        )


@dataclass(frozen=True)
class Asked:
    """A table as one request sees it: open, and its latest version at that moment. All methods block."""

    place: Place
    sources: Sources
    source: Source
    latest: int

    @staticmethod
    def of(place: Place, sources: Sources) -> Asked:
        """Open the table and look for newer versions. Errors of `lakeview.errors`."""
        opened = sources.of(place.table)
        return Asked(place, sources, *sources.current(opened))

    def version(self, version: int | None, moment: datetime | None) -> int:
        """The version a number or a moment asks for, the latest without either. 400 outside what is shared."""
        if version is None and moment is None:
            return self.latest
        require_history(self.place)
        found = self.source.version_at(moment) if version is None and moment is not None else version
        assert found is not None
        return self.within(found)

    def within(self, version: int) -> int:
        """A version that is shared. 400 for any other."""
        self.source.require_shared(version, self.place.table.start_version, self.latest)
        return version

    def shared(self, version: int) -> SharedVersion:
        """One version, loaded or remembered."""
        return self.sources.version(self.source, version)

    def past(self, version: int) -> SharedVersion:
        """One version whose data files are all there still. 400 if some are gone."""
        if version != self.latest:
            self.source.require_files(version)
        return self.shared(version)
