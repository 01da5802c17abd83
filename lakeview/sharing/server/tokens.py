"""Bearer tokens to recipients: made, listed, rotated, revoked; only their hashes are kept. A recipient is sent one in a
profile file.

A token is 256 random bits behind a prefix that secret scanners know again; it is shown once, when it is made. The file
is JSON, written whole and readable by its owner only; a server takes up its changes with the next request.
"""

import hashlib
import hmac
import json
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from lakeview.model.clock import Clock
from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.server.settings import Settings
from lakeview.sharing.server.signing import one_at_a_time, rewrite_privately

PREFIX = "lvs_"
_LIVE_TOKENS = 2
_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_NEVER = hashlib.sha256(b"").hexdigest()


class Token(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is known of a token. `id` names it in commands and in the audit log; moments are aware."""

    id: str
    recipient: str
    sha256: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    created: _Moment
    expires: _Moment | None = None
    revoked: _Moment | None = None

    def state(self, now: datetime) -> str:
        """live, expired or revoked."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and now >= self.expires else "live"


class _Book(msgspec.Struct, frozen=True):
    version: Literal[1] = 1
    tokens: list[Token] = msgspec.field(default_factory=list)


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def find(token: str, candidates: Sequence[Token]) -> Token | None:
    """The token that this text is. Every candidate is compared, each in constant time."""
    sha256, match = digest(token), None
    for candidate in candidates:
        if hmac.compare_digest(candidate.sha256, sha256):
            match = candidate
    hmac.compare_digest(_NEVER, sha256)
    return match


class TokenFile:
    """The file of tokens. Safe to use from several threads and processes: changes wait for each other."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()
        self._fault: str | None = None

    def tokens(self) -> tuple[Token, ...]:
        """All tokens, oldest first; the file is read again if it has changed.

        InvalidRequestError if it is no file of tokens.
        """
        with self._lock:
            return self._read()

    def _read(self) -> tuple[Token, ...]:
        try:
            stat = os.stat(self._path)
        except FileNotFoundError:
            self._stamp, self._tokens, self._fault = None, (), None
            return ()
        except OSError as error:
            raise self._file_error(str(error)) from error
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp != self._stamp:
            self._stamp, self._fault = stamp, None
            try:
                self._tokens = _with_unique_ids(msgspec.json.decode(self._path.read_bytes(), type=_Book).tokens)
            except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
                self._fault = str(error)
        if self._fault is not None:
            raise self._file_error(self._fault)
        return self._tokens

    def _file_error(self, why: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"{self._path.name} is no file of tokens: {why}",
            fix="restore it from a backup, or remove it and give every recipient a new token",
            place=str(self._path),
            kind="bad-configuration",
        )

    @contextmanager
    def _alone(self) -> Iterator[list[Token]]:
        """The tokens as they are now, for a change that no other process interrupts."""
        with self._lock, one_at_a_time(self._path):
            yield list(self._read())

    def create(self, recipient: str, life: timedelta | None = None) -> tuple[str, Token]:
        """A new token, and what is kept of it. InvalidRequestError if the recipient has two live ones already."""
        with self._alone() as tokens:
            now = self._clock()
            live = [t for t in tokens if t.recipient == recipient and t.state(now) == "live"]
            if len(live) >= _LIVE_TOKENS:
                raise InvalidRequestError(
                    f"{recipient} has {len(live)} live tokens already: {', '.join(t.id for t in live)}",
                    fix="revoke one of them first, or rotate",
                    kind="too-many-tokens",
                )
            text, token = _new(recipient, now, life)
            self._write([*tokens, token])
            return text, token

    def rotate(self, recipient: str, life: timedelta | None, overlap: timedelta) -> tuple[str, Token]:
        """A new token; those the recipient has live on for `overlap` at most, and with none they end now for good."""
        with self._alone() as tokens:
            now = self._clock()
            live = [t.id for t in tokens if t.recipient == recipient and t.state(now) == "live"]
            # with two live tokens the older one ends now: a third must fit
            ids = set(live if overlap <= timedelta() else live[: 1 - _LIVE_TOKENS])
            text, token = _new(recipient, now, life)
            self._write([*(_ending(t, now, now + overlap, ids) if t.id in live else t for t in tokens), token])
            return text, token

    def revoke(self, name: str) -> list[Token]:
        """End a token by its id, or all of a recipient; those ended. InvalidRequestError if there is none."""
        with self._alone() as tokens:
            now = self._clock()
            by_id = {t.id: t for t in tokens if name in (t.id, t.recipient) and t.revoked is None}
            if not by_id:
                raise InvalidRequestError(
                    f"there is no token to revoke called {name}", fix="list the tokens", kind="unknown-token"
                )
            by_id = {number: msgspec.structs.replace(t, revoked=now) for number, t in by_id.items()}
            self._write([by_id.get(t.id, t) for t in tokens])
            return list(by_id.values())

    def _write(self, tokens: Sequence[Token]) -> None:
        data = msgspec.json.format(msgspec.json.encode(_Book(tokens=list(tokens))), indent=2)
        rewrite_privately(self._path, data)
        self._stamp = None


def _new(recipient: str, now: datetime, life: timedelta | None) -> tuple[str, Token]:
    text = PREFIX + secrets.token_urlsafe(32)
    return text, Token(secrets.token_hex(6), recipient, digest(text), now, None if life is None else now + life)


def _ending(token: Token, now: datetime, end: datetime, ids: Collection[str]) -> Token:
    """A token that goes on until `end` at most, or not at all: what is revoked stays so if the clock goes back."""
    if token.id in ids:
        return msgspec.structs.replace(token, revoked=now)
    return msgspec.structs.replace(token, expires=end if token.expires is None else min(token.expires, end))


def _with_unique_ids(tokens: list[Token]) -> tuple[Token, ...]:
    """Tokens that are each there once. A copied entry would leave open whose a token is, or whether it was revoked."""
    for what, values in (("id", [t.id for t in tokens]), ("sha256", [t.sha256 for t in tokens])):
        if twice := [value for value, count in Counter(values).items() if count > 1]:
            raise msgspec.ValidationError(f"two tokens have the {what} {twice[0][:16]}")
    return tuple(tokens)


def endpoint_of(settings: Settings) -> str:
    """Where clients reach the API."""
    if settings.public_url is not None:
        return settings.public_url.rstrip("/") + settings.endpoint
    scheme = "https" if settings.ssl is not None else "http"
    return f"{scheme}://{settings.host}:{settings.port}{settings.endpoint}"


def profile_of(settings: Settings, token: str, expires: datetime | None) -> dict[str, Any]:
    """A profile file: version 1, which every client reads."""
    profile: dict[str, Any] = {
        "shareCredentialsVersion": 1,
        "endpoint": endpoint_of(settings) + "/",
        "bearerToken": token,
    }
    if expires is not None:
        profile["expirationTime"] = expires.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return profile


def token_file(configuration: Path, settings: Settings, clock: Clock) -> TokenFile:
    """The tokens of a configuration. InvalidRequestError if it names no file for them."""
    if settings.tokens is None:
        raise InvalidRequestError(
            f"{configuration.name} names no file of tokens", fix="add tokens: tokens.json", kind="bad-configuration"
        )
    return TokenFile(Path(settings.tokens), clock)


def new_profile(
    configuration: Path,
    settings: Settings,
    recipient: str,
    clock: Clock,
    make_token: Callable[[TokenFile], tuple[str, Token]],
) -> tuple[bytes, Token]:
    """The profile file of a recipient with a new token, and what is stored of the token.

    InvalidRequestError if the configuration names no such recipient or no file of tokens; errors of `make_token`.
    """
    book = token_file(configuration, settings, clock)
    if recipient not in {r.name for r in settings.recipients}:
        raise InvalidRequestError(
            f"{configuration.name} names no recipient {recipient}", fix="add the recipient and its shares first"
        )
    text, token = make_token(book)
    return json.dumps(profile_of(settings, text, token.expires), indent=2).encode() + b"\n", token
