"""A REST catalog asked for where a table's metadata lies, or to change a table (Iceberg REST catalog specification,
loadTable and updateTable).

pyiceberg's own loading of a table is not used: it refuses metadata that its model does not know, and takes the class
that opens files from the table's properties, which any writer of the table may set.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.auth import AuthManager
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    NoSuchNamespaceError,
    NoSuchTableError,
    ServerError,
    UnauthorizedError,
)
from pyiceberg.utils.properties import property_as_bool
from requests import HTTPError, Response, Session

from lakeview.iceberg.catalog.bounded_http import Allowance, bound_answers
from lakeview.model import limits
from lakeview.model.errors import InvalidRequestError

T = TypeVar("T")
P = TypeVar("P", "NamespacesPage", "TablesPage")

_OK, _CONFLICT = 200, 409
"""The status of a change that is made, and of one whose requirements are not met."""

_REFUSALS = frozenset((400, 401, 403, 404, 405, 406, 410, 411, 413, 414, 415, 419, 422, 429))
"""Statuses that say that a change is not made. Others leave it open: 408 of a proxy, or a redirect, which is not
followed, since what answers there was asked another thing."""

_CLIENT_ONLY = re.compile(
    r"auth|ssl|oauth2-server-uri|rest\.sig.*|client\.profile-name|botocore_session|header\.host", re.IGNORECASE
)
"""Settings that a catalog may not give: pyiceberg imports the class that `auth` names and calls it, and sends the
client's secret to the third one. The others have requests signed with the AWS keys of this machine: for any service,
and with `header.Host` for any host, so that the catalog could send them on, and they would be the user's own."""
_SIGNS = "rest.sigv4-enabled"


class StorageCredential(msgspec.Struct, frozen=True):
    """Settings of a store for the places below a prefix."""

    prefix: str
    config: dict[str, Any]


class LoadedTable(msgspec.Struct, frozen=True, rename="kebab"):
    """What loadTable answers, without the metadata: that is read from its file."""

    metadata_location: str | None = None
    config: dict[str, Any] | None = None
    storage_credentials: list[StorageCredential] | None = None

    def store_properties(self) -> Mapping[str, Any]:
        """Settings of the table's store; credentials of the longest fitting prefix take precedence."""
        place, config = self.metadata_location or "", self.config or {}
        fitting = [c for c in self.storage_credentials or () if place.startswith(c.prefix)]
        return {**config, **max(fitting, key=lambda c: len(c.prefix)).config} if fitting else config


class TableName(msgspec.Struct, frozen=True):
    """A table in a listing."""

    namespace: list[str]
    name: str


class NamespacesPage(msgspec.Struct, frozen=True, rename="kebab"):
    """What listNamespaces answers."""

    namespaces: list[list[str]]
    next_page_token: str | None = None


class TablesPage(msgspec.Struct, frozen=True, rename="kebab"):
    """What listTables answers."""

    identifiers: list[TableName]
    next_page_token: str | None = None


