"""A catalog's address to a table that follows its catalog, and the names of the tables that a catalog holds."""

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from lakeview.iceberg.catalog.address import CatalogAddress, dotted_name, parse_address
from lakeview.iceberg.catalog.client import CatalogClient, TableLocation
from lakeview.iceberg.catalog.connection import catalog_properties
from lakeview.iceberg.metadata.locate import Place, is_metadata_name, place_of
from lakeview.iceberg.metadata.locations import relocate_path
from lakeview.iceberg.opening import trusting
from lakeview.iceberg.table import IcebergTable
from lakeview.model.addresses import is_absolute
from lakeview.model.config import Config, settings
from lakeview.model.errors import AccessDeniedError, CorruptTableError, InvalidRequestError, NotATableError
from lakeview.storage import Storage, combine_options, store_kind

_NO_FOLDER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?/*")
"""What stands before the last name of a location in no folder, such as `/x` and `s3://bucket`."""


class CatalogPointer:
    """The current metadata file of one table, asked of its catalog.

    Implements `lakeview.iceberg.metadata.locate.Pointer`.

    `storage_options` win over what the catalog gives for the store; credentials are those of one of the two.
    """

    def __init__(
        self,
        client: CatalogClient,
        address: CatalogAddress,
        relocate: Mapping[str, str],
        storage_options: Mapping[str, Any] | None,
        config: Config,
    ) -> None:
        self._client = client
        self._name = address
        self._relocate = relocate
        self._options = dict(storage_options or {})
        self._config = config

    @property
    def address(self) -> str:
        """The table in its catalog, in one spelling."""
        return str(self._name)

    def first(self) -> tuple[Storage, Place]:
        """The store and the place of the metadata file now. Errors as of `CatalogClient.locate`, and CorruptTableError
        for a location that no file has, AccessDeniedError for one outside the allowed roots."""
        return self._open_at(self._client.locate(self._name))

    def current(self) -> tuple[Storage, Place]:
        """The same, of a table that was opened before. NotATableError if the catalog holds it no more."""
        try:
            location = self._client.locate(self._name)
        except NotATableError as error:
            raise NotATableError(
                f"{self.address} is no longer in its catalog: it was dropped or renamed since it was opened",
                fix=error.fix,
                place=self.address,
                kind="dropped",
            ) from error
        return self._open_at(location)

    @property
    def takes_commits(self) -> bool:
        """Whether it can be asked to change the table."""
        return self._client.takes_commits

    def commit(self, requirements: Sequence[Mapping[str, Any]], updates: Sequence[Mapping[str, Any]]) -> bool:
        """As `Pointer`. Errors as of `CatalogClient.commit`."""
        return self._client.commit(self._name, {"requirements": requirements, "updates": updates})

    def _open_at(self, location: TableLocation) -> tuple[Storage, Place]:
        place = self._place(location.metadata)
        try:
            # a user's key with the catalog's session token would be no valid credentials
            options = combine_options(store_kind(place.root), location.options, self._options)
            storage = trusting(place.root, self._relocate, options, self._config)
            storage.newest = lambda: self.current()[0]
        except AccessDeniedError as error:
            raise AccessDeniedError(
                f"{self.address} lies at {place.root}, outside the allowed roots",
                fix=f"add {place.root} or a folder above it to LAKEVIEW_ROOTS, if its tables may be read",
                place=self.address,
                kind=error.kind,
            ) from error
        return storage, place

    def _place(self, location: str) -> Place:
        """Where a metadata file lies, by the location that a catalog records."""
        name = location.rpartition("/")[2]
        climbs = "\0" in location or "\\" in location or ".." in location.split("/")
        if not is_absolute(location) or not name or climbs or _NO_FOLDER.fullmatch(location.rpartition("/")[0]):
            raise CorruptTableError(
                f"the catalog says that the metadata of {self.address} lies at {location!r}, where no file can be",
                fix="register the table in its catalog again, with its newest *.metadata.json",
                place=self.address,
                kind="bad-metadata-location",
            )
        address = relocate_path(location, self._relocate)
        if is_metadata_name(address):
            return place_of(address)
        above, _, name = address.rpartition("/")  # a catalog may call it as it likes
        return Place(above, "", name)


def open_catalog_table(
    address: str,
    *,
    catalog: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
    relocate: Mapping[str, str] | None = None,
) -> IcebergTable:
    """The table at `catalog://<catalog>/<namespace>.<table>`. `catalog`: its properties, over what is configured.

    InvalidRequestError for an address of no table and for a catalog that is not configured, NotATableError,
    UnsupportedTableError, StoreUnavailableError, AccessDeniedError, CorruptTableError, MissingExtraError.
    """
    config = config or settings()
    name = parse_address(address)
    if len(name.names) < 2:
        what = "a namespace" if name.names else "a catalog"
        raise InvalidRequestError(
            f"{name} names {what}, not a table",
            fix=f"add the table's name, or look for the tables below {name}",
            place=address,
        )
    rules = {**config.relocate, **(relocate or {})}
    client = CatalogClient(name.catalog, catalog_properties(name.catalog, catalog, config))
    pointer = CatalogPointer(client, name, rules, storage_options, config)
    storage, place = pointer.first()
    try:
        return IcebergTable(storage, place, rules, pointer)
    except NotATableError as error:
        raise CorruptTableError(
            f"the catalog says that the metadata of {name} lies at {storage.root}/{error.place}, which is not there",
            fix="restore the file; or where the table was moved, say where to (relocate, or LAKEVIEW_RELOCATE=old=new)",
            place=error.place,
            kind="metadata-missing",
        ) from error


def find_catalog_tables(
    address: str, *, catalog: Mapping[str, Any] | None = None, config: Config | None = None
) -> list[tuple[str, str]]:
    """The tables of a catalog, or below one of its namespaces, as (address, dotted name below it); nothing is opened.

    Errors as of `open_catalog_table`.
    """
    root = parse_address(address)
    client = CatalogClient(root.catalog, catalog_properties(root.catalog, catalog, config or settings()))
    with closing(client):
        tables = client.tables(root.names)
    return [(str(CatalogAddress(root.catalog, names)), dotted_name(names[len(root.names) :])) for names in tables]
