"""What the commits of a log say of themselves, and the sums of their file actions: a frame with one row a commit."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeVar

import polars as pl

from lakeview.delta.log.commit_info import CommitInfo
from lakeview.delta.log.commits import Commit, Definition
from lakeview.delta.log.file_actions import file_actions

T = TypeVar("T")

_INFO = (
    "timestamp", "in_commit_timestamp", "operation", "parameters", "metrics", "engine", "client_version", "user",
)  # fmt: skip

HEADS = pl.Schema(
    {"version": pl.Int64()}
    | {name: pl.Int64() if name.endswith("timestamp") else pl.String() for name in _INFO}
    | {"schema": pl.String(), "protocol_changed": pl.Boolean(), "broken": pl.String()}
)
"""One row a commit: what its commitInfo says, times in milliseconds since 1970; `schema`: the schemaString
of its last metaData action; `protocol_changed`: whether it has a protocol action. `broken`: why it cannot be read, then
nothing else is known, and `protocol_changed` is false."""

SUMS = tuple(f"{what}_{way}" for what in ("files", "bytes", "records") for way in ("added", "removed"))
TOTALS = pl.Schema({"version": pl.Int64()} | dict.fromkeys(SUMS, pl.Int64()) | {"data_change": pl.Boolean()})
"""One row a commit that has file actions: their sums. Bytes and rows are null where a part of the sum is unknown, and
beyond the 64 bits of a column."""


def read_commits(
    commits: Iterable[Commit], root: str, columns: Sequence[str], take: Callable[[Commit], T]
) -> tuple[list[T], pl.DataFrame]:
    """What `take` gives of each commit, and the FILE_ACTIONS of all of them, columns as `each_frame`; no commit is
    retained."""
    values: list[T] = []

    def each() -> Iterator[Commit]:
        for commit in commits:
            values.append(take(commit))
            yield commit

    actions = file_actions(each(), root, columns)
    return values, actions


class Head(NamedTuple):
    """What a commit says besides its file actions."""

    version: int
    info: CommitInfo
    definition: Definition


def head_of(commit: Commit) -> Head:
    """The head of a parsed commit."""
    return Head(commit.version, commit.info, commit.definition)


def heads_frame(heads: Sequence[Head], reasons: Mapping[int, str]) -> pl.DataFrame:
    """HEADS of commits, and of those that cannot be read, with the reasons."""
    columns = {name: list(map(attrgetter(f"info.{name}"), heads)) for name in _INFO} | {
        "version": [head.version for head in heads],
        "schema": [None if (metadata := head.definition[1]) is None else metadata.schema_string for head in heads],
        "protocol_changed": [head.definition[0] is not None for head in heads],
        "broken": [None] * len(heads),
    }
    others = {"version": list(reasons), "protocol_changed": False, "broken": list(reasons.values())}
    rows = pl.DataFrame(others, schema={name: HEADS[name] for name in others})
    return pl.concat([pl.DataFrame({name: columns[name] for name in HEADS}, schema=HEADS), rows], how="diagonal")


def totals(events: pl.DataFrame) -> pl.DataFrame:
    """TOTALS of EVENTS with `data_change`, and of those that remove with `size_before` and `records_before`.

    A removal counts the bytes that it says, else those of the file that it removes, and that file's rows.
    """
    is_add, is_remove = pl.col("added"), ~pl.col("added")
    return (
        events.group_by("version")
        .agg(
            is_add.sum().cast(pl.Int64).alias("files_added"),
            is_remove.sum().cast(pl.Int64).alias("files_removed"),
            _sum(pl.col("size").filter(is_add)).alias("bytes_added"),
            _sum(pl.coalesce("size", "size_before").filter(is_remove)).alias("bytes_removed"),
            _sum(pl.col("records").filter(is_add)).alias("records_added"),
            _sum(pl.col("records_before").filter(is_remove)).alias("records_removed"),
            pl.col("data_change").any(),
        )
        .select(TOTALS.names())
    )


def _sum(part: pl.Expr) -> pl.Expr:
    """The sum of parts; null if one is unknown, or beyond 64 bits."""
    return pl.when(part.is_null().any()).then(None).otherwise(part.cast(pl.Int128).sum()).cast(pl.Int64, strict=False)
