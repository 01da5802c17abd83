"""An address to a table: which format it is, and which tables lie under a root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from lakeview.config import Config
from lakeview.delta.log.paths import LOG_FOLDER
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.create import create_log
from lakeview.delta.write.writer import Clock, system_clock
from lakeview.errors import NotATableError, UnsupportedTableError
from lakeview.schema import Schema
from lakeview.storage import Storage, open_storage

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = pl.Schema({"address": pl.String(), "format": pl.String(), "name": pl.String()})
"""One row a table; `name` is its path below the root."""


def open_table(
    address: str, *, storage_options: Mapping[str, Any] | None = None, config: Config | None = None
) -> DeltaTable:
    """The table at an address: a folder or a URL that fsspec knows.

    NotATableError if there is none, AccessDeniedError outside the allowed roots, StoreUnavailableError if the store
    does not answer. `storage_options` are as fsspec takes them; they are never logged, shown or pickled.
    """
    storage = open_storage(address, options=storage_options, config=config, decode=True)
    try:
        return DeltaTable(storage)
    except NotATableError as error:
        raise _no_table(storage) from error


def create_table(
    address: str,
    schema: Schema | pa.Schema,
    *,
    partition_by: Sequence[str] = (),
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
    """Create an empty table. `schema` is lakeview's or Arrow's; `engine` and `user` are recorded with the commit.

    CommitConflictError if there is a table already, InvalidRequestError for a schema or partitioning that no table can
    have, UnsupportedTableError for a format that is not written.
    """
    if format != "delta":
        raise UnsupportedTableError(
            f"lakeview does not write {format} tables", fix="use format='delta'", kind="unsupported-format"
        )
    storage = open_storage(address, options=storage_options, config=config, decode=True)
    create_log(
        storage,
        schema if isinstance(schema, Schema) else Schema.from_arrow(schema),
        partition_by=partition_by,
        properties=properties,
        name=name,
        description=description,
        engine=engine,
        user=user,
        clock=clock,
    )
    return DeltaTable(storage)


def _no_table(storage: Storage) -> NotATableError:
    names = storage.walk()["name"].head(1000)
    if not names.len():
        found = "the folder is empty or not there"
    elif names.str.starts_with(f"{LOG_FOLDER}/").any():
        found = f"its {LOG_FOLDER} holds neither commits nor a complete checkpoint"
    else:
        found = f"it holds files but no {LOG_FOLDER}"
    return NotATableError(
        f"{storage.root} is no table: {found}",
        fix=f"give the folder that holds {LOG_FOLDER}, or look for tables below a folder with find_tables",
        place=storage.root,
    )


def find_tables(
    root: str, *, storage_options: Mapping[str, Any] | None = None, config: Config | None = None
) -> pl.DataFrame:
    """TABLES below a root, by name; one recursive listing. Empty if there is none.

    AccessDeniedError outside the allowed roots.
    """
    storage = open_storage(root, options=storage_options, config=config, decode=True)
    commit = rf"^(?:(.+)/)?{LOG_FOLDER}/[0-9]{{20}}\.(?:json|checkpoint\..*parquet)$"
    names = storage.walk()["name"]
    found = names.to_frame("name").filter(pl.col("name").str.contains(commit))
    folders = found.select(pl.col("name").str.extract(commit, 1).fill_null("").alias("name")).unique().sort("name")
    prefix = storage.root.rstrip("/")
    return folders.select(
        pl.when(pl.col("name") == "")
        .then(pl.lit(prefix))
        .otherwise(pl.concat_str(pl.lit(prefix + "/"), "name"))
        .alias("address"),
        pl.lit("delta").alias("format"),
        pl.when(pl.col("name") == "").then(pl.lit(prefix.rsplit("/", 1)[-1])).otherwise("name").alias("name"),
    )
