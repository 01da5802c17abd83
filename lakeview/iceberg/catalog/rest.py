"""A REST catalog asked for where a table's metadata lies, or to change a table (Iceberg REST catalog specification,
loadTable and updateTable).

pyiceberg's own loading of a table is not used: it refuses metadata that its model does not know, and takes the class
that opens files from the table's properties, which any writer of the table may set.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import AuthorizationExpiredError, NoSuchTableError, ServerError, UnauthorizedError
from requests import HTTPError, Session

_SECONDS = (10, 60)
"""How long a connection and an answer may take: pyiceberg itself waits for ever."""

_OK, _CONFLICT = 200, 409
"""The status of a change that is made, and of one whose requirements are not met."""

_REFUSALS = frozenset((400, 401, 403, 404, 405, 406, 410, 411, 413, 414, 415, 419, 422, 429))
"""Statuses that say that a change is not made. Others leave it open: 408 of a proxy, or a redirect, which is not
followed, since what answers there was asked another thing."""


class StorageCredential(msgspec.Struct, frozen=True):
    """Settings of a store for the places below a prefix."""

    prefix: str
    config: dict[str, Any]


class LoadedTable(msgspec.Struct, frozen=True, rename="kebab"):
    """What loadTable answers, without the metadata: that is read from its file."""

    metadata_location: str | None = None
    config: dict[str, Any] = {}
    storage_credentials: list[StorageCredential] = []

    def store_properties(self) -> Mapping[str, Any]:
        """Settings of the table's store; credentials of the longest fitting prefix take precedence."""
        place = self.metadata_location or ""
        fitting = [c for c in self.storage_credentials if place.startswith(c.prefix)]
        return {**self.config, **max(fitting, key=lambda c: len(c.prefix)).config} if fitting else self.config


class LocatingRestCatalog(RestCatalog):
    """pyiceberg's REST catalog, whose requests end in time, which tells where a table is without reading it,
    and changes one without its model."""

    def locate(self, names: Sequence[str]) -> LoadedTable:
        """Where a table's metadata lies. One request; a token that ran out is renewed once."""
        try:
            return self._load_location(names)
        except (AuthorizationExpiredError, UnauthorizedError):
            self._refresh_token()
            return self._load_location(names)

    def _load_location(self, names: Sequence[str]) -> LoadedTable:
        parts = self._split_identifier_for_path(tuple(names))
        # only the location is wanted: snapshots that no branch or tag names need not be sent
        answer = self._session.get(
            self.url("namespaces/{namespace}/tables/{table}", **parts), params={"snapshots": "refs"}
        )
        try:
            answer.raise_for_status()
        except HTTPError as error:
            _handle_non_200_response(error, {404: NoSuchTableError})
        return msgspec.json.decode(answer.content, type=LoadedTable)

    def change(self, names: Sequence[str], change: Mapping[str, Any]) -> bool:
        """Requirements and updates of a table; false if a requirement is not met. A token that ran out is renewed
        once: such a request was not looked at."""
        try:
            return self._post_change(names, change)
        except (AuthorizationExpiredError, UnauthorizedError):
            self._refresh_token()
            return self._post_change(names, change)

    def _post_change(self, names: Sequence[str], change: Mapping[str, Any]) -> bool:
        parts = self._split_identifier_for_path(tuple(names))
        body = {"identifier": {"namespace": list(names[:-1]), "name": names[-1]}, **change}
        answer = self._session.post(
            self.url("namespaces/{namespace}/tables/{table}", **parts),
            data=msgspec.json.encode(body),
            headers={"Content-Type": "application/json"},
            allow_redirects=False,
        )
        if answer.status_code in (_OK, _CONFLICT):
            return answer.status_code == _OK
        if answer.status_code not in _REFUSALS:
            raise ServerError(f"it answered with the status {answer.status_code}")
        try:
            answer.raise_for_status()
        except HTTPError as error:
            _handle_non_200_response(error, {404: NoSuchTableError})
        raise AssertionError("unreachable: a status that refuses raises")

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.request = partial(session.request, timeout=_SECONDS)  # type: ignore[method-assign]  # of this object
        return session
