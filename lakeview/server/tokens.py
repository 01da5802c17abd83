"""Bearer tokens to recipients: made, listed, rotated, revoked; only their hashes are kept.

A token is 256 random bits behind a prefix that secret scanners know again; it is shown once, when it is made. The file
is JSON, written whole and readable by its owner only; a server takes up its changes with the next request.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from lakeview.errors import InvalidRequestError
from lakeview.local_files import write_beside

Clock = Callable[[], datetime]

PREFIX = "lvs_"
_LIVE_TOKENS = 2
_NEVER = hashlib.sha256(b"").hexdigest()


class Token(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is known of a token. `id` names it in commands and in the audit log; moments are aware."""

    id: str
    recipient: str
    sha256: str
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None

    def state(self, now: datetime) -> str:
        """live, expired or revoked."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and now >= self.expires else "live"


class _Book(msgspec.Struct, frozen=True):
    version: int = 1
    tokens: list[Token] = msgspec.field(default_factory=list)


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def find(token: str, known: Sequence[Token]) -> Token | None:
    """The token that this text is. Every candidate is compared, each in constant time."""
    given, found = digest(token), None
    for candidate in known:
        if hmac.compare_digest(candidate.sha256, given):
            found = candidate
    hmac.compare_digest(_NEVER, given)
    return found


class TokenFile:
    """The file of tokens. Safe to use from several threads; two processes that write at once: the later one wins."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()

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
            self._seen, self._tokens = None, ()
            return ()
        seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if seen != self._seen:
            try:
                book = msgspec.json.decode(self._path.read_bytes(), type=_Book)
            except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
                raise InvalidRequestError(
                    f"{self._path.name} is no file of tokens: {error}",
                    fix="restore it from a backup, or remove it and give every recipient a new token",
                    place=str(self._path),
                    kind="bad-configuration",
                ) from error
            self._seen, self._tokens = seen, tuple(book.tokens)
        return self._tokens

    def create(self, recipient: str, life: timedelta | None = None) -> tuple[str, Token]:
        """A new token, and what is kept of it. InvalidRequestError if the recipient has two live ones already."""
        with self._lock:
            now = self._clock()
            live = [t for t in self._read() if t.recipient == recipient and t.state(now) == "live"]
            if len(live) >= _LIVE_TOKENS:
                raise InvalidRequestError(
                    f"{recipient} has {len(live)} live tokens already: {', '.join(t.id for t in live)}",
                    fix="revoke one of them first, or rotate",
                    kind="too-many-tokens",
                )
            text = PREFIX + secrets.token_urlsafe(32)
            made = Token(secrets.token_hex(6), recipient, digest(text), now, None if life is None else now + life)
            self._write((*self._tokens, made))
            return text, made

    def rotate(self, recipient: str, life: timedelta | None, overlap: timedelta) -> tuple[str, Token]:
        """A new token; those the recipient has live on for `overlap` at most."""
        with self._lock:
            end = self._clock() + overlap
            self._write(
                [
                    msgspec.structs.replace(t, expires=end if t.expires is None else min(t.expires, end))
                    if t.recipient == recipient and t.revoked is None
                    else t
                    for t in self._revoke_surplus(recipient)
                ]
            )
        return self.create(recipient, life)

    def _revoke_surplus(self, recipient: str) -> list[Token]:
        """With two live tokens the older one ends now: a third must fit."""
        now, found = self._clock(), list(self._read())
        live = [i for i, t in enumerate(found) if t.recipient == recipient and t.state(now) == "live"]
        for i in live[: 1 - _LIVE_TOKENS]:
            found[i] = msgspec.structs.replace(found[i], revoked=now)
        return found

    def revoke(self, name: str) -> list[Token]:
        """End a token by its id, or all of a recipient; those ended. InvalidRequestError if there is none."""
        with self._lock:
            now, ended, kept = self._clock(), [], []
            for token in self._read():
                if name in (token.id, token.recipient) and token.revoked is None:
                    token = msgspec.structs.replace(token, revoked=now)
                    ended.append(token)
                kept.append(token)
            if not ended:
                raise InvalidRequestError(
                    f"there is no token to revoke called {name}", fix="list the tokens", kind="unknown-token"
                )
            self._write(kept)
            return ended

    def _write(self, tokens: Sequence[Token]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        data = msgspec.json.format(msgspec.json.encode(_Book(tokens=list(tokens))), indent=2)
        write_privately(self._path, data)
        self._seen = None
        self._tokens = tuple(tokens)


def write_privately(path: Path, data: bytes, *, exclusively: bool = False) -> None:
    """Replace a file whole, readable and writable by its owner only; `exclusively`: FileExistsError if it is there."""
    temporary = write_beside(str(path), b"")
    try:
        os.chmod(temporary, 0o600)
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if exclusively:
            os.link(temporary, path)
        else:
            os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
