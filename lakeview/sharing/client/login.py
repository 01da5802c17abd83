"""A profile to the credentials that its requests carry, those of its token endpoint included."""

from functools import partial
from urllib.parse import urlencode

import msgspec

from lakeview.model.clock import Clock
from lakeview.model.errors import InvalidRequestError, SharingError
from lakeview.sharing.client.credentials import (
    ClientCredentials,
    Credentials,
    Secret,
    basic_login,
    bearer_token,
)
from lakeview.sharing.client.http import Http
from lakeview.sharing.client.profile import BASIC, OAUTH, Profile
from lakeview.sharing.client.refusals import failure


def log_in(profile: Profile, http: Http, clock: Clock) -> Credentials:
    """The credentials of a profile. InvalidRequestError if they must not be sent to its URLs, AccessDeniedError if
    these lead into a private network where that is not allowed."""
    _check_endpoint(http, profile.endpoint)
    if profile.kind == OAUTH:
        _check_endpoint(http, profile.token_endpoint)
        return ClientCredentials(profile.user, profile.secret, partial(_request_token, http, profile, clock))
    return basic_login(profile.user, profile.secret) if profile.kind == BASIC else bearer_token(profile.secret)


def _check_endpoint(http: Http, url: str) -> None:
    try:
        # who brings a profile chooses its endpoint: it is no more trusted than the URLs that come from there
        http.check_url(url, "the endpoint of the profile")
    except SharingError as error:
        raise InvalidRequestError(error.message, fix=error.fix, place=error.place, kind=error.kind) from error


def _request_token(http: Http, profile: Profile, clock: Clock, credentials: ClientCredentials) -> tuple[Secret, float]:
    """A new token, and for how many seconds it holds: OAuth 2.0, Client Credentials Grant (RFC 6749, 4.4). Errors as
    `SharingClient`."""
    url = profile.token_endpoint
    form = {"grant_type": "client_credentials"} | ({"scope": profile.scope} if profile.scope else {})
    headers = {
        "Authorization": basic_login(credentials.client_id, credentials.client_secret).header(clock()),
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }

    def attempt() -> tuple[Secret, float]:
        with http.stream("POST", url, headers=headers, content=urlencode(form).encode()) as response:
            body = http.body(response, http.limits.body)
            if not response.is_success:
                hidden = credentials.client_secret.hidden_in(body.decode(errors="replace")).encode()
                raise failure(response, hidden, "a token")
            return _token(body)

    return http.with_retries(attempt, url)


class _TokenBody(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float | str = 3600.0


def _token(body: bytes) -> tuple[Secret, float]:
    try:
        answer = msgspec.json.decode(body, type=_TokenBody)
        return Secret(answer.access_token), max(0.0, float(answer.expires_in))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        # without its cause: the cause may quote the token
        raise SharingError(
            "the token endpoint gave no token that can be read", fix="check tokenEndpoint in the profile",
            kind="bad-body",
        ) from None  # fmt: skip
