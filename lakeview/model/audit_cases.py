"""What a law finds in one commit, and frames of file actions to one case a commit."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import polars as pl

from lakeview.model.frames import AUDIT
from lakeview.model.laws import LAWS, Verdict
from lakeview.model.printable import count_text


class Case(NamedTuple):
    """The verdict of one law on one commit, with the columns of AUDIT in their order; `actual` is its `found`."""

    version: int
    verdict: Verdict
    reason: str | None = None
    expected: str | None = None
    actual: str | None = None
    path: str | None = None


def proven(version: int) -> Case:
    """The commit satisfies the law."""
    return Case(version, Verdict.PROVEN)


def unknowable(version: int, reason: str, path: str | None = None) -> Case:
    """The log does not contain what the law has to be judged by."""
    return Case(version, Verdict.UNKNOWABLE, reason, path=path)


def violated(
    version: int, reason: str, expected_figure: object = None, actual: object = None, path: str | None = None
) -> Case:
    """The commit violates the law; figures are shown with separators."""
    return Case(version, Verdict.VIOLATED, reason, _figure(expected_figure), _figure(actual), path)


def case_frame(cases: Iterable[tuple[Case, str]]) -> pl.DataFrame:
    """The columns of AUDIT that cases have, each with the id of its law, and `law_order`."""
    names = ("version", "verdict", "reason", "expected", "found", "path", "law")
    schema = {name: AUDIT[name] for name in names}
    order = {law: place for place, law in enumerate(LAWS)}
    rows = pl.DataFrame([(*case, law) for case, law in cases], schema=schema, orient="row")
    return rows.with_columns(pl.col("law").replace_strict(order, return_dtype=pl.Int64).alias("law_order"))


def each_commit(
    actions: pl.DataFrame, wrong: pl.Expr, claim: str, unknown: pl.Expr | None = None, why: str = ""
) -> Iterator[Case]:
    """One case for each version of these actions (`version`, `key`): violated where some are `wrong`, else unknowable
    where some are `unknown`, else proven. `claim` follows the count of files: `3 files are not live`."""
    if actions.is_empty():
        return
    uncertain = pl.lit(value=False) if unknown is None else unknown
    counts = (
        actions.lazy()
        .select("version", "key", wrong.fill_null(value=False).alias("wrong"), uncertain.alias("uncertain"))
        .group_by("version")
        .agg(
            pl.len().alias("all"),
            pl.col("wrong").sum(),
            pl.col("uncertain").sum(),
            pl.col("key").filter("wrong").first().alias("path"),
            pl.col("key").filter("uncertain").first().alias("other"),
        )
        .sort("version")
        .collect()
    )
    for version, number, bad, doubtful, path, other in counts.iter_rows():
        if bad:
            yield violated(version, f"{bad:,} of {count_text(number, 'file')} {claim}", 0, bad, path)
        elif doubtful:
            yield unknowable(version, why, other)
        else:
            yield proven(version)


def _figure(value: object) -> str | None:
    if value is None:
        return None
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
