"""A filter's PLAN to the files it would read and the reasons that skip the others, for each part of the filter."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import ELLIPSIS, shorten
from lakeview.model.schema import Schema, leaf_name
from lakeview.model.snapshot import Snapshot
from lakeview.predicates.bounds import Bounds, may_match
from lakeview.predicates.evaluation import not_evaluated
from lakeview.predicates.expressions import parse
from lakeview.predicates.printing import SQLPrinter
from lakeview.predicates.tree import IsIn, IsNull, Path, Unknown, map_leaves, paths
from lakeview.views.conform import conform, first_label
from lakeview.views.sums import total, total_of, zero_where
from lakeview.views.values import TEXT_LENGTH, digits_of, value_text

REASONS = ("kept", "partition", "range", "nulls")
"""The verdicts on a file: a filter reads it, or it is skipped by its partition, by min and max, by its nulls."""

EXPLAINED = pl.Schema({"reason": pl.String(), "files": pl.Int64(), "bytes": pl.Int64()})
"""One row a reason, in the order of REASONS, those without files included; `bytes` null where a file's are unknown."""

FILE_VERDICTS = pl.Schema({"path": pl.String(), "kept": pl.Boolean(), "reason": pl.String(), "size": pl.Int64()})
"""PLAN with REASONS for reasons."""

