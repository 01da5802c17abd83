"""An address of an object store and its options to a client of the library obstore.

Clients are cached: the next table of a bucket is read over the connections that are open already.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from lakeview.model.errors import InvalidRequestError, LakeviewError, MissingExtraError, StoreUnavailableError
from lakeview.storage.credentials import AwsCredentials, azure_credentials, static_aws_credentials
from lakeview.storage.options import AZURE, CONNECTION, COORDINATOR, CREDENTIALS, GOOGLE, KINDS, NAMES, S3

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, S3Store

    Client: TypeAlias = S3Store | GCSStore | AzureStore

_CLIENTS = 64
"""Clients that are cached."""

_CONNECT, _RETRY_SECONDS = "2s", 2.5
"""How long a connection may take, and after how long the library repeats no request: an endpoint that drops packets is
an error within 5 s. `ObjectStorage` itself repeats what the store was too busy for."""

_CONNECT_TO_INSTANCE, _RETRY_INSTANCE_SECONDS = "1s", 0.9
"""The same where credentials can only come from the machine that this runs on: elsewhere its address drops packets, and
the library asks it several times."""

_OURS = {"max_retries", "retry_timeout", COORDINATOR, "locking_provider", "conditional_put", "profile"}
_CLIENT_NAMES = CONNECTION - _OURS

_ENDPOINT = {S3: "endpoint", GOOGLE: "base_url", AZURE: "endpoint"}
_ENDPOINT_VARIABLES = {
    S3: ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    GOOGLE: ("GOOGLE_BASE_URL",),
    AZURE: ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """A bucket or container. `host`: of the account, where the address names it; empty elsewhere."""

    kind: str
    bucket: str
    host: str = ""

    def __str__(self) -> str:
        word = "container" if self.kind == AZURE else "bucket"
        return f"{word} {self.bucket}" + (f" of {self.host}" if self.host else "")


def split_address(address: str) -> tuple[ObjectPlace, str]:
    """The bucket that a normalised address leads to, and the key in it.

    Azure's containers have two spellings: `az://container/key` and `abfss://container@account.dfs.core.windows.net/key`.
    """
    scheme, _, rest = address.partition("://")
    authority, _, key = rest.partition("/")
    if not authority:
        raise InvalidRequestError(
            f"{address} names a store and no place in it", fix=f"name the place too, such as {scheme}://bucket/table"
        )
    bucket, at, host = authority.partition("@")
    return ObjectPlace(KINDS[scheme], bucket, host if at else ""), key


def endpoint_of(place: ObjectPlace, options: Mapping[str, Any]) -> str | None:
    """The address of the server that normal options, or the environment, name; None for the provider's own."""
    option = options.get(_ENDPOINT[place.kind])
    if option:
        return str(option)
    endpoint = next((os.environ[name] for name in _ENDPOINT_VARIABLES[place.kind] if os.environ.get(name)), None)
    return endpoint or _account_endpoint(place)


def _account_endpoint(place: ObjectPlace) -> str | None:
    """The endpoint of blobs for an account's host, as an address names it."""
    if not place.host or place.host.endswith("fabric.microsoft.com"):
        return None
    account, dot, domain = place.host.partition(".")
    if not dot:
        return None
    service, _, cloud = domain.partition(".")
    return f"https://{account}.blob.{cloud}" if service in ("dfs", "blob") else f"https://{place.host}"


_lock = threading.Lock()
_processes: set[int] = set()
"""Those that made clients: this one, or one that it was forked from."""

_clients: OrderedDict[tuple[ObjectPlace, str, bool], Client] = OrderedDict()


def client(place: ObjectPlace, options: Mapping[str, Any], *, once: bool = False) -> Client:
    """The client of a bucket. `options` are normal; `once`: no request is sent again by itself.

    InvalidRequestError for a value that no such option has, AccessDeniedError where credentials are missing,
    MissingExtraError, StoreUnavailableError (kind forked) in a process whose parent had clients when it was forked.
    """
    if _processes and os.getpid() not in _processes:  # a request would wait for the parent's threads for ever
        raise StoreUnavailableError(
            f"this process was forked from one that had used object stores, so that {place} cannot be reached",
            fix='start processes by spawn, such as multiprocessing.get_context("spawn"), or before a store is used',
            kind="forked",
        )
    key = (place, json.dumps(dict(options), sort_keys=True, default=repr) + _environment(place.kind), once)
    with _lock:
        instance = _clients.get(key)
        if instance is not None:
            _clients.move_to_end(key)
            return instance
    instance = _new_client(place, options, once)
    with _lock:
        _processes.add(os.getpid())
        _clients[key] = instance
        while len(_clients) > _CLIENTS:
            _clients.popitem(last=False)
    return instance


def _environment(kind: str) -> str:
    """The variables that a client of this kind reads: another value makes another client."""
    prefix = {S3: "AWS_", GOOGLE: "GOOGLE_", AZURE: "AZURE_"}[kind]
    return json.dumps(sorted((name, value) for name, value in os.environ.items() if name.startswith(prefix)))


