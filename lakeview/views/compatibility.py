"""A snapshot and the engine rules to a matrix: who can read the table, who can write it, and which feature is to blame.

Rules that say nothing give unknown, never yes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import polars as pl

from lakeview.frames import UTC_MILLIS
from lakeview.schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType
from lakeview.snapshot import Snapshot, TableProtocol
from lakeview.views.engine_rules import Engine, FormatWords, engine_rules, format_words

NEEDS = pl.Schema(
    {
        "feature": pl.String(),
        "reading": pl.Boolean(),
        "used": pl.Boolean(),
        "since": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "writer": pl.String(),
    }
)
"""One row a thing that the table asks of engines. `reading`: of readers too, else only of writers; `used`: false for a
legacy feature that a version implies and the table does not use. `since`: the commit that turned it on, with its moment
and writer; null where the log does not tell any more."""

COMPATIBILITY = pl.Schema(
    {
        "engine": pl.String(),
        "version": pl.String(),
        "read": pl.String(),
        "write": pl.String(),
        "blame": pl.String(),
        "since": pl.Int64(),
        "writer": pl.String(),
        "because": pl.String(),
        "checked": pl.Date(),
        "sources": pl.String(),
    }
)
"""One row an engine. `read`, `write`: yes, no or unknown; `write` is never for one that writes no table. `blame`: the
first feature behind the worse of the two answers, with the commit that turned it on and its writer; `because`: all of
them in words; `checked`: when the rule's sources (joined by spaces) were read."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The commit that turned a feature on."""

    version: int
    timestamp: datetime | None = None
    writer: str | None = None


def rules_date() -> date:
    """When the rules were last gone over."""
    return engine_rules().date


def needs(snapshot: Snapshot, origins: Mapping[str, Origin] | None = None) -> pl.DataFrame:
    """NEEDS of a snapshot. Reads no statistics; of a format with delete files, their manifests."""
    words = format_words(snapshot.format)
    found = {} if words is None else _needed(snapshot, words)
    known = origins or {}
    rows = []
    for feature, (reading, used) in found.items():
        origin = known.get(feature)
        told = (None, None, None) if origin is None else (origin.version, origin.timestamp, origin.writer)
        rows.append((feature, reading, used, *told))
    return pl.DataFrame(rows, schema=NEEDS, orient="row")


def compatibility(needed: pl.DataFrame, table_format: str) -> pl.DataFrame:
    """COMPATIBILITY from NEEDS, in the order of the rules; empty for a format that they do not know."""
    asked = list(needed.iter_rows(named=True))
    rows = [_answer(engine, asked) for engine in engine_rules().engines if engine.format == table_format]
    return pl.DataFrame(rows, schema=COMPATIBILITY, orient="row")


def protocol_origins(
    protocols: Sequence[tuple[int, datetime | None, str | None, TableProtocol]], table_format: str, *, whole: bool
) -> dict[str, Origin]:
    """Which commit turned each feature on for the last time, from the protocols a table had (version, moment, writer,
    protocol), oldest first. `whole`: the first one is the table's first; otherwise what it has already has no origin.
    """
    words = format_words(table_format)
    found: dict[str, Origin | None] = {}
    for number, (version, moment, writer, protocol) in enumerate(protocols):
        named = {} if words is None else _protocol_features(protocol, words)
        first = None if number == 0 and not whole else Origin(version, moment, writer)
        found = {feature: found.get(feature, first) for feature in named}
    return {feature: origin for feature, origin in found.items() if origin is not None}


def usage_origins(
    commits: pl.DataFrame,
    schemas: Sequence[tuple[int, datetime | None, Schema]],
    table_format: str,
) -> dict[str, Origin]:
    """Which commit first used what no protocol names: from the metrics of COMMITS and from the schemas a table had."""
    words = format_words(table_format)
    if words is None:
        return {}
    found: dict[str, Origin] = {}
    ordered = commits.sort("position")
    for feature, metric in words.traces.items():
        used = ordered.filter(pl.col("metrics").str.contains(f'"{metric}":"?[1-9]')).head(1)
        for row in used.select("version", "timestamp", writer=pl.coalesce("user", "engine")).iter_rows():
            found[feature] = Origin(*row)
    writers = dict(commits.select("version", pl.coalesce("user", "engine").alias("writer")).iter_rows())
    for version, moment, schema in schemas:
        for feature in _schema_features(schema, words):
            found.setdefault(feature, Origin(version, moment, writers.get(version)))
    return found


