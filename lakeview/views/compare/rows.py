"""Rows of changes to the difference of two versions: what is in one and not in the other, copies cancelled."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from lakeview.model.change_columns import names_apart
from lakeview.model.frames import CHANGES
from lakeview.views.sums import total_of
from lakeview.views.units import count_text

NET = "_difference"
"""How often more, or less, a version has a row than its base."""
MOST_ROWS = 1_000

_SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
_FEWEST_BYTES = 32 << 20
"""Of rows that wait to be added up."""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """`gains` and `losses`: rows that a version has and its base has not, and the reverse, exact.

    `rows`: at most MOST_ROWS of them, with `_difference`: how often more (or less) the version has each. By turns they
    are lost and gained; where a column names each row once, a turn has also one that is on both sides.
    `rows_undecided`: None for the whole difference. Of a part the rows read in one version alone that files of the
    other may have; `gains` and `losses` are then the rows that certainly differ, the fewest there are.
    """

    gains: int
    losses: int
    rows_read: int
    rows: pl.DataFrame
    rows_undecided: int | None = None


def extent(difference: RowDifference, plan: pl.DataFrame) -> str:
    """Of which rows a difference is: `exact, of 40 rows read`, `a part, of 40 of 60 rows of 2 files read`; `plan`:
    CHANGES_PLAN."""
    if difference.rows_undecided is None:
        return f"exact, of {count_text(difference.rows_read, 'row')} read"
    rows, files = total_of(plan["rows"]), count_text(plan.height, "file")
    of_all = "" if rows is None else f" of {rows:,}"
    return f"a part, of {difference.rows_read:,}{of_all} rows of {files} read"


def undecided_text(difference: RowDifference) -> str:
    """What is open about the rows of a part, empty if nothing is."""
    if not difference.rows_undecided:
        return ""
    are = f"{count_text(difference.rows_undecided, 'row')} more {'is' if difference.rows_undecided == 1 else 'are'}"
    return f"{are} in one version so far; a file of the other that was not read may have the same row."


class RowDifferenceSum:
    """A row difference that is added up batch by batch, from CHANGES or the rows of `table.difference`. A row that a
    rewrite copied is no difference.

    Only rows that differ so far stay in memory: copies cancel. Batches wait until they are as large as those, so that
    each row is added up about twice.
    """

    def __init__(self, schema: pl.Schema, limit: int = MOST_ROWS) -> None:
        self._limit = limit
        self._names = [name for name in schema.names() if name not in CHANGES]
        self._columns = {f"{i}": pl.nth(schema.names().index(name)) for i, name in enumerate(self._names)}
        pairs = zip(self._columns, self._names, strict=True)
        self._maps = [own for own, name in pairs if isinstance(schema[name], pl.Map)]
        self._rows_read = 0
        self._sums = self._with_places(pl.DataFrame(schema=schema))
        self._waiting: list[pl.DataFrame] = []
        self._waiting_bytes = 0

    def add(self, changes: pl.DataFrame) -> None:
        """Adds a batch of CHANGES."""
        self._waiting.append(self._with_places(changes))
        self._waiting_bytes += int(changes.estimated_size())
        self._rows_read += changes.height
        if self._waiting_bytes >= max(_FEWEST_BYTES, self._sums.estimated_size()):
            self._add_up()

    def whole(self) -> RowDifference:
        """The difference, if all changes were added."""
        self._add_up()
        gains, losses = self._count(1), self._count(-1)
        return RowDifference(gains, losses, self._rows_read, self._first_rows(self._sums))

    def part(self, kind: str | None) -> RowDifference:
        """The part of the difference that is certain, if all changes added later are of this kind; with None no row is
        certain to differ."""
        self._add_up()
        sign = 0 if kind is None else _SIGNS[kind]
        gains, losses = self._count(1), self._count(-1)
        certain = (gains if sign > 0 else 0, losses if sign < 0 else 0)
        rows = self._first_rows(self._sums.filter(self._sums[NET] * sign > 0))
        return RowDifference(*certain, self._rows_read, rows, gains + losses - sum(certain))

    def _with_places(self, changes: pl.DataFrame) -> pl.DataFrame:
        """`at`, the place of a row among all, the columns under names of their own, and NET."""
        # a map is told apart by its JSON text, which has no order of its own
        texts = [self._columns[own].cast(pl.String).alias(f"{own}_text") for own in self._maps]
        signs = pl.col("_change_type").replace_strict(_SIGNS, default=0, return_dtype=pl.Int64)
        at = pl.int_range(self._rows_read, self._rows_read + pl.len(), dtype=pl.Int64)
        columns = (column.alias(own) for own, column in self._columns.items())
        return changes.select(at.alias("at"), *columns, *texts, signs.alias(NET))

    def _add_up(self) -> None:
        if not self._waiting:
            return
        keys = [f"{own}_text" if own in self._maps else own for own in self._columns]
        net_rows = pl.concat([self._sums, *self._waiting])
        self._waiting, self._waiting_bytes = [], 0
        # the place of a row instead of `maintain_order`, no column twice: 300,000 rows of 23 columns took 4 GiB more
        sums = (
            net_rows.lazy()
            .group_by(*keys)
            .agg(*(pl.col(own).first() for own in self._maps), pl.col(NET).sum(), pl.col("at").min())
            .filter(pl.col(NET) != 0)
            .select(net_rows.columns)
        )
        self._sums = sums.collect(engine="streaming")

    def _count(self, sign: int) -> int:
        net = self._sums[NET] * sign
        return int(net.filter(net > 0).sum())

    def _first_rows(self, sums: pl.DataFrame) -> pl.DataFrame:
        # by turns, so that rows which a rewrite changed stand side by side, and neither side takes all places
        losses, gains = sums.filter(pl.col(NET) < 0), sums.filter(pl.col(NET) > 0)
        key = _naming_column(losses, gains, self._columns, self._limit)
        ranked_rows = pl.concat(
            [self._rank(losses), self._rank(gains)] if key is None else self._ranked_pairs(losses, gains, key)
        )
        rows = ranked_rows.sort("turn", maintain_order=True).head(self._limit).select(NET, *self._columns)
        rows.columns = [NET, *names_apart(self._names, [NET])]
        return rows

    def _rank(self, side: pl.DataFrame) -> pl.DataFrame:
        return side.bottom_k(self._limit, by="at").sort("at").with_row_index("turn")

    def _ranked_pairs(self, losses: pl.DataFrame, gains: pl.DataFrame, key: str) -> list[pl.DataFrame]:
        """Rows of one key on both sides, in the same turn; then those that are on one side alone."""
        old = self._rank(losses.join(gains, on=key, how="semi", nulls_equal=True))
        new = gains.join(old.select("turn", key), on=key, nulls_equal=True).select(old.columns)
        alone = (
            self._rank(side.join(other, on=key, how="anti", nulls_equal=True))
            for side, other in ((losses, gains), (gains, losses))
        )
        return [old, new, *alone]


def _naming_column(losses: pl.DataFrame, gains: pl.DataFrame, columns: Iterable[str], limit: int) -> str | None:
    """The column that names each row of either side once, and most rows on both; None without one. Whole sides are
    looked at only where their first rows have a value each."""
    most, best = 0, None
    for name in columns if not (losses.is_empty() or gains.is_empty()) else ():
        dtype = gains.schema[name]
        if not (dtype.is_integer() or dtype.is_temporal() or dtype == pl.String):
            continue
        sides = (losses[name], gains[name])
        if any(part.n_unique() < part.len() for side in sides for part in (side.head(limit), side)):
            continue
        pairs = int(sides[0].is_in(sides[1].implode(), nulls_equal=True).sum())
        if pairs > most:
            most, best = pairs, name
    return best if 2 * most >= min(losses.height, gains.height) else None
