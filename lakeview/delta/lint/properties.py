"""Table properties: names that some engine knows, and values that it takes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping

from lakeview.delta.lint.facts import LogFacts, long
from lakeview.delta.lint.report import counted, finding, some
from lakeview.findings import Finding, Severity

_DURATION = re.compile(
    r"(?:interval\s+)?(?:[+-]?\d+(?:\.\d+)?\s+(?:week|day|hour|minute|second|millisecond|microsecond)s?\s*)+"
)


def _boolean(value: str) -> bool:
    return value.lower() in ("true", "false")


def _duration(value: str) -> bool:
    return _DURATION.fullmatch(value.strip().lower()) is not None


def _at_least(least: int) -> Callable[[str], bool]:
    return lambda value: (number := long(value)) is not None and number >= least


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value.lower() in {v.lower() for v in values}


def _text(_: str) -> bool:
    return True


_BOOLEANS = (
    "appendOnly", "autoOptimize", "autoOptimize.optimizeWrite", "checkpoint.writeStatsAsJson",
    "checkpoint.writeStatsAsStruct", "compatibility.symlinkFormatManifest.enabled", "enableChangeDataCapture",
    "enableChangeDataFeed", "enableDeletionVectors", "enableExpiredLogCleanup", "enableFullRetentionRollback",
    "enableIcebergCompatV1", "enableIcebergCompatV2", "enableIcebergCompatV3", "enableIcebergWriterCompatV1",
    "enableIcebergWriterCompatV3", "enableInCommitTimestamps", "enableRowTracking", "enableTypeWidening",
    "enableVariantShredding", "ignoreProtocolDefaults", "randomizeFilePrefixes", "rowTrackingSuspended",
    "tuneFileSizesForRewrites", "castIcebergTimeType", "writePartitionColumnsToParquet",
)  # fmt: skip
_DURATIONS = (
    "checkpointRetentionDuration", "deletedFileRetentionDuration", "dropFeatureTruncateHistory.retentionDuration",
    "logRetentionDuration", "sampleRetentionDuration", "setTransactionRetentionDuration",
)  # fmt: skip
_TEXTS = (
    "autoOptimize.autoCompact", "columnMapping.mode", "coordinatedCommits.commitCoordinator-preview",
    "coordinatedCommits.commitCoordinatorConf-preview", "coordinatedCommits.tableConf-preview",
    "dataSkippingStatsColumns", "generateSymlink", "liquid.clusteringColumns", "parquet.format.version",
    "redirectReaderWriter-preview", "redirectWriterOnly-preview", "rowTracking.materializedRowCommitVersionColumnName",
    "rowTracking.materializedRowIdColumnName", "stats.skipping", "targetFileSize", "universalFormat.config.iceberg",
    "universalFormat.enabledFormats", "workloadBasedColumns.optimizerStatistics", "clusteringColumns",
)  # fmt: skip

KNOWN: Mapping[str, Callable[[str], bool]] = {
    **{f"delta.{name}": _boolean for name in _BOOLEANS},
    **{f"delta.{name}": _duration for name in _DURATIONS},
    **{f"delta.{name}": _text for name in _TEXTS},
    "delta.checkpointInterval": _at_least(1),
    "delta.checkpointPolicy": _one_of("classic", "v2"),
    "delta.columnMapping.maxColumnId": _at_least(0),
    "delta.columnMapping.mode": _one_of("none", "name", "id"),
    "delta.dataSkippingNumIndexedCols": _at_least(-1),
    "delta.dataSkippingStringPrefixLength": _at_least(0),
    "delta.inCommitTimestampEnablementTimestamp": _at_least(0),
    "delta.inCommitTimestampEnablementVersion": _at_least(0),
    "delta.isolationLevel": _one_of("Serializable", "WriteSerializable", "SnapshotIsolation"),
    "delta.lastCommitTimestamp": _at_least(0),
    "delta.lastUpdateVersion": _at_least(0),
    "delta.minReaderVersion": _at_least(1),
    "delta.minWriterVersion": _at_least(1),
    "delta.parquet.compression.codec": _one_of(
        "none", "uncompressed", "snappy", "gzip", "lzo", "lz4", "lz4_raw", "lz4raw", "brotli", "zstd"
    ),
    "delta.randomPrefixLength": _at_least(1),
    "delta.requireCheckpointProtectionBeforeVersion": _at_least(0),
}
"""Property -> whether a value is one that engines take: the protocol's, Spark's and Databricks' table properties."""

_FAMILIES = (
    "delta.constraints.", "delta.feature.", "delta.universalFormat.", "delta.coordinatedCommits.", "delta.internal.",
)  # fmt: skip
"""Prefixes below which names are free."""

_FEATURE_VALUES = ("supported", "enabled")

_DIGITS = re.compile(r"\d")
_SPELLINGS = {name.lower(): name for name in KNOWN}


def names(facts: LogFacts) -> Iterator[Finding]:
    """`delta.` properties that no engine knows: most are slips of the pen, and do nothing."""
    unknown = [k for k in facts.properties if k.startswith("delta.") and not _known(k)]
    slips = {k: near for k in unknown if (near := _near(k)) is not None}
    if slips:
        yield finding(
            Severity.ATTENTION,
            f"{counted(len(slips), 'property is', 'properties are')} misspelt and without effect",
            some([f"{k} (meant: {near})" for k, near in slips.items()]),
            section="Table Properties",
            place="metaData.configuration",
            remedy="set the property by its right name, and unset this one",
            page="overview",
        )
    rest = [k for k in unknown if k not in slips]
    if rest:
        yield finding(
            Severity.NOTE,
            f"{counted(len(rest), 'delta property is', 'delta properties are')} known to no engine",
            some(rest),
            section="Table Properties",
            place="metaData.configuration",
            page="overview",
        )


def _known(name: str) -> bool:
    return name in KNOWN or name.startswith(_FAMILIES)


def _near(name: str) -> str | None:
    if name.lower() in _SPELLINGS:
        return _SPELLINGS[name.lower()]
    close = difflib.get_close_matches(name.lower()[:200], _SPELLINGS, 1, 0.9)
    # another number is no slip: it may be the property of tomorrow's feature
    slip = close and _DIGITS.sub("", close[0]) != _DIGITS.sub("", name.lower())
    return _SPELLINGS[close[0]] if slip else None


def values(facts: LogFacts) -> Iterator[Finding]:
    """Known properties with values that no engine takes."""
    wrong = [f"{k} = {v}" for k, v in facts.properties.items() if k in KNOWN and not KNOWN[k](v)]
    wrong += [
        f"{k} = {v}"
        for k, v in facts.properties.items()
        if k.startswith("delta.feature.") and v.lower() not in _FEATURE_VALUES
    ]
    if wrong:
        yield finding(
            Severity.ATTENTION,
            f"{counted(len(wrong), 'property has a value', 'properties have values')} that engines refuse or ignore",
            some(wrong),
            section="Table Properties",
            place="metaData.configuration",
            remedy="set a value of the right kind",
            page="overview",
        )
