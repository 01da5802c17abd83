"""What a table asks for and the engine rules to a matrix: who can read it, who can write it, which feature is to blame.

Rules that say nothing give unknown, never yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.engines.rules import Engine, Side, Told, all_words, engines, format_words
from lakeview.views.units import version_label

COMPATIBILITY = pl.Schema(
    {
        "engine": pl.String(),
        "version": pl.String(),
        "read": pl.String(),
        "write": pl.String(),
        "blame": pl.String(),
        "since": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "writer": pl.String(),
        "recorded_in": pl.String(),
        "because": pl.String(),
        "checked": pl.Date(),
        "sources": pl.String(),
    }
)
"""One row an engine. `read`, `write`: yes, no or unknown; `write` is never for one that writes no table. `blame`: the
first feature behind the worse of the two answers, with the commit that turned it on, its moment and writer, or the
metadata file, as in NEEDS; `because`: all of them in words. `sources`: who says so of what this table asks for, the
source of the blame first, joined by lines; all of the engine's where no source was needed. `checked`: when the oldest
of them was read."""

_Asked = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """One side's answer, the needs it is owed to, and the sources that were followed."""

    answer: str
    blamed: tuple[_Asked, ...]
    told: tuple[Told, ...]


def rules_date() -> date:
    """When the rules were last gone over."""
    return max(told.checked for name in all_words() for engine in engines(name) for told in engine.told)


def compatibility(needed: pl.DataFrame, table_format: str) -> pl.DataFrame:
    """COMPATIBILITY from NEEDS, in the order of the rules; empty for a format that they do not know."""
    asked = list(needed.iter_rows(named=True))
    rows = [_row(engine, asked) for engine in engines(table_format)]
    return pl.DataFrame(rows, schema=COMPATIBILITY, orient="row")


def recipients(needed: pl.DataFrame, table_format: str) -> pl.DataFrame:
    """COMPATIBILITY of the recipients a table of this format has once it is shared, from their NEEDS (`shared_needs`);
    empty for a format that nobody shares as it is."""
    words = format_words(table_format)
    shared_as = None if words is None else words.shared_as
    return compatibility(needed, shared_as) if shared_as is not None else pl.DataFrame(schema=COMPATIBILITY)


ENGINE_ROWS = pl.Schema(
    {
        "engine": pl.String(),
        "cause": pl.String(),
        "because": pl.String(),
        "checked": pl.String(),
        "source": pl.String(),
    }
)
"""One row an engine and release. `cause`: the feature to blame, and what enabled it, null where it can read; `checked`:
the day of the rule; `source`: its first link, null without one."""


def in_words(compatibility: pl.DataFrame) -> pl.DataFrame:
    """ENGINE_ROWS of COMPATIBILITY."""
    links = pl.col("sources").str.split("\n").list.eval(pl.element().filter(pl.element().str.starts_with("https")))
    return compatibility.select(
        engine=pl.concat_str("engine", "version", separator=" "),
        cause=pl.concat_str("blame", pl.lit(" ("), turned_on(), pl.lit(")")),
        because=pl.col("because").fill_null(""),
        checked=pl.col("checked").cast(pl.String),
        source=links.list.first(),
    ).cast(ENGINE_ROWS)


def required_features(needs: pl.DataFrame) -> list[str]:
    """Each feature of NEEDS with the version that enabled it: `columnMapping (v9)`."""
    return (
        needs.select(pl.concat_str("feature", pl.lit(" ("), turned_on(brief=True), pl.lit(")"))).to_series().to_list()
    )


def turned_on(*, brief: bool = False) -> pl.Expr:
    """What turned the blamed feature on, in words, of COMPATIBILITY or NEEDS: `v9, li` or `v3.metadata.json`, with the
    day; `unknown` where the history that would tell is gone. `brief`: without writer and day."""
    day = pl.col("timestamp").dt.date().cast(pl.String)
    more = [] if brief else [pl.col("writer"), day]
    commit = pl.concat_str(version_label("since"), *more, separator=", ", ignore_nulls=True)
    file = pl.concat_str("recorded_in", *more[1:], separator=", ", ignore_nulls=True)
    return (
        pl.when(pl.col("since").is_not_null())
        .then(commit)
        .when(pl.col("recorded_in").is_not_null())
        .then(file)
        .otherwise(pl.lit("unknown"))
    )


def _row(engine: Engine, required: Sequence[_Asked]) -> dict[str, object]:
    features = [n for n in required if n["used"] or not engine.spares_unused]
    read = _side(engine, "read", [n for n in features if n["reading"]])
    write = _write_side(engine, features, read)
    worse = write if write.answer == "no" and read.answer != "no" else read
    cause: _Asked = next(iter(worse.blamed or write.blamed), {})
    sources = list(dict.fromkeys((*worse.told, *read.told, *write.told))) or list(engine.told)
    return {
        "engine": engine.name,
        "version": engine.version,
        "read": read.answer,
        "write": write.answer,
        "blame": cause.get("feature"),
        **{name: cause.get(name) for name in ("since", "timestamp", "writer", "recorded_in")},
        "because": _reasons(engine, read, write),
        "checked": min(source.checked for source in sources),
        "sources": "\n".join(dict.fromkeys(source.source for source in sources)),
    }


def _write_side(engine: Engine, features: Sequence[_Asked], read: _Verdict) -> _Verdict:
    if engine.read_only:
        return _Verdict("never", (), ())
    write = _side(engine, "write", features)
    # an engine that cannot read a table cannot write it either
    is_read = read.answer == "yes" or (read.answer == "unknown" and write.answer != "yes")
    return write if is_read else read


def _reasons(engine: Engine, read: _Verdict, write: _Verdict) -> str | None:
    parts = [_said("read", read)] if read.blamed else []
    parts += [_said("write", write)] if write.blamed and write is not read else []
    parts += [] if engine.note is None else [engine.note]
    return "; ".join(parts) or None


def _side(engine: Engine, side: Side, asked: Sequence[_Asked]) -> _Verdict:
    found = [(need, *engine.verdict(side, str(need["feature"]))) for need in asked]
    refused = tuple(need for need, can, _ in found if can is False)
    if refused:
        return _Verdict("no", refused, _sources(told for _, can, told in found if can is False))
    untold = tuple(need for need, can, _ in found if can is None)
    return _Verdict("unknown" if untold else "yes", untold, _sources(told for _, _, told in found))


def _sources(told: Iterable[Told | None]) -> tuple[Told, ...]:
    return tuple(dict.fromkeys(t for t in told if t is not None))


def _said(side: Side, verdict: _Verdict) -> str:
    names = ", ".join(str(need["feature"]) for need in verdict.blamed)
    return f"does not {side} {names}" if verdict.answer == "no" else f"unknown whether it {side}s {names}"
