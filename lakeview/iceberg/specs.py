"""Partition specs and sort orders to PARTITION_SPECS and SORT_ORDERS, and since when each spec is there (iceberg spec,
Partitioning, Sorting)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from lakeview.errors import LakeviewError
from lakeview.frames import PARTITION_SPECS, SORT_ORDERS, moments
from lakeview.iceberg.metadata import Metadata, MetadataLogEntry
from lakeview.iceberg.transforms import Transform, parse_transform
from lakeview.iceberg.types import struct_fields
from lakeview.schema import leaf_name

Earlier = Callable[[MetadataLogEntry], Metadata]
"""Reads an earlier metadata file; LakeviewError where it is gone or broken."""


def partition_specs(metadata: Metadata, name: str, earlier: Earlier) -> pl.DataFrame:
    """PARTITION_SPECS by id. `name`: of the metadata file itself.

    Specs are only ever added, so that the file which brought one is found by halving the metadata log: a few reads for
    each spec, none for a table with one.
    """
    names = column_names(metadata)
    since = _Since(metadata, name, earlier)
    rows = []
    for spec in sorted(metadata.specs.values(), key=lambda s: s.spec_id):
        columns = [", ".join(names.get(i, f"column {i}") for i in f.source_ids) for f in spec.fields]
        fields = [
            {"field_id": f.field_id, "name": f.name, "column": c, "transform": f.transform.text}
            for f, c in zip(spec.fields, columns, strict=True)
        ]
        told = [in_words(f.transform, c) for f, c in zip(spec.fields, columns, strict=True)]
        when, where = since.of(spec.spec_id)
        rows.append(
            (spec.spec_id, fields, ", ".join(told) or "not partitioned", when, where,
             spec.spec_id == metadata.default_spec_id)
        )  # fmt: skip
    plain = pl.Schema({**PARTITION_SPECS, "since": pl.Int64()})
    return pl.DataFrame(rows, schema=plain, orient="row").with_columns(moments("since")).cast(PARTITION_SPECS)


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
    for recorded in sorted(
        metadata.schemas.values(), key=lambda s: (s.schema_id == metadata.current_schema_id, s.schema_id)
    ):
        names |= {i: leaf_name(path) for i, (path, _) in struct_fields(recorded.schema).items()}
    return names


class _Since:
    """Which metadata file brought a spec. Each file is read at most once; those that are gone say nothing."""

    def __init__(self, metadata: Metadata, name: str, earlier: Earlier) -> None:
        self._metadata = metadata
        self._name = name
        self._earlier = earlier
        self._log = list(metadata.metadata_log)
        self._specs: dict[int, set[int] | None] = {}

    def of(self, spec_id: int) -> tuple[int | None, str | None]:
        """When and in which file the spec first stood; two None where older files are gone."""
        if len(self._metadata.specs) < 2:
            return None, None
        low, high = 0, len(self._log)  # the first place that has it lies in low..high; `high` is the file itself
        while low < high:
            middle = (low + high) // 2
            has = self._has(middle, spec_id)
            if has:
                high = middle
            else:
                low = middle + 1
        before_is_known = low > 0 and self._specs.get(low - 1) is not None
        if not before_is_known:
            return None, None
        if low == len(self._log):
            return self._metadata.last_updated_ms, self._name
        entry = self._log[low]
        return entry.timestamp_ms, entry.metadata_file.rpartition("/")[2]

    def _has(self, place: int, spec_id: int) -> bool:
        """Whether an earlier file has the spec; one that is gone counts as older than it."""
        if place not in self._specs:
            try:
                self._specs[place] = set(self._earlier(self._log[place]).specs)
            except LakeviewError:
                self._specs[place] = None
        return spec_id in (self._specs[place] or ())


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
    parts = document.get("fields")
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, dict):
            continue
        several = part.get("source-ids")
        sources: Sequence[Any] = several if isinstance(several, list) and several else [part.get("source-id")]
        transform = part.get("transform", "identity")
        yield {
            "column": ", ".join(names.get(i, f"column {i}") if isinstance(i, int) else f"column {i}" for i in sources),
            "transform": transform if isinstance(transform, str) else "unknown",
            "direction": _word(part.get("direction")),
            "nulls": {"nulls-first": "first", "nulls-last": "last"}.get(str(part.get("null-order"))),
        }


def _word(value: Any) -> str | None:
    return value if value in ("asc", "desc") else None


def _sorted_by(field: Mapping[str, str | None]) -> str:
    column, transform = field["column"] or "", parse_transform(field["transform"] or "identity")
    parts = [in_words(transform, column), field["direction"], f"nulls {field['nulls']}" if field["nulls"] else None]
    return " ".join(p for p in parts if p)
