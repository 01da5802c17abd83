"""Paths to signed URLs, and facts to signed tokens; and back, if they are ours and not too old.

Two keys, one for files and one for tokens, are kept in a file readable by its owner only and shared by all workers. One
is replaced by `rotate`; what the one before it signed is accepted until it expires by itself.

Files of secrets are written whole, readable by their owner only, and changed by one process at a time.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from itsdangerous import BadData, Signer
from itsdangerous.encoding import base64_decode, base64_encode

from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.server.lines import Url, quote_path
from lakeview.storage import Storage
from lakeview.storage.byte_cache import ByteBoundedCache
from lakeview.storage.local_files import sync_folder, write_temporary

T = TypeVar("T")
_BYTES = 32
_LOG = logging.getLogger("lakeview.sharing.server")


class Key(msgspec.Struct, frozen=True):
    """A secret, and the short name under which signatures refer to it."""

    id: str
    secret: bytes

    @staticmethod
    def new() -> Key:
        """A key of 256 random bits."""
        return Key(secrets.token_hex(4), secrets.token_bytes(_BYTES))


class Keys(msgspec.Struct, frozen=True):
    """The newest key of each kind first, then the one before it."""

    files: list[Key]
    tokens: list[Key]

    @staticmethod
    def new() -> Keys:
        """Fresh keys."""
        return Keys([Key.new()], [Key.new()])

    def rotate(self) -> Keys:
        """New keys; the present ones are still accepted, those before them no more."""
        return Keys([Key.new(), *self.files[:1]], [Key.new(), *self.tokens[:1]])


def load_keys(path: Path) -> Keys:
    """The keys in a file; made there if it is absent, which several workers may try at once.

    InvalidRequestError if it is no file of keys.
    """
    if not path.exists():
        with suppress(FileExistsError):
            write_privately(path, msgspec.json.encode(Keys.new()), exclusively=True)
    try:
        keys = msgspec.json.decode(path.read_bytes(), type=Keys)
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise _no_keys(path, str(error)) from error
    if not keys.files or not keys.tokens or any(len(k.secret) < _BYTES for k in (*keys.files, *keys.tokens)):
        raise _no_keys(path, "it holds too few or too short keys")
    if os.name != "nt" and os.stat(path).st_mode & 0o077:
        _LOG.warning("%s can be read by others than its owner, who can then sign URLs; rotate the keys", path.name)
    return keys


def save_keys(path: Path, keys: Keys) -> None:
    """Replace the keys in a file."""
    rewrite_privately(path, msgspec.json.encode(keys))


def _no_keys(path: Path, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{path.name} is no file of signing keys: {why}",
        fix="remove it: a new one is made, and URLs given so far end",
        place=str(path),
        kind="bad-configuration",
    )


# -- files


@dataclass(frozen=True, slots=True)
class Grant:
    """What a signed URL lets its bearer read: files of one table, until a moment (seconds since 1970)."""

    table: str
    recipient: str
    expires: int


class FileSigner:
    """Signs and checks the URLs of files: HMAC-SHA256 over kind of method, table, expiry, recipient, key and path.

    The query holds `sp=r`: clients built on the Delta kernel take an address without such a mark for a local file.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = {key.id: key for key in keys}
        self._newest = keys[0]

    def queries(self, grant: Grant, paths: Sequence[str]) -> list[str]:
        """The query of each path (as it stands, percent-decoded, relative to the table), in the same order."""
        key = self._newest
        start = _start(key, grant)
        head = f"?sp=r&se={grant.expires}&rcp={grant.recipient}&kid={key.id}&sig="
        queries = []
        for path in paths:  # the copied context makes it a microsecond each
            mac = start.copy()
            mac.update(path.encode())
            queries.append(head + mac.hexdigest())
        return queries

    def allows(self, grant: Grant, key_id: str, signature: str, path: str) -> bool:
        """Whether we signed this. The expiry is the caller's to compare with the clock."""
        key = self._keys.get(key_id)
        mac = _start(key or self._newest, grant)
        mac.update(path.encode(errors="surrogateescape"))
        same = hmac.compare_digest(mac.hexdigest().encode(), signature.encode(errors="replace"))
        return same and key is not None


def _start(key: Key, grant: Grant) -> hmac.HMAC:
    # "read" is GET and HEAD; no part can hold a line's end, so no two grants read alike
    text = f"read\n{grant.table}\n{grant.expires}\n{grant.recipient}\n{key.id}\n"
    return hmac.new(key.secret, text.encode(), "sha256")


