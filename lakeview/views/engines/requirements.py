"""A snapshot to what it asks of engines, and which commit asked for it first.

What a table asks for is said by its protocol, or where no protocol names it, by what it uses: deletes, types, defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.model.schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType
from lakeview.model.snapshot import Snapshot, TableProtocol
from lakeview.views.engines.rules import FormatWords, format_words

NEEDS = pl.Schema(
    {
        "feature": pl.String(),
        "reading": pl.Boolean(),
        "used": pl.Boolean(),
        "since": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "writer": pl.String(),
        "recorded_in": pl.String(),
    }
)
"""One row a thing that the table asks of engines. `reading`: of readers too, else only of writers; `used`: false for a
legacy feature that a version implies and the table does not use. `since`: the commit that turned it on, with its moment
and writer; `recorded_in`: the metadata file that did, where no commit tells; all null where what is left of the history
does not tell any more."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What turned a feature on: a commit, or a metadata file that came with none."""

    version: int | None
    timestamp: datetime | None = None
    writer: str | None = None
    recorded_in: str | None = None


def needs(snapshot: Snapshot, origins: Mapping[str, Origin] | None = None) -> pl.DataFrame:
    """NEEDS of a snapshot. Reads no statistics; of a format with delete files, their manifests."""
    words = format_words(snapshot.format)
    found = {} if words is None else _needed(snapshot, words)
    return _frame(found, origins or {} if words is None else _with_answers(origins or {}, words, list(found)))


def shared_needs(snapshot: Snapshot, origins: Mapping[str, Origin] | None = None) -> pl.DataFrame:
    """NEEDS of the recipients a table has once it is shared; empty for a format nobody shares as it is.

    By the features the protocol names: a server may ask for less where a version does not use one.
    """
    words = format_words(snapshot.format)
    shared = None if words is None or words.shared_as is None else format_words(words.shared_as)
    if words is None or shared is None:
        return pl.DataFrame(schema=NEEDS)
    unused = _unused(snapshot, words)
    reading = [f for f, asked in _protocol_features(snapshot.protocol, words).items() if asked and f not in unused]
    found = _told(shared, reading)
    return _frame(found, _with_answers(origins or {}, shared, list(found)))


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


def format_origins(versions: pl.DataFrame, commits: pl.DataFrame) -> dict[str, Origin]:
    """What brought each format version, from FORMAT_VERSIONS and the COMMITS that say who made what came with it."""
    writers = dict(commits.select("version", pl.coalesce("user", "engine").alias("writer")).iter_rows())
    told = versions.filter(pl.col("recorded_in").is_not_null())
    rows = told.select("format_version", "version", "since", "recorded_in").iter_rows()
    return {
        f"format version {number}": Origin(version, since, writers.get(version), recorded_in)
        for number, version, since, recorded_in in rows
    }


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
    for feature, metrics in words.traces.items():
        used = ordered.filter(pl.col("metrics").str.contains(f'"({"|".join(metrics)})":"?[1-9]')).head(1)
        for row in used.select("version", "timestamp", writer=pl.coalesce("user", "engine")).iter_rows():
            found[feature] = Origin(*row)
    writers = dict(commits.select("version", pl.coalesce("user", "engine").alias("writer")).iter_rows())
    for version, moment, schema in schemas:
        for feature in _schema_features(schema, words):
            found.setdefault(feature, Origin(version, moment, writers.get(version)))
    return found


def _with_answers(origins: Mapping[str, Origin], words: FormatWords, found: Sequence[str]) -> Mapping[str, Origin]:
    """With the origin of answers that are not plain files: what brought the first feature that asks for them."""
    if words.answers is None or len(found) < 2 or found[1] not in origins:
        return origins
    return {words.answers.other: origins[found[1]], **origins}


def _frame(found: Mapping[str, tuple[bool, bool]], origins: Mapping[str, Origin]) -> pl.DataFrame:
    unknown = Origin(None)
    rows = []
    for feature, (reading, used) in found.items():
        origin = origins.get(feature, unknown)
        rows.append((feature, reading, used, origin.version, origin.timestamp, origin.writer, origin.recorded_in))
    return pl.DataFrame(rows, schema=NEEDS, orient="row")


def _needed(snapshot: Snapshot, words: FormatWords) -> dict[str, tuple[bool, bool]]:
    """Feature -> (asked of readers too, in use)."""
    protocol = snapshot.protocol
    unused = _unused(snapshot, words)
    if words.answers is not None:
        return _told(words, [f for f in _protocol_features(protocol, words) if f not in unused])
    found = {f: (r, f not in unused) for f, r in _protocol_features(protocol, words).items()}
    if words.traces:
        deletes = snapshot.delete_files
        kinds = deletes["content"].unique().sort().to_list() if "content" in deletes.columns else []
        found |= {f"{kind}s" if kind == "deletion vector" else kind: (True, True) for kind in kinds}
        if snapshot.data_format != "parquet":
            name = {"orc": "ORC files", "avro": "Avro files"}.get(snapshot.data_format, f"{snapshot.data_format} files")
            found[name] = (True, True)
    return found | dict.fromkeys(_schema_features(snapshot.schema, words), (True, True))


def _told(words: FormatWords, features: Sequence[str]) -> dict[str, tuple[bool, bool]]:
    """What a recipient must know of a table with these reader features: the format of the answers comes first."""
    if words.answers is None:
        return {}
    seen = [f for f in features if f not in words.of_the_log]
    return dict.fromkeys([words.answers.other, *seen] if seen else [words.answers.plain], (True, True))


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
