"""A table feature that no version uses to the protocol without it (today's protocol, Drop Feature)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from lakeview.delta.features import LEGACY_WRITER_FEATURES, MAX_READER_VERSION, MAX_WRITER_VERSION
from lakeview.delta.log.actions import Metadata, Protocol
from lakeview.delta.log.commits import only
from lakeview.delta.log.file_actions import file_actions
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.write.definition import Definition
from lakeview.delta.write.rules import active_features, supported_features, with_required
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError

OF_WRITERS = frozenset(
    {
        "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns",
        "identityColumns", "invariants", "vacuumProtocolCheck",
    }
)  # fmt: skip
"""Features that the metadata alone takes into use; what earlier versions did makes no difference to readers."""

OF_READERS = frozenset(
    {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "variantType"}
)
"""Features that readers need for every version that used them, also to read a later one from the log."""

_CHUNK = 256
_COPY = (
    "copy the rows into a new table, which gets the lowest protocol that it needs, or use Delta Lake's "
    "ALTER TABLE ... DROP FEATURE"
)


def protocol_without(
    feature: str, definition: Definition, state: Replay, log: TableLog, state_of: Callable[[int], Replay]
) -> Protocol:
    """The lowest protocol with the features of a definition but one, which is in use nowhere: not in the definition,
    nor in the state that it changes, and of those that readers need in no version from that on which took it into the
    protocol.

    InvalidRequestError for one that the protocol does not have, or that is in use; UnsupportedTableError (kind
    drop-feature) for one that is not removed here, that others need, or whose earlier use cannot be ruled out.
    """
    address = log.storage.root
    features = supported_features(definition.protocol)
    if feature not in features:
        raise InvalidRequestError(
            f"the protocol of {address} has no feature {feature}", fix=f"choose from {', '.join(sorted(features))}",
            place=feature, kind="unknown-feature",
        )  # fmt: skip
    if feature not in OF_WRITERS | OF_READERS:
        raise _refusal(feature, address, "it is not one that lakeview removes")
    rest = features - {feature}
    for other in sorted(rest):
        if feature in with_required(frozenset({other})):
            raise _refusal(feature, address, f"{other} needs it")
    if _is_used(feature, state.metadata) or _is_used(feature, definition.metadata):
        raise InvalidRequestError(
            f"{address} uses {feature}: its properties, its columns or their metadata say so",
            fix="unset the property, or drop the constraints or columns first",
            place=feature,
            kind="feature-in-use",
        )
    if feature in OF_READERS:
        _check_history(feature, state.version, log, state_of)
    return _lowest(definition.protocol, rest)


def _is_used(feature: str, metadata: Metadata) -> bool:
    feature = feature.removesuffix("-preview")
    marks = {"typeWidening": "delta.typeChanges", "columnMapping": "delta.columnMapping."}
    in_schema = feature in marks and marks[feature] in (metadata.schema_string or "")
    return in_schema or feature in {name.removesuffix("-preview") for name in active_features(metadata)}


def _check_history(feature: str, latest: int, log: TableLog, state_of: Callable[[int], Replay]) -> None:
    """UnsupportedTableError if a version that the log has uses a feature, or one that it has no longer may have."""
    address = log.storage.root
    first = next(iter(log.commit_files()["version"]), latest)
    if first > 0:
        bases = [checkpoint.version for checkpoint in log.checkpoints() if checkpoint.version >= first - 1]
        first = min(bases, default=latest)
        if feature in supported_features(state_of(first).protocol):
            raise _refusal(feature, address, f"the log begins at version {first}, and versions before may have used it")
    for version in _uses(feature, first, latest, log):
        raise _refusal(feature, address, f"version {version}, which the log still has, used it")


def _uses(feature: str, first: int, last: int, log: TableLog) -> Iterator[int]:
    """The versions whose commits take a feature into use, or use it."""
    for start in range(first, last + 1, _CHUNK):
        there = log.commit_files()["version"]
        commits = log.commits(there.filter(there.is_between(start, min(start + _CHUNK - 1, last))))
        yield from (version for version, metadata in only("meta_data", commits) if _is_used(feature, metadata))
        if feature == "deletionVectors":
            yield from file_actions(commits, log.storage.root).filter(pl.col("vector").is_not_null())["version"]


def _lowest(protocol: Protocol, features: frozenset[str]) -> Protocol:
    """The lowest protocol that has just these features, of those that the old one has."""
    mapped = "columnMapping" in features
    implied: set[str] = set()
    for version in range(1, MAX_WRITER_VERSION):
        implied.update(LEGACY_WRITER_FEATURES.get(version, ()))
        if implied == features:
            return Protocol(2 if mapped else 1, version)
    readers = sorted(features.intersection(protocol.reader_features or ()) | ({"columnMapping"} if mapped else set()))
    if readers:
        return Protocol(MAX_READER_VERSION, MAX_WRITER_VERSION, readers, sorted(features))
    return Protocol(1, MAX_WRITER_VERSION, None, sorted(features))


def _refusal(feature: str, address: str, reason: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"lakeview does not take {feature} out of the protocol of {address}: {reason}",
        fix=_COPY,
        place=feature,
        kind="drop-feature",
    )
