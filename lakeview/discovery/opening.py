"""An address to a table: which format it is; and an address to a new table.

The readers of a format, and the writers, are imported where an address or a call asks for them: opening a Delta table
loads half of the modules that all formats take.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Any

import polars as pl

from lakeview.delta.log.paths import LOG_FOLDER
from lakeview.delta.table import DeltaTable
from lakeview.discovery.folders import folder_alike, refuse_catalog, table_above, tables_inside
from lakeview.iceberg.catalog.address import is_catalog_address
from lakeview.iceberg.metadata.locate import FOLDER as METADATA_FOLDER
from lakeview.iceberg.metadata.locate import is_metadata_name
from lakeview.model.addresses import is_local, normalise
from lakeview.model.arguments import address_of, mapping_of, names_of, optional_text
from lakeview.model.clock import Clock, system_clock
from lakeview.model.config import Config, settings
from lakeview.model.errors import NotATableError, UnsupportedTableError
from lakeview.model.printable import first_few
from lakeview.model.schema import Schema
from lakeview.model.type_input import schema_of
from lakeview.sharing.client.profile import parse_address
from lakeview.storage import Storage, open_storage

if TYPE_CHECKING:
    from lakeview.delta.write.target import Progress
    from lakeview.iceberg.table import IcebergTable
    from lakeview.model.type_input import SchemaInput
    from lakeview.sharing.client.table import SharedTable


PROFILE = "profile"
"""The kind of the error for a profile of a share in place of a table."""


def open_table(
    address: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
    relocate: Mapping[str, str] | None = None,
    catalog: Mapping[str, Any] | None = None,
) -> DeltaTable | IcebergTable | SharedTable:
    """The table at an address: a folder or a URL that fsspec knows, one metadata file of an Iceberg table,
    `catalog://<catalog>/<namespace>.<table>` in a configured Iceberg catalog, or
    `<profile>#<share>.<schema>.<table>` (`open_shared` of `lakeview/sharing/client` says what may be wrong with that).

    `relocate`: recorded prefixes to where they lie now, for files of an Iceberg table that were moved apart from it.
    `catalog`: properties of that catalog, over what is configured.
    NotATableError if there is none, AccessDeniedError outside the allowed roots, StoreUnavailableError if the store
    does not answer. `storage_options` are those of deltalake or fsspec (docs/stores.md), over the configured ones; they
    are never logged, shown or pickled.
    A folder with the logs of both formats is opened as a Delta table.
    """
    if is_catalog_address(address_of(address)):
        from lakeview.iceberg.catalog.table import open_catalog_table

        return open_catalog_table(
            address_of(address), catalog=catalog, storage_options=storage_options, config=config, relocate=relocate
        )
    refuse_catalog(catalog)
    if parse_address(address_of(address)) is not None:
        from lakeview.sharing.client.opening import open_shared

        return open_shared(address, storage_options=storage_options, config=config)
    storage = open_storage(address, options=storage_options, config=config, decode=True)
    explicit = is_metadata_name(storage.root)
    try:
        if not explicit:
            return DeltaTable(storage)
        return _iceberg(storage, storage_options, config, relocate)
    except NotATableError as error:
        if explicit:
            raise
        try:
            return _iceberg(storage, storage_options, config, relocate)
        except NotATableError:
            raise _no_table(storage, storage_options, config) from error


def _iceberg(
    storage: Storage, options: Mapping[str, Any] | None, config: Config | None, relocate: Mapping[str, str] | None
) -> IcebergTable:
    from lakeview.iceberg.opening import open_iceberg

    return open_iceberg(storage.root, storage_options=options, config=config, relocate=relocate)


def scan(
    address: str | os.PathLike[str],
    version: int | None = None,
    *,
    at: datetime | None = None,
    ref: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    relocate: Mapping[str, str] | None = None,
) -> pl.LazyFrame:
    """The rows of the table at an address, lazily; filters prune files.

    `version`, an aware `at` or `ref` as in `Table.scan`, the latest version without them. The other arguments and the
    errors are those of `open_table`; VersionNotFoundError besides.
    """
    table = open_table(address, storage_options=storage_options, relocate=relocate)
    return table.scan(version, at=at, ref=ref)


def readable_folders(address: str, config: Config | None = None) -> tuple[str, ...]:
    """Returns the folders of this machine, and files, that reading the table at an address takes; none for a table in
    another store, a share or a catalog, which takes credentials and connections."""
    if is_catalog_address(address) or parse_address(address) is not None:
        return ()
    root = normalise(address, decode=True)
    if not is_local(root):
        return ()
    config = config or settings()
    folder = os.path.dirname(os.path.dirname(root)) if is_metadata_name(root) else root
    others = [normalise(place) for place in (*config.roots, *config.relocate.values())]
    own = [os.path.abspath(file)] if (file := os.environ.get("LAKEVIEW_CONFIG")) else []
    return (folder, *(place for place in others if is_local(place)), *own)


def create_table(
    address: str | os.PathLike[str],
    schema: SchemaInput,
    *,
    partition_by: str | Sequence[str] = (),
    cluster_by: str | Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    format: str = "delta",  # noqa: A002 (the word of the public interface)
    name: str | None = None,
    description: str | None = None,
    engine: str | None = None,
    user: str | None = None,
    clock: Clock = system_clock,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
) -> DeltaTable:
    """Create an empty table. `schema` is lakeview's, Arrow's or polars', or names types; `engine` and
    `user` are recorded with the commit.

    CommitConflictError if there is a table already, InvalidRequestError for a folder of other files and for a schema,
    partitioning, clustering or property that no table can have, UnsupportedTableError for a format, type, feature or
    property that is not written.
    """
    if format != "delta":
        raise UnsupportedTableError(
            f"lakeview creates no {format} tables", fix="use format='delta'", kind="unsupported-format"
        )
    from lakeview.delta.write.create import check_no_files, create_log

    storage = open_storage(address, options=storage_options, config=config, decode=True)
    check_no_files(storage)
    create_log(
        storage,
        schema_of(schema),
        partition_by=names_of(partition_by, "partition_by"),
        cluster_by=names_of(cluster_by, "cluster_by"),
        properties=None if properties is None else mapping_of(properties, "properties"),
        name=optional_text(name, "name"),
        description=optional_text(description, "description"),
        engine=optional_text(engine, "engine"),
        user=optional_text(user, "user"),
        clock=clock,
    )
    return DeltaTable(storage)


def convert_to_delta(
    address: str | os.PathLike[str],
    *,
    partition_by: SchemaInput | None = None,
    progress: Progress | None = None,
    clock: Clock = system_clock,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
) -> DeltaTable:
    """Make a Delta table of a folder of Parquet files, which stay as they are: footers are read, no row is.

    `partition_by`: the columns that folders such as `day=2026-01-01` tell, with their types. Where files differ in the
    width of numbers, the table has the widest, and the feature typeWidening. `progress`: called with the bytes of the
    files done, and of all. InvalidRequestError for a folder without
    Parquet files, files whose columns differ otherwise, and folders that tell other columns; CommitConflictError if
    there is a table already.
    """
    from lakeview.delta.write.first_commit import convert

    storage = open_storage(address, options=storage_options, config=config, decode=True)
    convert(storage, Schema() if partition_by is None else schema_of(partition_by), clock, progress)
    return DeltaTable(storage)


def _no_table(storage: Storage, options: Mapping[str, Any] | None, config: Config | None) -> NotATableError:
    above = table_above(storage, options, config)
    if above is not None:
        return NotATableError(f"{storage.root} is no table, but lies in one", fix=f"open {above}", place=storage.root)
    if storage.root.endswith(".share") and storage.exists(storage.root):
        return NotATableError(
            f"{storage.root} is the profile of a share, not a table",
            fix=f"open {storage.root}#share.schema.table; `lakeview tables {quote(storage.root)}` lists its tables",
            place=storage.root,
            kind=PROFILE,
        )
    folder = f"{LOG_FOLDER} or {METADATA_FOLDER}"
    fix = f"give the folder that holds {folder}, or list the tables below a folder above it"
    # not a listing of all that lies below: the address may be the root of a disk
    if is_local(storage.root) and (names := tables_inside(storage)):
        reason = "it is a folder of tables"
        fix = f"open one of them, {first_few(names)}, below it; `lakeview tables {quote(storage.root)}` lists all"
    elif is_local(storage.root) and storage.exists(storage.root):
        reason = "it is a file"
    elif not storage.holds_files():
        reason = "the folder is empty or not there"
        if is_local(storage.root) and (alike := folder_alike(storage, options, config)) is not None:
            fix = f"perhaps {alike} is meant; else {fix}"
    elif not storage.list_from(LOG_FOLDER).is_empty():
        reason = f"its {LOG_FOLDER} holds neither commits nor a complete checkpoint"
    else:
        reason = f"it holds files but neither {LOG_FOLDER} nor {METADATA_FOLDER} of a table"
    return NotATableError(f"{storage.root} is no table: {reason}", fix=fix, place=storage.root)
