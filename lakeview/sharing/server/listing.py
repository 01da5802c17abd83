"""Listings: shares, schemas and tables, page by page in the configuration's order."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.responses import Response

from lakeview.sharing.protocol.messages import JSON, Page, Share, ShareBody, SharedSchema, SharedTable
from lakeview.sharing.server.context import Context
from lakeview.sharing.server.refusals import bad_parameter
from lakeview.sharing.server.requests import page_of
from lakeview.sharing.server.settings import SchemaEntry, ShareEntry


class _Next(msgspec.Struct, frozen=True, array_like=True):
    """Where a listing goes on, and which listing of whom it was."""

    listing: str
    recipient: str
    position: int


async def shares(context: Context) -> Response:
    """GET /shares."""
    items = [Share(s.name, s.id) for s in context.hub.catalogue.shares(context.caller.recipient)]
    return _page(context, "shares", items)


async def share(context: Context) -> Response:
    """GET /shares/{share}."""
    entry = _share(context)
    return json_response(ShareBody(Share(entry.name, entry.id)))


async def schemas(context: Context) -> Response:
    """GET /shares/{share}/schemas."""
    entry = _share(context)
    items = [SharedSchema(c.name, entry.name) for c in entry.schemas]
    return _page(context, f"schemas/{entry.id}", items)


async def tables(context: Context) -> Response:
    """GET /shares/{share}/schemas/{schema}/tables."""
    names = context.request.path_params
    entry, schema = context.hub.catalogue.schema(context.caller.recipient, names["share"], names["schema"])
    context.entry.share, context.entry.schema = entry.name, schema.name
    items = _table_items(entry, schema)
    return _page(context, f"tables/{entry.id}/{schema.name}", items)


async def all_tables(context: Context) -> Response:
    """GET /shares/{share}/all-tables."""
    entry = _share(context)
    items = [item for schema in entry.schemas for item in _table_items(entry, schema)]
    return _page(context, f"all/{entry.id}", items)


def _share(context: Context) -> ShareEntry:
    share = context.hub.catalogue.share(context.caller.recipient, context.request.path_params["share"])
    context.entry.share = share.name
    return share


def _table_items(share: ShareEntry, schema: SchemaEntry) -> list[SharedTable]:
    return [SharedTable(t.name, schema.name, share.name, share.id, t.id) for t in schema.tables]


def _page(context: Context, listing: str, items: Sequence[object]) -> Response:
    most, token = page_of(context.query)
    who = context.caller.recipient.name
    start = 0
    if token is not None:
        page = context.hub.sealer.open("page", token, _Next)
        if page is None or page.listing != listing or page.recipient != who:
            raise bad_parameter("invalid pageToken: it is none of this listing")
        start = page.position
    end = start + most
    follows = context.hub.sealer.seal("page", _Next(listing, who, end)) if end < len(items) else None
    return json_response(Page(list(items[start:end]), follows))


def json_response(body: object) -> Response:
    """A body as JSON."""
    return Response(msgspec.json.encode(body), headers={"Content-Type": JSON})
