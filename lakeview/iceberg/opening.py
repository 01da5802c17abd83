"""An address to an Iceberg table: its folder, the metadata folder in it, or one metadata file."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakeview.iceberg.metadata.locate import FOLDER, Place, is_metadata_name, place_of
from lakeview.iceberg.table import IcebergTable
from lakeview.model.addresses import normalise
from lakeview.model.config import Config, settings
from lakeview.storage import Storage, open_storage


def open_iceberg(
    address: str,
    *,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
    relocate: Mapping[str, str] | None = None,
) -> IcebergTable:
    """The Iceberg table at an address: its folder, the metadata folder in it, or one `*.metadata.json`.

    `relocate`: recorded prefixes to where they lie now; where no roots are configured, naming a place here is trust
    enough for this table to read from it. NotATableError, AccessDeniedError, CorruptTableError, UnsupportedTableError.
    """
    config = config or settings()
    place = _place(address, storage_options, config)
    rules = {**config.relocate, **(relocate or {})}
    return IcebergTable(trusting(place.root, rules, storage_options, config), place, rules)


def _place(address: str, storage_options: Mapping[str, Any] | None, config: Config) -> Place:
    """The table an address means. A folder called `metadata` may be a table's own, or the one in it: a listing tells,
    which no other address costs."""
    address = normalise(address)
    if address.rpartition("/")[2] == FOLDER:
        within = open_storage(address, options=storage_options, config=config).list_from(FOLDER)
        if any(is_metadata_name(name) for name in within["name"]):
            return Place(address)
    return place_of(address)


def trusting(
    root: str, relocate: Mapping[str, str], storage_options: Mapping[str, Any] | None, config: Config
) -> Storage:
    """The store of a table's folder, which may also read below the places that `relocate` names, unless roots are
    configured: those hold."""
    storage = open_storage(root, options=storage_options, config=config)
    if relocate and not config.roots:
        config = replace(config, roots=(storage.root, *relocate.values()))
        storage = open_storage(root, options=storage_options, config=config)
    return storage
