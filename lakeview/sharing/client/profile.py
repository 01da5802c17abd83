"""A profile file to an endpoint and credentials (sharing protocol, Profile File Format); a table's address to its
parts."""

import os
import re
import stat
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from lakeview.model.addresses import is_local, normalise
from lakeview.model.arguments import address_of
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, InvalidRequestError, NotATableError, UnsupportedTableError
from lakeview.model.findings import Finding, Severity
from lakeview.sharing.client.credentials import Secret
from lakeview.sharing.client.limits import PROFILE_BYTES
from lakeview.storage import open_storage

VERSIONS = (1, 2)
"""Versions of the profile file that are understood."""

BEARER, BASIC, OAUTH = "bearer_token", "basic", "oauth_client_credentials"
_TYPES = {BEARER: BEARER, BASIC: BASIC, OAUTH: OAUTH, "persistent_oauth2.0": OAUTH}
"""The types of credentials that a profile of version 2 names, and the older word for one of them."""
_OTHER_TYPES = ("oauth_jwt_bearer_private_key_jwt",)
"""Types that are not implemented. Any other text may be a credential in the wrong field, and is not quoted."""

_SOON = timedelta(days=7)
_ADDRESS = re.compile(
    r"(?P<profile>.+)#(?P<share>[^./#]+(?:\.[^./#]+)*)\.(?P<schema>[^./#]+)\.(?P<table>[^./#]+)", re.DOTALL
)
"""Of the three names only a share's may have periods: "Table and Schema object names additionally do not allow special
character Period"."""


