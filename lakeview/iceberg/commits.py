"""Snapshots and their summaries to COMMITS: what each of them did, by its writer's own word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import msgspec
import polars as pl
import pyarrow as pa

from lakeview.frames import COMMITS, moments
from lakeview.iceberg.history import in_order
from lakeview.iceberg.metadata import Metadata, SnapshotEntry
from lakeview.iceberg.refs import ancestors, names_by_snapshot

OWN_COMMITS = pl.Schema({**COMMITS, "on_main": pl.Boolean(), "refs": pl.List(pl.String())})
"""COMMITS with `on_main`: whether the snapshot is the current one or one it grew from; and `refs` that point at it."""
_METRICS = ("added-", "deleted-", "removed-", "total-", "changed-", "manifests-", "entries-", "replace-")
_DELETES = ("-delete-files", "-position-deletes", "-equality-deletes")
_WRITER = ("operation", "engine-name", "engine-version", "iceberg-version", "app-name")
_COUNTS = {
    "files_added": "added-data-files", "files_removed": "deleted-data-files", "bytes_added": "added-files-size",
    "bytes_removed": "removed-files-size", "records_added": "added-records", "records_removed": "deleted-records",
}  # fmt: skip
_TEXTS = ("operation", "engine-name", "engine-version", "iceberg-version")

Summary = Mapping[str, str]


def commits(metadata: Metadata) -> pl.DataFrame:
    """OWN_COMMITS, newest first: every snapshot of the table, those of branches included."""
    entries = in_order(metadata)
    told = [_texts_of(s) for s in _summaries(entries)]
    keys = [_sorted_out(tuple(s)) for s in told]
    main = {s.snapshot_id for s in ancestors(metadata, metadata.current_snapshot_id)}
    names = names_by_snapshot(metadata)
    ids = [s.snapshot_id for s in entries]
    times = pl.Series([s.timestamp_ms for s in entries], dtype=pl.Int64)
    parameters, metrics = _as_json(told, keys)
    frame = pl.DataFrame(
        {
            "version": pl.Series(ids, dtype=pl.Int64),
            "position": pl.int_range(len(ids), dtype=pl.Int64, eager=True),
            "parent": pl.Series([s.parent for s in entries], dtype=pl.Int64),
            "timestamp": times,
            "recorded_timestamp": times,
            "parameters": parameters,
            "metrics": metrics,
            "schema_changed": pl.Series(_schema_changes(metadata), dtype=pl.Boolean),
            "touched": pl.Series([_touched(s, k) for s, k in zip(told, keys, strict=True)], dtype=pl.Boolean),
            "on_main": pl.Series([i in main for i in ids], dtype=pl.Boolean),
            # of Python's lists a column is made ten times slower than of Arrow's
            "refs": pl.Series(pa.array([names.get(i, ()) for i in ids], pa.list_(pa.string()))),
            **{key: pl.Series([s.get(key) for s in told], dtype=pl.String) for key in _TEXTS},
            **{name: pl.Series([s.get(key) for s in told], dtype=pl.String) for name, key in _COUNTS.items()},
            **{
                key: pl.Series([s.get(key) for s in told], dtype=pl.String)
                for key in ("total-data-files", "added-delete-files", "removed-delete-files")
            },
        }
    )
    return frame.with_columns(_counted()).select(_columns()).reverse()


def _columns() -> Iterator[pl.Expr]:
    made = {
        "timestamp": moments("timestamp"),
        "recorded_timestamp": moments("recorded_timestamp"),
        "timestamp_source": pl.lit("snapshot"),
        "engine": pl.concat_str("engine-name", "engine-version", separator=" ", ignore_nulls=True).replace("", None),
        "client_version": pl.col("iceberg-version"),
        "user": pl.lit(None, pl.String()),
        "protocol_changed": pl.lit(value=False),
        "data_change": pl.col("operation").ne_missing("replace"),
    }
    for name, dtype in OWN_COMMITS.items():
        yield made.get(name, pl.col(name)).cast(dtype).alias(name)


def _counted() -> Iterator[pl.Expr]:
    """Counts of data; null where a summary does not tell, or counts delete files in."""
    # writers leave zeros out: with totals there, a count that is missing is none
    absent = pl.when(pl.col("total-data-files").is_not_null()).then(0)
    for name in _COUNTS:
        count = pl.when(pl.col(name).is_null()).then(absent).otherwise(_whole(name))
        if name.startswith("bytes"):  # summaries count delete files in: with those it is unknown
            side = "added" if name == "bytes_added" else "removed"
            deletes = f"{side}-delete-files"
            count = pl.when(pl.col(deletes).is_null() | (_whole(deletes) == 0)).then(count)
        if name == "records_removed":  # exact from removed files; row-level deletes may name a row twice
            count = pl.when(~pl.col("touched")).then(count)
        yield count.alias(name)


def _whole(column: str) -> pl.Expr:
    """A count of a summary: texts there, and not always numbers."""
    return pl.when(pl.col(column).str.contains("^[0-9]{1,18}$")).then(column).cast(pl.Int64)


def whole(text: str | None, absent: int | None) -> int | None:
    """A count of a summary as a number, null for a text that is none; `absent` where there is none."""
    if text is None:
        return absent
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _summaries(entries: Sequence[SnapshotEntry]) -> list[Mapping[str, object]]:
    """The summaries of snapshots, decoded at once where all of them can be."""
    together = b"[%b]" % b",".join(bytes(e.recorded_summary) for e in entries)
    try:
        return msgspec.json.decode(together, type=list[Mapping[str, object]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [e.summary for e in entries]


def _texts_of(summary: Mapping[str, object]) -> Summary:
    return {k: v for k, v in summary.items() if v.__class__ is str}


@dataclass(frozen=True, slots=True)
class _SummaryKeys:
    """A summary's keys by what they are; `touched`: counts of deletes that were added or removed."""

    metrics: tuple[str, ...]
    parameters: tuple[str, ...]
    touched: tuple[str, ...]


