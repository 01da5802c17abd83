"""One request on its way: who shows which token, before anything is said about what exists; which table; and what the
audit log will say about it."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

import anyio
import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from lakeview.sharing.protocol.messages import ErrorCode
from lakeview.sharing.server.audit import Entry
from lakeview.sharing.server.catalogue import BEARER, Place
from lakeview.sharing.server.hub import Hub
from lakeview.sharing.server.limits import TOKEN_CHARACTERS
from lakeview.sharing.server.refusals import (
    Refusal,
    bad_parameter,
    forbidden,
    malformed_request,
    missing_authentication,
)
from lakeview.sharing.server.requests import BODY_BYTES
from lakeview.sharing.server.settings import Recipient
from lakeview.sharing.server.source import CommitRow
from lakeview.sharing.server.tokens import digest, find


class Position(msgspec.Struct, frozen=True, array_like=True):
    """Where an answer of several pages goes on. `checksum` is that of everything else the request asked.

    `version`, `end`: what the answer is about, without later commits; `expires` in seconds since 1970.
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

    @property
    def begin(self) -> CommitRow:
        """Where a page of changes begins."""
        return CommitRow(self.version if self.commit < 0 else self.commit, self.row)


@dataclass(slots=True)
class Context:
    """What an endpoint needs. `entry` grows while the request is answered."""

    hub: Hub
    request: Request
    caller: Caller
    entry: Entry
    is_finished: bool = False

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query string; of one given twice the last counts."""
        return self.request.query_params

    def place(self) -> Place:
        """The table that the path names. 404 if it is not there or not granted."""
        names = self.request.path_params
        place = self.hub.catalogue.table(self.caller.recipient, names["share"], names["schema"], names["table"])
        self.record(place)
        return place

    def record(self, place: Place) -> None:
        """Name the table in the audit log."""
        self.entry.share, self.entry.schema, self.entry.table = place.share.name, place.schema.name, place.table.name

    def base_url(self) -> str:
        """Where clients reach this server: as configured, or the address it listens on; never the Host header, which
        a client could set to steer others."""
        settings = self.hub.settings
        if settings.public_url is not None:
            return settings.public_url.rstrip("/")
        server = self.request.scope.get("server") or (settings.host, settings.port)
        scheme = "https" if settings.ssl is not None else "http"
        host = f"[{server[0]}]" if ":" in server[0] else server[0]
        return f"{scheme}://{host}:{server[1]}"

    def finish(self, status: int) -> None:
        """Hand what is known of the request to the audit log, once."""
        audit, self.entry.status = self.hub.audit, status
        if audit is not None and not self.is_finished:
            audit.add(self.entry)
        self.is_finished = True

    async def body(self) -> bytes:
        """The request's body. 400 for one that is too large or does not arrive in time."""
        length = self.request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > BODY_BYTES:
            raise _too_large()
        body = bytearray()
        try:
            with anyio.fail_after(self.hub.settings.limits.stall_seconds):
                async for part in self.request.stream():
                    body += part
                    if len(body) > BODY_BYTES:
                        raise _too_large()
        except TimeoutError as error:
            raise Refusal(408, ErrorCode.MALFORMED_REQUEST, "the body did not arrive in time") from error
        except ClientDisconnect as error:
            raise malformed_request("the body did not arrive") from error
        return bytes(body)

    # -- page and refresh tokens: where an answer goes on, bound to who asked what of which table

    def seal_position(
        self, purpose: str, table: str, checksum: str, version: int, end: int = -1, row: int = 0, commit: int = -1
    ) -> str:
        """The token for a Position; `purpose`: pages or refresh."""
        settings, sealer = self.hub.settings, self.hub.sealer
        life = settings.query_table_page_token_ttl_ms if purpose == "pages" else settings.refresh_token_ttl_ms
        expires = self.hub.seconds() + life // 1000
        recipient = self.caller.recipient.name
        return sealer.seal(purpose, Position(table, recipient, checksum, version, end, row, expires, commit))

    def open_position(self, purpose: str, token: str | None, table: str, checksum: str) -> Position | None:
        """The position in a token, None without one. 400 for one that is none of ours, of another table or recipient,
        made for another request, or too old."""
        if not token:
            return None
        name = "page token" if purpose == "pages" else "refresh token"
        position = self.hub.sealer.open(purpose, token, Position)
        if position is None or position.recipient != self.caller.recipient.name:
            raise bad_parameter(f"Error decoding the {name}: it is none of this server's")
        if position.table != table:
            raise bad_parameter(f"The table specified in the {name} does not match the table being queried")
        if position.expires <= self.hub.seconds():
            raise bad_parameter(f"The {name} has expired. Please restart the query.")
        if position.checksum != checksum:
            raise bad_parameter(f"Query parameter mismatch detected for the {name}: go on with what you began with")
        return position


def _too_large() -> Refusal:
    return Refusal(413, ErrorCode.MALFORMED_REQUEST, f"the body is larger than {BODY_BYTES >> 20} MiB")


_UNKNOWN = "the bearer token is missing or not known here"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and the id of the token that was shown."""

    recipient: Recipient
    token_id: str


def caller_of(hub: Hub, headers: Headers, client: str) -> Caller:
    """The recipient whose token a request shows, counted against its rate.

    401 without a token that is known and live, 403 for a recipient that is blocked, 429 for too many requests.
    """
    # a proxy may have looked at another of several than we would: none of them counts
    authorization = headers.getlist("authorization")
    kind, _, token = (authorization[0] if len(authorization) == 1 else "").partition(" ")
    try:
        # 256 bits are not guessed: a caller with a token of ours is not held up by what others at its address try
        caller = _identify(hub, kind, token.strip(), guessable=not hub.failures.is_spent(client))
    except Refusal:
        hub.failures.take(client)
        raise
    hub.api_rate.take(caller.recipient.name)
    if caller.recipient.blocked:
        raise forbidden("access of this recipient is blocked, please contact your share provider")
    return caller


def _identify(hub: Hub, kind: str, token: str, *, guessable: bool) -> Caller:
    """The caller of a token. `guessable`: the one written into the configuration counts too."""
    if kind.lower() != "bearer" or not token or len(token) > TOKEN_CHARACTERS:
        raise missing_authentication(_UNKNOWN)
    entry = find(token, hub.known_tokens())
    own = hub.settings.authorization.bearer_token
    if own is not None and guessable and hmac.compare_digest(digest(own), digest(token)):
        return Caller(BEARER, BEARER.name)
    recipient = None if entry is None else hub.catalogue.recipients.get(entry.recipient)
    if entry is None or recipient is None:
        raise missing_authentication(_UNKNOWN)
    match entry.state(hub.now()):
        case "revoked":
            raise missing_authentication("the bearer token was revoked, please ask your share provider for a new one")
        case "expired":
            raise missing_authentication("the bearer token has expired, please ask your share provider for a new one")
    return Caller(recipient, entry.id)


def may_still_read(hub: Hub, recipient: Recipient) -> bool:
    """Whether a recipient has any live token: URLs given before end with the last of them."""
    if recipient.name == BEARER.name:
        return hub.settings.authorization.bearer_token is not None
    now = hub.now()
    return not recipient.blocked and any(
        t.recipient == recipient.name and t.state(now) == "live" for t in hub.known_tokens()
    )
