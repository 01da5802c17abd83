"""A table feature that no version uses to the protocol without it (today's protocol, Drop Feature)."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec
import polars as pl

from lakeview.delta.data.column_rules import CLUSTERING
from lakeview.delta.data.row_tracking import MATERIALIZED
from lakeview.delta.data.type_widening import TYPE_CHANGES
from lakeview.delta.features import LEGACY_WRITER_FEATURES, MAX_WRITER_VERSION
from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol, supported_features
from lakeview.delta.log.commits import only
from lakeview.delta.log.file_actions import file_actions
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.properties import PROTECTED_BEFORE, value
from lakeview.delta.write.definition import ROW_TRACKING, SUSPENDED, Definition
from lakeview.delta.write.row_ids import DOMAIN
from lakeview.delta.write.rules import active_features, protocol_of, with_required
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.printable import choices

HISTORY = "drop-feature-history"
"""The kind of a refusal for what earlier versions did, which the log still has."""


class Removal(NamedTuple):
    """What it takes to drop a feature.

    `of_readers`: readers need it for every version that used it, also to read a later one from the log; else they need
    nothing, and what earlier versions did with it makes no difference. `operation`: that of the commit by which its
    traces go, before the one that drops it: a domain that is removed, and files without the ids they had, are actions
    that the feature itself allows. `unset_before`, `unset_with`: properties that go by that commit, and by the one that
    drops the feature. `domain`: what it keeps. `mark`: how the keys begin that it marks columns with.
    `is_rewritten`: files are read right without it once they were written again.
    """

    of_readers: bool = False
    operation: str | None = None
    unset_before: tuple[str, ...] = ()
    unset_with: tuple[str, ...] = ()
    domain: str | None = None
    mark: str | None = None
    is_rewritten: bool = False


_UNSET = "UNSET TBLPROPERTIES"
_WIDENING = Removal(True, _UNSET, ("delta.enableTypeWidening",), mark=TYPE_CHANGES, is_rewritten=True)
_TIMES = ("delta.enableInCommitTimestamps", "delta.inCommitTimestampEnablementVersion")

REMOVALS: Mapping[str, Removal] = {
    **dict.fromkeys(
        (
            "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns",
            "identityColumns", "invariants", "materializePartitionColumns", "vacuumProtocolCheck",
        ),
        Removal(),
    ),
    "checkpointProtection": Removal(unset_with=(PROTECTED_BEFORE,)),
    "clustering": Removal(operation="CLUSTER BY", domain=CLUSTERING),
    "columnMapping": Removal(of_readers=True, mark="delta.columnMapping."),
    "deletionVectors": Removal(True, _UNSET, ("delta.enableDeletionVectors",), is_rewritten=True),
    "domainMetadata": Removal(operation="DOMAIN METADATA CLEANUP"),
    "inCommitTimestamp": Removal(unset_with=(*_TIMES, "delta.inCommitTimestampEnablementTimestamp")),
    "rowTracking": Removal(
        False, "ROW TRACKING UNBACKFILL", (ROW_TRACKING, *MATERIALIZED.values()), (SUSPENDED,), DOMAIN
    ),
    "timestampNtz": Removal(of_readers=True),
    "typeWidening": _WIDENING,
    "typeWidening-preview": _WIDENING,
    "v2Checkpoint": Removal(True, _UNSET, ("delta.checkpointPolicy",)),
    "variantType": Removal(of_readers=True),
}  # fmt: skip
"""The features that are dropped here."""

_PROTECTION = "checkpointProtection"
_CHUNK = 256
_COPY = (
    "copy the rows into a new table, which gets the lowest protocol that it needs, or use Delta Lake's "
    "ALTER TABLE ... DROP FEATURE"
)
_TRUNCATE = (
    "once these versions are older than a day, drop it with truncate_history=True, which deletes them; or copy the "
    "rows into a new table"
)


def check_removable(feature: str, protocol: Protocol, address: str) -> None:
    """InvalidRequestError for a feature that the protocol does not have; UnsupportedTableError (kind drop-feature) for
    one that is not removed here, or that others need."""
    features = supported_features(protocol)
    if feature not in features:
        raise InvalidRequestError(
            f"the protocol of {address} has no feature {feature}",
            fix=choices(feature, sorted(features)),
            place=feature,
            kind="unknown-feature",
        )
    if feature not in REMOVALS:
        raise _refusal(feature, address, "it is not one that lakeview removes")
    for other in sorted(features - {feature}):
        if feature in with_required(frozenset({other})):
            raise _refusal(feature, address, f"{other} needs it")


def is_of_history(feature: str) -> bool:
    """Whether what earlier versions did matters: readers need the feature to read those, or it protects them."""
    return feature == _PROTECTION or REMOVALS[feature].of_readers


def protocol_without(
    feature: str, definition: Definition, state: Replay, log: TableLog, state_of: Callable[[int], Replay]
) -> Protocol:
    """The lowest protocol with the features of a definition but one, which is in use nowhere: not in the definition,
    nor in the state that it changes, and of those that readers need in no version that the log still has.

    Errors as `check_removable`; InvalidRequestError for one that is in use; UnsupportedTableError (kind
    drop-feature-history) for one that earlier versions used.
    """
    address = log.storage.root
    check_removable(feature, definition.protocol, address)
    for metadata in (state.metadata, definition.metadata):
        check_unused(feature, state, metadata, address)
    if REMOVALS[feature].of_readers:
        _check_history(feature, state.version, log, state_of)
    if feature == _PROTECTION:
        _check_protected(state, log)
    return _lowest(definition.protocol, supported_features(definition.protocol) - {feature})


def check_unused(feature: str, state: Replay, metadata: Metadata, address: str) -> None:
    """InvalidRequestError if the metadata, but for the properties that go with the feature, or what the version keeps
    uses it."""
    configuration = metadata.configuration or {}
    last = last_properties(feature, metadata.properties)
    rest = msgspec.structs.replace(metadata, configuration={k: v for k, v in configuration.items() if k not in last})
    if _is_used(feature, rest) or any(traces(feature, state)[1:]):
        raise InvalidRequestError(
            f"{address} uses {feature}: its properties, its columns, their metadata, its domains or its files say so",
            fix="unset the property, or drop the constraints or columns first; the table's own drop_feature removes "
            "what it keeps of itself",
            place=feature,
            kind="feature-in-use",
        )


def marks_columns(feature: str, metadata: Metadata) -> bool:
    """Whether columns or properties have what a feature marks columns with."""
    mark = REMOVALS[feature].mark
    return mark is not None and (_marks_schema(mark, metadata) or any(k.startswith(mark) for k in metadata.properties))


def _marks_schema(mark: str, metadata: Metadata) -> bool:
    """Whether a key in the metadata of a column or field begins so: no name of one, and no comment."""
    return re.search(rf'(?<!\\)"{re.escape(mark)}[^"\\]*"\s*:', metadata.schema_string or "") is not None


def _is_used(feature: str, metadata: Metadata) -> bool:
    mark = REMOVALS[feature].mark
    in_schema = mark is not None and _marks_schema(mark, metadata)
    feature = feature.removesuffix("-preview")
    return in_schema or feature in {name.removesuffix("-preview") for name in active_features(metadata)}


def _check_history(feature: str, latest: int, log: TableLog, state_of: Callable[[int], Replay]) -> None:
    """UnsupportedTableError if a version that the log has uses a feature."""
    address = log.storage.root
    first = next(iter(log.commit_files()["version"]), latest)
    uses = _uses(feature, first, latest, log)
    if first > 0:
        # the versions before are gone, with the tombstones that they left: "filter out all tombstones", as Delta Lake
        base = min([c.version for c in log.checkpoints() if c.version >= first - 1], default=latest)
        if _is_used_by(feature, state_of(base)):
            raise _refusal(feature, address, f"version {base}, with which the log begins, uses it", HISTORY, _TRUNCATE)
        uses = _uses(feature, base + 1, latest, log)
    for version in _v2_checkpoints(log) if feature == "v2Checkpoint" else ():
        raise _refusal(feature, address, f"the log still has a V2 checkpoint of version {version}", HISTORY, _TRUNCATE)
    for version in uses:
        raise _refusal(feature, address, f"version {version}, which the log still has, used it", HISTORY, _TRUNCATE)


def _is_used_by(feature: str, state: Replay) -> bool:
    has_vectors = feature == "deletionVectors" and bool(state.adds(["vector"])["vector"].is_not_null().any())
    return has_vectors or _is_used(feature, state.metadata)


def _v2_checkpoints(log: TableLog) -> Iterator[int]:
    """The versions of the checkpoints that only readers with the feature understand."""
    yield from (files.version for files in log.checkpoints() if files.is_v2 or log.checkpoint(files).sidecars)


def _check_protected(state: Replay, log: TableLog) -> None:
    """UnsupportedTableError while the log has versions whose checkpoints are protected."""
    before: int | None = value(state.properties, PROTECTED_BEFORE)
    first = next(iter(log.commit_files()["version"]), state.version)
    if before is not None and first < before:
        reason = f"it protects the versions before {before}, and the log still has version {first}"
        raise _refusal(_PROTECTION, log.storage.root, reason, HISTORY, _TRUNCATE)


def _uses(feature: str, first: int, last: int, log: TableLog) -> Iterator[int]:
    """The versions whose commits take a feature into use, or use it."""
    there = log.commit_files()["version"]
    for start in range(first, last + 1, _CHUNK):
        chunk = there.filter(there.is_between(start, min(start + _CHUNK - 1, last)))
        commits = list(log.commits(chunk.to_list()))
        yield from (version for version, metadata in only("meta_data", commits) if _is_used(feature, metadata))
        if feature == "deletionVectors":
            yield from file_actions(commits, log.storage.root).filter(pl.col("vector").is_not_null())["version"]


def _lowest(protocol: Protocol, features: frozenset[str]) -> Protocol:
    """The lowest protocol that has just these features, of those that the old one has."""
    mapping = features & {"columnMapping"}
    implied_features: set[str] = set()
    for version in range(1, MAX_WRITER_VERSION):
        implied_features.update(LEGACY_WRITER_FEATURES.get(version, ()))
        if implied_features == features:
            return Protocol(2 if mapping else 1, version)
    return protocol_of(features, features.intersection(protocol.reader_features or ()) | mapping)


def _refusal(
    feature: str, address: str, reason: str, kind: str = "drop-feature", fix: str = _COPY
) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"lakeview does not take {feature} out of the protocol of {address}: {reason}",
        fix=fix,
        place=feature,
        kind=kind,
    )


class Traces(NamedTuple):
    """What a version keeps for a feature: `properties`, and the live `domains`; `ids`: whether files have row ids."""

    properties: tuple[str, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    ids: bool = False

    @property
    def changes(self) -> dict[str, str | None]:
        """The properties to set or unset; other writers make no new ids of rows then."""
        unset: dict[str, str | None] = dict.fromkeys(self.properties)
        return {**unset, SUSPENDED: "true"} if self.ids or ROW_TRACKING in unset else unset


def traces(feature: str, state: Replay) -> Traces:
    """What a version keeps for a feature, all of which goes before the feature does. InvalidRequestError for domains
    among it that are not removed here."""
    domains: pl.DataFrame = state.domain_metadata()
    if feature == "domainMetadata":
        _check_understood(domains["domain"])
    else:
        domains = domains.filter(domains["domain"] == (REMOVALS[feature].domain or ""))
    removals = tuple(DomainMetadata(name, text, removed=True) for name, text in domains.iter_rows())
    properties = tuple(name for name in REMOVALS[feature].unset_before if name in state.properties)
    ids = feature == "rowTracking" and bool(state.adds(["base_row_id"])["base_row_id"].is_not_null().any())
    return Traces(properties, removals, ids)


def is_understood(domain: str) -> bool:
    """Whether it is known here what a domain is for, or it is none of the system's."""
    return domain in (CLUSTERING, DOMAIN) or not domain.startswith("delta.")


def _check_understood(domains: pl.Series) -> None:
    # "Writers must only modify or delete system-controlled domains they understand"
    for domain in domains:
        if not is_understood(domain):
            raise InvalidRequestError(
                f"the domain {domain} is of a feature that is not known here, which may need it",
                fix="have the engine that set the domain remove it, and then drop the feature",
                place=domain,
                kind="feature-in-use",
            )


def last_properties(feature: str, properties: Mapping[str, str]) -> dict[str, str | None]:
    """The properties that mean nothing without the feature and go with it, each to be unset."""
    names = (f"delta.feature.{feature}", *REMOVALS[feature].unset_with)
    return dict.fromkeys(name for name in names if name in properties)
