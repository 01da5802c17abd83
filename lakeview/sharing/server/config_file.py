"""A YAML file, or a folder of tables, to Settings: what is wrong is refused by name, what is unknown is reported."""

from __future__ import annotations

import math
import re
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from lakeview.discovery import find_tables
from lakeview.sharing.server.catalogue import BEARER
from lakeview.sharing.server.config_document import read_document, without_unknown, wrong
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
    shared = {s.name.lower() for s in shares}
    for recipient in recipients:
        _check_recipient(recipient, shared)
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


def _check_recipient(recipient: Recipient, shared: Collection[str]) -> None:
    reserved = BEARER.name in (recipient.name.lower(), (recipient.id or "").lower())
    if reserved or not _PERSON.fullmatch(recipient.name):
        raise wrong(
            f"{recipient.name[:80]!r} is no name for a recipient",
            f"use at most 255 characters that can be printed; {BEARER.name} is who shows authorization.bearerToken",
        )
    _check_id("recipient", recipient.name, recipient.id)
    for share in recipient.shares:
        if share != "*" and share.lower() not in shared:
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
