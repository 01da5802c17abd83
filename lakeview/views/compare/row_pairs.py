"""The rows of a difference to a diff: rows that came, that went, and rows of one key with the cells that changed."""

from collections.abc import Sequence
from itertools import combinations

import polars as pl

from lakeview.model.change_columns import names_apart
from lakeview.model.printable import shorten
from lakeview.views.compare.rows import MOST_ROWS, NET
from lakeview.views.values import TEXT_LENGTH, value_text

ADDED, REMOVED, CHANGED = "+", "\N{MINUS SIGN}", "~"
ARROW = " \N{RIGHTWARDS ARROW} "
CHANGE, COUNT = "_change", "_changed_columns"
"""The columns of a diff before those of the table: ADDED, REMOVED or CHANGED, and how many cells differ."""

_MOST_KEY_COLUMNS = 3
_COLUMNS_TRIED = 8
_OWN = ("_place", "_nth")


def repeat_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """RowDifference.rows, each as often as one version has it more than the other; where these are more than MOST_ROWS,
    as often as there is room for all."""
    times = rows[NET].abs()
    if times.sum() > MOST_ROWS:
        times = times.clip(upper_bound=MOST_ROWS // rows.height)
    return rows[pl.int_range(rows.height, eager=True).repeat_by(times).explode(empty_as_null=False)]


def found_key(rows: pl.DataFrame) -> list[str]:
    """The fewest columns of RowDifference.rows that name each row once, and most rows on both sides; [] for none.

    The columns with the most distinct values are tried, up to three of them together.
    """
    columns, rows = rows.columns, _by_place(rows)
    gains, losses = _sides(rows)
    if gains.is_empty() or losses.is_empty():
        return []
    names = [n for n in gains.columns if not gains.schema[n].is_nested()]
    distinct = {n: gains[n].n_unique() + losses[n].n_unique() for n in names}
    candidates = sorted(names, key=lambda n: -distinct[n])[:_COLUMNS_TRIED]
    for size in range(1, _MOST_KEY_COLUMNS + 1):
        keys = (tuple(sorted(key, key=names.index)) for key in combinations(candidates, size))
        scores = [(_pairs(gains, losses, key), key) for key in keys]
        most, best = max(scores, key=lambda score: score[0], default=(0, ()))
        if 2 * most >= min(gains.height, losses.height):
            return [columns[int(place)] for place in best]
    return []


def row_pairs(rows: pl.DataFrame, key: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """CHANGE, COUNT (null but for changed rows) and the columns of RowDifference.rows as text, `old → new` where a cell
    changed: one row for each that came or went, or for two of them with the same key. A column of the table that is
    called CHANGE or COUNT is suffixed `_`. And for each column of the table whether the cell is `old → new`: a text of
    the table may hold an arrow of its own."""
    columns, rows = rows.columns, _by_place(rows)
    key = [str(columns.index(name)) for name in key]
    gains, losses = (_number_rows(side, key) for side in _sides(rows))
    on = [*key, _OWN[1]]
    names = [n for n in rows.columns if n != NET]
    if key:
        pairs = gains.join(losses, on=on, how="inner", nulls_equal=True, suffix="_before", maintain_order="left")
        pairs = pairs.select(_OWN[0], before=f"{_OWN[0]}_before")
    else:
        pairs = pl.DataFrame(schema={_OWN[0]: pl.UInt32(), "before": pl.UInt32()})
    new, old = gains[pairs[_OWN[0]]], losses[pairs["before"]]
    changes = {n: _differ(old[n], new[n]) for n in names}
    texts = {n: _cells(old[n], new[n], changes[n]) for n in names}
    count = pl.Series(COUNT, [0], dtype=pl.Int64).new_from_index(0, pairs.height)
    for is_changed in changes.values():
        count = count + is_changed.cast(pl.Int64)
    both = pl.DataFrame({CHANGE: [CHANGED] * pairs.height, COUNT: count, **texts})
    alone = gains.height + losses.height - 2 * pairs.height
    no_changes = pl.Series([False], dtype=pl.Boolean).new_from_index(0, alone)
    cells = pl.DataFrame({n: pl.concat([is_changed.cast(pl.Boolean), no_changes]) for n, is_changed in changes.items()})
    came = _alone(gains, pairs[_OWN[0]], ADDED, names)
    went = _alone(losses, pairs["before"], REMOVED, names)
    diff = pl.concat([both, came, went], how="vertical_relaxed")
    cells.columns = names_apart([name for name in columns if name != NET], (CHANGE, COUNT))
    diff.columns = [CHANGE, COUNT, *cells.columns]
    return diff, cells


def changed_first(cells: pl.DataFrame, names: Sequence[str], key: Sequence[str]) -> list[str]:
    """The columns of `row_pairs` that are seen first: the key's, then those with a changed cell. `names`:
    of all columns as RowDifference.rows has them, and as `key` calls its own."""
    of_key = [cells.columns[names.index(name)] for name in key]
    return [*of_key, *(name for name in cells.columns if name not in of_key and cells[name].any())]


def _by_place(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with their places as the names of the table's columns: polars takes a name like ^x$ for a pattern."""
    plain = rows.clone()
    plain.columns = [name if name == NET else str(place) for place, name in enumerate(rows.columns)]
    return plain


def _sides(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    return rows.filter(rows[NET] > 0).drop(NET), rows.filter(rows[NET] < 0).drop(NET)


def _pairs(gains: pl.DataFrame, losses: pl.DataFrame, key: Sequence[str]) -> int:
    """How many rows both sides have of a key; 0 where it does not name each row once."""
    sides = [side.select(key) for side in (gains, losses)]
    if any(side.n_unique() < side.height for side in sides):
        return 0
    return sides[0].join(sides[1], on=list(key), how="semi", nulls_equal=True).height


def _number_rows(side: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """The rows with their place, and the how many-th they are of their key."""
    nth = pl.int_range(pl.len()).over(key) if key else pl.int_range(pl.len())
    return side.with_row_index(_OWN[0]).with_columns(nth.alias(_OWN[1]))


def _differ(old: pl.Series, new: pl.Series) -> pl.Series:
    if old.dtype.is_nested():
        return pl.Series([a != b for a, b in zip(old.to_list(), new.to_list(), strict=True)], dtype=pl.Boolean)
    return new.ne_missing(old)


def _null_in_words(texts: pl.Series) -> pl.Series:
    """Null in words; a text that looks like it, or like nothing, in quotes."""
    in_quotes = {text: f'"{text}"' for text in ("", "null")}
    return texts.replace(in_quotes).fill_null("null")


def _cells(old: pl.Series, new: pl.Series, is_changed: pl.Series) -> pl.Series:
    before, after = (_texts(values) for values in (old, new))
    both = pl.DataFrame({"before": _null_in_words(before), "after": _null_in_words(after)})
    return both.select(pl.concat_str("before", "after", separator=ARROW)).to_series().zip_with(is_changed, after)


def _texts(values: pl.Series) -> pl.Series:
    """Values as text, numbers with all their digits; of timestamps no fraction of a second that is zero, and no UTC."""
    if values.dtype.is_nested() or values.dtype == pl.Binary:
        return pl.Series([value_text(value) for value in values.to_list()], dtype=pl.String)
    texts = values.cast(pl.String)
    if values.dtype.is_temporal():
        texts = texts.str.replace(r"(\.0+)?(\+00:00)?$", "")
    return pl.Series([None if text is None else shorten(text, TEXT_LENGTH) for text in texts], dtype=pl.String)


def _alone(side: pl.DataFrame, rows_in_pairs: pl.Series, sign: str, names: Sequence[str]) -> pl.DataFrame:
    rest = side.filter(~side[_OWN[0]].is_in(rows_in_pairs.implode()))
    texts = {n: _texts(rest[n]) for n in names}
    nothing = pl.Series(COUNT, [None], dtype=pl.Int64).new_from_index(0, rest.height)
    return pl.DataFrame({CHANGE: [sign] * rest.height, COUNT: nothing, **texts})