class LocatingRestCatalog(RestCatalog):
    """pyiceberg's REST catalog, whose answers are limited, which tells where a table is without reading it,
    and changes one without its model."""

    def __init__(self, name: str, **properties: str) -> None:
        self.allowance = Allowance(name)
        super().__init__(name, **properties)

    def locate(self, names: Sequence[str]) -> LoadedTable:
        """Where a table's metadata lies. One request."""
        parts = self._split_identifier_for_path(tuple(names))
        # only the location is wanted: snapshots that no branch or tag names need not be sent
        answer = self._get(
            "namespaces/{namespace}/tables/{table}".format(**parts), {"snapshots": "refs"}, NoSuchTableError
        )
        return msgspec.json.decode(answer, type=LoadedTable)

    def list_tables(self, namespace: str | tuple[str, ...]) -> list[tuple[str, ...]]:
        """The tables of a namespace; as many requests as the catalog has pages of them."""
        path = f"namespaces/{self._encode_namespace_path(self.identifier_to_tuple(namespace))}/tables"
        return [
            (*table.namespace, table.name) for page in self._pages(path, {}, TablesPage) for table in page.identifiers
        ]

    def list_namespaces(self, namespace: str | tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        """The namespaces inside another, or of the catalog; requests as of `list_tables`."""
        names = self.identifier_to_tuple(namespace)
        parent = {"parent": self._encode_namespace_path(names)} if names else {}
        return [tuple(inner) for page in self._pages("namespaces", parent, NamespacesPage) for inner in page.namespaces]

    def _pages(self, path: str, parameters: Mapping[str, str], page_type: type[P]) -> Iterator[P]:
        """All pages of a listing. InvalidRequestError for one that does not end."""
        query = dict(parameters)
        if (size := self.properties.get("rest-page-size")) is not None:
            query["pageSize"] = str(size)
        tokens: set[str] = set()
        while True:
            page = msgspec.json.decode(self._get(path, query, NoSuchNamespaceError), type=page_type)
            yield page
            token = page.next_page_token
            if not token:
                return
            if token in tokens or len(tokens) == limits.CATALOG_PAGES:
                raise InvalidRequestError(
                    f"a listing of the catalog {self.name} does not end: a page is named again, "
                    f"or there are more than {limits.CATALOG_PAGES:,}",
                    fix="open tables by their names, or ask the operator of the catalog",
                    place=self.name,
                    kind="bad-catalog",
                )
            tokens.add(token)
            query["pageToken"] = token

    def _get(self, path: str, query: Mapping[str, str], missing: type[Exception]) -> bytes:
        """The answer to a question; `missing`: what the status 404 raises."""

        def ask() -> bytes:
            answer = self._session.get(self.url("") + path, params=query)
            _raise_refusal(answer, missing)
            return answer.content

        return self._renewing(ask)

    def _renewing(self, ask: Callable[[], T]) -> T:
        """An answer, where a token that ran out is renewed once: such a request was not looked at."""
        try:
            return ask()
        except (AuthorizationExpiredError, UnauthorizedError):
            self._refresh_token()
            return ask()

    def change(self, names: Sequence[str], change: Mapping[str, Any]) -> bool:
        """Requirements and updates of a table; false if a requirement is not met."""
        return self._renewing(lambda: self._post_change(names, change))

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
        _raise_refusal(answer, NoSuchTableError)
        raise AssertionError("unreachable: a status that refuses raises")

    def _fetch_config(self) -> None:
        own = dict(self.properties)
        super()._fetch_config()
        # a null takes a setting away, as in Iceberg's own client
        settings = {n: v for n, v in self.properties.items() if v is not None and not _CLIENT_ONLY.fullmatch(n)}
        if odd := [
            name for name, value in settings.items() if value is not own.get(name) and not isinstance(value, str)
        ]:
            raise self._bad_setting(f"gives settings that are no texts: {', '.join(map(repr, sorted(odd)))}")
        self.uri = settings.setdefault("uri", own["uri"])
        self.properties = settings | {name: value for name, value in own.items() if _CLIENT_ONLY.fullmatch(name)}
        if self._is_signed and urlsplit(self.uri)[:2] != urlsplit(own["uri"])[:2]:
            raise self._bad_setting(
                "gives another server, for which requests would be signed with the AWS keys of here"
            )

    def _bad_setting(self, claim: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"the catalog {self.name} {claim}",
            fix="ask the operator of the catalog",
            place=self.name,
            kind="bad-catalog",
        )

    @property
    def _is_signed(self) -> bool:
        return property_as_bool(self.properties, _SIGNS, False)

    def _create_session(self) -> Session:
        session = super()._create_session()
        if self._is_signed:
            session.max_redirects = 0  # a request would be signed for where it leads
        bound_answers(session, self.allowance)
        return session

    def _create_legacy_oauth2_auth_manager(self, session: Session) -> AuthManager:
        bound_answers(session, self.allowance)  # which asks for a token at once
        return super()._create_legacy_oauth2_auth_manager(session)


def _raise_refusal(answer: Response, missing: type[Exception]) -> None:
    """Raises pyiceberg's error for a status that is one; `missing`: that for 404."""
    try:
        answer.raise_for_status()
    except HTTPError as error:
        _handle_non_200_response(error, {404: missing})
