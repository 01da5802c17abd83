"""A YAML file to a document, in which nothing is left to guess: what hides something must say so once, and whole.

A file may be read while it is edited. A view that is cut off, written twice or misspelt must not become its table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from lakeview.model.errors import InvalidRequestError
from lakeview.model.yaml_documents import load_yaml, yaml_problem

_OLD = {"cdfEnabled": "historyShared", "evaluateJsonPredicateHintsV2": "", "deltaTableCacheSize": "",
        "stalenessAcceptable": "", "requestTimeoutSeconds": "", "updateInterval": ""}  # fmt: skip
"""Keys of the reference server that mean another key here, or nothing."""

_NOT_EMPTY = frozenset({"view", "columns", "where", "blocked", "startVersion", "historyShared"})
"""Keys that narrow what is shared: one without a value would be taken for no narrowing."""

_NOTHING_UNKNOWN = ("recipients.", "shares.schemas.tables.")
"""Where a key that is not known may be a misspelt one that narrows what is shared: in a recipient, a table, a view."""

_AS_GIVEN = "storageOptions"
_PLACES = frozenset(
    {"location", "tokens", "keys", "audit", "views", "certificateFile", "certificateKeyFile", "certificatePasswordFile"}
)


def read_document(path: Path) -> dict[str, Any]:
    """The mapping in a file, its keys as settings spell them. InvalidRequestError says what is wrong."""
    try:
        document: Any = _rename_keys(load_yaml(path.read_text(encoding="utf-8")), path.parent)
    except FileNotFoundError as error:
        raise wrong(f"there is no configuration file {path.name}", "give the path of a YAML file") from error
    except yaml.YAMLError as error:
        raise wrong(f"{path.name} is no YAML: {yaml_problem(error)}") from error
    except (UnicodeDecodeError, OSError) as error:
        raise wrong(f"{path.name} is no YAML: {error}") from error
    except RecursionError as error:
        raise wrong(f"{path.name} refers to itself, or is nested too deep") from error
    if not isinstance(document, dict):
        raise wrong(f"{path.name} holds no settings", "begin it with version: 1 and shares:")
    if empty := next(_empty(document), None):
        raise wrong(f"{path.name}: {empty} has no value", "give it one, or leave the key out")
    return document


def without_unknown(path: Path, document: dict[str, Any], kind: type[msgspec.Struct]) -> list[str]:
    """What in a document is not known and has no effect; InvalidRequestError where it might have narrowed a share."""
    places = list(_unknown_keys(document, kind))
    for place in places:
        if place.startswith(_NOTHING_UNKNOWN):
            raise wrong(f"{path.name}: {place} is not known here", "correct the key, or leave it out")
    return [f"{path.name}: {place} is not known here and has no effect" for place in places]


def wrong(message: str, fix: str | None = None) -> InvalidRequestError:
    """A configuration that cannot be served."""
    return InvalidRequestError(message, fix=fix or "correct the configuration", kind="bad-configuration")


def _rename_keys(value: Any, folder: Path) -> Any:
    """The reference server's other spellings as ours, and relative places as below the configuration's folder; keys
    without a meaning here are left out."""
    if isinstance(value, list):
        return [_rename_keys(v, folder) for v in value]
    if not isinstance(value, dict):
        return value
    return {
        _OLD.get(k, k): v if k == _AS_GIVEN else _resolve_place(v, folder) if k in _PLACES else _rename_keys(v, folder)
        for k, v in value.items()
        if _OLD.get(k, k) != "" and (v is not None or k in _NOT_EMPTY)
    }


def _resolve_place(place: Any, folder: Path) -> Any:
    if not isinstance(place, str):
        return place
    place = re.sub(r"^s3[an]://", "s3://", place)
    return place if "://" in place else str(folder / Path(place).expanduser())


def _empty(value: Any, place: str = "") -> Iterator[str]:
    """The places of keys that must have a value and have none."""
    if isinstance(value, list):
        for inner in value:
            yield from _empty(inner, place)
    elif isinstance(value, dict):
        for key, inner in value.items():
            at = f"{place}.{key}" if place else str(key)
            if inner is None:
                yield at
            elif key != _AS_GIVEN:
                yield from _empty(inner, at)


def _unknown_keys(value: Any, kind: Any, place: str = "") -> Iterator[str]:
    """The places of keys that no setting has."""
    fields = {f.encode_name: f.type for f in msgspec.structs.fields(kind)}
    for key, inner in value.items():
        at = f"{place}.{key}" if place else str(key)
        if key not in fields:
            yield at
            continue
        for struct in _structs(fields[key]):
            for part in inner if isinstance(inner, list) else [inner]:
                if isinstance(part, dict):
                    yield from _unknown_keys(part, struct, at)


def _structs(annotation: Any) -> list[Any]:
    types = [annotation, *getattr(annotation, "__args__", ())]
    return [t for t in types if isinstance(t, type) and issubclass(t, msgspec.Struct)]
