"""Requests to answers: time-outs, retries, limits and errors of every call to a sharing server or to a signed URL."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

from lakeview.model.config import VERSION
from lakeview.model.errors import AccessDeniedError, SharingError, StoreUnavailableError
from lakeview.sharing.client.limits import Limits
from lakeview.sharing.client.refusals import RetryLaterError, too_large, without_control
from lakeview.storage import back_off

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

USER_AGENT = f"lakeview/{VERSION}"
_UNPACKED = 1 << 20
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class Http:
    """One pool of connections. Safe to use from several threads; credentials are given with each call.

    `server`: the URL of the server, None where it is not known.
    """

    def __init__(self, limits: Limits | None = None, server: str | None = None) -> None:
        import httpx

        self.server = server
        self._is_remote = server is not None and not is_loopback(_split(server).hostname or "")

        self.limits = limits = limits or Limits()
        timeout = httpx.Timeout(limits.idle, connect=limits.connect)
        # where private addresses are refused no proxy is asked: it would resolve names in our place
        self._client = httpx.Client(
            timeout=timeout,
            follow_redirects=False,
            trust_env=limits.private,
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "gzip"},
        )
        weakref.finalize(self, self._client.close)  # a table is opened and forgotten, never closed
        self._transport_errors: tuple[type[Exception], ...] = (httpx.TransportError, httpx.DecodingError)
        self._bad_url = httpx.InvalidURL

    def check_url(self, url: str, what: str) -> None:
        """SharingError for a URL of a server that must not be followed: neither http nor https, plain http to another
        machine, this machine from a server on another one, or a private address range where these are refused. No
        secret of it is quoted.
        """
        parts = _split(url)
        scheme, host = parts.scheme.lower(), parts.hostname or ""

        def refuse(problem: str, fix: str, kind: str = "bad-url") -> NoReturn:
            raise SharingError(f"{what} {problem}", fix=fix, place=redacted_url(url), kind=kind)

        if scheme not in ("http", "https") or not host:
            fix = "ask the data provider; a server must hand out URLs that can be read over the web"
            refuse("is no http or https URL", fix)
        if scheme == "http" and not is_loopback(host) and not self.limits.plain_http:
            fix = "ask for https, or set LAKEVIEW_PLAIN_HTTP=1 if the network between is yours"
            refuse(f"is plain http to {host}, where everybody on the way can read it", fix, "plain-http")
        if self._is_remote and is_loopback(host):
            fix = "ask the operator of the server, which may not know its public address"
            refuse("leads to this machine, and the server is another one", fix)
        if not self.limits.private:
            _refuse_private(host, parts.port, what)

    def with_retries(self, call: Callable[[], T], url: str) -> T:
        """What a call gives, tried again with growing pauses while it raises RetryLaterError and patience lasts."""
        remote = not is_loopback(_split(url).hostname or "")
        end = time.monotonic() + self.limits.patience
        for attempt in range(self.limits.attempts):
            try:
                return call()
            except RetryLaterError as later:
                last = attempt + 1 == self.limits.attempts or time.monotonic() + later.wait > end
                if last:
                    raise later.error from later.__cause__
                back_off(attempt, remote, later.wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    @contextlib.contextmanager
    def stream(
        self, method: str, url: str, *, headers: Mapping[str, str], content: bytes | None = None
    ) -> Iterator[httpx.Response]:
        """An answer whose body is still to be read. RetryLaterError where the connection fails, also while reading."""
        host = _split(url).hostname or "the server"
        try:
            with self._client.stream(method, url, headers=dict(headers), content=content) as response:
                if not self.limits.private:  # a name may lead elsewhere than when it was looked up
                    peer = response.extensions["network_stream"].get_extra_info("server_addr")
                    if peer is None or not _is_public(str(peer[0])):
                        raise _private(host, "the answer of a request")
                yield response
        except self._transport_errors as error:
            reason = without_control(str(error)) or type(error).__name__
            raise RetryLaterError(
                StoreUnavailableError(
                    f"{host} does not answer as it should: {reason}",
                    fix="try again; check that the server runs and can be reached from here",
                    place=host,
                )
            ) from error
        except (self._bad_url, UnicodeError) as error:
            raise SharingError(f"{redacted_url(url)} is no URL", fix="ask the data provider", kind="bad-url") from error

    def body(self, response: httpx.Response, most: int) -> bytes:
        """The whole body. SharingError for one longer than `most` bytes, or one that takes too long."""
        return b"".join(self.pieces(response, most))

    def pieces(self, response: httpx.Response, most: int) -> Iterator[bytes]:
        """A body piece by piece; errors as `body`."""
        end = time.monotonic() + self.limits.whole
        size = 0
        for piece in _decompress(response):
            size += len(piece)
            if size > most:
                raise too_large(f"sent more than {most:,} bytes, which is no answer to this question")
            if time.monotonic() > end:
                raise StoreUnavailableError(
                    f"the server's answer was not complete after {self.limits.whole:,.0f} seconds",
                    fix="try again, or ask for fewer files with a filter",
                )
            yield piece

    def lines(self, response: httpx.Response) -> Iterator[bytes]:
        """The lines of a body, ends and blank ones left out. SharingError beyond the limits."""
        partial: list[bytes] = []
        length = count = 0
        for piece in self.pieces(response, self.limits.stream):
            *lines, rest = piece.split(b"\n")
            if lines:
                lines[0] = b"".join([*partial, lines[0]])
                partial, length = [], 0
            for line in filter(None, map(bytes.strip, lines)):  # blank lines cost nothing: a server may send millions
                self._check_line(len(line))
                count += 1
                if count > self.limits.lines:
                    raise too_large(f"sent more than {self.limits.lines:,} lines", "ask for fewer files with a filter")
                yield line
            partial.append(rest)
            length += len(rest)
            self._check_line(length)
        if line := b"".join(partial).strip():
            yield line

    def _check_line(self, length: int) -> None:
        if length > self.limits.line:
            raise too_large(f"sent a line of more than {self.limits.line:,} bytes")


def _decompress(response: httpx.Response) -> Iterator[bytes]:
    """The bytes of a body, unpacked a megabyte at a time: a kilobyte may be packed gigabytes.

    SharingError for a packing that was not asked for, or one within another, or one that is broken.
    """
    packing = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packing in ("identity", ""):
        yield from response.iter_raw()
        return
    if packing not in ("gzip", "x-gzip", "deflate"):
        raise _bad_encoding(f"packed as {without_control(packing)[:40]}, which was not asked for")
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        for raw in response.iter_raw():
            while raw:
                if unpacker.eof:  # "A gzip file consists of a series of members", RFC 1952
                    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
                yield unpacker.decompress(raw, _UNPACKED)
                raw = unpacker.unconsumed_tail or unpacker.unused_data
        yield unpacker.flush()
    except zlib.error as error:
        raise _bad_encoding("broken where it is unpacked") from error
    if not unpacker.eof:
        raise _bad_encoding("broken where it is unpacked")


def _bad_encoding(how: str) -> SharingError:
    return SharingError(f"the server's answer is {how}", fix="ask the operator of the server", kind="bad-answer")


def redacted_url(url: str) -> str:
    """A URL without what signs it, or names and passwords in it."""
    parts = _split(url)
    return f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else "a URL without a host"


def _split(url: str) -> SplitResult:
    """The parts of a URL, all empty for one that cannot be read."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises for one that is no number)
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts


def redirect_target(url: str, location: str) -> str:
    """Where a redirect leads. SharingError if that is no URL; where it may lead is the caller's to check."""
    try:
        return urljoin(url, location)
    except ValueError as error:
        raise SharingError(
            f"{redacted_url(url)} moved to what is no URL", fix="ask the data provider", kind="bad-url"
        ) from error


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _refuse_private(host: str, port: int | None, what: str) -> None:
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port or 443, type=socket.SOCK_STREAM)}
    except OSError as error:
        raise StoreUnavailableError(f"{host} has no address: {error.strerror}", fix="try again", place=host) from error
    if not all(_is_public(address) for address in addresses):
        raise _private(host, what)


def _is_public(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_global


def _private(host: str, what: str) -> AccessDeniedError:
    return AccessDeniedError(
        f"{what} leads to {host}, which lies in a private network",
        fix="set LAKEVIEW_PRIVATE_NETWORKS=1 if everybody who uses this app may reach it",
        place=host,
        kind="private-address",
    )