# -- tokens


class TokenSigner:
    """Signs values as texts and verifies them. `purpose` keeps a token of one kind from being accepted as another."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._secrets = [key.secret for key in reversed(keys)]  # the last one signs, all of them verify

    def seal(self, purpose: str, value: Any) -> str:
        """A text for a URL or a JSON body: the value is readable by anybody, and signed."""
        return self._signer(purpose).sign(base64_encode(msgspec.msgpack.encode(value))).decode()

    def open(self, purpose: str, text: str, kind: type[T]) -> T | None:
        """The value in a text that `seal` made; None for any other text."""
        try:
            return msgspec.msgpack.decode(base64_decode(self._signer(purpose).unsign(text)), type=kind)
        except (BadData, UnicodeError, msgspec.DecodeError):
            return None

    def _signer(self, purpose: str) -> Signer:
        return Signer(self._secrets, salt=purpose, key_derivation="hmac", digest_method=hashlib.sha256)


def checksum(*parts: object) -> str:
    """A short digest of a request's parameters, so that a token goes on with the request it was made for only."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


_MAX_BYTES = 128 << 20  # 200,000 URLs


class StoreUrls:
    """URLs that stores signed, cached while they are fresh: signing one costs half a millisecond in boto3."""

    def __init__(self) -> None:
        self._urls: ByteBoundedCache[tuple[str, str, int], str] = ByteBoundedCache(_MAX_BYTES, len)

    def url(self, storage: Storage, path: str, expires: int, seconds: int) -> str | None:
        """The URL of a file; None if the store signs none. `expires` is the same moment for all of one window."""
        key = (storage.root, path, expires)
        url = self._urls.get(key)
        if url is None and (url := storage.signed_url(path, seconds)) is not None:
            self._urls.put(key, url)
        return url


def expiry(now: int, life: int) -> int:
    """When URLs given now end: at least `life` from now, the same moment within a quarter of it, so that answers of one
    window are alike and clients may keep what they have."""
    step = max(life // 4, 1)
    return (now // step + 1) * step + life


def url_of(storage: Storage, signer: FileSigner, grant: Grant, base: str, now: int, in_store: StoreUrls | None) -> Url:
    """Paths to URLs. `base`: where clients reach this server; `in_store`: where the store's own may be used."""

    def ours(paths: Sequence[str]) -> list[str]:
        start = f"{base}/files/{grant.table}/"
        queries = signer.queries(grant, paths)
        return [start + quote_path(path) + query for path, query in zip(paths, queries, strict=True)]

    def theirs(paths: Sequence[str]) -> list[str]:
        assert in_store is not None
        urls = [in_store.url(storage, path, grant.expires, grant.expires - now) for path in paths]
        return [url for url in urls if url is not None]

    if (
        in_store is None
        or not storage.remote
        or in_store.url(storage, "probe", grant.expires, grant.expires - now) is None
    ):
        return ours
    return theirs


def write_privately(path: Path, data: bytes, *, exclusively: bool = False) -> None:
    """Put a new file in a place, readable and writable by its owner only; `exclusively`: FileExistsError if one is
    there.

    A link in that place is replaced, not followed, and so is what another user may have put there.
    """
    _put(str(path), data, exclusively=exclusively)


def rewrite_privately(path: Path, data: bytes) -> None:
    """Change a file that is ours already: links are followed, and it stays its owner's.

    A token made by `sudo` must not lock out the server, which runs as another user.
    """
    place = os.path.realpath(path)
    try:
        stat = os.stat(place)
    except FileNotFoundError:
        _put(place, data)
        return
    _put(place, data, owner=(stat.st_uid, stat.st_gid))


def _put(place: str, data: bytes, *, exclusively: bool = False, owner: tuple[int, int] | None = None) -> None:
    temporary = write_temporary(place, b"")
    try:
        os.chmod(temporary, 0o600)
        if owner is not None and os.name != "nt" and os.geteuid() == 0:
            os.chown(temporary, *owner)
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if exclusively:
            os.link(temporary, place)
        else:
            os.replace(temporary, place)
        sync_folder(os.path.dirname(place) or ".")
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Hold the folder of a file against other processes that would change it too; they wait. Its folder is made.

    Not on Windows, where a folder cannot be held: the later of two writers wins there.
    """
    folder = os.path.dirname(os.path.realpath(path))
    os.makedirs(folder, exist_ok=True)
    if os.name == "nt":
        yield
        return
    import fcntl  # not there on Windows

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
