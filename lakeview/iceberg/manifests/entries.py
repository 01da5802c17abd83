"""Manifests to frames of their entries, every column by its field id (iceberg spec, Manifests), and to
ACTIONS."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import msgspec
import polars as pl

from lakeview.iceberg.manifests.avro import column, read_frame, read_joined, require
from lakeview.iceberg.manifests.avro_container import Container, corrupt, corrupt_manifest, open_container
from lakeview.iceberg.manifests.fields import ENTRY_FIELDS, ENTRY_NAMES, FILE_FIELDS, frame_schema
from lakeview.iceberg.manifests.partitions import PartitionColumn, typed_partition
from lakeview.model import limits
from lakeview.model.column_values import format_expression, sizes
from lakeview.model.errors import LakeviewError, UnsupportedTableError
from lakeview.model.frames import ACTIONS

FORMATS = ("PARQUET", "AVRO", "ORC")
"""Formats of data files that are read; those of delete files, and PUFFIN."""

_FIELDS = [f for f in (*ENTRY_FIELDS, *FILE_FIELDS) if f.column is not None]
_KEYS = {f.column: f.key for f in _FIELDS}

_REST_NAMES = ("column_sizes", "value_counts", "split_offsets")
REST = frame_schema(f for f in _FIELDS if f.column in _REST_NAMES)
"""What manifests hold of a file beside ENTRIES: no reader needs it, and a writer that carries a file over keeps it."""

ENTRIES = frame_schema(f for f in _FIELDS if f.column not in _REST_NAMES)
"""One row a manifest entry, inheritance applied. `status`: 0 existing, 1 added, 2 deleted; `sequence_number` is the
data sequence number; `content`: 0 data, 1 position deletes (and deletion vectors), 2 equality deletes; metrics by field
id, bounds as bytes. Beside these: `spec_id`, and `partition`: a struct of the tuple's values by field id (`f1000`),
absent where the manifest has none."""

METRICS = ("null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
"""Columns of ENTRIES that hold something for each column of the table. Sizes and counts of values are not read."""

_METRIC_KEYS = {_KEYS[name] for name in METRICS}
_ENTRY_KEYS = {"f2", "f102"} | {_KEYS[name] for name in ENTRIES} - _METRIC_KEYS

_KINDS = {
    (1, 0): "add data file", (1, 1): "add position deletes", (1, 2): "add equality deletes",
    (2, 0): "remove data file", (2, 1): "remove position deletes", (2, 2): "remove equality deletes",
}  # fmt: skip

# metrics are there or not, as they happen to be held
_LEFT_OUT = {"status", "content", "path", *METRICS, "key_metadata", "snapshot_id"}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest file taken apart, beside its row of MANIFESTS."""

    path: str
    row: Mapping[str, Any]
    container: Container

    @property
    def spec_id(self) -> int:
        """The partition spec its entries were written with: by its own word, else by its list's."""
        text = self.container.metadata.get("partition-spec-id", b"").decode(errors="replace")
        own = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
        return int(self.row.get("partition_spec_id") or 0) if own is None else own


def open_manifest(data: bytes, path: str, row: Mapping[str, Any] | None = None) -> Manifest:
    """A manifest taken apart, its entries not decoded yet. CorruptTableError ("corrupt-file") if it is no Avro file."""
    return Manifest(path, row or {}, open_container(data, path, ENTRY_NAMES, inner="f2"))


def read_manifests(
    manifests: Sequence[Manifest], columns: tuple[PartitionColumn, ...], metrics: Collection[int] = ()
) -> pl.DataFrame:
    """ENTRIES of manifests, in their order, with what nulls inherit, and partitions of these columns.

    `metrics`: the ids of the columns whose bounds and counts are kept; of a wide table they are most of a manifest.

    CorruptTableError ("corrupt-file") if a file is no manifest or lacks a number that cannot be inherited,
    UnsupportedTableError if one names an encrypted file.
    """
    frames = []
    # those written with one schema are decoded together: a manifest of few entries costs next to nothing then
    for _, of_schema in groupby(manifests, key=lambda m: id(m.container.schema)):
        group = list(of_schema)
        frames.append(_inherit_from_manifest(_read_entries(group, columns, frozenset(metrics)), group))
    return frames[0] if len(frames) == 1 else pl.concat(frames)


