"""Storage options in the spellings of deltalake and of fsspec to one spelling, for S3, Google Cloud Storage and Azure.

The one spelling is that of the Rust crate object_store (`access_key_id`, `endpoint`, ...), which deltalake writes with
a prefix and in capitals (`AWS_ACCESS_KEY_ID`); normal options are themselves valid options. Options of other stores are
fsspec's own and are left as they are.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lakeview.model.errors import InvalidRequestError

S3, GOOGLE, AZURE = "s3", "google", "azure"
"""The kinds of object stores."""

KINDS = {
    "s3": S3, "s3a": S3, "s3n": S3,
    "gs": GOOGLE, "gcs": GOOGLE,
    "az": AZURE, "abfs": AZURE, "abfss": AZURE, "azure": AZURE,
}  # fmt: skip
"""Schemes of addresses, and the kind of store that they lead to."""

NAMES = {S3: "S3", GOOGLE: "Google Cloud Storage", AZURE: "Azure"}

COORDINATOR = "commit_coordinator"
"""The option of every store that names a commit coordinator (`lakeview.storage.coordinator`)."""

CONNECTION = {
    "allow_http", "allow_invalid_certificates", "connect_timeout", "timeout", "read_timeout", "proxy_url",
    "proxy_ca_certificate", "proxy_excludes", "root_certificate", "user_agent", "pool_idle_timeout", "max_retries",
    "retry_timeout", COORDINATOR,
}  # fmt: skip
"""Names that every kind of object store knows."""

_OWN: Mapping[str, set[str]] = {
    S3: {
        "access_key_id", "secret_access_key", "session_token", "profile", "skip_signature", "region", "endpoint",
        "virtual_hosted_style_request", "request_payer", "server_side_encryption", "sse_kms_key_id",
        "sse_bucket_key_enabled", "sse_customer_key_base64", "unsigned_payload", "checksum_algorithm", "s3_express",
        "web_identity_token_file", "role_arn", "role_session_name", "sts_endpoint", "metadata_endpoint",
        "imdsv1_fallback", "container_credentials_relative_uri", "conditional_put", "locking_provider",
        "disable_tagging",
    },
    GOOGLE: {
        "service_account", "service_account_key", "application_credentials", "bearer_token", "skip_signature",
        "base_url",
    },
    AZURE: {
        "account_name", "account_key", "sas_key", "token", "client_id", "client_secret", "tenant_id",
        "authority_host", "federated_token_file", "use_azure_cli", "msi_endpoint", "object_id", "msi_resource_id",
        "skip_signature", "endpoint", "use_emulator", "use_fabric_endpoint", "encryption_key", "disable_tagging",
    },
}  # fmt: skip

CREDENTIALS = frozenset({
    "access_key_id", "secret_access_key", "session_token", "profile", "skip_signature", "web_identity_token_file",
    "role_arn", "role_session_name", "account_key", "sas_key", "token", "client_id", "client_secret", "tenant_id",
    "federated_token_file", "use_azure_cli", "msi_endpoint", "object_id", "msi_resource_id", "service_account",
    "service_account_key", "application_credentials", "bearer_token",
})  # fmt: skip
"""Names of options that say who asks. Those of one source belong together and are never mixed with another's."""

SECRETS = frozenset({
    "secret_access_key", "session_token", "sse_customer_key_base64", "account_key", "sas_key", "token",
    "client_secret", "encryption_key", "service_account_key", "bearer_token",
})  # fmt: skip
"""Names of options whose values are secrets."""

_PREFIXES = {S3: ("aws_s3_", "aws_"), GOOGLE: ("google_",), AZURE: ("azure_storage_", "azure_")}

_SYNONYMS: Mapping[str, Mapping[str, str]] = {
    S3: {
        "key": "access_key_id", "username": "access_key_id", "aws_access_key_id": "access_key_id",
        "secret": "secret_access_key", "password": "secret_access_key", "token": "session_token",
        "anon": "skip_signature", "endpoint_url": "endpoint", "endpoint_url_s3": "endpoint",
        "region_name": "region", "default_region": "region", "requester_pays": "request_payer",
    },
    GOOGLE: {
        "anon": "skip_signature", "endpoint_url": "base_url", "service_account_path": "service_account",
        "service_account_json": "service_account_key",
    },
    AZURE: {
        "anon": "skip_signature", "access_key": "account_key", "master_key": "account_key", "sas_token": "sas_key",
        "authority_id": "tenant_id", "identity_endpoint": "msi_endpoint", "endpoint_url": "endpoint",
    },
}  # fmt: skip

