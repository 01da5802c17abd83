"""Table properties: what each one may be set to, and what this writer does about it (delta protocol, Table Properties).

One table for all: the writer sets and honours properties by it, Spark's options spell them by it, the log doctor judges
values by it.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from lakeview.model.intervals import interval


class Effect(StrEnum):
    """What this writer does about a property."""

    HONOURED = "honoured"
    """It does what the property says; a value that cannot be meant is refused."""
    BACKGROUND = "background"
    """Only background work of engines reads it (cleanup, compaction), which this writer does not do: it may be set."""
    FEATURE = "feature"
    """It needs a table feature: what the writer implements decides (`lakeview.delta.features`)."""
    ENGINE = "engine"
    """An engine keeps its own record in it, or reads it when it writes: not set here, harmless where it is set."""
    BINDING = "binding"
    """Every commit would have to do something that this writer does not: neither set nor written against."""


@dataclass(frozen=True, slots=True)
class Property:
    """One property. `parse` gives the value, None for text that is none; `expected` says what text may be.

    `off`: values (lower case) at which an ENGINE or BINDING property asks nothing, so that it may be set to them.
    `fix`: what to do instead of setting it.
    """

    parse: Callable[[str], Any]
    expectation: str
    effect: Effect
    off: tuple[str, ...] = ()
    fix: str | None = None


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _text(text: str) -> str:
    return text


def _at_least(least: int) -> Callable[[str], int | None]:
    def parse(text: str) -> int | None:
        return int(text) if re.fullmatch(r"-?\d{1,18}", text, re.ASCII) and int(text) >= least else None

    return parse


def _one_of(*values: str) -> Callable[[str], str | None]:
    return lambda text: text.lower() if text.lower() in values else None


_SIZE = re.compile(r"(\d{1,15})\s*(b|kb?|mb?|gb?|tb?)?", re.IGNORECASE | re.ASCII)
_UNITS = "bkmgt"


def _size(text: str) -> int | None:
    """`134217728`, `128mb` or `1g` as bytes; None for no size, or one below a byte."""
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) * 1024 ** _UNITS.index((match[2] or "b")[0].lower()) if match else 0
    return size or None


_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.,\s][^`.,]*))\s*")


def column_paths(text: str) -> tuple[tuple[str, ...], ...] | None:
    """Comma list of columns, dots between the parts of a path, back-quotes around names that hold either."""
    paths: list[tuple[str, ...]] = []
    path: tuple[str, ...] = ()
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            return None
        path = (*path, match[1].replace("``", "`") if match[1] is not None else match[2].strip())
        position = match.end()
        separator = text[position : position + 1]
        if separator not in ("", ",", ".") or (separator and position + 1 == len(text)):
            return None
        if separator != ".":
            paths.append(path)
            path = ()
        position += 1
    return tuple(paths)


_TRUTH = "true or false"
_DURATION = "an interval such as 'interval 7 days'"
_NAMES = "text"


def _switches(effect: Effect, *names: str, fix: str | None = None) -> dict[str, Property]:
    return {f"delta.{name}": Property(_boolean, _TRUTH, effect, ("false",), fix) for name in names}


def _texts(effect: Effect, *names: str, off: tuple[str, ...] = ("",)) -> dict[str, Property]:
    return {f"delta.{name}": Property(_text, _NAMES, effect, off) for name in names}


def _numbers(effect: Effect, least: int, *names: str, fix: str | None = None) -> dict[str, Property]:
    expectation = f"a whole number from {least}"
    return {f"delta.{name}": Property(_at_least(least), expectation, effect, (), fix) for name in names}


_CODECS = ("none", "uncompressed", "snappy", "gzip", "lzo", "lz4", "lz4_raw", "lz4raw", "brotli", "zstd")
CODEC = "delta.parquet.compression.codec"
FORMAT_VERSION = "delta.parquet.format.version"
INDEXED = "delta.dataSkippingStatsColumns"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"


def _format_version(text: str) -> str | None:
    return text if re.fullmatch(r"1\.0\.0|2\.\d+\.\d+", text, re.ASCII) else None


PROPERTIES: Mapping[str, Property] = {
    **_switches(
        Effect.HONOURED, "appendOnly", "checkpoint.writeStatsAsJson", "checkpoint.writeStatsAsStruct",
        "enableExpiredLogCleanup", "randomizeFilePrefixes", "writePartitionColumnsToParquet",
    ),
    **_numbers(Effect.HONOURED, 1, "checkpointInterval", "randomPrefixLength"),
    **_numbers(Effect.HONOURED, -1, "dataSkippingNumIndexedCols"),
    **_numbers(Effect.HONOURED, 0, "dataSkippingStringPrefixLength"),
    INDEXED: Property(column_paths, "a comma list of columns", Effect.HONOURED),
    **{
        f"delta.{name}": Property(interval, _DURATION, Effect.HONOURED)
        for name in ("deletedFileRetentionDuration", "logRetentionDuration", "setTransactionRetentionDuration")
    },
    CODEC: Property(_one_of(*_CODECS), f"one of {', '.join(_CODECS)}", Effect.HONOURED),
    FORMAT_VERSION: Property(_format_version, "1.0.0 or 2.x.y", Effect.HONOURED),
    "delta.targetFileSize": Property(_size, "a size such as 128mb", Effect.HONOURED),
    # this writer's commits are serializable, which is the strictest of the three
    "delta.isolationLevel": Property(
        _one_of("serializable", "writeserializable", "snapshotisolation"),
        "one of Serializable, WriteSerializable, SnapshotIsolation",
        Effect.HONOURED,
    ),
    **_switches(
        Effect.BACKGROUND, "autoOptimize", "autoOptimize.optimizeWrite", "enableFullRetentionRollback",
        "tuneFileSizesForRewrites",
    ),
    "delta.autoOptimize.autoCompact": Property(
        _one_of("true", "false", "auto", "legacy"), "one of true, false, auto, legacy", Effect.BACKGROUND, ("false",)
    ),
    **_texts(Effect.BACKGROUND, "workloadBasedColumns.optimizerStatistics"),
    **{
        f"delta.{name}": Property(interval, _DURATION, Effect.BACKGROUND)
        for name in (
            "checkpointRetentionDuration", "dropFeatureTruncateHistory.retentionDuration", "sampleRetentionDuration",
        )
    },
    **_switches(
        Effect.FEATURE, "enableChangeDataFeed", "enableDeletionVectors", "enableIcebergCompatV1",
        "enableIcebergCompatV2", "enableInCommitTimestamps", "enableMaterializePartitionColumnsFeature",
        "enableRowTracking", "enableTypeWidening",
    ),
    "delta.checkpointPolicy": Property(_one_of("classic", "v2"), "classic or v2", Effect.FEATURE),
    "delta.columnMapping.mode": Property(_one_of("none", "name", "id"), "one of none, name, id", Effect.FEATURE),
    **_switches(Effect.ENGINE, "enableChangeDataCapture", fix="set delta.enableChangeDataFeed"),
    **_switches(Effect.ENGINE, "castIcebergTimeType", "enableVariantShredding", "ignoreProtocolDefaults",
                "rowTrackingSuspended"),
    **_texts(
        Effect.ENGINE, "clusteringColumns", "liquid.clusteringColumns", "generateSymlink",
        "rowTracking.materializedRowCommitVersionColumnName", "rowTracking.materializedRowIdColumnName",
        "stats.skipping",
    ),
    **_numbers(
        Effect.ENGINE, 0, "columnMapping.maxColumnId", "inCommitTimestampEnablementTimestamp",
        "inCommitTimestampEnablementVersion", "lastCommitTimestamp", "lastUpdateVersion",
        "requireCheckpointProtectionBeforeVersion",
    ),
    **_numbers(
        Effect.ENGINE, 1, "minReaderVersion", "minWriterVersion",
        fix="leave it out: a new table gets the lowest protocol that its schema and properties need",
    ),
    **_switches(
        Effect.BINDING, "compatibility.symlinkFormatManifest.enabled", "enableIcebergCompatV3",
        "enableIcebergWriterCompatV1", "enableIcebergWriterCompatV3",
    ),
    **_texts(
        Effect.BINDING, "coordinatedCommits.commitCoordinator-preview",
        "coordinatedCommits.commitCoordinatorConf-preview", "coordinatedCommits.tableConf-preview",
        "redirectReaderWriter-preview", "redirectWriterOnly-preview",
        "universalFormat.enabledFormats", off=("", "{}"),
    ),
    **_texts(Effect.ENGINE, "universalFormat.config.iceberg"),
}  # fmt: skip
"""Property -> its values and what is done about it: the protocol's, Spark's and Databricks' table properties."""

