"""Summaries of snapshots to a frame: what writers recorded of each, as texts, and as JSON of counts and of the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl

from lakeview.iceberg.metadata.snapshots import SnapshotEntry

_METRICS = ("added-", "deleted-", "removed-", "total-", "changed-", "manifests-", "entries-", "replace-")
_DELETES = ("-delete-files", "-position-deletes", "-equality-deletes")
_WRITER = ("operation", "engine-name", "engine-version", "iceberg-version", "app-name")

_FEW = 150
"""Up to so many summaries are parsed one by one: columns of them cost more than they save."""
_MOST_KEYS, _SAMPLES, _AT_ONCE = 64, 16, 1_000
_DIGITS = 18


def summaries_frame(entries: Sequence[SnapshotEntry], asked_columns: Sequence[str]) -> pl.DataFrame:
    """One row a snapshot: a column of texts for each of `asked_columns`, null where a summary does not have it as
    a text; then `parameters` and `metrics`: the rest as JSON, metrics that are counts as numbers; and `touched`:
    whether row-level deletes came or went.
    """
    columns = None if len(entries) <= _FEW else _columns(entries)
    return _by_row(entries, asked_columns) if columns is None else _by_column(columns, asked_columns, len(entries))


def whole(text: str | None, absent: int | None) -> int | None:
    """A count of a summary as a number, null for a text that is none; `absent` where there is none."""
    if text is None:
        return absent
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def counts(texts: pl.Series) -> pl.Series:
    """`whole` of a column of texts."""
    numbers = texts.cast(pl.Int64, strict=False)
    if _are_counts(texts, numbers):
        return numbers
    return pl.Series(texts.name, [whole(t, None) for t in texts], dtype=pl.Int64)


def _are_counts(texts: pl.Series, numbers: pl.Series) -> bool:
    """Whether all texts are counts, spelled as JSON spells numbers."""
    least, most = numbers.min(), numbers.max()
    if not isinstance(least, int) or not isinstance(most, int):
        return texts.null_count() == texts.len()
    return least >= 0 and most < 10**_DIGITS and numbers.cast(pl.String).equals(texts)


@dataclass(frozen=True, slots=True)
class _Kinds:
    """A summary's keys by what they are; `delete_counts`: of deletes that were added or removed."""

    metrics: tuple[str, ...]
    parameters: tuple[str, ...]
    delete_counts: tuple[str, ...]


@lru_cache(maxsize=256)
def _kinds(keys: tuple[str, ...]) -> _Kinds:
    metrics = tuple(k for k in keys if k.startswith(_METRICS))
    delete_counts = tuple(k for k in keys if k.endswith(_DELETES) and not k.startswith("total-"))
    return _Kinds(metrics, tuple(k for k in keys if k not in metrics and k not in _WRITER), delete_counts)


# -- many summaries: a column a key


@dataclass(frozen=True, slots=True)
class _Columns:
    """Texts of summaries by key, null where one lacks it. `plain`: no text holds what JSON escapes."""

    texts: Mapping[str, pl.Series]
    plain: bool


