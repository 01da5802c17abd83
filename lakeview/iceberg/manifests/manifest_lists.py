"""Manifest lists to frames, every column by its field id (iceberg spec, Manifest Lists); manifests, some at a
time."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

import polars as pl

from lakeview.iceberg.manifests.avro import column, read_frame, read_joined, require
from lakeview.iceberg.manifests.avro_container import corrupt, open_container
from lakeview.iceberg.manifests.fields import LIST_FIELDS, LIST_NAMES, frame_schema
from lakeview.model.errors import LakeviewError
from lakeview.model.runs import runs

MANIFESTS = frame_schema(LIST_FIELDS)
"""One row a manifest of a snapshot. `content`: 0 data, 1 deletes; counts are null where the writer left them out;
`partitions`: for each field of the spec whether nulls (f509) and NaN (f518) occur, and its bounds (f510, f511)."""


def read_manifest_list(data: bytes, path: str) -> pl.DataFrame:
    """MANIFESTS. CorruptTableError ("corrupt-file") if the file is no manifest list."""
    return _list_frame(read_frame(open_container(data, path, LIST_NAMES), path), path)


def read_manifest_lists(lists: Sequence[tuple[bytes, str]]) -> list[pl.DataFrame | None]:
    """MANIFESTS of each of these files (bytes, path), None for a broken one.

    Lists of one schema are decoded together: of thousands each is then next to nothing.
    """
    with suppress(LakeviewError):
        containers = [open_container(data, path, LIST_NAMES) for data, path in lists]
        rows = read_joined(containers, "f500") if len({id(c.schema) for c in containers}) == 1 else None
        if rows is not None:
            every = _list_frame(rows, lists[0][1])
            ends = accumulate(c.records for c in containers)
            return [every.slice(end - c.records, c.records) for end, c in zip(ends, containers, strict=True)]

    def read(data: bytes, path: str) -> pl.DataFrame | None:
        with suppress(LakeviewError):
            return read_manifest_list(data, path)
        return None

    return [read(data, path) for data, path in lists]


def _list_frame(rows: pl.DataFrame, path: str) -> pl.DataFrame:
    require(rows, ("f500",), path)
    frame = pl.DataFrame([column(rows, f.key, f.name, MANIFESTS[f.name], path) for f in LIST_FIELDS])
    if not frame["content"].is_in([0, 1]).all():  # null, as in version 1, stands for data
        raise corrupt(path, "a manifest holds neither data nor deletes")
    if frame.filter(content=1)[
        "sequence_number"
    ].has_nulls():  # with 0, as version 1 has it, they would apply to nothing
        raise corrupt(path, "a manifest of deletes has no sequence number")
    frame = frame.with_columns(
        pl.col("content").fill_null(0),
        pl.col("sequence_number").fill_null(0),
        pl.col("min_sequence_number").fill_null(0),
        pl.col("partition_spec_id").fill_null(0),
    )
    if frame["manifest_path"].has_nulls():
        raise corrupt(path, "a manifest has no path")
    return frame


def inline_manifests(paths: list[str]) -> pl.DataFrame:
    """MANIFESTS of a version 1 snapshot that lists its manifests in the metadata: nothing but paths is known."""
    columns: dict[str, Any] = {name: [None] * len(paths) for name in MANIFESTS}
    zeros = [0] * len(paths)
    columns |= {"manifest_path": paths, "content": zeros, "sequence_number": zeros, "min_sequence_number": zeros}
    return pl.DataFrame(columns, schema=MANIFESTS)


_ENTRIES_AT_ONCE, _ENTRIES_UNKNOWN = 100_000, 10_000


def parts_of(manifests: pl.DataFrame, most: int | None = None) -> Iterator[pl.DataFrame]:
    """Rows of MANIFESTS in their order, some at a time: as many as have entries enough, by the counts in their list,
    for one pass in bounded memory."""
    counts = manifests.select("added_files_count", "existing_files_count", "deleted_files_count").fill_null(0)
    sizes = [sum(row) if any(row) else _ENTRIES_UNKNOWN for row in counts.iter_rows()]
    for part in runs(range(manifests.height), sizes.__getitem__, most or _ENTRIES_AT_ONCE):
        yield manifests.slice(part[0], len(part))