_FAMILIES = (
    "delta.constraints.", "delta.feature.", "delta.universalFormat.", "delta.coordinatedCommits.", "delta.internal.",
)  # fmt: skip
"""Prefixes below which names are free."""

FEATURE_VALUES = ("supported", "enabled")

_DIGITS = re.compile(r"\d")
SPELLINGS: Mapping[str, str] = {name.lower(): name for name in PROPERTIES}
"""Names in lower case, as Spark hands options over, to their spelling."""


def is_known(name: str) -> bool:
    """Whether some engine knows the property."""
    return name in PROPERTIES or name.startswith(_FAMILIES)


def nearest(name: str) -> str | None:
    """The known property that a misspelt one was meant to be; None where none is near."""
    if name.lower() in SPELLINGS:
        return SPELLINGS[name.lower()]
    close = difflib.get_close_matches(name.lower()[:200], SPELLINGS, 1, 0.9)
    # another number is no slip: it may be the property of tomorrow's feature
    slip = close and _DIGITS.sub("", close[0]) != _DIGITS.sub("", name.lower())
    return SPELLINGS[close[0]] if slip else None


def value(properties: Mapping[str, str], name: str) -> Any:
    """The value of a property; None where it is not set, or set to what it cannot be, as another engine may have."""
    text = properties.get(name)
    return None if text is None else PROPERTIES[name].parse(text)


def is_true(properties: Mapping[str, str | None], name: str) -> bool:
    """Whether a property is set to true, in letters of any case."""
    return (properties.get(name) or "").lower() == "true"


def retention(properties: Mapping[str, str]) -> timedelta:
    """How long removed files are kept; one week where the table does not say."""
    duration: timedelta | None = value(properties, "delta.deletedFileRetentionDuration")
    return timedelta(weeks=1) if duration is None else duration
