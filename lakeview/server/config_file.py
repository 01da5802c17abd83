"""A YAML file, or a folder of tables, to Settings: what is wrong is refused by name, what is unknown is told."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from lakeview.discovery import find_tables
from lakeview.errors import InvalidRequestError
from lakeview.server.settings import Recipient, SchemaEntry, Settings, ShareEntry, TableEntry

_NAME = re.compile(r"[^\x00-\x20\x7f/.\\?#%]{1,255}")
_LONGEST_URL_LIFE = 86_400
_NAMESPACE = uuid.UUID("5c8d0f0e-2b7c-5d0b-9b6a-0a6a1b3f7c11")
_OLD = {"cdfEnabled": "historyShared", "evaluateJsonPredicateHintsV2": "", "deltaTableCacheSize": "",
        "stalenessAcceptable": "", "requestTimeoutSeconds": "", "updateInterval": ""}  # fmt: skip
"""Keys of the reference server that mean another key here, or nothing."""


def read_settings(path: Path) -> tuple[Settings, list[str]]:
    """The settings in a file, and what in it was not understood.

    InvalidRequestError says which part is wrong. Relative places are taken from the file's folder.
    """
    try:
        document: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise _wrong(f"there is no configuration file {path.name}", "give the path of a YAML file") from error
    except (yaml.YAMLError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise _wrong(f"{path.name} is no YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(document, dict):
        raise _wrong(f"{path.name} holds no settings", "begin it with version: 1 and shares:")
    document = _renamed(document)
    try:
        settings = msgspec.convert(document, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise _wrong(f"{path.name}: {error}") from error
    warnings = [f"{path.name}: {place} is not known here and has no effect" for place in _unknown(document, Settings)]
    return checked(_placed(settings, path.parent)), warnings


def folder_settings(folder: str, recipient: str = "anyone") -> Settings:
    """Every table below a folder as one share, its schema `default`: path separators in names become `__`.

    InvalidRequestError if there is no table, or two whose names become one.
    """
    found = find_tables(folder)
    if found.is_empty():
        raise _wrong(f"there is no table below {folder}", "give a folder that holds tables, or a YAML file")
    share = _plain(folder.rstrip("/").rsplit("/", 1)[-1]) or "lake"
    tables = [
        TableEntry(_plain(name), address, history_shared=True)
        for address, name in found.select("address", "name").iter_rows()
    ]
    shares = [ShareEntry(share, schemas=[SchemaEntry("default", tables)])]
    return checked(Settings(shares=shares, recipients=[Recipient(recipient, ["*"])]))


def _plain(name: str) -> str:
    return re.sub(r"[\x00-\x20\x7f/.\\?#%]+", "_", name.replace("/", "__")).strip("_")


def checked(settings: Settings) -> Settings:
    """The settings with an id on every share, table and recipient; InvalidRequestError for what cannot be served."""
    if settings.version != 1:
        raise _wrong(f"version {settings.version} of the configuration is not known", "write version: 1")
    if not 60 <= settings.pre_signed_url_timeout_seconds <= _LONGEST_URL_LIFE:
        raise _wrong("preSignedUrlTimeoutSeconds must lie between 60 and 86400")
    if not settings.endpoint.startswith("/") or not 1 <= settings.query_table_page_size_limit <= 100_000:
        raise _wrong("endpoint must begin with / and queryTablePageSizeLimit lie between 1 and 100000")
    if settings.public_url is not None and not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", settings.public_url):
        raise _wrong(f"publicUrl {settings.public_url!r} is no http or https address")
    shares = [_with_ids(share) for share in settings.shares]
    _unique("share", (s.name for s in shares))
    _unique("share id", (s.id or "" for s in shares))
    _unique("table id", (t.id or "" for share in shares for schema in share.schemas for t in schema.tables))
    recipients = [r if r.id else msgspec.structs.replace(r, id=_id("recipient", r.name)) for r in settings.recipients]
    _unique("recipient", (r.name for r in recipients))
    _unique("recipient id", (r.id or "" for r in recipients))
    names = {s.name.lower() for s in shares}
    for recipient in recipients:
        for share in recipient.shares:
            if share != "*" and share.lower() not in names:
                raise _wrong(f"recipient {recipient.name} is granted {share}, which is no share")
    return msgspec.structs.replace(
        settings, shares=shares, recipients=recipients, endpoint=settings.endpoint.rstrip("/")
    )


def _with_ids(share: ShareEntry) -> ShareEntry:
    _named("share", share.name)
    _unique(f"schema in {share.name}", (s.name for s in share.schemas))
    schemas = []
    for schema in share.schemas:
        _named("schema", schema.name)
        _unique(f"table in {share.name}.{schema.name}", (t.name for t in schema.tables))
        for table in schema.tables:
            _named("table", table.name)
            if table.start_version < 0:
                raise _wrong(f"startVersion of table {table.name} is negative")
        # by names and never by the location: a table that moves keeps its id, and the id tells nobody where it lies
        schemas.append(msgspec.structs.replace(schema, tables=[
            t if t.id else msgspec.structs.replace(t, id=_id("table", share.name, schema.name, t.name))
            for t in schema.tables
        ]))  # fmt: skip
    return msgspec.structs.replace(share, id=share.id or _id("share", share.name), schemas=schemas)


def _id(*names: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "/".join(n.lower() for n in names)))


def _named(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise _wrong(
            f"{name[:80]!r} is no name for a {kind}",
            "use at most 255 characters, no blank, dot, slash, backslash, ?, #, % or control character",
        )


def _unique(what: str, names: Iterable[str]) -> None:
    for name, count in Counter(n.lower() for n in names).items():
        if count > 1:
            raise _wrong(f"{what} {name} is there {count} times", "names are compared without case")


def _renamed(value: Any) -> Any:
    """The reference server's other spellings as ours; keys that say nothing here are left out."""
    if isinstance(value, list):
        return [_renamed(v) for v in value]
    if not isinstance(value, dict):
        return value
    return {_OLD.get(k, k): _renamed(v) for k, v in value.items() if _OLD.get(k, k) != "" and v is not None}


