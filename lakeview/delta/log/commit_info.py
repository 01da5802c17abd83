"""What a commit says about itself: commitInfo, in which "implementations are free to store any valid JSON-formatted
data" (delta protocol, Commit Provenance Information), to the fields that readers know."""

import re
from typing import Any

import msgspec

from lakeview.delta.log.actions import Long


class CommitInfo(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What a commit says about itself, as far as it says anything. Times in milliseconds since 1970."""

    timestamp: Long | None = None
    in_commit_timestamp: Long | None = None
    operation: str | None = None
    operation_parameters: msgspec.Raw = msgspec.Raw(b"")
    operation_metrics: msgspec.Raw = msgspec.Raw(b"")
    engine: str | None = msgspec.field(name="engineInfo", default=None)
    client_version: str | None = None
    user_name: str | None = None
    user_id: str | None = None
    txn_id: str | None = None
    is_blind_append: bool | None = None
    read_version: Long | None = None
    isolation_level: str | None = None

    @property
    def user(self) -> str | None:
        """The name of the user, else the id."""
        return self.user_name or self.user_id

    @property
    def parameters(self) -> str | None:
        """operationParameters as compact JSON text."""
        return _compact(bytes(self.operation_parameters))

    @property
    def metrics(self) -> str | None:
        """operationMetrics as compact JSON text."""
        return _compact(bytes(self.operation_metrics))


_INFO = msgspec.json.Decoder(CommitInfo)
_INVALID = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NEEDLESS = re.compile(rb"""\\[^"\\bfnrt]""")
"""An escape that JSON which is written again would not hold."""


def parse_commit_info(raw: bytes) -> CommitInfo:
    """The bytes of a commitInfo action; a field of an unexpected type is left out rather than refused."""
    try:
        return _INFO.decode(raw)
    except _INVALID:
        return _free_form(raw)


def _free_form(raw: bytes) -> CommitInfo:
    """Field by field, which takes three times as long: every writer of today records them as expected."""
    info = json_object(raw)
    return CommitInfo(
        timestamp=_number(info.get("timestamp")),
        in_commit_timestamp=_number(info.get("inCommitTimestamp")),
        operation=_text(info.get("operation")),
        operation_parameters=_raw(info.get("operationParameters")),
        operation_metrics=_raw(info.get("operationMetrics")),
        engine=_text(info.get("engineInfo")),
        client_version=_text(info.get("clientVersion")),
        user_name=_text(info.get("userName")),
        user_id=_text(info.get("userId")),
        txn_id=_text(info.get("txnId")),
        is_blind_append=info["isBlindAppend"] if isinstance(info.get("isBlindAppend"), bool) else None,
        read_version=whole(info.get("readVersion")),
        isolation_level=info["isolationLevel"] if isinstance(info.get("isolationLevel"), str) else None,
    )


def _compact(raw: bytes) -> str | None:
    if raw in (b"", b"null"):
        return None
    try:  # what the decoder only skipped may be no UTF-8
        if len(raw.split(None, 1)) == 1 and (b"\\" not in raw or _NEEDLESS.search(raw) is None):
            return raw.decode()
        return msgspec.json.encode(msgspec.json.decode(raw)).decode()  # white space, at least within values
    except _INVALID:
        return None


def json_object(raw: bytes) -> dict[str, Any]:
    """The object in a JSON text; an empty one where it holds no object."""
    try:
        value = msgspec.json.decode(raw)
    except _INVALID:
        return {}
    return value if isinstance(value, dict) else {}


def whole(value: object) -> int | None:
    """A JSON value as a number of 64 bits, whether written as a number or as text; None for anything else."""
    if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal() and value.isascii():
        value = int(value)
    fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if fits else None  # type: ignore[return-value]  # `fits` says it is an int


def _text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(b"" if value is None else msgspec.json.encode(value))


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if -(2**63) <= number < 2**63 else None
