"""A YAML file, or a folder of tables, to Settings: what is wrong is refused by name, what is unknown is reported. In
the document nothing is left to guess: what hides something must say so once, and whole.

A file may be read while it is edited. A view that is cut off, written twice or misspelt must not become its table.
"""

import math
import re
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from lakeview.discovery import find_tables
from lakeview.model.errors import InvalidRequestError
from lakeview.model.yaml_documents import load_yaml, yaml_problem
from lakeview.sharing.server.catalogue import BEARER
from lakeview.sharing.server.settings import Limits, Recipient, SchemaEntry, Settings, ShareEntry, TableEntry, ViewEntry

_NAME = re.compile(r"[^\x00-\x20\x7f/.\\?#%]{1,255}")
_ID = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,127}")
_PERSON = re.compile(r"[^\x00-\x1f\x7f]{1,255}")
_MAX_URL_SECONDS = 86_400
_NAMESPACE = uuid.UUID("5c8d0f0e-2b7c-5d0b-9b6a-0a6a1b3f7c11")


def read_settings(path: Path) -> tuple[Settings, list[str]]:
    """The settings in a file, and what in it was not understood.

    InvalidRequestError says which part is wrong. Relative places are taken from the file's folder.
    """
    document = read_document(path)
    try:
        settings = msgspec.convert(document, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise wrong(f"{path.name}: {error}") from error
    warnings = without_unknown(path, document, Settings)
    return check_settings(settings), warnings


def folder_settings(folder: str) -> Settings:
    """Every table below a folder as one share for the recipient `anyone`.

    Its schema is `default`; path separators in names become `__`.

    InvalidRequestError if there is no table, or two whose names become one.
    """
    listing = find_tables(folder).remove(format="sharing")  # what others share is not ours to share
    if listing.is_empty():
        raise wrong(f"there is no table below {folder}", "give a folder that holds tables, or a YAML file")
    share = _plain(folder.rstrip("/").rsplit("/", 1)[-1]) or "lake"
    tables = [
        TableEntry(_plain(name), address, history_shared=True)
        for address, name in listing.select("address", "name").iter_rows()
    ]
    shares = [ShareEntry(share, schemas=[SchemaEntry("default", tables)])]
    return check_settings(Settings(shares=shares, recipients=[Recipient("anyone", ["*"])]))


def _plain(name: str) -> str:
    return re.sub(r"[\x00-\x20\x7f/.\\?#%]+", "_", name.replace("/", "__")).strip("_")


def check_settings(settings: Settings) -> Settings:
    """The settings with an id on every share, table and recipient; InvalidRequestError for what cannot be served."""
    _check_values(settings)
    _check_amounts(settings)
    shares = [_with_ids(share) for share in settings.shares]
    _check_unique_shares(shares)
    recipients = [r if r.id else msgspec.structs.replace(r, id=_id("recipient", r.name)) for r in settings.recipients]
    _unique("recipient", (r.name for r in recipients))
    _unique("recipient id", (r.id or "" for r in recipients))
    share_names = {s.name.lower() for s in shares}
    for recipient in recipients:
        _check_recipient(recipient, share_names)
    return msgspec.structs.replace(
        settings, shares=shares, recipients=recipients, endpoint=settings.endpoint.rstrip("/")
    )


def _check_unique_shares(shares: Sequence[ShareEntry]) -> None:
    _unique("share", (s.name for s in shares))
    _unique("share id", (s.id or "" for s in shares))
    _unique("table id", (t.id or "" for share in shares for schema in share.schemas for t in schema.tables))


def _check_values(settings: Settings) -> None:
    if settings.version != 1:
        raise wrong(f"version {settings.version} of the configuration is not known", "write version: 1")
    if not 60 <= settings.pre_signed_url_timeout_seconds <= _MAX_URL_SECONDS:
        raise wrong(f"preSignedUrlTimeoutSeconds must lie between 60 and {_MAX_URL_SECONDS}")
    if not settings.endpoint.startswith("/") or not 1 <= settings.query_table_page_size_limit <= 100_000:
        raise wrong("endpoint must begin with / and queryTablePageSizeLimit lie between 1 and 100000")
    if settings.public_url is not None and not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", settings.public_url):
        raise wrong(f"publicUrl {settings.public_url!r} is no http or https address")


def _check_recipient(recipient: Recipient, share_names: Collection[str]) -> None:
    is_reserved = BEARER.name in (recipient.name.lower(), (recipient.id or "").lower())
    if is_reserved or not _PERSON.fullmatch(recipient.name):
        raise wrong(
            f"{recipient.name[:80]!r} is no name for a recipient",
            f"use at most 255 characters that can be printed; {BEARER.name} is who shows authorization.bearerToken",
        )
    _check_id("recipient", recipient.name, recipient.id)
    for share in recipient.shares:
        if share != "*" and share.lower() not in share_names:
            raise wrong(f"recipient {recipient.name} is granted {share}, which is no share")


def _check_amounts(settings: Settings) -> None:
    amounts = {f"limits.{f.encode_name}": getattr(settings.limits, f.name) for f in msgspec.structs.fields(Limits)}
    amounts |= {
        "auditSeconds": settings.audit_seconds,
        "queryTablePageTokenTtlMs": settings.query_table_page_token_ttl_ms,
        "refreshTokenTtlMs": settings.refresh_token_ttl_ms,
        "cacheBytes": settings.cache_bytes,
        "loadAhead": settings.load_ahead + 1,
    }
    for name, amount in amounts.items():
        if not 0 < amount < math.inf:
            raise wrong(f"{name} must be more than nothing, and have an end")


def _with_ids(share: ShareEntry) -> ShareEntry:
    _check_name("share", share.name)
    _check_id("share", share.name, share.id)
    _unique(f"schema in {share.name}", (s.name for s in share.schemas))
    schemas = []
    for schema in share.schemas:
        _check_name("schema", schema.name)
        _unique(f"table in {share.name}.{schema.name}", (t.name for t in schema.tables))
        for table in schema.tables:
            _check_name("table", table.name)
            _check_id("table", table.name, table.id)
            if table.start_version < 0:
                raise wrong(f"startVersion of table {table.name} is negative")
            if table.view is not None:
                _check_view(table.name, table.view)
        # by names and never by the location: a table that moves keeps its id, and the id does not show where it lies
        schemas.append(msgspec.structs.replace(schema, tables=[
            t if t.id else msgspec.structs.replace(t, id=_id("table", share.name, schema.name, t.name))
            for t in schema.tables
        ]))  # fmt: skip
    return msgspec.structs.replace(share, id=share.id or _id("share", share.name), schemas=schemas)


def _id(*names: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "/".join(n.lower() for n in names)))


def _check_view(name: str, view: ViewEntry) -> None:
    columns = view.columns
    if columns is None and view.where is None:
        raise wrong(
            f"view {name} names neither columns nor a condition", "say what of the table is shared, or share it"
        )
    if columns is not None and (not columns or len({c.casefold() for c in columns}) < len(columns)):
        raise wrong(f"view {name} names no column, or one twice")


def _check_id(kind: str, name: str, number: str | None) -> None:
    if number is not None and not _ID.fullmatch(number):  # it stands in URLs, and in the name of a view's folder
        raise wrong(
            f"{number[:80]!r} is no id for {kind} {name[:80]}",
            "use at most 128 letters, digits, dots, - and _, or none",
        )


def _check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name) or (kind, name) == ("share", "*"):  # * grants every share
        raise wrong(
            f"{name[:80]!r} is no name for a {kind}",
            "use at most 255 characters, no blank, dot, slash, backslash, ?, #, % or control character",
        )


def _unique(what: str, names: Iterable[str]) -> None:
    for name, count in Counter(n.lower() for n in names).items():
        if count > 1:
            raise wrong(f"{what} {name} is there {count} times", "names are compared without case")


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
