"""Partition specs and sort orders to PARTITION_SPECS and SORT_ORDERS, and since when each spec is there (iceberg spec,
Partitioning, Sorting); a schema and the sort orders to RULES: what a table says besides its types."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from lakeview.iceberg.metadata.metadata_log import Earlier, MetadataLog
from lakeview.iceberg.metadata.table_metadata import Metadata, RecordedSchema
from lakeview.iceberg.metadata.transforms import Transform, parse_transform
from lakeview.iceberg.metadata.types import struct_fields
from lakeview.model.column_values import frame_with_moments
from lakeview.model.frames import PARTITION_SPECS, RULES, SORT_ORDERS
from lakeview.model.schema import leaf_name


def partition_specs(metadata: Metadata, name: str, earlier: Earlier) -> pl.DataFrame:
    """PARTITION_SPECS by id. `name`: of the metadata file itself.

    Specs are only ever added, so that the file which brought one is found by halving the metadata log: a few reads for
    each spec, none for a table with one.
    """
    names = column_names(metadata)
    log = MetadataLog(metadata, name, earlier)
    rows = []
    for spec in sorted(metadata.specs.values(), key=lambda s: s.spec_id):
        columns = [", ".join(names.get(i, f"column {i}") for i in f.source_ids) for f in spec.fields]
        fields = [
            {"field_id": f.field_id, "name": f.name, "column": c, "transform": f.transform.text}
            for f, c in zip(spec.fields, columns, strict=True)
        ]
        terms = [in_words(f.transform, c) for f, c in zip(spec.fields, columns, strict=True)]
        place = log.first(_with(spec.spec_id)) if len(metadata.specs) > 1 else None
        when, where = (None, None) if place is None else (place.timestamp_ms, place.name)
        rows.append(
            (spec.spec_id, fields, ", ".join(terms) or "not partitioned", when, where,
             spec.spec_id == metadata.default_spec_id)
        )  # fmt: skip
    return frame_with_moments(rows, PARTITION_SPECS, "since")


def _with(spec_id: int) -> Callable[[Metadata], bool]:
    return lambda file: spec_id in file.specs


def in_words(transform: Transform, column: str) -> str:
    """A transform for people: `month of day`, `id into 16 buckets`, `name cut to 4`."""
    match transform.name:
        case "identity":
            return column
        case "void":
            return f"{column}, no longer"
        case "bucket":
            return f"{column} into {transform.width} buckets"
        case "truncate":
            return f"{column} cut to {transform.width}"
        case "unknown":
            return f"{transform.text} of {column}"
    return f"{transform.name} of {column}"


def column_names(metadata: Metadata) -> dict[int, str]:
    """The name of every column that any schema has, by id: the current one where it is still there, else the newest."""
    names: dict[int, str] = {}
    for recorded_schema in metadata.schemas_by_age:
        names |= {i: leaf_name(path) for i, (path, _) in struct_fields(recorded_schema.schema).items()}
    return names


def sort_orders(metadata: Metadata) -> pl.DataFrame:
    """SORT_ORDERS. An order that cannot be understood is left out: sorting is a promise of writers, not of readers."""
    names = column_names(metadata)
    rows = []
    for document in metadata.sort_orders:
        order_id = document.get("order-id")
        fields = list(_sort_fields(document, names))
        if isinstance(order_id, int) and fields:
            text = ", ".join(_sorted_by(f) for f in fields)
            rows.append((order_id, fields, text, order_id == metadata.default_sort_order_id))
    return pl.DataFrame(sorted(rows, key=lambda row: row[0]), schema=SORT_ORDERS, orient="row")


def _sort_fields(document: Mapping[str, Any], names: Mapping[int, str]) -> Iterator[dict[str, str | None]]:
    for part in _parts(document):
        several = part.get("source-ids")
        sources: Sequence[Any] = several if isinstance(several, list) and several else [part.get("source-id")]
        transform = part.get("transform", "identity")
        yield {
            "column": ", ".join(names.get(i, f"column {i}") if isinstance(i, int) else f"column {i}" for i in sources),
            "transform": transform if isinstance(transform, str) else "unknown",
            "direction": direction if (direction := part.get("direction")) in ("asc", "desc") else None,
            "nulls": {"nulls-first": "first", "nulls-last": "last"}.get(str(part.get("null-order"))),
        }


def _parts(order: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields of a sort order."""
    parts = order.get("fields")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _sorted_by(field: Mapping[str, str | None]) -> str:
    column, transform = field["column"] or "", parse_transform(field["transform"] or "identity")
    parts = [in_words(transform, column), field["direction"], f"nulls {field['nulls']}" if field["nulls"] else None]
    return " ".join(p for p in parts if p)


def column_rules(metadata: Metadata, recorded_schema: RecordedSchema) -> pl.DataFrame:
    """RULES: identifier fields, the values that writers and old rows get, and the order files are sorted in.

    `kind` is identifier, default or clustering.
    """
    fields = struct_fields(recorded_schema.schema)
    rows: list[tuple[str | None, str, str | None, str]] = [
        (leaf_name(fields[i][0]), "identifier", None, "tells rows apart")
        for i in recorded_schema.identifier_field_ids
        if i in fields
    ]
    for path, field in fields.values():
        for key, words in (
            ("write-default", "for new rows"),
            ("initial-default", "for rows written before the column"),
        ):
            if (value := field.metadata.get(key)) is not None:
                rows.append((leaf_name(path), "default", None, f"{msgspec.json.encode(value).decode()} {words}"))
    names = {i: leaf_name(path) for i, (path, _) in fields.items()}
    for order in metadata.sort_orders:
        text = ", ".join(_sort_terms(order, names))
        if text and order.get("order-id") == metadata.default_sort_order_id:
            rows.append((None, "clustering", None, f"sorted by {text}"))
    return pl.DataFrame(rows, schema=RULES, orient="row")


def _sort_terms(order: Mapping[str, Any], names: Mapping[int, str]) -> Iterator[str]:
    for part in _parts(order):
        source = part.get("source-id", part.get("source-ids"))
        name = names.get(source, f"column {source}") if isinstance(source, int) else f"columns {source}"
        transform = part.get("transform", "identity")
        term = name if transform == "identity" else f"{transform}({name})"
        yield f"{term} {part.get('direction', 'asc')} {part.get('null-order', '')}".strip()
