"""A protocol action to a verdict: may this reader read the table, may this writer write it."""

from collections.abc import Mapping, Sequence
from typing import Literal

from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.model.printable import first_few, shorten
from lakeview.model.table_metadata import TableProtocol

MAX_READER_VERSION = 3
MAX_WRITER_VERSION = 7

READER_FEATURES = frozenset(
    {
        "columnMapping", "deletionVectors", "geospatial", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck",
        "typeWidening", "typeWidening-preview",
        "variantType", "variantType-preview", "variantShredding", "variantShredding-preview",
    }
)  # fmt: skip
"""Reader features (protocol, Table Features) that this reader implements."""

WRITER_FEATURES = frozenset(
    {
        "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "checkpointProtection", "clustering",
        "columnMapping", "deletionVectors", "domainMetadata", "generatedColumns", "identityColumns",
        "inCommitTimestamp", "invariants", "materializePartitionColumns", "rowTracking", "timestampNtz", "typeWidening",
        "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck", "variantShredding", "variantShredding-preview",
        "variantType", "variantType-preview",
    }
)  # fmt: skip
"""Writer features that this writer implements. Variants are written as they were, or unshredded."""

CATALOG_FEATURES = frozenset({"catalogManaged", "catalogOwned-preview"})

LEGACY_WRITER_FEATURES: Mapping[int, tuple[str, ...]] = {
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}
"""What each legacy writer version adds (protocol, Writer Version Requirements)."""

_BY_PROPERTY = frozenset({"icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "icebergWriterCompatV1"})
"""Features beside the legacy ones that ask nothing of a writer until a property turns them on."""

ColumnMappingMode = Literal["none", "name", "id"]
_MODES: Mapping[str, ColumnMappingMode] = {"none": "none", "name": "name", "id": "id"}

_UPGRADE = "read it with an engine that implements this, or ask for a lakeview that does"


def check_readable(
    protocol: TableProtocol,
    properties: Mapping[str, str],
    address: str,
    *,
    by_number: bool = False,
    newest: int | None = None,
) -> None:
    """UnsupportedTableError, naming version or feature, if rows of this table must not be read by us.

    "In the case where a client is running an invalid protocol version, an error should be thrown instructing the
    user to upgrade" (delta protocol, Protocol Evolution).

    `by_number`: a version was asked for by its number. Of a table that a catalog manages only such a one is certain:
    what lies in its log is ratified, but only the catalog knows what was ratified since. `newest`: the newest there.
    """
    version, own_features = protocol.min_reader_version, protocol.reader_features
    version = _known_version("reader", version, MAX_READER_VERSION, own_features, address)
    features = set(protocol.reader_features or ()) if version == MAX_READER_VERSION else set()
    catalog = features & CATALOG_FEATURES
    features -= CATALOG_FEATURES
    if catalog and not by_number:
        hint = "" if newest is None else f"; versions up to {newest} are published and open by their number"
        raise UnsupportedTableError(
            f"{address} is managed by a catalog ({', '.join(sorted(catalog))}): only the catalog knows its versions",
            fix=f"open it through its catalog{hint}",
            place="protocol.readerFeatures",
            kind="catalog-managed",
        )
    column_mapping_mode(protocol, properties, address)
    if missing := features - READER_FEATURES:
        raise _missing_features("reader", missing, address, _UPGRADE)


def column_mapping_mode(
    protocol: TableProtocol, properties: Mapping[str, str], address: str = "the table"
) -> ColumnMappingMode:
    """How columns are found in data files; `none` where the protocol lacks column mapping, even if it is set.

    "The table property should only be honored if the table's protocol has reader and writer versions and/or table
    features that support the columnMapping table feature" (delta protocol, Column Mapping). UnsupportedTableError for a
    mode that is none of the three.
    """
    if not supports_column_mapping(protocol):
        return "none"
    mode = properties.get("delta.columnMapping.mode", "none")
    mapping = _MODES.get(mode.lower())
    if mapping is None:
        raise UnsupportedTableError(
            f"{address} maps its columns by {mode}; this Delta reader knows by name and by id",
            fix=_UPGRADE,
            place="metaData.configuration",
            kind="unsupported-column-mapping",
        )
    return mapping


def supports_column_mapping(protocol: TableProtocol) -> bool:
    """Whether columns may be mapped under a protocol."""
    version = protocol.min_reader_version
    return version == 2 or (version == 3 and "columnMapping" in (protocol.reader_features or ()))


def check_writable(protocol: TableProtocol, active: frozenset[str], address: str) -> None:
    """UnsupportedTableError, naming version or features, if we must not write this table; CorruptTableError if it does
    not say what its writers must implement.

    `active`: legacy features in use (a constraint, an invariant, ...): implied by a writer version but unused ones
    ask nothing of a writer.
    """
    version, own_features = protocol.min_writer_version, protocol.writer_features
    version = _known_version("writer", version, MAX_WRITER_VERSION, own_features, address)
    if missing := _required_of_writers(protocol, version, active) - WRITER_FEATURES:
        raise _missing_features("writer", missing, f"writing {address}", "write it with an engine that implements this")


def _known_version(who: str, version: int | None, newest: int, features: Sequence[str] | None, address: str) -> int:
    """The protocol's version for `who`, reader or writer."""
    if version is None or not 1 <= version <= newest:
        raise UnsupportedTableError(
            f"{address} needs Delta {who} version {version}; this {who} implements 1 to {newest}",
            fix="upgrade lakeview",
            place=f"protocol.min{who.capitalize()}Version",
            kind=f"unsupported-{who}-version",
        )
    if version == newest and features is None:
        raise CorruptTableError(
            f"{address} declares {who} version {newest} without {who}Features", place=f"protocol.{who}Features",
            fix="the writer of this protocol action has to name its features", kind="invalid-protocol",
        )  # fmt: skip
    return version


def _missing_features(who: str, missing: set[str], subject: str, fix: str) -> UnsupportedTableError:
    names = first_few((shorten(name, 100) for name in sorted(missing)), 10)  # a log may name any number of them
    return UnsupportedTableError(
        f"{subject} needs the Delta {who} feature{'s' if len(missing) > 1 else ''} {names}, "
        f"which this {who} does not implement",
        fix=fix,
        place=f"protocol.{who}Features",
        kind=f"unsupported-{who}-feature",
    )


def _required_of_writers(protocol: TableProtocol, version: int, active: frozenset[str]) -> set[str]:
    if version == MAX_WRITER_VERSION:
        legacy = {name for names in LEGACY_WRITER_FEATURES.values() for name in names} | _BY_PROPERTY
        return {f for f in protocol.writer_features or () if f not in legacy or f in active}
    return {f for v, names in LEGACY_WRITER_FEATURES.items() if v <= version for f in names if f in active}
