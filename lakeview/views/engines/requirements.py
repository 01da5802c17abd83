"""A snapshot to the features that engines need for it, and the commits that enabled them.

The protocol names the features, or where no protocol does, the table's deletes, types and defaults show them.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lakeview.model.data_types import PrimitiveType
from lakeview.model.frames import UTC_MILLIS
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.table_metadata import TableProtocol
from lakeview.model.type_tree import nodes
from lakeview.views.engines.rules import FormatWords, all_words

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
"""One row a feature that the table needs. `reading`: of readers too, else only of writers; `used`: false for a feature
that a version implies, or that asks for nothing until a property turns it on, where the table does not use it. `since`:
the commit that enabled it, with its timestamp and writer; `recorded_in`: the metadata file that did, where no commit
did; all null where the log no longer shows it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What enabled a feature: a commit, or a metadata file without a commit."""

    version: int | None
    timestamp: datetime | None = None
    writer: str | None = None
    recorded_in: str | None = None


def needs(snapshot: Snapshot, origins: Mapping[str, Origin] | None = None) -> pl.DataFrame:
    """NEEDS of a snapshot. Reads no statistics; of a format with delete files, their manifests."""
    words = all_words().get(snapshot.format)
    features = {} if words is None else _required_features(snapshot, words)
    return _frame(features, origins or {} if words is None else _with_answers(origins or {}, words, list(features)))


def shared_needs(snapshot: Snapshot, origins: Mapping[str, Origin] | None = None) -> pl.DataFrame:
    """NEEDS of the recipients of a table that is shared; empty for a format that sharing does not serve unconverted.

    By the features the protocol names: a server may ask for less where a version does not use one.
    """
    words = all_words().get(snapshot.format)
    recipient_words = None if words is None or words.shared_as is None else all_words().get(words.shared_as)
    if words is None or recipient_words is None:
        return pl.DataFrame(schema=NEEDS)
    unused_features = _unused_features(snapshot, words)
    features = _answer_features(recipient_words, _reader_features(snapshot.protocol, words, unused_features))
    return _frame(features, _with_answers(origins or {}, recipient_words, list(features)))


def protocol_origins(
    protocols: Sequence[tuple[int, datetime | None, str | None, TableProtocol]], table_format: str, *, whole: bool
) -> dict[str, Origin]:
    """The commit that last enabled each feature, from the protocols a table had (version, timestamp, writer, protocol),
    oldest first. `whole`: the first one is the table's first; otherwise its features have no origin.
    """
    words = all_words().get(table_format)
    origins: dict[str, Origin | None] = {}
    for number, (version, moment, writer, protocol) in enumerate(protocols):
        features = {} if words is None else _protocol_features(protocol, words)
        first = None if number == 0 and not whole else Origin(version, moment, writer)
        origins = {feature: origins.get(feature, first) for feature in features}
    return {feature: origin for feature, origin in origins.items() if origin is not None}


def format_origins(versions: pl.DataFrame, commits: pl.DataFrame) -> dict[str, Origin]:
    """The origin of each format version, from FORMAT_VERSIONS and the COMMITS that name their writers."""
    writers = dict(commits.select("version", pl.coalesce("user", "engine").alias("writer")).iter_rows())
    known_versions = versions.filter(pl.col("recorded_in").is_not_null())
    rows = known_versions.select("format_version", "version", "since", "recorded_in").iter_rows()
    return {
        f"format version {number}": Origin(version, since, writers.get(version), recorded_in)
        for number, version, since, recorded_in in rows
    }


def usage_origins(
    commits: pl.DataFrame,
    schemas: Sequence[tuple[int, datetime | None, Schema]],
    table_format: str,
) -> dict[str, Origin]:
    """The commit that first used each feature that no protocol names, from the metrics of COMMITS and the schemas."""
    words = all_words().get(table_format)
    if words is None:
        return {}
    origins: dict[str, Origin] = {}
    line = commits.sort("position")
    for feature, metrics in words.traces.items():
        first_use = line.filter(pl.col("metrics").str.contains(f'"({"|".join(metrics)})":"?[1-9]')).head(1)
        for row in first_use.select("version", "timestamp", writer=pl.coalesce("user", "engine")).iter_rows():
            origins[feature] = Origin(*row)
    writers = dict(commits.select("version", pl.coalesce("user", "engine").alias("writer")).iter_rows())
    for version, moment, schema in schemas:
        for feature in _schema_features(schema, words):
            origins.setdefault(feature, Origin(version, moment, writers.get(version)))
    return origins


def _with_answers(origins: Mapping[str, Origin], words: FormatWords, features: Sequence[str]) -> Mapping[str, Origin]:
    """Add the origin of answers that are not plain files: that of the first feature that needs them."""
    if words.answers is None or len(features) < 2 or features[1] not in origins:
        return origins
    return {words.answers.other: origins[features[1]], **origins}


def _frame(features: Mapping[str, tuple[bool, bool]], origins: Mapping[str, Origin]) -> pl.DataFrame:
    unknown = Origin(None)
    rows = []
    for feature, (reading, in_use) in features.items():
        origin = origins.get(feature, unknown)
        rows.append((feature, reading, in_use, origin.version, origin.timestamp, origin.writer, origin.recorded_in))
    return pl.DataFrame(rows, schema=NEEDS, orient="row")


def _required_features(snapshot: Snapshot, words: FormatWords) -> dict[str, tuple[bool, bool]]:
    """Feature -> (needed by readers too, in use)."""
    protocol = snapshot.protocol
    unused_features = _unused_features(snapshot, words)
    if words.answers is not None:  # a recipient writes nothing, so the features of writers alone ask nothing of it
        return _answer_features(words, _reader_features(protocol, words, unused_features))
    features = {f: (r, f not in unused_features) for f, r in _protocol_features(protocol, words).items()}
    if words.traces:
        deletes = snapshot.delete_files
        kinds = deletes["content"].unique().sort().to_list() if "content" in deletes.columns else []
        features |= {f"{kind}s" if kind == "deletion vector" else kind: (True, True) for kind in kinds}
        if snapshot.data_format != "parquet":
            name = {"orc": "ORC files", "avro": "Avro files"}.get(snapshot.data_format, f"{snapshot.data_format} files")
            features[name] = (True, True)
    return features | dict.fromkeys(_schema_features(snapshot.schema, words), (True, True))


def _reader_features(protocol: TableProtocol, words: FormatWords, unused_features: Set[str]) -> list[str]:
    """What a protocol asks of readers, without features that are only named or implied."""
    return [f for f, r in _protocol_features(protocol, words).items() if r and f not in unused_features]


def _answer_features(words: FormatWords, features: Sequence[str]) -> dict[str, tuple[bool, bool]]:
    """What a recipient must support for these reader features: the format of the answers comes first."""
    if words.answers is None:
        return {}
    others = [f for f in features if f not in words.of_the_log]
    return dict.fromkeys([words.answers.other, *others] if others else [words.answers.plain], (True, True))


def _protocol_features(protocol: TableProtocol, words: FormatWords) -> dict[str, bool]:
    """Every feature of a protocol, and whether readers need it too."""
    if protocol.format_version is not None:
        return {f"format version {protocol.format_version}": True}
    features = dict.fromkeys(
        _side_features("writer", protocol.writer_features, words.writers, protocol.min_writer_version), False
    )
    return features | dict.fromkeys(
        _side_features("reader", protocol.reader_features, words.readers, protocol.min_reader_version), True
    )


def _side_features(
    side: str, table_features: Sequence[str] | None, by_version: Mapping[str, Sequence[str]], version: int | None
) -> list[str]:
    if table_features is not None:
        return list(table_features)
    if version is None or not by_version:
        return []
    if version > max(map(int, by_version)):  # from there on features are named one by one
        return [f"{side} version {version}"]
    return [feature for number, features in by_version.items() if int(number) <= version for feature in features]


def _unused_features(snapshot: Snapshot, words: FormatWords) -> set[str]:
    """Features that are only named or implied: no rule and no property of the table uses them."""
    kinds = set(snapshot.rules["kind"].to_list()) if words.rules else set()
    names = {feature for feature, kind in words.rules.items() if kind not in kinds}
    values = snapshot.properties
    return names | {f for f, name in words.properties.items() if values.get(name, "none").lower() in ("none", "false")}


def _schema_features(schema: Schema, words: FormatWords) -> dict[str, None]:
    if not words.types:
        return {}
    features: dict[str, None] = {}
    for _, type_, field in nodes(schema):
        name = words.types.get(type_.name.split("(")[0]) if isinstance(type_, PrimitiveType) else None
        if name is not None:
            features[name] = None
        if field is not None and words.defaults is not None and field.metadata.get(words.defaults) is not None:
            features["default values"] = None
    return features
