"""The schemas a table had to the life of each column: added, renamed, widened, dropped, and by which version."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import polars as pl

from lakeview.model.column_values import format_expression
from lakeview.model.data_types import Field
from lakeview.model.frames import UTC_MILLIS
from lakeview.model.schema import Schema, leaf_name
from lakeview.model.type_tree import nodes
from lakeview.views.conform import conform
from lakeview.views.schema.diff import Path, field_changes
from lakeview.views.units import format_date, format_version

COLUMN_HISTORY = pl.Schema(
    {
        "column": pl.String(),
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "change": pl.String(),
        "before": pl.String(),
        "after": pl.String(),
    }
)
"""One row a change of a column, in the order of columns and then of time. `column`: its latest path, through renames;
`change`: added, dropped, or a kind of `SCHEMA_DIFF`. Moves are left out."""

COLUMN_LIVES = pl.Schema(
    {
        "column": pl.String(),
        "born": pl.Int64(),
        "born_timestamp": UTC_MILLIS,
        "since": pl.Int64(),
        "changes": pl.Int64(),
        "changed": pl.Int64(),
        "last_change": pl.String(),
        "dropped": pl.Int64(),
    }
)
"""One row a column that ever was: `born` and `dropped` in these versions; `since`: `born` if that version's timestamp
is known (else an older version may have had it); `changes` between (adding and dropping not counted), `changed` the
version of the latest event and `last_change` in a few words."""

SchemaVersion = tuple[int, datetime | None, Schema]
"""A version, its moment, and the schema it brought."""


def column_history(schemas: Sequence[SchemaVersion]) -> pl.DataFrame:
    """COLUMN_HISTORY from the schemas of a table, oldest first."""
    lives = _Lives([], [], {})
    before = Schema()
    for version, timestamp, schema in schemas:
        now: dict[Path, int] = {}
        for change in field_changes(before, schema):
            moment = (version, timestamp)
            if change.path is None:
                for path, type_ in _with_nested(change.before_path or (), change.field):
                    lives.add(lives.living[path], moment, "dropped", type_, None)
            elif change.before_path is None:
                for path, type_ in _with_nested(change.path, change.field):
                    now[path] = lives.new(path)
                    lives.add(now[path], moment, "added", None, type_)
            else:
                now[change.path] = lives.rename(change.before_path, change.path)
                if change.kind not in ("same", "moved"):
                    lives.add(now[change.path], moment, change.kind, change.before, change.after)
                if change.kind == "type":  # what it held ends, what it holds begins
                    for _, key in lives.below(change.before_path):
                        lives.add(key, moment, "dropped", None, None)
                    for path, type_ in islice(_with_nested(change.path, change.field), 1, None):
                        now[path] = lives.new(path)
                        lives.add(now[path], moment, "added", None, type_)
        lives.living, before = now, schema
    rows = [(key, lives.names[key], *row) for key, *row in lives.rows]
    frame = pl.DataFrame(rows, schema={"key": pl.Int64(), **COLUMN_HISTORY}, orient="row")
    return frame.sort("key", maintain_order=True).select(COLUMN_HISTORY.names())


@dataclass
class _Lives:
    """Columns by a number of their own: `names` their latest path, `living` where each is now, `rows` what happened."""

    names: list[str]
    rows: list[tuple[int, int, datetime | None, str, str | None, str | None]]
    living: dict[Path, int]

    def new(self, path: Path) -> int:
        self.names.append(leaf_name(path))
        return len(self.names) - 1

    def below(self, path: Path) -> list[tuple[Path, int]]:
        return [(p, key) for p, key in self.living.items() if len(p) > len(path) and p[: len(path)] == path]

    def rename(self, before: Path, path: Path) -> int:
        key = self.living[before]
        self.names[key] = leaf_name(path)
        return key

    def add(
        self, key: int, moment: tuple[int, datetime | None], kind: str, before: str | None, after: str | None
    ) -> None:
        self.rows.append((key, *moment, kind, before, after))


def blame(history: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_HISTORY, in its order, with `operation` and `writer` of each version's commit, from TIMELINE."""
    return history.join(
        commits.select("version", "operation", "writer"), on="version", how="left", maintain_order="left"
    )


def newest_first(history: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_HISTORY by time, for a table: which change is of which life of a column is no longer told by its order."""
    return history.sort("timestamp", descending=True, maintain_order=True)


def last_change(schemas: pl.DataFrame) -> list[str]:
    """When the newest of SCHEMAS came, as text: `["last change v3, 2026-03-04"]`; of the only one `["the same since v0,
    2026-03-01"]`, or its creation in a table without versions; [] without any."""
    words = "last change" if schemas.height > 1 or schemas["timestamp"].has_nulls() else "the same since"
    return [
        f"{words} {'unknown' if timestamp is None else f'{_origin(version)}, {format_date(timestamp)}'}"
        for version, timestamp in schemas.select("version", "timestamp").tail(1).iter_rows()
    ]


def _origin(version: int) -> str:
    return "its creation" if version < 0 else format_version(version)


def column_lives(schemas: Sequence[SchemaVersion]) -> pl.DataFrame:
    """COLUMN_LIVES from the schemas of a table, oldest first; columns dropped and added again are two."""
    history = column_history(schemas)
    life = (pl.col("change") == "added").cum_sum()
    between = ~pl.col("change").is_in(["added", "dropped"])
    return (
        history.with_columns(life=life)
        .group_by("life", maintain_order=True)
        .agg(
            pl.col("column").first(),
            born=pl.col("version").first(),
            born_timestamp=pl.col("timestamp").first(),
            changes=between.sum().cast(pl.Int64),
            changed=pl.col("version").last(),
            last_change=_in_words().last(),
            dropped=pl.col("version").filter(pl.col("change") == "dropped").last(),
        )
        .with_columns(since=pl.when(pl.col("born_timestamp").is_not_null()).then("born"))
        .pipe(conform, COLUMN_LIVES)
    )


def _with_nested(path: Path, field: Field | None) -> Iterator[tuple[Path, str]]:
    """A field's path and type, then those of every field in it."""
    return ((path + node.path[1:], str(node.type)) for node in (() if field is None else nodes([field])))


def _in_words() -> pl.Expr:
    arrow = format_expression("{} {} \N{RIGHTWARDS ARROW} {}", "change", "before", "after")
    return (
        pl.when(pl.col("change").is_in(["added", "dropped"]))
        .then("change")
        .when(pl.col("change") == "renamed")
        .then(format_expression("renamed from {}", "before"))
        .otherwise(pl.coalesce(arrow, "change"))
    )