def read_whole(manifest: Manifest, columns: tuple[PartitionColumn, ...]) -> pl.DataFrame:
    """ENTRIES of a manifest with the metrics of all columns, then REST. Errors as `read_manifests`."""
    rows = _flat(read_frame(manifest.container, manifest.path), manifest.path)
    path = manifest.path
    entries = _inherit_from_manifest(typed_partition(_entries(rows, path, None), columns, path), [manifest])
    rest = [column(rows, _KEYS[name], name, dtype, path) for name, dtype in REST.items()]
    return entries.with_columns(rest)


def _read_entries(
    group: Sequence[Manifest], columns: tuple[PartitionColumn, ...], metrics: frozenset[int]
) -> pl.DataFrame:
    """Entries of manifests of one schema as their files have them, partitions typed."""
    fields = _ENTRY_KEYS | _METRIC_KEYS if metrics else _ENTRY_KEYS
    if len(group) > 1:
        joined_rows = read_joined([m.container for m in group], "f100", fields)
        with suppress(LakeviewError):  # one by one they tell which of them it is
            if joined_rows is not None:
                rows = _flat(joined_rows, group[0].path)
                return typed_partition(_entries(rows, group[0].path, metrics), columns, group[0].path)
    return pl.concat(
        [
            typed_partition(
                _entries(_flat(read_frame(m.container, m.path, fields), m.path), m.path, metrics), columns, m.path
            )
            for m in group
        ]
    )


def _flat(rows: pl.DataFrame, path: str) -> pl.DataFrame:
    """Records with the fields of their files beside the others."""
    require(rows, ("f0",), path)
    if "f2" in rows.columns:  # a record that may be null does not give its fields away
        if not isinstance(rows["f2"].dtype, pl.Struct):
            raise corrupt(path, "its entries name no files")
        rows = pl.concat([rows.drop("f2"), rows["f2"].struct.unnest()], how="horizontal")
    require(rows, ("f100",), path)
    return rows


def _entries(rows: pl.DataFrame, path: str, metrics: frozenset[int] | None) -> pl.DataFrame:
    """ENTRIES of flat records, nothing inherited; `metrics`: of which columns, None for all."""
    has_metrics = metrics is None or bool(metrics)
    frame = pl.DataFrame(
        [
            _of_columns(
                column(rows, _KEYS[name] if has_metrics or name not in METRICS else "", name, dtype, path), metrics
            )
            for name, dtype in ENTRIES.items()
        ]
    )
    if frame["path"].has_nulls() or not frame["status"].fill_null(-1).is_in([0, 1, 2]).all():
        raise corrupt(path, "an entry has no path, or a status that is none")
    if not frame["content"].is_in([0, 1, 2]).all():  # null, as in version 1, stands for data
        raise corrupt(path, "an entry holds neither data nor deletes")
    if frame["key_metadata"].drop_nulls().len():
        raise UnsupportedTableError(
            f"{path} names encrypted files, and encryption is not read",
            fix="read the table with an engine that holds its keys", place=path, kind="unsupported-encryption",
        )  # fmt: skip
    frame = frame.with_columns(
        pl.col("content").fill_null(0),
        pl.col("format").str.to_uppercase().fill_null("PARQUET"),
        sizes(),
        # fewer than none, or so many that their sum would turn negative: nothing is known
        pl.when(pl.col("records").is_between(0, limits.FILE_ROWS)).then("records"),
    )
    if "f102" in rows.columns and isinstance(rows["f102"].dtype, pl.Struct) and rows["f102"].dtype.fields:
        frame = frame.with_columns(rows["f102"].alias("partition"))
    return frame


def _of_columns(series: pl.Series, metrics: Collection[int] | None) -> pl.Series:
    """A column of metrics with only these ids in it; any other column as it is."""
    if series.name not in METRICS or not metrics:
        return series
    return series.list.eval(pl.element().filter(pl.element().struct.field("key").is_in(list(metrics))))


