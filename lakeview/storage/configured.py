"""Sections `[storage."s3://bucket"]` of the configuration file to the storage options of an address.

Secrets are given by reference, `AWS_SECRET_ACCESS_KEY = { env = "LAKE_SECRET" }`, and taken from the environment when a
store is opened: the file holds none, and a process without the variable fails only where it is needed.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from lakeview.model.addresses import below, normalise
from lakeview.model.config import Config
from lakeview.model.errors import InvalidRequestError
from lakeview.storage.options import KINDS, SECRETS, combine_options, normal_options

_REFERENCE = "env"
_ALSO_SECRET = ("password", "connection_string", "secret", "passphrase", "credential", "aws_secret_access_key")
"""Further names of options that hold secrets: of other stores, and of fsspec's nested options."""


def store_kind(root: str) -> str | None:
    """The kind of object store that a normalised address leads to; None for any other store."""
    return KINDS.get(root.partition("://")[0])


def configured_options(root: str, options: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """The options of a call over those of the section with the longest prefix of a normalised address.

    Credentials are those of the call or of the section, never of both. InvalidRequestError for a secret that the file
    holds itself, for a variable that is not set, and for an option that no such store has.
    """
    fitting = [prefix for prefix in config.storage if below(root, normalise(prefix))]
    if not fitting:
        return dict(options)
    prefix = max(fitting, key=len)
    section = config.storage[prefix]
    kind = store_kind(root)
    return combine_options(kind, section_options(f'[storage."{prefix}"]', kind, section), options)


def section_options(label: str, kind: str | None, section: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a section of a file holds, for a kind of store; `label`: how errors name the section.

    InvalidRequestError for a secret that it holds itself, and for a variable that is not set.
    """
    for name in _literal_secrets(kind, section):
        raise InvalidRequestError(
            f"the configuration holds the value of {name} for {label}",
            fix=f'write {name} = {{ env = "<variable>" }}, and set that variable (in YAML {name}: {{env: <variable>}})',
            place=name,
            kind="literal-secret",
        )
    return _resolve_variables(label, section)


def _literal_secrets(kind: str | None, section: Mapping[str, Any]) -> Iterator[str]:
    """The names of secrets, under any spelling and inside fsspec's nested options, that are given by their values."""
    for name, value in section.items():
        if _is_reference(value):
            continue
        if isinstance(value, Mapping):
            if name.lower() == "headers":  # which of them holds a token is not known
                yield from (inner for inner, setting in value.items() if not _is_reference(setting))
            else:
                yield from _literal_secrets(kind, value)
        elif name.lower() in _ALSO_SECRET or SECRETS & _normal_names(kind, name, value):
            yield name


def _normal_names(kind: str | None, name: str, value: Any) -> set[str]:
    try:
        return {name.lower()} if kind is None else set(normal_options(kind, {name: value}))
    except InvalidRequestError:  # of no store, or a part of another option: said when it is used
        return set()


def _is_reference(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {_REFERENCE} and isinstance(value[_REFERENCE], str)


def _resolve_variables(label: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """Options with the values of the variables that they refer to."""
    values: dict[str, Any] = {}
    for name, value in section.items():
        if not isinstance(value, Mapping):
            values[name] = value
        elif not _is_reference(value):
            values[name] = _resolve_variables(label, value)
        elif value[_REFERENCE] in os.environ:
            values[name] = os.environ[value[_REFERENCE]]
        else:
            raise InvalidRequestError(
                f"{label} takes {name} from {value[_REFERENCE]}, which is not set",
                fix=f"set {value[_REFERENCE]} in the environment of this process",
                place=value[_REFERENCE],
                kind="unset-variable",
            )
    return values
