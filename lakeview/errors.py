"""The public address of the errors; `lakeview.model.errors` defines them and draws their tree."""

from lakeview.model.errors import (
    AccessDeniedError,
    CommitConflictError,
    ConstraintViolationError,
    CorruptTableError,
    DataFileMissingError,
    InvalidRequestError,
    LakeviewError,
    MissingExtraError,
    NotATableError,
    RuleError,
    SharingError,
    StoreUnavailableError,
    UnsupportedTableError,
    VersionNotFoundError,
)

__all__ = [
    "AccessDeniedError",
    "CommitConflictError",
    "ConstraintViolationError",
    "CorruptTableError",
    "DataFileMissingError",
    "InvalidRequestError",
    "LakeviewError",
    "MissingExtraError",
    "NotATableError",
    "RuleError",
    "SharingError",
    "StoreUnavailableError",
    "UnsupportedTableError",
    "VersionNotFoundError",
]
