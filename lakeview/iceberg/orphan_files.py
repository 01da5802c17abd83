"""A listing of a table's folder to the files in it that none of its snapshots names (iceberg spec, Snapshots)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain

import polars as pl

from lakeview.iceberg.manifests.manifest_lists import MANIFESTS
from lakeview.iceberg.manifests.spans import Span, together
from lakeview.iceberg.metadata.locate import FOLDER, HINT, is_metadata_name
from lakeview.iceberg.metadata.versions import in_order
from lakeview.iceberg.state import State
from lakeview.model.errors import CorruptTableError


def orphan_files(state: State, listing: pl.DataFrame) -> pl.DataFrame:
    """Of a LISTING of everything below the table's folder the files that neither its metadata nor any snapshot, branch
    or statistics file names; metadata files and the version hint are named by their place. Costs every manifest.

    Raises what reading a manifest list or a manifest raises: what it names is not known then.
    """
    base = pl.col("name").str.split("/").list.last()
    by_place = base.map_elements(is_metadata_name, return_dtype=pl.Boolean) | (base == HINT)
    in_place = (pl.col("name").str.starts_with(f"{FOLDER}/") & by_place).fill_null(value=False)
    left = listing.filter(~in_place)
    root = state.storage.root.rstrip("/") + "/"
    for paths in _named(state):
        if left.is_empty():
            break
        places = _resolved(state, paths).str.strip_prefix(root)
        left = left.filter(~pl.col("name").is_in(places.implode()))
    return left


def _named(state: State) -> Iterator[pl.Series]:
    """Recorded paths, some at a time."""
    metadata, tree = state.metadata, state.tree
    snapshots = in_order(metadata)
    tree.prepare(snapshots)
    manifests = [tree.manifests(snapshot) for snapshot in snapshots]
    every = pl.concat([pl.DataFrame(schema=MANIFESTS), *manifests]).unique("manifest_path", maintain_order=True)
    statistics = (d.get("statistics-path") for d in chain(metadata.statistics, metadata.partition_statistics))
    lists = [snapshot.manifest_list for snapshot in snapshots]
    own = [path for path in chain(lists, statistics) if isinstance(path, str)]
    yield pl.concat([pl.Series("path", own, dtype=pl.String), every["manifest_path"].alias("path")])
    for part in together(Span(row, 0, 0) for row in every.iter_rows(named=True)):
        yield tree.entries(pl.DataFrame([span.row for span in part], schema=MANIFESTS))["path"]


def _resolved(state: State, paths: pl.Series) -> pl.Series:
    try:
        return state.locations.resolve_all(paths)
    except CorruptTableError:  # one of them is the path of no file
        found = []
        for path in paths:
            with suppress(CorruptTableError):
                found.append(state.locations.resolve(path))
        return pl.Series(found, dtype=pl.String)