def _needed(snapshot: Snapshot, words: FormatWords) -> dict[str, tuple[bool, bool]]:
    """Feature -> (asked of readers too, in use)."""
    protocol = snapshot.protocol
    unused = _unused(snapshot, words)
    found = {f: (r, f not in unused) for f, r in _protocol_features(protocol, words).items()}
    if words.traces:
        deletes = snapshot.delete_files
        kinds = deletes["content"].unique().sort().to_list() if "content" in deletes.columns else []
        found |= {f"{kind}s" if kind == "deletion vector" else kind: (True, True) for kind in kinds}
        if snapshot.data_format != "parquet":
            name = {"orc": "ORC files", "avro": "Avro files"}.get(snapshot.data_format, f"{snapshot.data_format} files")
            found[name] = (True, True)
    return found | dict.fromkeys(_schema_features(snapshot.schema, words), (True, True))


def _protocol_features(protocol: TableProtocol, words: FormatWords) -> dict[str, bool]:
    """Every feature of a protocol, and whether it is asked of readers too."""
    if protocol.format_version is not None:
        return {f"format version {protocol.format_version}": True}
    found = dict.fromkeys(
        _side_features("writer", protocol.writer_features, words.writers, protocol.min_writer_version), False
    )
    return found | dict.fromkeys(
        _side_features("reader", protocol.reader_features, words.readers, protocol.min_reader_version), True
    )


def _side_features(
    side: str, named: Sequence[str] | None, by_version: Mapping[str, Sequence[str]], version: int | None
) -> list[str]:
    if named is not None:
        return list(named)
    if version is None or not by_version:
        return []
    if version > max(map(int, by_version)):  # from there on features are named one by one
        return [f"{side} version {version}"]
    return [feature for number, features in by_version.items() if int(number) <= version for feature in features]


def _unused(snapshot: Snapshot, words: FormatWords) -> set[str]:
    """Legacy features that are only implied: neither a rule nor a property of the table speaks of them."""
    kinds = set(snapshot.rules["kind"].to_list()) if words.rules else set()
    unused = {feature for feature, kind in words.rules.items() if kind not in kinds}
    values = snapshot.properties
    return unused | {f for f, name in words.properties.items() if values.get(name, "none").lower() in ("none", "false")}


def _schema_features(schema: Schema, words: FormatWords) -> dict[str, None]:
    if not words.types:
        return {}
    found: dict[str, None] = {}
    for field, type_ in _typed(schema.fields):
        name = words.types.get(type_.name.split("(")[0]) if isinstance(type_, PrimitiveType) else None
        if name is not None:
            found[name] = None
        if field is not None and words.defaults is not None and field.metadata.get(words.defaults) is not None:
            found["default values"] = None
    return found


def _typed(fields: Sequence[Field]) -> Iterator[tuple[Field | None, DataType]]:
    """Every type of a schema, those within others too; with its field where it is a field's. A schema may be deep."""
    waiting: list[tuple[Field | None, DataType]] = [(f, f.type) for f in reversed(fields)]
    while waiting:
        field, type_ = waiting.pop()
        yield field, type_
        match type_:
            case StructType():
                waiting += [(f, f.type) for f in reversed(type_.fields)]
            case ArrayType():
                waiting.append((None, type_.element))
            case MapType():
                waiting += [(None, type_.value), (None, type_.key)]


def _answer(engine: Engine, asked: Sequence[Mapping[str, object]]) -> tuple[object, ...]:
    spared = [n for n in asked if n["used"] or not engine.spares_unused]
    reading = [n for n in spared if n["reading"]]
    read, unread = _side("read", engine.reads, engine.reads_not, engine.complete, reading)
    write, unwritten = _side("write", engine.writes, engine.writes_not, engine.complete, spared)
    if engine.read_only:
        write, unwritten = "never", []
    elif read == "no" or (read == "unknown" and write == "yes"):  # who cannot read a table cannot write it either
        write, unwritten = read, unread
    parts = []
    if unread:
        parts.append(f"{'does not read' if read == 'no' else 'unknown whether it reads'} {_names(unread)}")
    if unwritten and unwritten != unread:
        parts.append(f"{'does not write' if write == 'no' else 'unknown whether it writes'} {_names(unwritten)}")
    if engine.note is not None:
        parts.append(engine.note)
    blamed = (unread if read == "no" else unwritten if write == "no" else unread) or unwritten
    first = blamed[0] if blamed else {}
    return (
        engine.name, engine.version, read, write, first.get("feature"), first.get("since"), first.get("writer"),
        "; ".join(parts) or None, engine.checked, " ".join(engine.sources),
    )  # fmt: skip


def _side(
    side: str,
    does: Sequence[str],
    does_not: Sequence[str],
    complete: Sequence[str],
    asked: Sequence[Mapping[str, object]],
) -> tuple[str, list[Mapping[str, object]]]:
    refused = [n for n in asked if n["feature"] in does_not or (side in complete and n["feature"] not in does)]
    if refused:
        return "no", refused
    untold = [n for n in asked if n["feature"] not in does]
    return ("unknown", untold) if untold else ("yes", [])


def _names(features: Sequence[Mapping[str, object]]) -> str:
    return ", ".join(str(f["feature"]) for f in features)
