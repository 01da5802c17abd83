"""The schema, its partition columns and its column mapping; and table properties: names that some engine knows, and
values that it takes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from lakeview.delta.audit.records import whole as long
from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.data.schemas import parse_schema
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding, some
from lakeview.delta.properties import FEATURE_VALUES, PROPERTIES, is_known, nearest
from lakeview.model.data_types import DataType, Field, PrimitiveType
from lakeview.model.errors import CorruptTableError
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text
from lakeview.model.schema import POLARS_TYPES, leaf_name
from lakeview.model.type_tree import fields_below, nodes

_SECTION = "Schema Serialization Format"
_TYPES = frozenset(POLARS_TYPES) | {"void", "variant", "geometry", "geography", "null", "interval"}


def readable(facts: LogFacts) -> Iterator[Finding]:
    """A schema that can be read, with partition columns that are in it."""
    metadata = facts.latest_metadata
    if metadata is None:
        return
    if metadata.schema_string is None:
        yield finding("schema-missing",
            Severity.ATTENTION, "The table has no schema", "metaData without schemaString: some engines refuse it",
            section=_SECTION, place="metaData.schemaString", remedy="set a schema with the engine that wrote it",
            page="schema",
        )  # fmt: skip
        return
    try:
        depth = facts.storage.config.max_schema_depth
        schema = parse_schema(metadata.schema_string, is_mapped=facts.has_column_mapping, max_depth=depth)
        partition_fields(schema, metadata.partition_columns or [])
    except CorruptTableError as error:
        yield finding("schema-unusable",
            Severity.BROKEN, "The schema cannot be used", error.message,
            section=_SECTION, place=error.place, remedy=error.fix, page="schema",
        )  # fmt: skip


def names_and_types(facts: LogFacts) -> Iterator[Finding]:
    """Column names are unique without regard to case, types are ones that some specification knows."""
    if facts.schema is None:
        return
    twice = [path for path, _ in _fields_with_one_key(facts, lambda f: f.name.lower())]
    if twice:
        yield finding("column-name-twice",
            Severity.BROKEN, f"{count_text(len(twice), 'column name')} given twice, but for case", some(twice),
            section=_SECTION, place=twice[0], remedy="rename one of them: most engines tell no case apart",
            page="schema",
        )  # fmt: skip
    unknown = [f"{node.name}: {node.type}" for node in nodes(facts.schema) if _is_unknown(node.type)]
    if unknown:
        yield finding("column-type-unknown",
            Severity.ATTENTION, f"{count_text(len(unknown), 'column')} of a type no specification knows", some(unknown),
            section=_SECTION, place=unknown[0].partition(":")[0],
            remedy="rows of it can only be read by the engine that wrote them", page="schema",
        )  # fmt: skip
    if 0 < len(facts.schema) == len(_partitions(facts)):
        yield finding("only-partition-columns",
            Severity.ATTENTION, "Every column is a partition column", some(facts.schema.names),
            section="Change Metadata", place="metaData.partitionColumns",
            remedy="most engines refuse such a table: keep a column in the files", page="schema",
        )  # fmt: skip


def _partitions(facts: LogFacts) -> list[str]:
    return [] if facts.latest_metadata is None else facts.latest_metadata.partition_columns or []


def _fields_with_one_key(facts: LogFacts, key: Callable[[Field], str | None]) -> Iterator[tuple[str, Field]]:
    """The fields that have a key with another one of the same struct, and their paths."""
    every = [(path, field) for path, _, field in nodes(facts.schema or ()) if field is not None]
    counts = Counter((path[:-1], key(field)) for path, field in every)
    return ((leaf_name(path), f) for path, f in every if key(f) is not None and counts[path[:-1], key(f)] > 1)


def _is_unknown(type_: DataType) -> bool:
    name = type_.name.partition("(")[0] if isinstance(type_, PrimitiveType) else ""
    return bool(name) and name not in _TYPES and not name.startswith(("char", "varchar", "interval"))


def mapping(facts: LogFacts) -> Iterator[Finding]:
    """Column mapping: every column has an id and a physical name, each once, none above maxColumnId."""
    if facts.schema is None or not facts.has_column_mapping:
        return
    fields = list(fields_below(facts.schema))
    physical = [f"{path} ({f.physical_name})" for path, f in _fields_with_one_key(facts, lambda f: f.physical_name)]
    yield from _ids_and_names(fields, physical)
    yield from _highest_id([f.id for _, f in fields if f.id is not None], facts.properties)


def _ids_and_names(fields: Sequence[tuple[str, Field]], physical: Sequence[str]) -> Iterator[Finding]:
    section = "Column Mapping"
    bare = [path for path, f in fields if f.id is None or f.physical_name is None]
    if bare:
        yield finding("column-mapping-missing",
            Severity.BROKEN, f"{count_text(len(bare), 'column lacks', 'columns lack')} a mapping id or physical name",
            some(bare), section=section, place=bare[0],
            remedy="the writer ignores column mapping: restore the metaData action before it", page="schema",
        )  # fmt: skip
    ids = Counter(f.id for _, f in fields if f.id is not None)
    same = [f"{path} (id {f.id})" for path, f in fields if f.id is not None and ids[f.id] > 1]
    if same:
        yield finding("column-mapping-id-shared",
            Severity.BROKEN, f"{count_text(len(same), 'column shares its', 'columns share their')} mapping id",
            some(same),
            section=section, place=same[0], remedy="ids are unique in the whole schema: restore the metaData action",
            page="schema",
        )  # fmt: skip
    if physical:
        yield finding("physical-name-shared",
            Severity.BROKEN,
            f"{count_text(len(physical), 'column shares its', 'columns share their')} physical name",
            some(physical), section=section, place=physical[0],
            remedy="physical names are unique: restore the metaData action", page="schema",
        )  # fmt: skip


def _highest_id(ids: Sequence[int], properties: Mapping[str, str]) -> Iterator[Finding]:
    highest, limit = max(ids, default=0), long(properties.get("delta.columnMapping.maxColumnId"))
    if ids and (limit is None or limit < highest):
        yield finding("max-column-id-too-low",
            Severity.ATTENTION,
            "delta.columnMapping.maxColumnId is lower than an id in use" if limit is not None
            else "delta.columnMapping.maxColumnId is not set",
            f"{limit if limit is not None else 'none'}, and the highest id is {highest}",
            section="Column Mapping", place="delta.columnMapping.maxColumnId",
            remedy=f"set it to {highest}: the next column would get an id in use", page="schema",
        )  # fmt: skip


def property_names(facts: LogFacts) -> Iterator[Finding]:
    """`delta.` properties that no engine knows: most are slips of the pen, and do nothing."""
    unknown = [k for k in facts.properties if k.startswith("delta.") and not is_known(k)]
    slips = {k: near for k in unknown if (near := nearest(k)) is not None}
    if slips:
        yield finding(
            "property-misspelt",
            Severity.ATTENTION,
            f"{count_text(len(slips), 'property is', 'properties are')} misspelt and without effect",
            some([f"{k} (meant: {near})" for k, near in slips.items()]),
            section="Table Properties",
            place="metaData.configuration",
            remedy="set the property by its right name, and unset this one",
            page="overview",
        )
    rest = [k for k in unknown if k not in slips]
    if rest:
        yield finding(
            "property-unknown",
            Severity.NOTE,
            f"{count_text(len(rest), 'delta property is', 'delta properties are')} known to no engine",
            some(rest),
            section="Table Properties",
            place="metaData.configuration",
            page="overview",
        )


def property_values(facts: LogFacts) -> Iterator[Finding]:
    """Known properties with values that no engine takes."""
    wrong = [f"{k} = {v}" for k, v in facts.properties.items() if k in PROPERTIES and PROPERTIES[k].parse(v) is None]
    wrong += [
        f"{k} = {v}"
        for k, v in facts.properties.items()
        if k.startswith("delta.feature.") and v.lower() not in FEATURE_VALUES
    ]
    if wrong:
        yield finding(
            "property-value-refused",
            Severity.ATTENTION,
            f"{count_text(len(wrong), 'property has a value', 'properties have values')} that engines refuse or ignore",
            some(wrong),
            section="Table Properties",
            place="metaData.configuration",
            remedy="set a value of the right kind",
            page="overview",
        )
