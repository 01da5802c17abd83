"""The schema, its partition columns and its column mapping; and table properties: names that some engine knows, and
values that it takes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.data.schemas import mapping_ids, parse_schema
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding, of_names
from lakeview.delta.log.commit_info import whole
from lakeview.delta.properties import FEATURE_VALUES, PROPERTIES, is_known, nearest
from lakeview.model.data_types import DataType, Field, PrimitiveType
from lakeview.model.errors import CorruptTableError
from lakeview.model.findings import Finding
from lakeview.model.printable import count_text
from lakeview.model.schema import POLARS_TYPES, leaf_name
from lakeview.model.type_tree import fields_below, nodes

_CONFIGURATION = "metaData.configuration"
_TYPES = frozenset(POLARS_TYPES) | {"void", "variant", "geometry", "geography", "null", "interval"}


def readable(facts: LogFacts) -> Iterator[Finding]:
    """A schema that can be read, with partition columns that are in it."""
    metadata = facts.latest_metadata
    if metadata is None:
        return
    if metadata.schema_string is None:
        evidence = "metaData without schemaString: some engines refuse it"
        yield finding("schema-missing", "The table has no schema", evidence, "metaData.schemaString")
        return
    try:
        depth = facts.storage.config.max_schema_depth
        schema = parse_schema(metadata.schema_string, is_mapped=facts.has_column_mapping, max_depth=depth)
        partition_fields(schema, facts.partition_columns)
    except CorruptTableError as error:
        yield finding("schema-unusable", "The schema cannot be used", error.message, error.place, remedy=error.fix)


def names_and_types(facts: LogFacts) -> Iterator[Finding]:
    """Column names are unique without regard to case, types are ones that some specification knows."""
    if facts.schema is None:
        return
    twice = [path for path, _ in _fields_with_one_key(facts, lambda f: f.name.lower())]
    yield from of_names(
        "column-name-twice", twice, f"{count_text(len(twice), 'column name')} given twice, but for case"
    )
    unknown = [f"{node.name}: {node.type}" for node in nodes(facts.schema) if _is_unknown(node.type)]
    claim = f"{count_text(len(unknown), 'column')} of a type no specification knows"
    yield from of_names("column-type-unknown", unknown, claim, unknown[0].partition(":")[0] if unknown else None)
    if len(facts.schema) == len(facts.partition_columns):
        names, place = facts.schema.names, "metaData.partitionColumns"
        yield from of_names("only-partition-columns", names, "Every column is a partition column", place)


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
    yield from _highest_id([number for _, f in fields for number in mapping_ids(f)], facts.properties)


def _ids_and_names(fields: Sequence[tuple[str, Field]], physical: Sequence[str]) -> Iterator[Finding]:
    bare = [path for path, f in fields if f.id is None or f.physical_name is None]
    claim = f"{count_text(len(bare), 'column lacks', 'columns lack')} a mapping id or physical name"
    yield from of_names("column-mapping-missing", bare, claim)
    ids = Counter(number for _, f in fields for number in mapping_ids(f))
    same = [f"{path} (id {f.id})" for path, f in fields if f.id is not None and ids[f.id] > 1]
    shares = "column shares its", "columns share their"
    yield from of_names("column-mapping-id-shared", same, f"{count_text(len(same), *shares)} mapping id")
    yield from of_names("physical-name-shared", physical, f"{count_text(len(physical), *shares)} physical name")


def _highest_id(ids: Sequence[int], properties: Mapping[str, str]) -> Iterator[Finding]:
    name = "delta.columnMapping.maxColumnId"
    highest, limit = max(ids, default=0), whole(properties.get(name))
    if ids and (limit is None or limit < highest):
        claim = f"{name} is not set" if limit is None else f"{name} is lower than an id in use"
        evidence = f"{'none' if limit is None else limit}, and the highest id is {highest}"
        remedy = f"set it to {highest}: the next column would get an id in use"
        yield finding("max-column-id-too-low", claim, evidence, name, remedy=remedy)


def property_names(facts: LogFacts) -> Iterator[Finding]:
    """`delta.` properties that no engine knows: most are slips of the pen, and do nothing."""
    unknown = [k for k in facts.properties if k.startswith("delta.") and not is_known(k)]
    slips = {k: near for k in unknown if (near := nearest(k)) is not None}
    claim = f"{count_text(len(slips), 'property is', 'properties are')} misspelt and without effect"
    pairs = [f"{k} (meant: {near})" for k, near in slips.items()]
    yield from of_names("property-misspelt", pairs, claim, _CONFIGURATION)
    rest = [k for k in unknown if k not in slips]
    claim = f"{count_text(len(rest), 'delta property is', 'delta properties are')} known to no engine"
    yield from of_names("property-unknown", rest, claim, _CONFIGURATION)


def property_values(facts: LogFacts) -> Iterator[Finding]:
    """Known properties with values that no engine takes."""
    wrong = [f"{k} = {v}" for k, v in facts.properties.items() if k in PROPERTIES and PROPERTIES[k].parse(v) is None]
    wrong += [
        f"{k} = {v}"
        for k, v in facts.properties.items()
        if k.startswith("delta.feature.") and v.lower() not in FEATURE_VALUES
    ]
    claim = f"{count_text(len(wrong), 'property has a value', 'properties have values')} that engines refuse or ignore"
    yield from of_names("property-value-refused", wrong, claim, _CONFIGURATION)