def _inherit_from_manifest(entries: pl.DataFrame, group: Sequence[Manifest]) -> pl.DataFrame:
    """Entries with what a null takes from the manifest's row in the list (Sequence Number Inheritance, First Row ID
    Inheritance), and their `spec_id`. CorruptTableError where an entry that is not new has no number of its own."""
    inheritance = _given_by_manifests(group)
    sequence, own = pl.col("given_sequence"), pl.col("first_row_id")
    frame = entries.hstack(inheritance)
    # a reader that looks for deletes among deletes alone would give the rows they name
    astray = (entries["content"] == 0) != (inheritance["given_content"] == 0)
    if astray.any() and (faults := frame.filter(astray & (entries["status"] != 2))).height:
        path = group[faults["given_by"][0]].path
        raise corrupt(path, f"its list calls it a manifest of the other kind, and it holds {faults['path'][0]}")
    # from version 1 everything has the number 0, written or not
    lacking = (pl.col("status") == 0) & pl.col("sequence_number").is_null() & (sequence != 0)
    if entries["sequence_number"].has_nulls() and (faults := frame.filter(lacking)).height:
        path = group[faults["given_by"][0]].path
        raise corrupt_manifest(f"{path}: the existing file {faults['path'][0]} has no sequence number of its own", path)
    rows = own
    if inheritance["given_first_row_id"].null_count() < inheritance.height:
        # a removed file takes no ids: the list leaves room for the rows of added and existing files alone
        inherits = own.is_null() & (pl.col("content") == 0) & (pl.col("status") != 2)
        new_rows = pl.when(inherits).then(pl.col("records").fill_null(0)).otherwise(0)
        before = (new_rows.cum_sum() - new_rows).over("given_by")
        rows = pl.when(inherits).then(pl.col("given_first_row_id") + before).otherwise(own)
    return frame.with_columns(
        pl.col("snapshot_id").fill_null(pl.col("given_snapshot_id")),
        pl.col("sequence_number").fill_null(sequence),
        pl.col("file_sequence_number").fill_null(sequence),
        pl.when(pl.col("content") == 0).then(rows).otherwise(None).cast(pl.Int64).alias("first_row_id"),
    ).drop(c for c in inheritance.columns if c != "spec_id")


def _given_by_manifests(group: Sequence[Manifest]) -> pl.DataFrame:
    """What each entry's manifest gives it, one row an entry; `given_by`: which manifest of the group that is."""
    rows = pl.DataFrame(
        [
            (
                i, m.row.get("content") or 0, m.row.get("sequence_number") or 0, m.row.get("added_snapshot_id"),
                m.row.get("first_row_id"), m.spec_id,
            )
            for i, m in enumerate(group)
        ],
        schema={
            "given_by": pl.UInt32(), "given_content": pl.Int32(), "given_sequence": pl.Int64(),
            "given_snapshot_id": pl.Int64(), "given_first_row_id": pl.Int64(), "spec_id": pl.Int32(),
        },
        orient="row",
    )  # fmt: skip
    counts = rows.with_columns(pl.Series("entries", [m.container.records for m in group], dtype=pl.Int64))
    return counts.filter(pl.col("entries") > 0).select(pl.exclude("entries").repeat_by("entries").explode())


def entry_actions(entries: pl.DataFrame) -> pl.DataFrame:
    """ACTIONS of ENTRIES."""
    # most columns say nothing in most tables: of a million files they would take most of the time
    names = [c for c in entries.columns if c not in _LEFT_OUT and entries[c].null_count() < entries.height]
    encode = msgspec.json.Encoder(enc_hook=str).encode
    texts = [
        encode({name: value for name, value in zip(names, row, strict=True) if value is not None}).decode()
        for row in (entries.select(names).iter_rows() if names else [()] * entries.height)
    ]
    kinds = {f"{status} {content}": kind for (status, content), kind in _KINDS.items()}
    kind = (
        format_expression("{} {}", "status", "content")
        .replace_strict(kinds, default="entry", return_dtype=pl.String)
        .fill_null("entry")
    )
    return entries.select(kind.alias("kind"), "path", pl.Series("action", texts, dtype=pl.String)).select(
        ACTIONS.names()
    )
