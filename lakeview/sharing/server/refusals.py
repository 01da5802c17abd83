"""What the server will not do to an answer: a status, an error code and a sentence for the recipient.

A permanent fault is never answered with 5xx: clients try those again for minutes. No message names a place of this
machine: what is wrong with a table is named by its kind, and the place goes to the server's own log.
"""

from collections.abc import Mapping
from datetime import datetime

from lakeview.model.errors import (
    AccessDeniedError,
    CorruptTableError,
    DataFileMissingError,
    InvalidRequestError,
    LakeviewError,
    NotATableError,
    StoreUnavailableError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lakeview.sharing.protocol.messages import ErrorCode

_INVALID, _UNSUPPORTED = ErrorCode.INVALID_PARAMETER_VALUE, ErrorCode.UNSUPPORTED_OPERATION


class Refusal(Exception):
    """An answer other than success. `headers` go with it."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


def bad_parameter(message: str) -> Refusal:
    """400: a value that cannot be meant."""
    return Refusal(400, _INVALID, message)


def before_earliest(earliest: datetime) -> Refusal:
    """400: a timestamp before the earliest version. The first sentence is the phrase that clients match."""
    return bad_parameter(
        f"Please use a timestamp greater than or equal to {_iso_text(earliest)}: "
        "the timestamp is before the earliest version available"
    )


def after_latest(latest: datetime) -> Refusal:
    """400: a timestamp after the latest version. The first sentence is the phrase that clients match."""
    return bad_parameter(
        f"Please use a timestamp less than or equal to {_iso_text(latest)}: "
        "the timestamp is after the latest available version"
    )


def not_recorded(start: int, end: int, version: int) -> Refusal:
    """400: a version of a range without a change data feed, in the reference server's words."""
    return bad_parameter(
        f"Error getting change data for range [{start}, {end}] as change data was not recorded for version [{version}]"
    )


def _iso_text(timestamp: datetime) -> str:
    return f"{timestamp:%Y-%m-%dT%H:%M:%S.%fZ}"


def malformed_request(message: str) -> Refusal:
    """400: no request of this protocol."""
    return Refusal(400, ErrorCode.MALFORMED_REQUEST, message)


def unsupported_form(message: str) -> Refusal:
    """400: the table cannot be given in this way."""
    return Refusal(400, _UNSUPPORTED, message)


def not_there(kind: str, name: str) -> Refusal:
    """404, the same whether it is missing or not granted; `name` is what the caller asked for."""
    return Refusal(
        404,
        ErrorCode.RESOURCE_DOES_NOT_EXIST,
        f"[{kind}] '{name}' does not exist, please contact your share provider for further information.",
    )


def missing_authentication(message: str) -> Refusal:
    """401."""
    return Refusal(401, ErrorCode.UNAUTHENTICATED, message, {"WWW-Authenticate": "Bearer"})


def forbidden(message: str) -> Refusal:
    """403."""
    return Refusal(403, ErrorCode.PERMISSION_DENIED, message)


_REFUSALS: tuple[tuple[type[LakeviewError], int, str, str], ...] = (
    (DataFileMissingError, 400, _INVALID, "table files missing"),
    (VersionNotFoundError, 400, _INVALID, "the table has no such version any more"),
    (NotATableError, 400, _INVALID, "table files missing: there is no table where the provider says there is one"),
    (CorruptTableError, 400, _INVALID, "the table is damaged and cannot be read"),
    (
        UnsupportedTableError,
        400,
        _UNSUPPORTED,
        "Unsupported Delta Table Properties: the table needs what is not served",
    ),
    (AccessDeniedError, 400, _UNSUPPORTED, "the table lies where this server may not read"),
    (InvalidRequestError, 400, _INVALID, "the request cannot be carried out for this table"),
    (StoreUnavailableError, 503, ErrorCode.RESOURCE_EXHAUSTED, "the table's store does not answer, try again"),
)


def refusal_of(error: LakeviewError) -> Refusal:
    """Our own errors over a table as an answer: the kind is named, never a path."""
    for kind, status, code, message in _REFUSALS:
        if isinstance(error, kind):
            headers = {"Retry-After": "5"} if status == 503 else None
            return Refusal(status, code, f"{message} ({error.kind})", headers)
    return Refusal(400, _INVALID, f"the table cannot be read ({error.kind})")