class TableName(NamedTuple):
    """A table of a share. The three names are compared without regard to case by servers."""

    share: str
    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.share}.{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Profile:
    """Where a sharing server is, and how to say who asks. Shown without secrets, and not to be pickled.

    `address`: the file it was read from; `endpoint`: without a slash at its end; `kind`: bearer_token, basic or
    oauth_client_credentials; `user`: name or client id, and `token_endpoint` where the kind has them; `expires`: aware.
    """

    address: str
    version: int
    endpoint: str
    kind: str
    secret: Secret
    user: str = ""
    token_endpoint: str = ""
    scope: str | None = None
    expires: datetime | None = None
    readable_by_others: bool = field(default=False, compare=False)

    def check(self, now: datetime) -> None:
        """AccessDeniedError if the credentials have expired at an aware moment."""
        if self.expires is not None and now >= self.expires:
            raise AccessDeniedError(
                f"the profile {self.address} expired on {self.expires:%Y-%m-%d at %H:%M} UTC",
                fix="ask the data provider for a new profile",
                place=self.address,
                kind="expired-profile",
            )

    def findings(self, now: datetime) -> list[Finding]:
        """What its owner should know: that it ends soon, or that others can read it."""
        findings = []
        if self.expires is not None and now >= self.expires - _SOON:
            state = "has expired" if now >= self.expires else "expires soon"
            findings.append(
                Finding(
                    "profile-expiry",
                    Severity.BROKEN if now >= self.expires else Severity.ATTENTION,
                    f"The profile {state}",
                    f"its credentials end on {self.expires:%Y-%m-%d at %H:%M} UTC",
                    "a week before",
                    place=self.address,
                    remedy="ask the data provider for a new profile",
                )
            )
        if self.readable_by_others:
            findings.append(
                Finding(
                    "profile-readable-by-others",
                    Severity.ATTENTION,
                    "Others on this machine can read the profile",
                    "it holds a credential, and its permissions let group or others read it",
                    place=self.address,
                    remedy="make it readable by its owner only: chmod 600",
                )
            )
        return findings


def parse_address(address: str) -> tuple[str, TableName] | None:
    """The profile's address and the table's name in `<profile>#<share>.<schema>.<table>`, None for another address.

    InvalidRequestError for a profile followed by something that names no table.
    """
    match = _ADDRESS.fullmatch(address)
    if match is not None:
        folder = normalise(address, decode=True)
        if is_local(folder) and os.path.isdir(folder):  # a folder may be called so
            return None
        return match["profile"], TableName(match["share"], match["schema"], match["table"])
    profile, mark, name = address.rpartition("#")
    if mark and profile.endswith(".share"):
        raise InvalidRequestError(
            f"{name or 'nothing'} names no shared table",
            fix="write the address as profile.share#share.schema.table",
            place=address,
            kind="bad-address",
        )
    return None


def read_profile(address: str | os.PathLike[str], *, config: Config | None = None, **options: Any) -> Profile:
    """The profile at an address: a path or any URL that a store is known for; `options` are the store's.

    NotATableError if it is not there, InvalidRequestError if it is no profile, UnsupportedTableError for a version or a
    type of credentials that is not implemented, AccessDeniedError outside the allowed roots.
    """
    place = normalise(address_of(address), decode=True)
    scheme, mark, path = place.partition("://")
    if mark and "/" not in path:
        raise NotATableError(
            f"there is no profile at {scheme}://{path}, which names no file",
            fix="give the path or address of the profile file that you were sent",
            place=place,
            kind="no-profile",
        )
    folder, _, name = place.rpartition("/")
    storage = open_storage(folder or "/", options=options, config=config)
    try:
        data = storage.read_range(name, 0, PROFILE_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotATableError(
            f"there is no profile at {place}",
            fix="give the path of the profile that you were sent, then # and share.schema.table",
            place=place,
            kind="no-profile",
        ) from error
    return parse_profile(data, place, readable_by_others=_readable_by_others(place))


class _File(msgspec.Struct, frozen=True, rename="camel"):
    share_credentials_version: int
    endpoint: str = ""
    type: str = BEARER
    bearer_token: str | None = None
    expiration_time: str | None = None
    username: str | None = None
    password: str | None = None
    token_endpoint: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None


def parse_profile(data: bytes, address: str, *, readable_by_others: bool = False) -> Profile:
    """The bytes of a profile file. Errors as `read_profile`; they quote nothing of it but names of fields."""
    try:
        file = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError):
            raise _bad(address, f"is no profile: {error}") from None
        raise _bad(address, "is no profile: it is not JSON") from None  # the cause may quote what it holds
    if file.share_credentials_version not in VERSIONS:
        raise UnsupportedTableError(
            f"the profile {address} is of version {file.share_credentials_version}; this client knows up to "
            f"{VERSIONS[-1]}",
            fix="upgrade lakeview, or ask for a profile of an older version",
            place="shareCredentialsVersion",
            kind="unsupported-profile",
        )
    kind = BEARER if file.share_credentials_version == 1 else _TYPES.get(file.type)
    if kind is None:
        type_text = f"type {file.type}" if file.type in _OTHER_TYPES else "another type"
        raise UnsupportedTableError(
            f"the profile {address} asks for credentials of {type_text}, which this client does not implement",
            fix=f"ask for a profile with one of: {', '.join(sorted(set(_TYPES.values())))}",
            place="type",
            kind="unsupported-profile",
        )
    if not re.match(r"https?://[^/]", file.endpoint, re.IGNORECASE):
        raise _bad(address, "names no endpoint: an http or https URL is expected", "endpoint")
    if kind == OAUTH and not file.token_endpoint:
        raise _bad(address, "has no tokenEndpoint", "tokenEndpoint")
    user, secret = _login(file, kind, address)
    return Profile(
        address,
        file.share_credentials_version,
        file.endpoint.rstrip("/"),
        kind,
        secret,
        user,
        file.token_endpoint or "",
        file.scope,
        _expiry(file.expiration_time, address),
        readable_by_others,
    )


def _login(file: _File, kind: str, address: str) -> tuple[str, Secret]:
    """The user's name, empty for a bearer token, and the secret."""
    user_field, user, field, secret = {
        BEARER: ("", "", "bearerToken", file.bearer_token),
        BASIC: ("username", file.username, "password", file.password),
        OAUTH: ("clientId", file.client_id, "clientSecret", file.client_secret),
    }[kind]
    if user is None:
        raise _bad(address, f"has no {user_field}")
    if not secret:
        raise _bad(address, f"has no {field}", field)
    if not secret.isascii() or not secret.isprintable():
        raise _bad(address, f"has a {field} that no header can carry", field)
    return user, Secret(secret)


def _expiry(text: str | None, address: str) -> datetime | None:
    """ISO 8601; a time without a zone is UTC."""
    if not text:
        return None
    try:
        expiry = datetime.fromisoformat(text)
    except ValueError:
        raise _bad(address, "has an expirationTime that is no time", "expirationTime") from None
    return (expiry if expiry.tzinfo else expiry.replace(tzinfo=UTC)).astimezone(UTC)


def _bad(address: str, what: str, place: str | None = None) -> InvalidRequestError:
    return InvalidRequestError(
        f"{address} {what}",
        fix="ask the data provider to send the profile again",
        place=place or address,
        kind="bad-profile",
    )


def _readable_by_others(place: str) -> bool:
    if not is_local(place) or os.name == "nt":
        return False
    return bool(os.stat(place).st_mode & (stat.S_IRGRP | stat.S_IROTH))
