"""Requests to callers: who shows which token, before anything is said about what exists."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from starlette.datastructures import Headers

from lakeview.sharing.server.catalogue import BEARER
from lakeview.sharing.server.hub import Hub
from lakeview.sharing.server.limits import TOKEN_CHARACTERS
from lakeview.sharing.server.refusals import Refusal, forbidden, missing_authentication
from lakeview.sharing.server.settings import Recipient
from lakeview.sharing.server.tokens import digest, find

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
