"""NEEDS and the engine rules to a compatibility matrix: which engines read and write a table, and the feature to blame.

A feature without a rule gives unknown, never yes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.model.printable import shorten_column
from lakeview.views.engines.rules import Engine, Side, Source, all_words, engines
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
        "note": pl.String(),
        "checked": pl.Date(),
        "sources": pl.String(),
    }
)
"""One row an engine. `read`, `write`: yes, no or unknown; `write` is never for one that writes no table. `blame`: the
first feature behind the worse of the two answers, with the commit that turned it on, its moment and writer, or the
metadata file, as in NEEDS; `because`: all of them as text, and the `note` of the rules on the engine. `sources`: the
sources of the answers, that of the blame first, joined by lines; all of the engine's where no source was needed.
`checked`: when the oldest of them was read."""

_Need = Mapping[str, object]
_LONGEST_NAME = 80
"""Letters of a feature or writer in a sentence: a log may give any number."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """One side's answer, the needs behind it, and its sources."""

    answer: str
    causes: tuple[_Need, ...]
    sources: tuple[Source, ...]


def rules_date() -> date:
    """The day the newest source was read."""
    return max(source.checked for name in all_words() for engine in engines(name) for source in engine.sources)


def compatibility(needs: pl.DataFrame, table_format: str) -> pl.DataFrame:
    """COMPATIBILITY from NEEDS, in the order of the rules; empty for a format without rules."""
    rows = list(needs.iter_rows(named=True))
    rows = [_row(engine, rows) for engine in engines(table_format)]
    return pl.DataFrame(rows, schema=COMPATIBILITY, orient="row")


def recipients(needs: pl.DataFrame, table_format: str) -> pl.DataFrame:
    """COMPATIBILITY of the recipients a table of this format has once it is shared, from their NEEDS (`shared_needs`);
    empty for a format that sharing does not serve unconverted."""
    words = all_words().get(table_format)
    shared_as = None if words is None else words.shared_as
    return compatibility(needs, shared_as) if shared_as is not None else pl.DataFrame(schema=COMPATIBILITY)


ENGINE_ROWS = pl.Schema(
    {
        "engine": pl.String(),
        "cause": pl.String(),
        "checked": pl.String(),
        "source": pl.String(),
    }
)
"""One row an engine and release, those that fail before unknown ones before the others. `cause`: the feature to blame,
null where it can read and write; `checked`: the day of the rule; `source`: its first link, null without one."""


def problems_first(compatibility: pl.DataFrame) -> pl.DataFrame:
    """COMPATIBILITY with the engines that cannot read or write first, then unknown answers."""
    ranks = [
        pl.col(side).replace_strict({"no": rank, "unknown": rank + 1}, default=4, return_dtype=pl.Int64)
        for side, rank in (("read", 0), ("write", 2))
    ]
    return compatibility.sort(pl.min_horizontal(ranks), maintain_order=True)


def in_words(compatibility: pl.DataFrame) -> pl.DataFrame:
    """ENGINE_ROWS of COMPATIBILITY, which is ordered by `problems_first`."""
    links = pl.col("sources").str.split("\n").list.eval(pl.element().filter(pl.element().str.starts_with("https")))
    return compatibility.select(
        engine=pl.concat_str("engine", "version", separator=" "),
        cause="blame",
        checked=pl.col("checked").cast(pl.String),
        source=links.list.first(),
    ).cast(ENGINE_ROWS)


def search(compatibility: pl.DataFrame, text: str) -> pl.DataFrame:
    """COMPATIBILITY of the engines whose name, release or feature to blame contains the text, in any case."""
    names = pl.concat_str("engine", "version", "blame", separator=" ", ignore_nulls=True)
    return compatibility.filter(names.str.to_lowercase().str.contains(text.strip().lower(), literal=True))


def causes(compatibility: pl.DataFrame) -> list[tuple[str, int, int]]:
    """Each feature to blame with what enabled it, once: `columnMapping (v9, li, 2026-07-01)`; how many engines fail to
    read or write because of it, and of how many it is unknown."""
    cause = pl.concat_str(shorten_column(pl.col("blame"), _LONGEST_NAME), pl.lit(" ("), turned_on(), pl.lit(")"))
    fails = pl.any_horizontal(pl.col("read", "write") == "no")
    rows = compatibility.select(cause=cause, fails=fails).drop_nulls("cause")
    counts = rows.group_by("cause", maintain_order=True).agg(
        fail=pl.col("fails").sum(), unknown=(~pl.col("fails")).sum()
    )
    return list(counts.iter_rows())


