"""Protocol versions and features: are they a pair that exists, and does the table use what it declares?"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from lakeview.delta.data.column_rules import collation
from lakeview.delta.features import MAX_READER_VERSION, MAX_WRITER_VERSION
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding, of_names, some
from lakeview.delta.log.actions import Protocol, supported_features, version_text
from lakeview.delta.properties import is_true
from lakeview.model.data_types import PrimitiveType
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text
from lakeview.model.type_tree import nodes

READER_AND_WRITER = frozenset(
    {
        "catalogManaged", "catalogOwned-preview", "columnMapping", "deletionVectors", "geospatial", "timestampNtz",
        "typeWidening", "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck", "variantShredding",
        "variantShredding-preview", "variantType", "variantType-preview",
    }
)  # fmt: skip
"""Features that stand in both lists if they stand in one (protocol, Valid Feature Names in Table Features)."""


def versions_and_lists(facts: LogFacts) -> Iterator[Finding]:
    """Version pairs that no engine writes, feature lists that are missing, superfluous or incomplete."""
    protocol = facts.latest_protocol
    if protocol is None:
        return
    reader, writer, pair = protocol.min_reader_version, protocol.min_writer_version, version_text(protocol)
    if not (1 <= reader <= MAX_READER_VERSION and 1 <= writer <= MAX_WRITER_VERSION):
        limits = f"readers go from 1 to {MAX_READER_VERSION}, writers from 1 to {MAX_WRITER_VERSION}"
        yield finding("protocol-unknown", f"No specification knows this protocol: {pair}", limits, _PLACE)
        return
    yield from _odd_pair(reader, writer, pair)
    yield from _lists_of_versions(protocol, pair)
    yield from _one_list_only(protocol)


_PLACE = "protocol"


def _odd_pair(reader: int, writer: int, pair: str) -> Iterator[Finding]:
    claim = f"An odd pair of protocol versions: {pair}"
    if reader == 3 and writer < 7:
        yield finding("reader-three-without-writer-seven", claim, "reader 3 needs writer 7", _PLACE)
    elif reader == 2 and writer < 5:
        evidence = "reader 2 stands for column mapping, which writers know from version 5 on"
        yield finding("reader-two-without-writer-five", claim, evidence, _PLACE)


def _lists_of_versions(protocol: Protocol, pair: str) -> Iterator[Finding]:
    """Versions with feature lists have them, other versions have none."""
    for name, version, list_version, features in (
        ("readerFeatures", protocol.min_reader_version, 3, protocol.reader_features),
        ("writerFeatures", protocol.min_writer_version, 7, protocol.writer_features),
    ):
        if version == list_version and features is None:
            evidence, remedy = (
                f"{pair}: the list must be there, if empty",
                f"the writer has to name its features in {name}",
            )
            yield finding("feature-list-missing", f"The protocol has no {name}", evidence, _PLACE, remedy=remedy)
        elif version < list_version and features:
            claim = f"{name} stand in a protocol that has none"
            yield finding("feature-list-superfluous", claim, f"{pair}; {some(features)}", _PLACE)


def _one_list_only(protocol: Protocol) -> Iterator[Finding]:
    """Features of readers stand in both lists."""
    own, others = protocol.reader_features or [], protocol.writer_features or []
    for_writers = frozenset(others)
    lonely = [f for f in own if f not in for_writers] if protocol.min_writer_version == 7 else []
    claim = f"{count_text(len(lonely), 'reader feature is', 'reader features are')} missing from writerFeatures"
    yield from of_names("reader-feature-not-for-writers", lonely, claim, _PLACE)
    # reader 2 stands for column mapping
    for_readers = {*own, "columnMapping"} if protocol.min_reader_version == 2 else set(own)
    half = [f for f in others if f in READER_AND_WRITER and f not in for_readers]
    need = count_text(len(half), "feature that readers need is", "features that readers need are")
    yield from of_names("writer-feature-not-for-readers", half, f"{need} listed for writers only", _PLACE)


class Use:
    """What of each feature a table uses: one word for what shows it, None where nothing does."""

    def __init__(self, facts: LogFacts) -> None:
        self._facts = facts
        self.properties = facts.properties
        self._nodes = list(nodes(facts.schema)) if facts.schema is not None else []
        self.fields = [(node.name, node.field) for node in self._nodes if node.field is not None]

    def on(self, *keys: str) -> str | None:
        """A property that is true."""
        return next((k for k in keys if is_true(self.properties, k)), None)

    def metadata(self, key: str) -> str | None:
        """A column whose metadata holds a key."""
        return next((f"{key} on column {path}" for path, f in self.fields if key in f.metadata), None)

    def type(self, name: str) -> str | None:
        """A column of a type, at any depth."""
        type_ = PrimitiveType(name)
        return next((f"column {node.name}" for node in self._nodes if node.type == type_), None)

    def geospatial(self) -> str | None:
        """A column of geometries or geographies, at any depth."""
        names = (
            (node.name, node.type.name.partition("(")[0])
            for node in self._nodes
            if isinstance(node.type, PrimitiveType)
        )
        return next((f"column {name}" for name, type_ in names if type_ in ("geometry", "geography")), None)

    def domain(self, prefix: str = "") -> str | None:
        """A live domain, whose name and a dot begin so."""
        return next((f"domain {d}" for d in self._domains if f"{d}.".startswith(prefix)), None)

    @cached_property
    def _domains(self) -> list[str]:
        return [] if self._facts.replay is None else self._facts.replay.domain_metadata()["domain"].to_list()

    def mapping(self) -> str | None:
        """A column mapping mode."""
        mode = self.properties.get("delta.columnMapping.mode", "none")
        return None if mode == "none" else f"delta.columnMapping.mode {mode}"

    def vectors(self) -> str | None:
        """A deletion vector on a live file."""
        many = self._facts.live["deletion_vector"].count()
        return f"{count_text(many, 'file')} with deletion vectors" if many else None

    def v2_checkpoints(self) -> str | None:
        """The V2 policy, or a checkpoint under a UUID name."""
        if self.properties.get("delta.checkpointPolicy") == "v2":
            return "delta.checkpointPolicy v2"
        return "a V2 checkpoint" if any(c.is_v2 for c in self._facts.checkpoints) else None

    def collation(self) -> str | None:
        """A column with a collation other than the binary one."""
        return next((f"{name} on column {path}" for path, f in self.fields if (name := collation(f)) is not None), None)


_USES: Mapping[str, Callable[[Use], str | None]] = {
    "appendOnly": lambda u: u.on("delta.appendOnly"),
    "checkConstraints": lambda u: next((k for k in u.properties if k.startswith("delta.constraints.")), None),
    "changeDataFeed": lambda u: u.on("delta.enableChangeDataFeed"),
    "generatedColumns": lambda u: u.metadata("delta.generationExpression"),
    "identityColumns": lambda u: u.metadata("delta.identity.start"),
    "allowColumnDefaults": lambda u: u.metadata("CURRENT_DEFAULT"),
    "columnMapping": Use.mapping,
    "deletionVectors": lambda u: u.vectors() or u.on("delta.enableDeletionVectors"),
    "timestampNtz": lambda u: u.type("timestamp_ntz"),
    "geospatial": Use.geospatial,
    "variantType": lambda u: u.type("variant"),
    "variantShredding": lambda u: u.on("delta.enableVariantShredding"),
    "typeWidening": lambda u: u.metadata("delta.typeChanges") or u.on("delta.enableTypeWidening"),
    "v2Checkpoint": Use.v2_checkpoints,
    "inCommitTimestamp": lambda u: u.on("delta.enableInCommitTimestamps"),
    "rowTracking": lambda u: u.on("delta.enableRowTracking"),
    "domainMetadata": Use.domain,
    "clustering": lambda u: u.domain("delta.clustering."),
    "collations": Use.collation,
    "icebergCompatV1": lambda u: u.on("delta.enableIcebergCompatV1"),
    "icebergCompatV2": lambda u: u.on("delta.enableIcebergCompatV2"),
    "icebergCompatV3": lambda u: u.on("delta.enableIcebergCompatV3"),
    "icebergWriterCompatV1": lambda u: u.on("delta.enableIcebergWriterCompatV1"),
    "checkpointProtection": lambda u: next((k for k in u.properties if "CheckpointProtection" in k), None),
}
"""Feature -> what in the table shows that it is used. Left out are features that need no sign
(vacuumProtocolCheck), and invariants: engines list it whenever a table moves to features, used or not."""

_DATA = frozenset({"deletionVectors", "geospatial", "timestampNtz", "variantType", "columnMapping", "typeWidening"})
"""Features without which a reader that does not know of them reads wrong rows."""

_COMES_ALONG = "appendOnly"
"""Engines list it whenever a table moves to features: that nothing uses it says nothing."""

_REPORTED_ELSEWHERE = frozenset({"domainMetadata", "v2Checkpoint"})
"""Features whose use without a declaration other checks find."""


def features_used(facts: LogFacts) -> Iterator[Finding]:
    """Features in use that the protocol does not declare, and features declared that nothing uses."""
    protocol, metadata = facts.latest_protocol, facts.latest_metadata
    if protocol is None or metadata is None:
        return
    use = Use(facts)
    signs = {name: sign(use) for name, sign in _USES.items()}
    yield from _undeclared_features(signs, _declared_features(protocol), protocol)
    yield from _unused_features(signs, facts)


def _declared_features(protocol: Protocol) -> frozenset[str]:
    """Features that the protocol names or implies, without their suffix `-preview`."""
    names = supported_features(protocol)
    names |= {name.removesuffix("-preview") for name in names}
    return names | {"clustering"} if "liquid" in names else names


def _undeclared_features(
    signs: Mapping[str, str | None], declared_features: frozenset[str], protocol: Protocol
) -> Iterator[Finding]:
    hidden = declared_features | _REPORTED_ELSEWHERE
    missing = {n: s for n, s in signs.items() if s is not None and n not in hidden}
    for heavy in (True, False):
        names = {n: s for n, s in missing.items() if (n in _DATA) is heavy}
        if names:
            # a property without its feature has no force; values of the type, and vectors, are there all the same
            real = heavy and any(not s.startswith("delta.enable") and n != "columnMapping" for n, s in names.items())
            yield finding(
                "feature-undeclared",
                f"{count_text(len(names), 'feature is', 'features are')} used and not declared: {some(list(names))}",
                f"{some(list(names.values()))}; {version_text(protocol)}",
                _PLACE,
                severity=Severity.BROKEN if real else None,
            )


def _unused_features(signs: Mapping[str, str | None], facts: LogFacts) -> Iterator[Finding]:
    features = {f.removesuffix("-preview") for f in facts.features}
    unused_names = sorted(n for n in features if n != _COMES_ALONG and n in signs and signs[n] is None)
    if unused_names:
        claim = f"{count_text(len(unused_names), 'feature is', 'features are')} declared and not used"
        remedy = "engines without them refuse the table for nothing: drop those that readers need"
        is_for_readers = bool(set(unused_names) & READER_AND_WRITER)
        evidence = some(unused_names, limit=6)
        yield finding("feature-unused", claim, evidence, _PLACE, remedy=remedy if is_for_readers else None)


def domains_declared(facts: LogFacts) -> Iterator[Finding]:
    """domainMetadata actions in a table whose writers need not keep them."""
    protocol = facts.latest_protocol
    domains = [(commit.version, action.domain) for commit in facts.records for action in commit.domains]
    if protocol is None or not domains or "domainMetadata" in facts.features:
        return
    (version, domain), claim = domains[0], "Metadata domains in a table without the feature domainMetadata"
    evidence = f"{count_text(len(domains), 'action')}; first {domain} at v{version}"
    yield finding("domain-without-feature", claim, evidence, _PLACE)