def _new_client(place: ObjectPlace, options: Mapping[str, Any], once: bool) -> Client:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import AzureStore, GCSStore, S3Store
    except ImportError as error:
        extra = {S3: "s3", GOOGLE: "gcs", AZURE: "azure"}[place.kind]
        raise MissingExtraError(
            f"opening {NAMES[place.kind]} needs obstore, which is not installed", fix=f"pip install 'lakeview[{extra}]'"
        ) from error
    config: Any = {n: v for n, v in options.items() if n not in _CLIENT_NAMES and n not in _OURS}
    endpoint = endpoint_of(place, options)
    if endpoint:
        config[_ENDPOINT[place.kind]] = endpoint
    common: dict[str, Any] = {
        "client_options": _client_options(options, endpoint, of_instance=_asks_instance(place.kind, options)),
        "retry_config": _retries(options, once=once, of_instance=_asks_instance(place.kind, options)),
    }
    try:
        match place.kind:
            case "s3":
                config |= {"disable_bulk_delete": True}  # not every store of S3's protocol knows deleting many at once
                return S3Store(place.bucket, config=_s3(config, options, common), **common)
            case "google":
                return GCSStore(place.bucket, config=config, **common)
            case _:
                return AzureStore(place.bucket, config=_azure(place, config, common), **common)
    except LakeviewError:
        raise
    except (BaseError, ValueError, TypeError) as error:
        raise InvalidRequestError(
            f"{NAMES[place.kind]} cannot be opened with these storage options: {_first_line(error, options)}",
            fix="correct the storage options",
            kind="bad-option",
        ) from None  # the library's text may hold credentials


def _s3(config: dict[str, Any], options: Mapping[str, Any], common: dict[str, Any]) -> Any:
    explicit = {name for name in CREDENTIALS if options.get(name)}
    if "access_key_id" in explicit or "secret_access_key" in explicit:
        # not as configuration: the library would complete it with a session token of the environment
        common["credential_provider"] = static_aws_credentials(options)
        config = {n: v for n, v in config.items() if n not in CREDENTIALS}
    elif not explicit - {"profile"} and not _truthy(os.environ.get("AWS_SKIP_SIGNATURE")):
        provider = AwsCredentials.of_environment(options.get("profile"))
        if provider is not None:
            common["credential_provider"] = provider
            config.setdefault("region", provider.region)
    if not config.get("region"):
        config["region"] = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    return config


def _azure(place: ObjectPlace, config: dict[str, Any], common: dict[str, Any]) -> Any:
    if place.host.endswith("fabric.microsoft.com"):
        config.setdefault("use_fabric_endpoint", True)
    if place.host:
        config.setdefault("account_name", place.host.partition(".")[0])
    if not config.get("account_name") and not config.get("use_emulator"):
        account = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
        if not account:
            raise InvalidRequestError(
                f"the account of the Azure container {place.bucket} is not known",
                fix="give the storage option account_name, or an address such as "
                f"abfss://{place.bucket}@account.dfs.core.windows.net/table",
                place="account_name",
                kind="unknown-account",
            )
    credentials = azure_credentials(config)
    if credentials is not None:
        # given as a whole: the library would prefer an account key of the environment to a token of the options
        common["credential_provider"] = credentials
        config = {n: v for n, v in config.items() if n not in CREDENTIALS}
    return config


def _asks_instance(kind: str, options: Mapping[str, Any]) -> bool:
    """Whether credentials are left to be found by the library where it runs, for one on a machine of the provider."""
    names = {GOOGLE: ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_BEARER_TOKEN"), AZURE: (
        "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_SECRET", "AZURE_STORAGE_TOKEN",
    )}.get(kind)  # fmt: skip
    if names is None or any(os.environ.get(name) for name in names):
        return False
    return not any(options.get(name) for name in CREDENTIALS - {"msi_endpoint", "object_id", "msi_resource_id"})


def _client_options(options: Mapping[str, Any], endpoint: str | None, *, of_instance: bool) -> dict[str, Any]:
    settings = {name: value for name, value in options.items() if name in _CLIENT_NAMES}
    # an address of http is given on purpose; a provider's own endpoints are never asked over it
    plain = {"allow_http": True} if (endpoint or "").startswith("http://") or options.get("use_emulator") else {}
    connect = _CONNECT_TO_INSTANCE if of_instance else _CONNECT
    return {"connect_timeout": connect, "read_timeout": "30s", "timeout": "15m", **plain, **settings}


def _retries(options: Mapping[str, Any], *, once: bool, of_instance: bool) -> Any:
    seconds = options.get("retry_timeout", _RETRY_INSTANCE_SECONDS if of_instance else _RETRY_SECONDS)
    return {
        "max_retries": 0 if once else int(options.get("max_retries", 4)),
        "retry_timeout": timedelta(seconds=float(str(seconds).rstrip("s"))),
        "backoff": {
            "init_backoff": timedelta(milliseconds=100),
            "max_backoff": timedelta(seconds=1),
            "base": 2,
        },
    }


def _first_line(error: Exception, options: Mapping[str, Any]) -> str:
    text = next(iter(str(error).splitlines()), type(error).__name__)
    for name in CREDENTIALS & options.keys():
        if isinstance(options[name], str) and options[name]:
            text = text.replace(options[name], "***")
    return text


def _truthy(text: str | None) -> bool:
    return (text or "").lower() in ("1", "true", "yes")
