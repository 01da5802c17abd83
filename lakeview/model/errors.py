"""What can go wrong, grouped by what the caller can do about it.

LakeviewError                    everything lakeview raises on purpose
├── NotATableError               nothing at this address is a table
├── VersionNotFoundError         the table is there, that version or moment is not
├── UnsupportedTableError        a feature or protocol version that is not implemented, by name
├── CorruptTableError            the log breaks its own rules; says which file and how
│   └── DataFileMissingError     the log is fine, a data file it names is gone (only scans raise it)
├── StoreUnavailableError        the store did not answer; worth trying again
├── AccessDeniedError            outside the allowed roots, or the store refused
├── CommitConflictError          another writer won, and what it did collides with ours
├── ConstraintViolationError     the data breaks a rule of the table
├── InvalidRequestError          the call itself cannot be meant: a bad predicate, a naive moment, an unknown column
│   └── RuleError                a quality rule cannot be checked
├── SharingError                 a sharing server refused or broke its protocol
└── MissingExtraError            an optional dependency is not installed

Each carries `kind` (a stable word for programs), `fix` (what to do) and `place` (the file, line or column it is about).
"""

from collections.abc import Mapping
from typing import ClassVar

from lakeview.model.printable import visible

_MAX_CHARACTERS = 900


class LakeviewError(Exception):
    """The root of everything lakeview raises on purpose.

    `kind`: a stable, hyphenated word; `fix`: one sentence that says what to do, or None; `place`: path, line or
    column that the error is about, or None.
    """

    default_kind: ClassVar[str] = "lakeview"

    def __init__(
        self, message: str, *, fix: str | None = None, place: str | None = None, kind: str | None = None
    ) -> None:
        message = clip(visible(message))  # names in it are the table's own, and may hold what steers a terminal
        super().__init__(message)
        self.message = message
        self.fix = None if fix is None else clip(visible(fix))
        self.place = None if place is None else clip(place)
        self.kind = kind or self.default_kind

    def __str__(self) -> str:
        return self.message if self.fix is None else f"{self.message}\n  fix: {self.fix}"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.message, self.fix, self.place, self.kind), self.__dict__


def clip(text: str) -> str:
    """A text for people: a table may hold names of a million letters, an error shows both ends of them."""
    return (
        text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS // 2]} ... {text[-_MAX_CHARACTERS // 4 :]}"
    )


def _restore(
    kind_of_error: type[LakeviewError], message: str, fix: str | None, place: str | None, kind: str
) -> LakeviewError:
    return kind_of_error(message, fix=fix, place=place, kind=kind)


class NotATableError(LakeviewError, FileNotFoundError):
    """Nothing at this address is a table that lakeview knows."""

    default_kind = "not-a-table"


class VersionNotFoundError(LakeviewError, LookupError):
    """The table has no such version, or none at that moment."""

    default_kind = "version-not-found"


class UnsupportedTableError(LakeviewError, ValueError):
    """The table needs a feature or protocol version that is not implemented; the message names it."""

    default_kind = "unsupported-table"


class CorruptTableError(LakeviewError, ValueError):
    """The table's own files break the format's rules; `place` says which."""

    default_kind = "corrupt-table"


class DataFileMissingError(CorruptTableError, FileNotFoundError):
    """A data file that the log names is not in the store. Snapshots and listings still work."""

    default_kind = "data-file-missing"


class StoreUnavailableError(LakeviewError, ConnectionError):
    """The store did not answer as it should; trying again may help."""

    default_kind = "store-unavailable"


class AccessDeniedError(LakeviewError, PermissionError):
    """The address lies outside the allowed roots, or the store refused."""

    default_kind = "access-denied"


class CommitConflictError(LakeviewError, RuntimeError):
    """Another writer committed something that this transaction cannot be placed after.

    `version`, `operation` and `user` are those of the winning commit.
    """

    default_kind = "commit-conflict"

    def __init__(
        self,
        message: str,
        *,
        fix: str | None = None,
        place: str | None = None,
        kind: str | None = None,
        version: int | None = None,
        operation: str | None = None,
        user: str | None = None,
    ) -> None:
        super().__init__(message, fix=fix, place=place, kind=kind)
        self.version = version
        self.operation = operation
        self.user = user


class ConstraintViolationError(LakeviewError, ValueError):
    """The data breaks a rule that the table declares."""

    default_kind = "constraint-violation"


class InvalidRequestError(LakeviewError, ValueError):
    """The request cannot be carried out as it stands: a bad predicate, a naive moment, an unknown column."""

    default_kind = "invalid-request"


class RuleError(InvalidRequestError):
    """A quality rule cannot be checked: an expectation of a pipeline that is no condition or has an unknown column."""

    default_kind = "rule"


class SharingError(LakeviewError, ConnectionError):
    """A sharing server refused the request or broke its protocol."""

    default_kind = "sharing"


class MissingExtraError(LakeviewError, ImportError):
    """An optional dependency is needed; the message names the extra that brings it."""

    default_kind = "missing-extra"


def error_record(error: LakeviewError) -> dict[str, str | None]:
    """An error as a record that JSON can carry to another process."""
    return {
        "type": type(error).__name__,
        "message": error.message,
        "fix": error.fix,
        "place": error.place,
        "kind": error.kind,
    }


def error_of_record(record: Mapping[str, str | None]) -> LakeviewError:
    """The error that `error_record` was made of; a LakeviewError where its class is none of ours."""
    kind = globals().get(record["type"] or "")
    if not (isinstance(kind, type) and issubclass(kind, LakeviewError)):
        kind = LakeviewError
    return kind(record["message"] or "", fix=record["fix"], place=record["place"], kind=record["kind"])
