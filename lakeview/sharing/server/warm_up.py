"""A configuration to its first tables, loaded before anybody asks: so that no first byte waits for a listing."""

from __future__ import annotations

import logging
from functools import partial

from lakeview.model.errors import LakeviewError
from lakeview.sharing.protocol.messages import ResponseFormat
from lakeview.sharing.server.hub import Hub
from lakeview.sharing.server.refusals import Refusal
from lakeview.sharing.server.sources import TableHandle

_LOG = logging.getLogger("lakeview.sharing.server")


async def load_ahead(hub: Hub) -> None:
    """Open and list so many tables as the settings say, one after the other, each in its turn as requests have theirs.

    Views are left out: making a copy is for who asks. A table that cannot be loaded is told when it is asked for.
    """
    for place in list(hub.catalogue.tables())[: hub.settings.load_ahead]:
        if place.table.view is None:
            handle = hub.sources.of(place.table)
            async with handle.turn, handle.loading:
                await hub.work(partial(_load, hub, handle))


def _load(hub: Hub, handle: TableHandle) -> None:
    try:
        source, latest = hub.sources.current(handle)
        shared = hub.sources.version(source, latest)
        form = ResponseFormat.DELTA if shared.needed else ResponseFormat.PARQUET
        shared.rows(form, form.value)
    except (LakeviewError, Refusal) as error:
        _LOG.info("table %s is not loaded ahead: %s", handle.entry.name, error)
