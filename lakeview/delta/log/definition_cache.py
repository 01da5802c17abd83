"""Versions of commits to their protocol and metaData actions, for commits that were read before."""

from collections.abc import Mapping, Sequence

import msgspec

from lakeview.delta.log.commits import Definition
from lakeview.storage.byte_cache import ByteBoundedCache

_CACHE_BYTES = 16 << 20


class DefinitionCache:
    """The Definition of each commit that was read, None of one that is corrupt. Of commits with a protocol or metaData
    action, which some writers record in every commit, the last used ones, at most 16 MiB of them as JSON."""

    def __init__(self) -> None:
        self._actions = ByteBoundedCache[int, Definition](
            _CACHE_BYTES, lambda actions: len(msgspec.json.encode(actions))
        )
        self._others: dict[int, Definition | None] = {}

    def put(self, definitions: Mapping[int, Definition | None]) -> None:
        """Adds the definitions of commits, by version."""
        for version, definition in definitions.items():
            if definition is None or definition == (None, None):
                self._others[version] = definition
            else:
                self._actions.put(version, definition)

    def of(self, versions: Sequence[int]) -> dict[int, Definition | None]:
        """What is there of these commits, by version."""
        others = {version: self._others[version] for version in versions if version in self._others}
        return others | {v: d for v in versions if v not in others and (d := self._actions.get(v)) is not None}
