"""Compatibility of a Delta table with Iceberg: does the table keep the rules of the version that is active?"""

from collections.abc import Iterator, Mapping, Sequence

from lakeview.delta.data.schemas import NESTED_IDS, primitive_type
from lakeview.delta.data.type_widening import type_changes, widens_in_iceberg
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import of_names
from lakeview.model.data_types import ArrayType, DecimalType, MapType, PrimitiveType, StructType
from lakeview.model.findings import Finding
from lakeview.model.printable import count_text
from lakeview.model.type_tree import Node, nodes

_SIMPLE = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean", "timestamp", "timestamp_ntz",
     "date"}
)  # fmt: skip
_ALLOWED: Mapping[int, frozenset[str]] = {1: _SIMPLE, 2: _SIMPLE, 3: _SIMPLE | {"variant", "geometry", "geography"}}
"""Version of the compatibility -> types without parts that it allows."""


def _has_compatibility(facts: LogFacts, version: int) -> bool:
    return facts.is_on(f"icebergCompatV{version}", f"delta.enableIcebergCompatV{version}")


def rules_of_compatibility(facts: LogFacts) -> Iterator[Finding]:
    """A table that is compatible with Iceberg keeps the rules of that compatibility."""
    for version in _ALLOWED:
        if _has_compatibility(facts, version):
            broken_rules = list(_broken_rules(facts, version))
            claim = f"The table breaks {count_text(len(broken_rules), 'rule')} of icebergCompatV{version}"
            section = f"Iceberg Compatibility V{version}"
            yield from of_names("iceberg-compatibility", broken_rules, claim, "protocol", section=section)


def _broken_rules(facts: LogFacts, version: int) -> Iterator[str]:
    yield from (f"V{other} is active too" for other in _ALLOWED if other < version and _has_compatibility(facts, other))
    yield from _broken_by_features(facts, version)
    every = list(nodes(facts.schema or ()))
    yield from (f"{node.name} is {node.type}" for node in every if not _is_allowed(node, version))
    if version > 1:
        yield from _without_nested_ids(every)
    yield from _changes_that_iceberg_has_not(every)
    if version == 1 and facts.stated_files["records"].has_nulls():
        yield "files do not count their rows"


def _broken_by_features(facts: LogFacts, version: int) -> Iterator[str]:
    if not facts.has_column_mapping:
        yield "columns are not mapped"
    # V1: "not supported"; V2: "not active"; V3 allows them
    if version == 1 and "deletionVectors" in facts.features:
        yield "the protocol has deletionVectors"
    if version == 2 and facts.is_on("deletionVectors", "delta.enableDeletionVectors"):
        yield "deletion vectors are enabled"
    if version == 3 and not facts.is_on("rowTracking", "delta.enableRowTracking"):
        yield "rows are not tracked"


def _is_allowed(node: Node, version: int) -> bool:
    match node.type:
        case PrimitiveType(name):
            return name.partition("(")[0] in _ALLOWED[version]
        case ArrayType() | MapType():
            return version > 1
        case StructType() | DecimalType():
            return True


def _without_nested_ids(every: Sequence[Node]) -> Iterator[str]:
    """Elements, keys and values without an id in the metadata of the nearest field above."""
    owners = {node.path: node.field for node in every if node.field is not None}
    for node in every:
        if node.field is not None:
            continue
        end = max(i for i in range(1, len(node.path)) if node.path[:i] in owners)
        field = owners[node.path[:end]]
        ids = field.metadata.get(NESTED_IDS)
        key = ".".join((field.stored_name, *node.path[end:]))
        if not isinstance(ids, dict) or not isinstance(ids.get(key), int):
            yield f"{node.name} has no id"


def _changes_that_iceberg_has_not(every: Sequence[Node]) -> Iterator[str]:
    for node in every:
        for change in [] if node.field is None else type_changes(node.field):
            before, after = change.get("fromType"), change.get("toType")
            if isinstance(before, str) and isinstance(after, str):
                types = primitive_type(before, node.name), primitive_type(after, node.name)
                if not widens_in_iceberg(*types):
                    yield f"{node.name} was changed from {before} to {after}"