def _unknown(value: Any, kind: Any, place: str = "") -> Iterator[str]:
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
                    yield from _unknown(part, struct, at)


def _structs(annotation: Any) -> list[Any]:
    found = [annotation, *getattr(annotation, "__args__", ())]
    return [t for t in found if isinstance(t, type) and issubclass(t, msgspec.Struct)]


def _placed(settings: Settings, folder: Path) -> Settings:
    """Relative places as below the configuration's folder."""

    def at(place: str | None) -> str | None:
        return place if place is None or "://" in place else str(folder / Path(place).expanduser())

    def table(entry: TableEntry) -> TableEntry:
        location = re.sub(r"^s3[an]://", "s3://", entry.location)
        return msgspec.structs.replace(entry, location=at(location) or location)

    shares = [
        msgspec.structs.replace(
            s, schemas=[msgspec.structs.replace(c, tables=[table(t) for t in c.tables]) for c in s.schemas]
        )
        for s in settings.shares
    ]
    tls = settings.ssl
    if tls is not None:
        tls = msgspec.structs.replace(
            tls,
            certificate_file=at(tls.certificate_file) or "",
            certificate_key_file=at(tls.certificate_key_file) or "",
            certificate_password_file=at(tls.certificate_password_file),
        )
    return msgspec.structs.replace(
        settings, shares=shares, ssl=tls, tokens=at(settings.tokens), keys=at(settings.keys),
        audit=at(settings.audit), views=at(settings.views),
    )  # fmt: skip


def _wrong(message: str, fix: str | None = None) -> InvalidRequestError:
    return InvalidRequestError(message, fix=fix or "correct the configuration", kind="bad-configuration")
