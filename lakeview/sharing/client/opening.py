"""Addresses of shared tables to tables, and a profile to the tables of its server."""

import os
from collections.abc import Mapping
from typing import Any

import polars as pl

from lakeview.model.arguments import address_of
from lakeview.model.clock import Clock, system_clock
from lakeview.model.config import Config, settings
from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.client.endpoints import TABLES, SharingClient
from lakeview.sharing.client.portable_tasks import reach
from lakeview.sharing.client.profile import parse_address, read_profile
from lakeview.sharing.client.table import SharedTable


def open_shared(
    address: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
    clock: Clock = system_clock,
) -> SharedTable:
    """The table at `<profile>#<share>.<schema>.<table>`; `storage_options` are those of the profile's store.

    InvalidRequestError for another address, NotATableError if profile or table are not there, AccessDeniedError if the
    profile has expired or the server refuses it, StoreUnavailableError, SharingError.
    """
    parts = parse_address(address_of(address))
    if parts is None:
        raise InvalidRequestError(
            f"{address_of(address)} is no address of a shared table",
            fix="write it as profile.share#share.schema.table",
            kind="bad-address",
        )
    profile = read_profile(parts[0], config=config, **dict(storage_options or {}))
    return SharedTable(profile, parts[1], config=config, clock=clock)


def find_shared(
    profile: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
) -> pl.DataFrame:
    """`address`, `format` and `name` (share.schema.table) of all tables of a server. Errors as `open_shared`."""
    client = SharingClient(
        read_profile(profile, config=config, **dict(storage_options or {})), limits=reach(config or settings())
    )
    tables = [client.all_tables(share) for share in client.shares()["share"]]
    return pl.concat([pl.DataFrame(schema=TABLES), *tables]).select(
        "address",
        pl.lit("sharing").alias("format"),
        pl.concat_str("share", "schema", "table", separator=".").alias("name"),
    )
