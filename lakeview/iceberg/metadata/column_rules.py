"""A schema and the sort orders to RULES: what a table says besides its types."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from lakeview.iceberg.metadata.table_metadata import Metadata, RecordedSchema
from lakeview.iceberg.metadata.types import struct_fields
from lakeview.model.frames import RULES
from lakeview.model.schema import leaf_name


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
        text = ", ".join(_sorted_by(order, names))
        if text and order.get("order-id") == metadata.default_sort_order_id:
            rows.append((None, "clustering", None, f"sorted by {text}"))
    return pl.DataFrame(rows, schema=RULES, orient="row")


def _sorted_by(order: Mapping[str, Any], names: Mapping[int, str]) -> Iterator[str]:
    parts = order.get("fields")
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, dict):
            continue
        source = part.get("source-id", part.get("source-ids"))
        name = names.get(source, f"column {source}") if isinstance(source, int) else f"columns {source}"
        transform = part.get("transform", "identity")
        term = name if transform == "identity" else f"{transform}({name})"
        yield f"{term} {part.get('direction', 'asc')} {part.get('null-order', '')}".strip()
