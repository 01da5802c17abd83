"""What the commits of a log say of themselves, and the sums of their file actions: a frame with one row a commit."""

from collections.abc import Iterable, Iterator
from operator import attrgetter

import polars as pl

from lakeview.delta.log.actions import CommitInfo
from lakeview.delta.log.commits import Commit, readable
from lakeview.delta.log.definitions import Definition

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


class CommitHeads:
    """Gathers what commits say besides their file actions."""

    def __init__(self) -> None:
        self._reasons: dict[int, str] = {}
        self._definitions: dict[int, Definition] = {}
        self._infos: list[CommitInfo] = []

    def parse(self, commits: Iterable[tuple[int, bytes]]) -> Iterator[Commit]:
        """The commits of (version, bytes), parsed one by one; a corrupt one is noted and left out."""
        for commit in readable(commits, self._reasons):
            self._definitions[commit.version] = commit.definition
            self._infos.append(commit.info)
            yield commit

    @property
    def definitions(self) -> dict[int, Definition | None]:
        """The last protocol and metaData action of each commit; None of a corrupt one."""
        return {**self._definitions, **dict.fromkeys(self._reasons)}

    def frame(self) -> pl.DataFrame:
        """HEADS of the commits that were parsed."""
        infos = {name: list(map(attrgetter(name), self._infos)) for name in _INFO}
        pairs = self._definitions.values()
        columns = {
            "version": list(self._definitions),
            "schema": [None if metadata is None else metadata.schema_string for _, metadata in pairs],
            "protocol_changed": [protocol is not None for protocol, _ in pairs],
            "broken": [None] * len(pairs),
        }
        others = pl.DataFrame(
            {"version": list(self._reasons), "broken": list(self._reasons.values()), "protocol_changed": False},
            schema={"version": pl.Int64(), "broken": pl.String(), "protocol_changed": pl.Boolean()},
        )
        return pl.concat([pl.DataFrame({n: (infos | columns)[n] for n in HEADS}, schema=HEADS), others], how="diagonal")


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
