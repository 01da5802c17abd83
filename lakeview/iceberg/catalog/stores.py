"""What a catalog says of a store, in Iceberg's words, to storage options."""

from collections.abc import Mapping
from typing import Any

from lakeview.storage import KINDS

_KEYS = {
    "key": ("s3.access-key-id", "client.access-key-id"),
    "secret": ("s3.secret-access-key", "client.secret-access-key"),
    "token": ("s3.session-token", "client.session-token"),
}
_CLIENT = {"endpoint_url": ("s3.endpoint",), "region_name": ("s3.region", "client.region")}
_GOOGLE = {"bearer_token": ("gcs.oauth2.token",), "base_url": ("gcs.service.host",)}
_AZURE = {"account_name": ("adls.account-name",), "account_key": ("adls.account-key",)}
_ADDRESSING = {
    ("s3.path-style-access", "true"): "path",
    ("s3.path-style-access", "false"): "virtual",
    ("s3.force-virtual-addressing", "true"): "virtual",
}


def store_options(location: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Options for the store of a location, S3, Google Cloud Storage or Azure; empty for other stores.

    Nothing but these keys is passed on: a catalog cannot make a client do what its user did not ask for.
    """
    scheme, _, rest = location.partition("://")
    match KINDS.get(scheme):
        case "s3":
            return _s3_options(properties)
        case "google":
            return _first_given(_GOOGLE, properties)
        case "azure":
            return _azure_options(rest.partition("/")[0].partition("@")[2], properties)
    return {}


def _azure_options(host: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Of Azure, whose signatures a catalog hands out for each host: `adls.sas-token.<host or account>`."""
    account = host.partition(".")[0]
    names = (f"adls.sas-token.{host}", f"adls.sas-token.{account}", "adls.sas-token")
    return _first_given({**_AZURE, "sas_key": names}, properties)


def _s3_options(properties: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = _first_given(_KEYS, properties)
    if _text(properties, "s3.anonymous") == "true" and "key" not in options:
        options["anon"] = True
    if client := _first_given(_CLIENT, properties):
        options["client_kwargs"] = client
    for (name, value), style in _ADDRESSING.items():
        if _text(properties, name) == value:
            options["config_kwargs"] = {"s3": {"addressing_style": style}}
    return options


def _text(properties: Mapping[str, Any], name: str) -> str:
    return str(properties.get(name, "")).lower()


def _first_given(table: Mapping[str, tuple[str, ...]], properties: Mapping[str, Any]) -> dict[str, str]:
    """Of several spellings of a setting, the first that is given as text."""
    options: dict[str, str] = {}
    for option, names in table.items():
        for name in names:
            value = properties.get(name)
            if isinstance(value, str) and value and option not in options:
                options[option] = value
    return options