PARTS = pl.Schema(
    {
        "part": pl.String(),
        "judged": pl.Boolean(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "partition": pl.Int64(),
        "range": pl.Int64(),
        "nulls": pl.Int64(),
    }
)
"""One row a condition of a filter, those joined by AND apart. `judged`: false where the log has nothing to hold against
it, so that it skips no file; `files` and `bytes` it alone would read, then the files it alone skips, by reason."""

_MAX_VALUES = 5
_POLARS_WORDS = re.compile(r"dyn (?:int|float): |col\(\"([^\"]*)\"\)")
"""How polars marks columns and numbers when it writes an expression."""


@dataclass(frozen=True, slots=True)
class ReadCost:
    """What a filter reads of a version: files and bytes, of how many; bytes None where a file's are unknown."""

    files: int
    bytes: int | None
    all_files: int
    all_bytes: int | None

    @property
    def files_share(self) -> float | None:
        """The share of the files, None where there are none."""
        return None if self.all_files == 0 else self.files / self.all_files

    @property
    def bytes_share(self) -> float | None:
        """The share of the bytes, None where there are none or they are unknown."""
        return self.bytes / self.all_bytes if self.all_bytes and self.bytes is not None else None


def filter_columns(where: pl.Expr, schema: Schema) -> list[str]:
    """The leaf columns a filter speaks of that may have statistics, named as in STATISTICS."""
    names = {path: leaf_name(path) for path, _ in schema.leaves()}
    columns = dict.fromkeys(paths(parse(where)))
    return [names[path] for path in columns if path in names]


def check_condition(where: pl.Expr, schema: Schema) -> None:
    """InvalidRequestError if a filter compares what does not compare, or is no condition. No row is read for it.

    Columns are those of the schema: `lakeview.predicates.expressions.check_columns` comes before.
    """
    names = [name for name in dict.fromkeys(where.meta.root_names()) if name not in schema.unreadable]
    column_types = types_text(where, schema)
    try:
        empty = pl.DataFrame(schema=schema.select(names).to_polars())
        # nothing is optimised: to look for equal parts of two thousand conditions takes minutes
        frame = empty.lazy().select(where.alias("condition")).collect(optimizations=pl.QueryOptFlags.none())
        dtype = frame.schema["condition"]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        fix = f"compare each column with a value of its own type: {column_types}" if column_types else "name a column"
        raise not_evaluated("this condition", error, fix) from error
    if dtype not in (pl.Boolean(), pl.Null()):
        raise InvalidRequestError(
            f"this is a value ({str(dtype).lower()}), and no condition that holds or does not",
            fix=f"compare it with something: {column_types}" if column_types else "name a column and compare it",
            place="where",
            kind="bad-predicate",
        )


def types_text(where: pl.Expr, schema: Schema) -> str:
    """The types of the columns that a filter speaks of: `delay is integer, day is date`."""
    names = [name for name in dict.fromkeys(where.meta.root_names()) if name not in schema.unreadable]
    return ", ".join(f"{field.name} is {field.type}" for field in schema if field.name in names)


def file_verdicts(plan: pl.DataFrame, where: pl.Expr, statistics: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """FILE_VERDICTS from PLAN, STATISTICS of the filter's columns and FILES of one version.

    A file is skipped by nulls if it could match with unknown null counts.
    """
    skipped_files = plan.with_row_index("row").filter(pl.col("reason") == "statistics")
    rows = pl.DataFrame({"row": skipped_files["row"], "nulls": _without_nulls(skipped_files, where, statistics, files)})
    reason = first_label({"nulls": "nulls", "range": pl.col("reason") == "statistics"}, pl.col("reason"))
    verdicts = plan.with_row_index("row").join(rows, on="row", how="left", maintain_order="left")
    return verdicts.with_columns(reason=reason).pipe(conform, FILE_VERDICTS)


def explain_verdicts(verdicts: pl.DataFrame) -> pl.DataFrame:
    """EXPLAINED: files and bytes by the reason that skips them."""
    counts = verdicts.group_by("reason").agg(files=pl.len().cast(pl.Int64), bytes=total("size"))
    reasons = pl.DataFrame({"reason": REASONS})
    rows = reasons.join(counts, on="reason", how="left", maintain_order="left")
    return rows.with_columns(zero_where(pl.col("files").is_null(), "files", "bytes")).cast(EXPLAINED)


def read_cost(verdicts: pl.DataFrame) -> ReadCost:
    """ReadCost of FILE_VERDICTS or PLAN."""
    to_read = verdicts.filter("kept")
    return ReadCost(to_read.height, total_of(to_read["size"]), verdicts.height, total_of(verdicts["size"]))


def filter_parts(parts: Sequence[tuple[pl.Expr, pl.DataFrame]]) -> pl.DataFrame:
    """PARTS from each condition and its FILE_VERDICTS when asked alone."""
    rows = []
    for where, verdicts in parts:
        by, cost = files_by_reason(verdicts), read_cost(verdicts)
        skip_counts = (by["partition"], by["range"], by["nulls"])
        rows.append((condition_text(where), _can_be_judged(where), cost.files, cost.bytes, *skip_counts))
    return pl.DataFrame(rows, schema=PARTS, orient="row")


def _can_be_judged(where: pl.Expr) -> bool:
    """True if statistics can skip files for a filter; false for one that no bounds can decide."""
    return not isinstance(parse(where), Unknown)


def condition_text(where: pl.Expr) -> str:
    """A condition for people: SQL where the log can judge it, else as polars writes it; long ones are cut."""
    text = _DISPLAY.print(parse(where)) or _POLARS_WORDS.sub(r"\1", str(where).replace("\n", " "))
    return shorten(text, TEXT_LENGTH)


def example_filters(snapshot: Snapshot, statistics: pl.DataFrame, clustering: pl.DataFrame) -> list[str]:
    """Up to four filters worth trying, as SQL.

    A value from the middle of partition columns, and of the columns by which CLUSTERING separates files best and worst.
    """
    types = {f.name: str(f.type) for f in snapshot.schema}
    candidates: list[tuple[str, pl.Series]] = []
    files = snapshot.files
    if "partition" in files.columns:
        values = files["partition"].struct.unnest()
        candidates += [(n, values[n]) for n in snapshot.partition_columns if n in types and n in values.columns]
    by_reads = clustering.drop_nulls("reads").sort("reads_share", maintain_order=True)["column"].to_list()
    for name in [*by_reads[:2], *by_reads[-1:]]:
        if name in types:
            candidates.append((name, statistics[name].alias("bounds").struct.field("min")))
    examples = (_example(name, types[name], values) for name, values in candidates)
    return list(dict.fromkeys(text for text in examples if text is not None))[:4]


def _example(name: str, type_: str, values: pl.Series) -> str | None:
    """`name = value` for a value in the middle; None for names and values that would have to be quoted twice."""
    non_nulls = values.alias("values").drop_nulls().sort()  # a series of a name like ^x$ would take it for a pattern
    if not non_nulls.len() or '"' in name or "`" in name:
        return None
    text = value_text(non_nulls[non_nulls.len() // 2], digits_of(non_nulls.dtype))
    if text is None or "'" in text or ELLIPSIS in text:
        return None
    column = name if name.isidentifier() else f'"{name}"'
    kind = type_.split("(")[0]
    if kind in ("byte", "short", "integer", "long", "decimal"):
        return f"{column} = {text}"
    if kind in ("float", "double"):
        return f"{column} <= {text}"
    if kind == "string":
        return f"{column} = '{text}'"
    return f"{column} = DATE '{text}'" if kind == "date" else None


def _without_nulls(plan: pl.DataFrame, where: pl.Expr, statistics: pl.DataFrame, files: pl.DataFrame) -> pl.Series:
    """For each skipped file, whether it could match if its nulls were not counted."""
    node = parse(where)
    unique = statistics.unique("_path", keep="first", maintain_order=True)
    keys = pl.DataFrame({"path": unique["_path"]}).with_row_index("place")
    places = plan.select("path").join(keys, on="path", how="left", maintain_order="left")["place"]
    records = plan.select("path").join(
        files.select("path", "records").unique("path", keep="first"), on="path", how="left", maintain_order="left"
    )["records"]
    unknown = pl.Series([None], dtype=pl.Int64).new_from_index(0, plan.height)
    names = {path: leaf_name(path) for path in paths(node)}

    def bounds(path: Path) -> Bounds | None:
        name = names.get(path)
        if name is None or name not in unique.columns:
            return None
        bounds_of_files = Bounds.of_statistics(unique[name].alias("bounds").gather(places), records)
        return None if bounds_of_files is None else replace(bounds_of_files, nulls=unknown)

    without_tests = map_leaves(node, lambda leaf: Unknown() if isinstance(leaf, IsNull) else leaf)
    return may_match(without_tests, bounds, plan.height)


def _value_list(leaf: IsIn) -> str:
    count = leaf.values.len()
    more = f", {ELLIPSIS} {count - _MAX_VALUES:,} more" if count > _MAX_VALUES else ""
    return ", ".join(_value(value) for value in leaf.values.head(_MAX_VALUES)) + more


def _value(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value).upper() if isinstance(value, bool) else str(value)
    return f"'{value_text(value)}'"


_DISPLAY = SQLPrinter(leaf_name, lambda _, value: _value(value), _value_list, is_extended=True)
"""Prints conditions for people: long values and lists are cut."""


def files_by_reason(verdicts: pl.DataFrame) -> dict[str, int]:
    """The number of files of FILE_VERDICTS for each reason, 0 included."""
    return dict(explain_verdicts(verdicts).select("reason", "files").iter_rows())


def files_with_verdict(verdicts: pl.DataFrame, verdict: str) -> pl.DataFrame:
    """The files of FILE_VERDICTS that are `read` or `skipped`, or `all`, by path."""
    condition = {"read": pl.col("kept"), "skipped": ~pl.col("kept")}.get(verdict, pl.lit(value=True))
    return verdicts.filter(condition).sort("path")


def unsupported_condition(parts: pl.DataFrame, where: pl.Expr, text: str) -> str | None:
    """The first condition of PARTS that data skipping does not support, the filter's own `text` where it is only one
    condition and unsupported; None if all are supported."""
    if parts.is_empty():
        return None if _can_be_judged(where) else text
    return next(iter(parts.filter(~pl.col("judged"))["part"]), None)
