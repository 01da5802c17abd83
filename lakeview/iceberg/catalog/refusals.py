"""What pyiceberg and the libraries below it raise, to lakeview's errors.

Their texts are not passed on, and neither are they as causes: some print every property of a catalog, credentials too.
Only a server's own words are shown, without anything that looks like a secret.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import Enum, auto
from urllib.parse import quote, quote_plus

from lakeview.model.errors import (
    AccessDeniedError,
    InvalidRequestError,
    LakeviewError,
    MissingExtraError,
    StoreUnavailableError,
)


class Refusal(Enum):
    """Why a catalog did not answer as asked."""

    DENIED = auto()
    NO_NAMESPACE = auto()
    NO_TABLE = auto()
    NOT_ICEBERG = auto()
    DOWN = auto()
    NOT_INSTALLED = auto()
    WRONG = auto()


_BY_CLASS = {
    # pyiceberg's
    "UnauthorizedError": Refusal.DENIED,
    "ForbiddenError": Refusal.DENIED,
    "OAuthError": Refusal.DENIED,
    "AuthorizationExpiredError": Refusal.DENIED,
    "SignError": Refusal.DENIED,
    "NoSuchNamespaceError": Refusal.NO_NAMESPACE,
    "NoSuchIcebergTableError": Refusal.NOT_ICEBERG,
    "NoSuchPropertyException": Refusal.NOT_ICEBERG,
    "NoSuchTableError": Refusal.NO_TABLE,
    "NoSuchIdentifierError": Refusal.NO_TABLE,
    "ServiceUnavailableError": Refusal.DOWN,
    "ServerError": Refusal.DOWN,
    "TooManyRequestsError": Refusal.DOWN,
    "NotInstalledError": Refusal.NOT_INSTALLED,
    "ImportError": Refusal.NOT_INSTALLED,
    # requests'
    "InvalidHeader": Refusal.WRONG,
    "InvalidURL": Refusal.WRONG,
    "InvalidSchema": Refusal.WRONG,
    "MissingSchema": Refusal.WRONG,
    "OSError": Refusal.DOWN,
    # SQLAlchemy's
    "OperationalError": Refusal.DOWN,
    # botocore's
    "NoCredentialsError": Refusal.DENIED,
    "PartialCredentialsError": Refusal.DENIED,
    "ConnectionError": Refusal.DOWN,
    "HTTPClientError": Refusal.DOWN,
}
"""By the name of an error's class, or of the nearest one above it."""

_BY_CODE = {
    "AccessDeniedException": Refusal.DENIED,
    "ExpiredTokenException": Refusal.DENIED,
    "InvalidSignatureException": Refusal.DENIED,
    "UnrecognizedClientException": Refusal.DENIED,
    "EntityNotFoundException": Refusal.NO_NAMESPACE,
    "InternalServiceException": Refusal.DOWN,
    "OperationTimeoutException": Refusal.DOWN,
    "ThrottlingException": Refusal.DOWN,
}
"""By the code of an answer of AWS Glue."""

_SPEAKS = "RESTError"
"""The class of errors whose text is what the server said."""
_OPAQUE = re.compile(r"[A-Za-z0-9_+=~-]{24,}")
_AUTHORIZATION = re.compile(r"\b(Bearer|Basic)\s+\S+", re.IGNORECASE)
_LONGEST = 200


def foreign_errors(name: str) -> tuple[type[Exception], ...]:
    """The classes that a catalog of this name, one of pyiceberg's, may raise. MissingExtraError without pyiceberg."""
    try:
        from pyiceberg import exceptions
    except ImportError:
        raise MissingExtraError(
            f"opening the catalog {name} needs pyiceberg, which is not installed",
            fix="pip install 'lakeview[catalogs]'",
        ) from None

    classes: list[type[Exception]] = [
        exceptions.NoSuchTableError,
        exceptions.NoSuchNamespaceError,
        exceptions.NoSuchIdentifierError,
        exceptions.NoSuchPropertyException,
        exceptions.NotInstalledError,
        exceptions.RESTError,
        exceptions.SignError,
        NotImplementedError,
        OSError,
        ValueError,  # pydantic's and msgspec's are such, and those of pyiceberg's configuration
        ImportError,  # of a package that only some settings need
        AttributeError,
        KeyError,
        TypeError,  # pyiceberg uses settings and answers of a wrong type unchecked
        RecursionError,  # an answer that is nested too deep
    ]
    with suppress(ImportError):  # pyiceberg brings it for Glue only
        from botocore.exceptions import BotoCoreError, ClientError

        classes += [BotoCoreError, ClientError]
    with suppress(ImportError):  # and this for SQL only
        from sqlalchemy.exc import SQLAlchemyError

        classes.append(SQLAlchemyError)
    return tuple(classes)


def refusal(error: BaseException) -> Refusal:
    """What an error of a catalog means."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        code = answer.get("Error", {}).get("Code", "")
        if code in _BY_CODE:
            return _BY_CODE[code]
    return next((_BY_CLASS[c.__name__] for c in type(error).__mro__ if c.__name__ in _BY_CLASS), Refusal.WRONG)


def as_our_error(error: BaseException, catalog: str, secrets: Iterable[str] = ()) -> LakeviewError:
    """An error of a catalog as ours, for those that are no matter of one table."""
    why = refusal(error)
    if why is Refusal.NOT_INSTALLED:
        return MissingExtraError(
            f"the catalog {catalog} is of a type whose package is not installed",
            fix="install pyiceberg with the extra of that type, such as pip install 'pyiceberg[hive]'",
        )
    ours, verb, fix, kind = _OURS.get(why, _OURS[Refusal.WRONG])
    return ours(f"the catalog {catalog} {verb}: {_words(error, secrets)}", fix=fix, place=catalog, kind=kind)


_OURS: Mapping[Refusal, tuple[type[LakeviewError], str, str, str | None]] = {
    Refusal.DENIED: (
        AccessDeniedError, "refuses access", "check the catalog's credentials in the configuration", None
    ),
    Refusal.DOWN: (
        StoreUnavailableError, "did not answer", "try again; check that it runs, and its uri", "catalog-unavailable"
    ),
    Refusal.WRONG: (
        InvalidRequestError, "could not be asked", "check its type, uri and warehouse in the configuration",
        "bad-catalog",
    ),
}  # fmt: skip
"""Error, what the catalog does, what to do, and the kind."""


def _words(error: BaseException, secrets: Iterable[str]) -> str:
    """What a server said, its secrets left out; of errors of libraries only what kind they are."""
    if all(c.__name__ != _SPEAKS for c in type(error).__mro__):
        return type(error).__name__
    text = next(iter(str(error).splitlines()), "")
    spellings = {spelling for secret in secrets for spelling in (secret, quote(secret, safe=""), quote_plus(secret))}
    for secret in sorted(spellings, key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _AUTHORIZATION.sub(r"\1 ***", text)
    return _OPAQUE.sub("***", text)[:_LONGEST] or type(error).__name__
