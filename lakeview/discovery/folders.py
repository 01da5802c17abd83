"""A root to the tables below it, and a path inside a table to the table: by names of files. Only a metadata file that
may be that of an Iceberg view is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any

import polars as pl

from lakeview.delta.log.paths import LOG_FOLDER
from lakeview.iceberg.catalog.address import is_catalog_address
from lakeview.iceberg.metadata.locate import FOLDER as METADATA_FOLDER
from lakeview.iceberg.metadata.locate import describes_view
from lakeview.model.arguments import address_of, count_of
from lakeview.model.config import Config
from lakeview.model.errors import InvalidRequestError, LakeviewError, NotATableError
from lakeview.storage import Storage, open_storage

TABLES = pl.Schema({"address": pl.String(), "format": pl.String(), "name": pl.String()})
"""One row a table; `name` is its path below the root. A folder with the logs of both formats is a Delta table."""

_LOGS = {
    "delta": (LOG_FOLDER, re.compile(r"[0-9]{20}\.(?:json|checkpoint\..*parquet)$")),
    "iceberg": (METADATA_FOLDER, re.compile(r"[^/]*\.metadata\.json(?:\.gz)?$")),
}
"""The folder that every table of a format has, and the names in it."""

_HIDDEN = r"(?:^|/)[_.][^/]*"
"""A folder that engines do not show: records and quarantined rows of pipelines, a table that is still being built."""

_MARKS = {format_: rf"^(?:(.+)/)?{folder}/{name.pattern}" for format_, (folder, name) in _LOGS.items()}
"""What is below every table of a format; the first group is the table's folder."""

_TABLE_ALONE = re.compile(r"(?:[^/]*\.avro|version-hint\.text)$")
"""Names beside metadata files that a view never has: manifests, and the hint of a folder without a catalog."""

_WITH_TABLE_ALONE = rf"^(?:(.+)/)?{METADATA_FOLDER}/{_TABLE_ALONE.pattern}"

MOST_LOOKED = 200
"""So many folders are looked into where tables are found by depth, and so many metadata files for views."""

MOST_ABOVE = 12
"""So many folders above an address that is no table may hold the table that it lies in: a path has few more."""


def find_tables(
    root: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
    catalog: Mapping[str, Any] | None = None,
    depth: int | None = None,
) -> pl.DataFrame:
    """TABLES below a root, by name; one recursive listing. Empty if there is none. On a disk the partitions' folders
    (`day=1`) of the tables found are not looked through. Tables in folders whose names begin with `_` or `.` are
    hidden, as they are to engines: give such a folder as the root to list them.

    `depth`: looks only so many folders deep, into MOST_LOOKED at most and not into tables, where all that lies below
    may have no end; a catalog has no depth.

    The root may be a configured Iceberg catalog, `catalog://<catalog>/`, or a namespace in one; it is asked for names
    and no table is opened. `catalog`: its properties, over what is configured. Or it is the profile of a share, a file
    `*.share`: its server is asked for all tables, and `name` is share.schema.table.
    AccessDeniedError outside the allowed roots, NotATableError for a profile that is not there.
    """
    if is_catalog_address(address_of(root)):
        from lakeview.iceberg.catalog.table import find_catalog_tables

        pairs = find_catalog_tables(address_of(root), catalog=catalog, config=config)
        return pl.DataFrame([(address, "iceberg", name) for address, name in pairs], schema=TABLES, orient="row")
    refuse_catalog(catalog)
    if not address_of(root).endswith(".share") or os.path.isdir(address_of(root)):
        return _tables_in_folder(root, storage_options, config, depth)
    from lakeview.sharing.client.opening import find_shared

    try:
        return find_shared(root, storage_options=storage_options, config=config).cast(TABLES)
    except NotATableError as no_profile:
        if no_profile.kind != "no-profile":
            raise
        tables = _tables_in_folder(root, storage_options, config, depth)  # a folder of a bucket may be called so
        if tables.is_empty():
            raise
        return tables


def _tables_in_folder(
    root: str | os.PathLike[str], storage_options: Mapping[str, Any] | None, config: Config | None, depth: int | None
) -> pl.DataFrame:
    """TABLES of `find_tables` below a folder."""
    storage = open_storage(root, options=storage_options, config=config, decode=True)
    below = _all_tables(storage) if depth is None else _near_tables(storage, depth)
    folders = below.filter(~pl.col("name").str.contains(_HIDDEN)).sort("name")
    prefix = storage.root.rstrip("/")
    return folders.select(
        pl.when(pl.col("name") == "")
        .then(pl.lit(prefix))
        .otherwise(pl.concat_str(pl.lit(prefix + "/"), "name"))
        .alias("address"),
        "format",
        pl.when(pl.col("name") == "").then(pl.lit(prefix.rsplit("/", 1)[-1])).otherwise("name").alias("name"),
    )