def causes_in_words(compatibility: pl.DataFrame) -> list[tuple[str, str]]:
    """Each of `causes`, of engines or recipients with problems first, and its counts: `3 fail, 11 unknown`."""
    return [
        (cause, ", ".join(f"{count:,} {word}" for count, word in ((fail, "fail"), (unknown, "unknown")) if count))
        for cause, fail, unknown in causes(problems_first(compatibility))
    ]


def notes(compatibility: pl.DataFrame) -> list[tuple[str, str]]:
    """What the rules note, each once, with the engines that it is about: `polars 2.1, DuckDB delta 1.5.5`."""
    engines = compatibility.drop_nulls("note").select("note", name=pl.concat_str("engine", "version", separator=" "))
    about = engines.group_by("note", maintain_order=True).agg(pl.col("name").str.join(", "))
    return list(about.select("name", "note").iter_rows())


def required_features(needs: pl.DataFrame) -> list[str]:
    """Each feature of NEEDS with the version that enabled it: `columnMapping (v9)`."""
    feature = shorten_column(pl.col("feature"), _LONGEST_NAME)
    return needs.select(pl.concat_str(feature, pl.lit(" ("), turned_on(brief=True), pl.lit(")"))).to_series().to_list()


def turned_on(*, brief: bool = False) -> pl.Expr:
    """What turned the blamed feature on, in words, of COMPATIBILITY or NEEDS: `v9, li` or `v3.metadata.json`, with the
    day; `unknown` where the history that would tell is gone. `brief`: without writer and day."""
    day = pl.col("timestamp").dt.date().cast(pl.String)
    more = [] if brief else [shorten_column(pl.col("writer"), _LONGEST_NAME), day]
    commit = pl.concat_str(version_label("since"), *more, separator=", ", ignore_nulls=True)
    file = pl.concat_str("recorded_in", *more[1:], separator=", ", ignore_nulls=True)
    return (
        pl.when(pl.col("since").is_not_null())
        .then(commit)
        .when(pl.col("recorded_in").is_not_null())
        .then(file)
        .otherwise(pl.lit("unknown"))
    )


def _row(engine: Engine, needs: Sequence[_Need]) -> dict[str, object]:
    features = [n for n in needs if n["used"] or not engine.ignores_unused]
    read = _side(engine, "read", [n for n in features if n["reading"]])
    write = _write_side(engine, features, read)
    worse = write if write.answer == "no" and read.answer != "no" else read
    cause: _Need = next(iter(worse.causes or write.causes), {})
    sources = list(dict.fromkeys((*worse.sources, *read.sources, *write.sources))) or list(engine.sources)
    return {
        "engine": engine.name,
        "version": engine.version,
        "read": read.answer,
        "write": write.answer,
        "blame": cause.get("feature"),
        **{name: cause.get(name) for name in ("since", "timestamp", "writer", "recorded_in")},
        "because": _reasons(engine, read, write),
        "note": engine.note,
        "checked": min(source.checked for source in sources),
        "sources": "\n".join(dict.fromkeys(source.source for source in sources)),
    }


def _write_side(engine: Engine, features: Sequence[_Need], read: _Verdict) -> _Verdict:
    if engine.read_only:
        return _Verdict("never", (), ())
    write = _side(engine, "write", features)
    # an engine that cannot read a table cannot write it either
    is_read = read.answer == "yes" or (read.answer == "unknown" and write.answer != "yes")
    return write if is_read else read


def _reasons(engine: Engine, read: _Verdict, write: _Verdict) -> str | None:
    parts = [_reason("read", read)] if read.causes else []
    parts += [_reason("write", write)] if write.causes and write is not read else []
    parts += [] if engine.note is None else [engine.note]
    return "; ".join(parts) or None


def _side(engine: Engine, side: Side, needs: Sequence[_Need]) -> _Verdict:
    answers = [(need, *engine.verdict(side, str(need["feature"]))) for need in needs]
    refused_needs = tuple(need for need, can, _ in answers if can is False)
    if refused_needs:
        return _Verdict("no", refused_needs, _sources(source for _, can, source in answers if can is False))
    unknown_needs = tuple(need for need, can, _ in answers if can is None)
    return _Verdict("unknown" if unknown_needs else "yes", unknown_needs, _sources(source for _, _, source in answers))


def _sources(sources: Iterable[Source | None]) -> tuple[Source, ...]:
    return tuple(dict.fromkeys(t for t in sources if t is not None))


def _reason(side: Side, verdict: _Verdict) -> str:
    names = ", ".join(str(need["feature"]) for need in verdict.causes)
    return f"does not {side} {names}" if verdict.answer == "no" else f"unknown whether it {side}s {names}"
