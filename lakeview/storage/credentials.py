"""Who asks an object store: credentials given as options, or found where the provider's own tools look for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lakeview.model.clock import system_clock
from lakeview.model.errors import AccessDeniedError, InvalidRequestError, LakeviewError, MissingExtraError

if TYPE_CHECKING:
    from lakeview.storage.interface import Storage

_FRESH = timedelta(minutes=5)
"""After so long botocore is asked for credentials again; it renews those that run out."""


class AwsCredentials:
    """Credentials of botocore's chain: environment, profiles, single sign-on, roles, containers and instances.

    Shows none of them. `region`: of the profile, None where it names none.
    """

    def __init__(self, credentials: Any, region: str | None) -> None:
        self._credentials = credentials
        self.region = region

    def __call__(self) -> dict[str, Any]:
        """The credentials now, as obstore takes them."""
        frozen = self._credentials.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": system_clock() + _FRESH,
        }

    @staticmethod
    def of_environment(profile: str | None) -> AwsCredentials | None:
        """The credentials of a profile, or those that the environment leads to.

        None where botocore is not installed: then obstore looks by itself, and knows no profiles. AccessDeniedError if
        there are none, MissingExtraError for a profile without botocore, InvalidRequestError for an unknown profile.
        """
        profile = profile or os.environ.get("AWS_PROFILE")
        try:
            from botocore.exceptions import BotoCoreError, ProfileNotFound
            from botocore.session import Session
        except ImportError as error:
            if profile is None:
                return None
            raise MissingExtraError(
                f"the profile {profile} of AWS needs botocore, which is not installed", fix="pip install 'lakeview[s3]'"
            ) from error
        try:
            session = Session(profile=profile)
            credentials = session.get_credentials()
            region = session.get_config_variable("region")
        except ProfileNotFound as error:
            raise InvalidRequestError(
                f"AWS has no profile {profile} here", fix="name one of ~/.aws/config", place="profile"
            ) from error
        except BotoCoreError as error:
            raise AccessDeniedError(
                f"the credentials of AWS could not be loaded: {type(error).__name__}",
                fix="sign in again, or give access_key_id and secret_access_key as storage options",
                kind="no-credentials",
            ) from None  # its text may hold what the profile holds
        if credentials is None:
            raise no_credentials("s3")
        return AwsCredentials(credentials, region)


def no_credentials(kind: str, place: str | None = None) -> AccessDeniedError:
    """The error for an object store whose credentials are missing."""
    name, options, variables = _MISSING[kind]
    return AccessDeniedError(
        f"no credentials were found for {name}" + (f", which {place} lies in" if place else ""),
        fix=f"give {options} as storage options, or set {variables}; skip_signature=true reads what is public",
        place=place,
        kind="no-credentials",
    )


_MISSING = {
    "s3": (
        "S3", "access_key_id and secret_access_key, or profile,", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    ),
    "google": (
        "Google Cloud Storage", "application_credentials (a file) or bearer_token", "GOOGLE_APPLICATION_CREDENTIALS"
    ),
    "azure": (
        "Azure", "account_key, sas_token, or client_id with client_secret and tenant_id,",
        "AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
    ),
}  # fmt: skip


def static_aws_credentials(options: Mapping[str, Any]) -> Callable[[], dict[str, Any]]:
    """Credentials of normal options, and nothing else. InvalidRequestError if half of the pair is missing."""
    names = ("access_key_id", "secret_access_key")
    missing = [name for name in names if not options.get(name)]
    if missing:
        raise InvalidRequestError(
            f"the storage options hold {next(n for n in names if n not in missing)} without {missing[0]}",
            fix=f"give {missing[0]} as well",
            place=missing[0],
        )
    credentials = {
        "access_key_id": str(options["access_key_id"]),
        "secret_access_key": str(options["secret_access_key"]),
        "token": options.get("session_token") or None,
        "expires_at": None,
    }
    return lambda: credentials


_SERVICE_ACCOUNTS = ("service_account", "service_account_key", "application_credentials")


def signs(kind: str, options: Mapping[str, Any]) -> bool:
    """Whether normal options, or the environment, hold credentials that can sign an address without asking a server.

    Google's are those of a service account: without them the library asks the machine that this runs on, a second each
    time.
    """
    if options.get("skip_signature"):
        return False
    if kind != "google" or any(options.get(name) for name in _SERVICE_ACCOUNTS):
        return True
    return any(os.environ.get(f"GOOGLE_{name.upper()}") for name in _SERVICE_ACCOUNTS)


_AZURE = (("account_key", "access_key"), ("sas_key", "sas_token"), ("token", "token"))


def azure_credentials(options: Mapping[str, Any]) -> Callable[[], dict[str, Any]] | None:
    """A key, signature or token of normal options, as obstore takes it; None where they hold another kind or none."""
    for name, field in _AZURE:
        value = options.get(name)
        if value:
            text = str(value).removeprefix("?") if name == "sas_key" else str(value)
            credentials = {field: text, "expires_at": None}
            return lambda: credentials
    return None


def use_newest(store: Storage, options: Mapping[str, Any], turns: threading.Lock) -> bool:
    """Let a store use other credentials than the options that were refused: those that another thread got meanwhile, or
    the newest; false where there are none."""
    with turns:
        if store.options is options and store.newest is not None:
            with suppress(LakeviewError):  # the refusal says more than a catalog that does not answer
                newer = store.newest()
                return newer.options != options and store.adopt_credentials(newer)
        return store.options is not options