def _all_tables(storage: Storage) -> pl.DataFrame:
    """The name and format of every table, the root's name empty."""
    names = storage.names(dict(_LOGS.values()))
    frames = [
        names.to_frame("path")
        .filter(pl.col("path").str.contains(pattern))
        .select("path", pl.col("path").str.extract(pattern, 1).fill_null("").alias("name"), format=pl.lit(format_))
        for format_, pattern in _MARKS.items()
    ]
    tables = pl.concat(frames).unique("name", keep="first", maintain_order=True)
    sure = names.filter(names.str.contains(_WITH_TABLE_ALONE)).str.extract(_WITH_TABLE_ALONE, 1).fill_null("")
    doubtful = tables.filter((pl.col("format") == "iceberg") & ~pl.col("name").is_in(sure.implode())).head(MOST_LOOKED)
    are_views = list(storage.each_ahead(partial(describes_view, storage), doubtful["path"].to_list()))
    views = doubtful.filter(pl.Series(are_views, dtype=pl.Boolean))
    return tables.join(views, on="name", how="anti", maintain_order="left").select("name", "format")


def _near_tables(storage: Storage, depth: int) -> pl.DataFrame:
    """Those within so many folders, as `_all_tables`."""
    tables: list[tuple[str, str]] = []
    level, budget = [""], MOST_LOOKED
    for _ in range(count_of(depth, "depth") + 1):
        if not level:
            break
        level, budget = level[:budget], max(0, budget - len(level))
        contents = list(zip(level, storage.each_ahead(partial(_look_into, storage), level), strict=True))
        tables += [(folder, format_) for folder, (format_, _) in contents if format_ is not None]
        level = [f"{folder}/{name}".lstrip("/") for folder, (_, inner) in contents for name in inner]
    return pl.DataFrame(tables, schema={"name": pl.String(), "format": pl.String()}, orient="row")


def _look_into(storage: Storage, folder: str) -> tuple[str | None, list[str]]:
    """The format of the table that a folder holds, or the folders in it; of one that may not be read, none."""
    try:
        inner = storage.folders(folder)
        for format_, (within, name) in _LOGS.items():
            log = f"{folder}/{within}".lstrip("/")
            names = storage.list_from(log)["name"] if within in inner else ()
            if mark := next(filter(name.match, names), None):
                is_sure = format_ == "delta" or any(map(_TABLE_ALONE.match, names))
                return (format_ if is_sure or not describes_view(storage, f"{log}/{mark}") else None), []
    except LakeviewError:
        return None, []
    return None, [name for name in inner if "=" not in name]


def table_above(storage: Storage, options: Mapping[str, Any] | None, config: Config | None) -> str | None:
    """The table whose folder an address lies in, if it may be read: for the path of a file or a partition."""
    folder = storage.root
    for _ in range(MOST_ABOVE):
        folder = folder.rpartition("/")[0]
        if not folder or folder.endswith("/"):
            return None
        try:
            above = open_storage(folder, options=options, config=config)
            paths = [f"{within}/{name}" for within, _ in _LOGS.values() for name in above.list_from(within)["name"]]
        except LakeviewError:  # outside the allowed roots, or nothing that this reader may list
            return None
        if any(re.match(mark, path) for mark in _MARKS.values() for path in paths):
            return above.root
    return None


def tables_inside(storage: Storage) -> list[str]:
    """The tables in the folders of one that is none itself, by name; it looks into MOST_LOOKED of them at most."""
    tables = _near_tables(storage, 1)
    return tables.filter(pl.col("name") != "", ~pl.col("name").str.contains(_HIDDEN))["name"].sort().to_list()


def folder_alike(storage: Storage, options: Mapping[str, Any] | None, config: Config | None) -> str | None:
    """The folder beside an address with the name most like its own; None without one, or where none may be listed."""
    parent, _, name = storage.root.rpartition("/")
    try:
        neighbours = open_storage(parent, options=options, config=config).folders("") if parent else []
    except LakeviewError:  # outside the allowed roots, or nothing that this reader may list
        return None
    alike = get_close_matches(name, [each for each in neighbours if each != name], n=1, cutoff=0.7)
    return f"{parent}/{alike[0]}" if alike else None


def refuse_catalog(catalog: Mapping[str, Any] | None) -> None:
    """Raises InvalidRequestError for properties of a catalog: the address is in none."""
    if catalog is not None:
        raise InvalidRequestError(
            "properties of a catalog were given for an address that is in none",
            fix="give an address such as catalog://prod/sales.orders, or leave catalog= out",
        )