_IGNORED = frozenset({
    "default_block_size", "default_fill_cache", "default_cache_type", "cache_regions", "max_concurrency",
    "use_listings_cache", "skip_instance_cache", "listings_expiry_time", "max_paths", "blocksize", "block_size",
    "default_acl", "asynchronous", "loop", "fixed_upload_size", "session_kwargs", "project", "access",
    "consistency", "check_connection", "cache_timeout", "assume_container_exists", "timeouts", "retries",
    "allow_unsafe_rename", "copy_if_not_exists", "ec2_metadata_disabled", "bucket", "bucket_name", "container_name",
    "location_mode", "version_aware", "signature_version",
})  # fmt: skip
"""Names that change how fsspec or deltalake work, and nothing that is read or written."""


def normal_options(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an object store by their normal names. InvalidRequestError for a name that no spelling has."""
    by_name: dict[str, Any] = {}
    for name, value in _pairs(kind, options):
        normal = _normal_name(kind, name)
        if normal in _IGNORED or value is None:
            continue
        if normal not in _OWN[kind] and normal not in CONNECTION:
            raise InvalidRequestError(
                f"{name} is no storage option of {NAMES[kind]}",
                fix=f"choose from {', '.join(sorted(_OWN[kind] | CONNECTION))}, or deltalake's or fsspec's names",
                place=name,
                kind="unknown-option",
            )
        by_name[normal] = _BOOLEANS.get(value.lower(), value) if isinstance(value, str) else value
        if isinstance(value, Mapping) and normal == "service_account_key":
            by_name[normal] = json.dumps(dict(value))
    return by_name


def option_value(name: str, text: str) -> Any:
    """The value of an option that is given as text: true and false are booleans, `{...}` is a JSON object.

    InvalidRequestError for a broken object; it shows no value.
    """
    if not text.startswith("{"):
        return _BOOLEANS.get(text.lower(), text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequestError(
            f"the value of {name} is no JSON", fix="give a JSON object, or text that does not begin with {", place=name
        ) from None  # its text holds a part of the value


def option_text(name: str, value: Any) -> str:
    """The text of an option's value, which `option_value` reads. InvalidRequestError for an object that has none."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, Mapping):
        try:
            return json.dumps(dict(value))
        except TypeError:
            pass  # an object inside it
    raise InvalidRequestError(
        f"the storage option {name} is {type(value).__name__}, which has no text to travel as",
        fix="give text, a number, true or false, or a mapping of them",
        place=name,
    )


def combine_options(kind: str | None, base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Options of two sources, those of `over` first; credentials are those of one source, never of both.

    `kind`: of the object store; None for any other store. A user's key with another source's session token would be
    refused by the store, or would let a user read with the rights of another.
    """
    if kind is None:
        return {**base, **over}
    below, above = normal_options(kind, base), normal_options(kind, over)
    if any(above[name] for name in CREDENTIALS & above.keys()):
        below = {name: value for name, value in below.items() if name not in CREDENTIALS}
    return {**below, **above}


_BOOLEANS = {"true": True, "false": False}


def _normal_name(kind: str, name: str) -> str:
    key = name.lower()
    for prefix in _PREFIXES[kind]:
        if key.startswith(prefix):
            key = key.removeprefix(prefix)
            break
    return _SYNONYMS[kind].get(key, key)


def _pairs(kind: str, options: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Names and values, fsspec's nested ones flat."""
    for name, value in options.items():
        unfold = _NESTED.get((kind, name.lower()))
        if unfold is None:
            yield name, value
        else:
            yield from unfold(value)


def _client_keywords(value: Any) -> Iterable[tuple[str, Any]]:
    """Of s3fs's `client_kwargs`, which boto takes."""
    for name, setting in _mapping("client_kwargs", value).items():
        match name:
            case "verify" if isinstance(setting, bool):
                yield "allow_invalid_certificates", not setting
            case "use_ssl" | "config":
                continue
            case _:
                yield name, setting


def _config_keywords(value: Any) -> Iterable[tuple[str, Any]]:
    """Of s3fs's `config_kwargs`, which botocore's Config takes. Signatures are always of the fourth version."""
    for name, setting in _mapping("config_kwargs", value).items():
        match name:
            case "s3" if isinstance(setting, Mapping):
                style = setting.get("addressing_style")
                if style in ("virtual", "path"):
                    yield "virtual_hosted_style_request", style == "virtual"
            case "connect_timeout" | "read_timeout":
                yield name, f"{float(setting)}s"
            case "retries" if isinstance(setting, Mapping):
                yield "max_retries", setting.get("max_attempts")
            case "max_pool_connections" | "tcp_keepalive" | "retries":
                continue
            case _:
                yield name, setting


def _request_keywords(value: Any) -> Iterable[tuple[str, Any]]:
    """Of s3fs's `s3_additional_kwargs`, which go with each request."""
    names = {"ServerSideEncryption": "server_side_encryption", "SSEKMSKeyId": "sse_kms_key_id"}
    for name, setting in _mapping("s3_additional_kwargs", value).items():
        yield names.get(name, name), setting


def _google_token(value: Any) -> Iterable[tuple[str, Any]]:
    """gcsfs's `token`: a way to credentials, a file of them, or what such a file holds."""
    match value:
        case "anon":
            yield "skip_signature", True
        case None | "google_default" | "cloud" | "cache" | "browser":
            return
        case str():
            yield "application_credentials", value
        case Mapping():
            yield "service_account_key", json.dumps(dict(value))
        case _:
            raise InvalidRequestError(
                "token is no way to Google's credentials",
                fix="give the path of a credentials file, its content as a mapping, or 'anon'",
                place="token",
            )


def _connection_string(value: Any) -> Iterable[tuple[str, Any]]:
    """Azure's connection string: pairs of `Name=value` separated by semicolons."""
    parts = dict(part.split("=", 1) for part in str(value).split(";") if "=" in part)
    if parts.get("UseDevelopmentStorage", "").lower() == "true":
        yield "use_emulator", True
        return
    names = {"AccountName": "account_name", "AccountKey": "account_key", "SharedAccessSignature": "sas_key"}
    for name, normal in names.items():
        if name in parts:
            yield normal, parts[name]
    if "BlobEndpoint" in parts:
        yield "endpoint", parts["BlobEndpoint"].rstrip("/")
    elif "EndpointSuffix" in parts and "AccountName" in parts:
        yield "endpoint", f"https://{parts['AccountName']}.blob.{parts['EndpointSuffix']}"


def _azure_host(value: Any) -> Iterable[tuple[str, Any]]:
    """adlfs's `account_host`: a host name without a scheme."""
    text = str(value)
    yield "endpoint", text if "://" in text else f"https://{text}"


def _azure_credential(value: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, str):
        raise InvalidRequestError(
            "credential is an object of Azure's own library, which is not used here",
            fix="give account_key, sas_token, client_id with client_secret and tenant_id, or use_azure_cli",
            place="credential",
        )
    yield "account_key", value


def _no_encryption(value: Any) -> Iterable[tuple[str, Any]]:
    if value is False:
        yield "allow_http", True


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidRequestError(f"the storage option {name} is no mapping", fix="give names and values", place=name)
    return value


_NESTED: Mapping[tuple[str, str], Callable[[Any], Iterable[tuple[str, Any]]]] = {
    (S3, "client_kwargs"): _client_keywords,
    (S3, "config_kwargs"): _config_keywords,
    (S3, "s3_additional_kwargs"): _request_keywords,
    (S3, "use_ssl"): _no_encryption,
    (GOOGLE, "token"): _google_token,
    (AZURE, "connection_string"): _connection_string,
    (AZURE, "account_host"): _azure_host,
    (AZURE, "credential"): _azure_credential,
}