@lru_cache(maxsize=256)
def _sorted_out(keys: tuple[str, ...]) -> _SummaryKeys:
    """Thousands of snapshots of one writer have the same keys: looking at them once halves the time of a history."""
    metrics = tuple(k for k in keys if k.startswith(_METRICS))
    touched = tuple(k for k in keys if k.endswith(_DELETES) and not k.startswith("total-"))
    return _SummaryKeys(metrics, tuple(k for k in keys if k not in metrics and k not in _WRITER), touched)


def _touched(summary: Summary, keys: _SummaryKeys) -> bool:
    """Whether row-level deletes came or went."""
    return any(whole(summary[k], None) != 0 for k in keys.touched)


def _schema_changes(metadata: Metadata) -> Iterator[bool]:
    for snapshot in in_order(metadata):
        before = None if snapshot.parent is None else metadata.snapshots.get(snapshot.parent)
        own = metadata.schema_of(snapshot).schema_id
        yield before is not None and metadata.schema_of(before).schema_id != own


def _as_json(told: Sequence[Summary], keys: Sequence[_SummaryKeys]) -> tuple[list[str], list[str]]:
    """Parameters and metrics of summaries as JSON, counts as numbers; neighbours with the same keys at once."""
    parameters: list[str] = []
    metrics: list[str] = []
    for own, group in ((k, [s for _, s in g]) for k, g in groupby(zip(keys, told, strict=True), key=lambda p: p[0])):
        parameters += _objects(own.parameters, group, numbers=False)
        metrics += _objects(own.metrics, group, numbers=True)
    return parameters, metrics


def _objects(keys: Iterable[str], group: Sequence[Summary], *, numbers: bool) -> Iterator[str]:
    """One JSON object a summary, of these keys."""
    columns = []
    for key in keys:
        texts = [s[key] for s in group]
        name = msgspec.json.encode(key).decode()
        known = {t: msgspec.json.encode(_value(t) if numbers else t).decode() for t in set(texts)}
        encoded = {t: f"{name}:{value}" for t, value in known.items()}
        columns.append([encoded[t] for t in texts])
    if not columns:
        return iter(["{}"] * len(group))
    return (f"{{{','.join(row)}}}" for row in zip(*columns, strict=True))


def _value(text: str) -> str | int:
    number = whole(text, None)
    return text if number is None else number
