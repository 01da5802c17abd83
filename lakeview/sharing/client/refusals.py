"""Answers other than success to errors: what the server said, and whether and when to ask it again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import msgspec

from lakeview.model.errors import AccessDeniedError, LakeviewError, NotATableError, SharingError, StoreUnavailableError
from lakeview.sharing.protocol.messages import ErrorBody

if TYPE_CHECKING:
    import httpx

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_ERROR_BODY = 64 << 10
MOVED = (301, 302, 303, 307, 308)
_FIXES = {
    400: "change the request, or ask the data provider to change the table, as the server says",
    **dict.fromkeys(MOVED, "ask the data provider for a profile with the endpoint that the server moved to"),
}
"""What to do about a status, where the operator of the server is not the one to ask."""

_REFUSALS: Mapping[int, tuple[type[LakeviewError], str, str, str]] = {
    401: (AccessDeniedError, "does not accept the profile's credentials for", "ask the data provider for a new profile",
          "sharing-unauthenticated"),
    403: (AccessDeniedError, "refuses", "ask the data provider to grant it", "sharing-forbidden"),
    404: (NotATableError, "has no", "check the names; list what is shared with the profile", "not-shared"),
}  # fmt: skip
"""Statuses with a meaning of their own: error, what the server does, what to do, and the kind."""

_PERMANENT = (501, 505)
"""Not Implemented, HTTP Version Not Supported."""


class RetryLaterError(Exception):
    """An answer, or none, after which trying again may help; `error` is what to raise when patience ends."""

    def __init__(self, error: LakeviewError, wait: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


def broken_protocol(what: str, kind: str = "bad-line") -> SharingError:
    """An answer that breaks the sharing protocol."""
    return SharingError(
        f"the server's answer breaks the sharing protocol: {server_text(what)}",
        fix="ask the operator of the server",
        kind=kind,
    )


def too_large(what: str, fix: str = "ask the operator of the server") -> SharingError:
    """An answer beyond the client's limits."""
    return SharingError(f"the server {what}", fix=fix, kind="answer-too-large")


def failure(response: httpx.Response, body: bytes, what: str) -> LakeviewError | RetryLaterError:
    """What an answer other than 2xx means: RetryLaterError for 429 and 5xx, but for 501 and 505, which stay; else an
    error that says what to do.

    `what`: what was asked for. The server's message is text, shortened and without control characters.
    """
    status = response.status_code
    message = _message(body)
    words = f": {message}" if message else ""
    if status in _REFUSALS:
        error, verb, fix, kind = _REFUSALS[status]
        return error(f"the server {verb} {what}{words}", fix=fix, kind=kind)
    if status == 429 or (status >= 500 and status not in _PERMANENT):
        wait = retry_after(response.headers)
        unavailable = StoreUnavailableError(
            f"the server cannot answer for {what} now ({status}){words}",
            fix=f"try again in {wait:,.0f} seconds" if wait else "try again later",
            kind="sharing-unavailable",
        )
        return RetryLaterError(unavailable, wait)
    return SharingError(
        f"the server refused {what} ({status}){words}",
        fix=_FIXES.get(status, "ask the operator of the server"),
        kind="sharing-refused",
    )


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds to wait before asking again, 0 where a server does not say: "an HTTP-date or a number of seconds".

    A date is compared with the `Date` of the same answer, not with our clock, which may differ.
    """
    text = headers.get("Retry-After")
    if not text:
        return 0.0
    try:
        return max(0.0, float(text))
    except ValueError:
        then, now = _date(text), _date(headers.get("Date"))
    return 0.0 if then is None or now is None else max(0.0, (then - now).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)  # dates of HTTP are in GMT


def _message(body: bytes) -> str:
    """An error body's message, or a short body as it is if it is text and no page."""
    try:
        error = msgspec.json.decode(body, type=ErrorBody)
        text = error.message or error.error_code
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body[:_ERROR_BODY].decode(errors="replace")
        if text.lstrip().startswith("<"):
            return ""
    return server_text(text)


def server_text(text: str) -> str:
    """What a server wrote, on one line, without what would steer a terminal: its first 600 characters."""
    return without_control(text).strip()[:600]


def without_control(text: str) -> str:
    """A foreign text on one line, without what would steer a terminal."""
    return _CONTROL.sub(" ", text)