def _columns(entries: Sequence[SnapshotEntry]) -> _Columns | None:
    """Summaries by key; None where one is no object of texts alone, or there are very many keys."""
    summaries = [e.recorded_summary for e in entries]
    try:
        # a table has few writers, so that a few summaries have all the keys that there are
        some = _keys([*summaries[:: max(1, len(summaries) // _SAMPLES)], summaries[-1]])
        return _texts(summaries, some) or _texts(summaries, _keys(summaries))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _keys(raw_summaries: Sequence[msgspec.Raw]) -> tuple[str, ...]:
    """The keys of summaries, as they first occur."""
    summaries = msgspec.json.decode(msgspec.json.encode(raw_summaries), type=list[dict[str, msgspec.Raw]])
    return tuple(dict.fromkeys(key for summary in summaries for key in summary))


def _texts(raw_summaries: Sequence[msgspec.Raw], keys: tuple[str, ...]) -> _Columns | None:
    """Columns of summaries that have texts under these keys and no others, else None."""
    plain = [key for key in keys if msgspec.json.encode(key) == f'"{key}"'.encode()]  # no other is a field's name
    if not 0 < len(plain) == len(keys) <= _MOST_KEYS:
        return None
    columns: list[list[pl.Series]] = [[] for _ in keys]
    has_escapes = False
    for at in range(0, len(raw_summaries), _AT_ONCE):  # all at once would take memory that is new to a process
        some = msgspec.json.encode(raw_summaries[at : at + _AT_ONCE])  # raw ones as they are
        has_escapes = has_escapes or b"\\" in some
        try:
            rows = _decoder(keys).decode(some)
        except msgspec.ValidationError:
            return None
        for i, column in enumerate(columns):
            column.append(pl.Series(list(map(attrgetter(f"k{i}"), rows)), dtype=pl.String))
    return _Columns({key: pl.concat(column) for key, column in zip(keys, columns, strict=True)}, not has_escapes)


@lru_cache(maxsize=64)
def _decoder(keys: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    """Of a list of objects with texts or nulls under these keys or some of them, and no others: k0, k1, ..."""
    names = [f"k{i}" for i in range(len(keys))]
    row = msgspec.defstruct(
        "Summary",
        [(name, str | None, None) for name in names],
        rename=dict(zip(names, keys, strict=True)),
        forbid_unknown_fields=True,
        gc=False,
    )
    return msgspec.json.Decoder(list[row])  # type: ignore[valid-type]  # made for these keys, as no checker can know


def _by_column(columns: _Columns, asked_columns: Sequence[str], height: int) -> pl.DataFrame:
    texts, kinds = columns.texts, _kinds(tuple(columns.texts))
    data: list[pl.Series] = []
    parameters = _objects({k: texts[k] for k in kinds.parameters}, data, plain=columns.plain, numbers=False)
    metrics = _objects({k: texts[k] for k in kinds.metrics}, data, plain=columns.plain, numbers=True)
    deletes = [pl.lit(value=False)]
    for key in kinds.delete_counts:
        deletes.append(pl.col(f"d{len(data)}") & pl.col(f"d{len(data) + 1}").ne_missing(0))
        data += [texts[key].is_not_null(), counts(texts[key])]
    frame = pl.DataFrame([s.alias(f"d{i}") for i, s in enumerate(data)], height=height)
    parts = frame.select(
        parameters.alias("parameters"), metrics.alias("metrics"), pl.any_horizontal(deletes).alias("touched")
    )
    none = pl.Series([None], dtype=pl.String).new_from_index(0, height)
    return pl.DataFrame([*(texts.get(key, none).alias(key) for key in asked_columns), *parts])


def _objects(texts: Mapping[str, pl.Series], data: list[pl.Series], *, plain: bool, numbers: bool) -> pl.Expr:
    """One JSON object a row, of those of these keys that it has, over columns that are added to `data`."""
    parts: list[pl.Expr] = []  # all of them side by side: one inside another takes three times as long
    for key, column in texts.items():
        before, values, after = f",{msgspec.json.encode(key).decode()}:", column, ""
        if plain and not numbers:
            before, after = f'{before}"', '"'
        elif not (numbers and _are_counts(column, column.cast(pl.Int64, strict=False))):
            values = _json_texts(column, numbers=numbers)
        own = [pl.lit(before), pl.col(f"d{len(data)}"), *([pl.lit(after)] if after else ())]
        parts += own if column.null_count() == 0 else [pl.concat_str(own).fill_null("")]
        data.append(values)
    if not parts:
        return pl.lit("{}")
    return pl.concat_str(pl.lit("{"), pl.concat_str(parts).str.slice(1), pl.lit("}"))


def _json_texts(texts: pl.Series, *, numbers: bool) -> pl.Series:
    """Texts as JSON; with `numbers` those that are counts without quotes."""
    by_text = {t: _json(t, numbers=numbers) for t in texts.unique() if t is not None}
    return pl.Series([None if t is None else by_text[t] for t in texts], dtype=pl.String)


def _json(text: str, *, numbers: bool) -> str:
    number = whole(text, None) if numbers else None
    return msgspec.json.encode(text if number is None else number).decode()


# -- few summaries, or odd ones: one by one


def _by_row(entries: Sequence[SnapshotEntry], asked_columns: Sequence[str]) -> pl.DataFrame:
    texts = [{k: v for k, v in s.items() if v.__class__ is str} for s in _decode(entries)]
    parts = list(map(_parts_of, texts))
    return pl.DataFrame(
        [
            *(pl.Series(key, [s.get(key) for s in texts], dtype=pl.String) for key in asked_columns),
            pl.Series("parameters", [parameters for parameters, _, _ in parts], dtype=pl.String),
            pl.Series("metrics", [metrics for _, metrics, _ in parts], dtype=pl.String),
            pl.Series("touched", [has_deletes for _, _, has_deletes in parts], dtype=pl.Boolean),
        ]
    )


def _decode(entries: Sequence[SnapshotEntry]) -> Sequence[Mapping[str, Any]]:
    """The summaries, at once where all of them can be."""
    together = msgspec.json.encode([e.recorded_summary for e in entries])
    try:
        return msgspec.json.decode(together, type=list[dict[str, Any]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [e.summary for e in entries]


def _parts_of(summary: Mapping[str, str]) -> tuple[str, str, bool]:
    """Its `parameters`, its `metrics`, and whether it deleted rows or brought some back."""
    kinds = _kinds(tuple(summary))
    numbers = {k: whole(summary[k], None) for k in kinds.metrics}
    metrics = {k: summary[k] if number is None else number for k, number in numbers.items()}
    parameters = msgspec.json.encode({k: summary[k] for k in kinds.parameters})
    has_deletes = any(whole(summary[k], None) != 0 for k in kinds.delete_counts)
    return parameters.decode(), msgspec.json.encode(metrics).decode(), has_deletes
