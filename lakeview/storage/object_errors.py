"""The errors of the library obstore as ours.

The library says what a store answered in its text alone: codes of the providers are looked for there. Its text is never
shown: it may hold signed addresses.
"""

import re
import sys
from collections.abc import Callable
from typing import TypeVar

from lakeview.model.errors import (
    AccessDeniedError,
    InvalidRequestError,
    LakeviewError,
    StoreUnavailableError,
    UnsupportedTableError,
)
from lakeview.storage.credentials import no_credentials
from lakeview.storage.object_clients import ObjectPlace
from lakeview.storage.options import NAMES

T = TypeVar("T")

_STATUS = re.compile(r"status code: (\d{3})")
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|The specified bucket does not exist|FilesystemNotFound")
_NO_CREDENTIALS = re.compile(r"token request|169\.254\.169\.254|metadata\.google|identity/oauth2|CredentialsNotFound")
_DENIED = re.compile(r"status code: 40[13]|ExpiredToken|TokenRefreshRequired")
"""S3 answers the last two with the status 400, for a session token that has expired."""
_NO_ANSWER = re.compile(r"error sending request|operation timed out|connect|dns error", re.IGNORECASE)

EXISTS = re.compile(r"BlobAlreadyExists|status code: 412")
"""What stores answer where a file that must be absent is there."""

BUSY = re.compile(r"ConditionalRequestConflict|status code: (?:429|503)")
"""What stores answer where a request was not carried out and may be sent again. S3's 409, while another request for the
same key is under way, is one: the library takes it for a file that is there (apache/arrow-rs-object-store#852)."""


class StoreBusyError(StoreUnavailableError):
    """The store answered that it did not carry the request out, and may do so later."""


def translate_errors(place: ObjectPlace, endpoint: str | None, path: str, action: Callable[[], T]) -> T:
    """What an action gives; FileNotFoundError and FileExistsError stay Python's own, other errors become ours."""
    try:
        return action()
    except LakeviewError:
        raise
    except FileNotFoundError as error:
        if _NO_BUCKET.search(str(error)):
            raise no_bucket(place, endpoint) from None
        raise FileNotFoundError(path) from None
    except _library_errors() as error:
        raise _ours(place, endpoint, path, error) from None


def no_bucket(place: ObjectPlace, endpoint: str | None) -> InvalidRequestError:
    """The error for a bucket that is not there: it is no empty folder."""
    return InvalidRequestError(
        f"there is no {place}" + (f" at {endpoint}" if endpoint else f" in {NAMES[place.kind]}"),
        fix="check its name, and the endpoint and the account of the storage options",
        place=place.bucket,
        kind="no-bucket",
    )


def _library_errors() -> tuple[type[Exception], ...]:
    library = sys.modules.get("obstore.exceptions")  # loaded, or not raised
    return (OSError,) if library is None else (library.BaseError, OSError)


def _status(text: str) -> int | None:
    match = _STATUS.search(text)
    return int(match[1]) if match else None


def _ours(place: ObjectPlace, endpoint: str | None, path: str, error: Exception) -> Exception:
    text = str(error)
    where = f"{NAMES[place.kind]} at {endpoint}" if endpoint else NAMES[place.kind]
    kind = type(error).__name__
    status = _status(text)
    if BUSY.search(text):
        return StoreBusyError(
            f"{where} is too busy to read or write {path}", fix="try again later", place=path, kind="store-busy"
        )
    if kind == "AlreadyExistsError" and EXISTS.search(text):
        return FileExistsError(path)
    if _NO_BUCKET.search(text):
        return no_bucket(place, endpoint)
    if _NO_CREDENTIALS.search(text):
        return no_credentials(place.kind, str(place))
    if kind in ("PermissionDeniedError", "UnauthenticatedError") or _DENIED.search(text):
        return AccessDeniedError(
            f"{where} refuses access to {path} in {place}",
            fix="check the credentials of the storage options and what they may do",
            place=path,
        )
    if kind == "InvalidPathError":
        return UnsupportedTableError(
            f"{place} holds a name that cannot be listed below {path or 'its root'}: it has an empty or a dotted part",
            fix="rename the object whose key holds // or /../",
            place=path,
            kind="bad-object-name",
        )
    if status is None and _NO_ANSWER.search(text):
        return StoreUnavailableError(
            f"{where} does not answer, asked for {path or 'its root'} in {place}",
            fix="check the endpoint and the network, then try again",
            place=path,
            kind="no-answer",
        )
    return StoreUnavailableError(
        f"{path} in {place} could not be read or written: {where} answered {status or kind}",
        fix="try again; check the address of the store and the network",
        place=path,
    )
