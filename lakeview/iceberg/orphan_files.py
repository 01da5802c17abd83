"""Listings of a table's folder and of its data path to the files that none of its snapshots names (iceberg spec,
Snapshots)."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain

import polars as pl

from lakeview.iceberg.manifests.manifest_lists import MANIFESTS, parts_of
from lakeview.iceberg.metadata.locate import FOLDER, HINT, is_metadata_name
from lakeview.iceberg.metadata.versions import in_order
from lakeview.iceberg.state import State
from lakeview.iceberg.write.context import DataLocations, data_locations
from lakeview.model.addresses import below
from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import first_few
from lakeview.storage import LISTING, open_storage
from lakeview.storage.leftovers import age, leftovers

_EXAMPLES = 10
"""Files of one commit that was never made, as a rule."""

_OF_TABLES = r"^((?:.*/)?)(?:metadata/[^/]*\.metadata\.json(?:\.gz)?|_delta_log/[^/]*)$"
"""Files that make the folder before them, with its `/`, one of a table."""


def orphan_findings(state: State, listing: pl.DataFrame, now: datetime | None) -> Iterator[Finding]:
    """Files that no snapshot names: of writers that were killed, or that could not remove what they had written.

    `listing`: LISTING of the table's folder. With `now`, of files older than a day alone.
    """
    try:
        elsewhere, files = _data_path(state)
        files = leftovers(files, now).with_columns(pl.concat_str(pl.lit(f"{elsewhere}/"), "name").alias("name"))
        alone = orphan_files(state, pl.concat([leftovers(listing, now), files]))
    except LakeviewError:  # what it names is not known; the snapshot is reported as one that cannot be read
        return
    outside = alone["name"].is_in(files["name"].implode())
    yield from _finding(
        "snapshot-orphan-files",
        "in the folder",
        alone.filter(~outside),
        now,
        "remove them by the engine's remove_orphan_files",
    )
    yield from _finding(
        "data-path-orphan-files",
        f"below the data path {elsewhere}",
        alone.filter(outside),
        now,
        "make sure that no other table has files there, then remove them by remove_orphan_files with this location",
    )


def _finding(id_: str, where: str, files: pl.DataFrame, now: datetime | None, remedy: str) -> Iterator[Finding]:
    if files.is_empty():
        return
    several = files.height > 1
    names = first_few(files["name"], _EXAMPLES)
    yield Finding(
        id_,
        Severity.NOTE,
        f"{files.height:,} {'files' if several else 'file'} {where} {'are' if several else 'is'} named by no snapshot",
        f"{int(files['size'].sum()):,} bytes; {age(now)}: {names}",
        place=files["name"][0],
        rule="Iceberg spec, Snapshots",
        remedy=remedy,
        page="timeline",
    )


def _data_path(state: State) -> tuple[str, pl.DataFrame]:
    """The address of the folder that the properties put new data files into, and the LISTING of it without the files of
    other tables, as far as that is known; empty where it is in the table's folder or may not be listed."""
    with suppress(LakeviewError):  # a path outside the allowed roots, or of another kind of store
        locations = data_locations(state, (state.metadata.location or "").rstrip("/"))
        if not below(locations.folder, state.storage.root):
            storage = open_storage(locations.folder, options=state.storage.options, config=state.storage.config)
            return locations.folder, _own(storage.walk(), locations)
    return "", pl.DataFrame(schema=LISTING)


def _own(listing: pl.DataFrame, locations: DataLocations) -> pl.DataFrame:
    if locations.context is not None:
        listing = listing.filter(pl.col("name").str.contains(f"/{locations.context}/", literal=True))
    for folder in listing["name"].str.extract(_OF_TABLES).drop_nulls().unique():
        listing = listing.filter(~pl.col("name").str.starts_with(folder))
    return listing


def orphan_files(state: State, listing: pl.DataFrame) -> pl.DataFrame:
    """Of a LISTING, of everything below the table's folder and of addresses elsewhere, the files that neither its
    metadata nor any snapshot, branch or statistics file names; metadata files and the version hint are named by their
    place. Costs every manifest.

    Raises what reading a manifest list or a manifest raises: what it names is not known then.
    """
    base = pl.col("name").str.split("/").list.last()
    by_place = base.map_elements(is_metadata_name, return_dtype=pl.Boolean) | (base == HINT)
    in_place = (pl.col("name").str.starts_with(f"{FOLDER}/") & by_place).fill_null(value=False)
    orphans = listing.filter(~in_place)
    root = state.storage.root.rstrip("/") + "/"
    for paths in _recorded_paths(state):
        if orphans.is_empty():
            break
        places = state.locations.resolve_each(paths).drop_nulls().str.strip_prefix(root)
        orphans = orphans.filter(~pl.col("name").is_in(places.implode()))
    return orphans


def _recorded_paths(state: State) -> Iterator[pl.Series]:
    """Recorded paths, some at a time."""
    metadata, tree = state.metadata, state.tree
    snapshots = in_order(metadata)
    manifests, errors = tree.manifests_of(snapshots)
    for error in errors.values():
        raise error
    every = pl.concat([pl.DataFrame(schema=MANIFESTS), *manifests.values()]).unique(
        "manifest_path", maintain_order=True
    )
    statistics = (d.get("statistics-path") for d in chain(metadata.statistics, metadata.partition_statistics))
    lists = [snapshot.manifest_list for snapshot in snapshots]
    own = [path for path in chain(lists, statistics) if isinstance(path, str)]
    yield pl.concat([pl.Series("path", own, dtype=pl.String), every["manifest_path"].alias("path")])
    for part in parts_of(every):
        yield tree.entries(part)["path"]
