"""Partition specs as metadata files record them (iceberg spec, Partition Specs)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from lakeview.iceberg.metadata.documents import invalid
from lakeview.iceberg.metadata.transforms import Transform, parse_transform


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One part of a partition tuple: a transform of a column, addressed in manifests by `field_id`."""

    field_id: int
    name: str
    transform: Transform
    source_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """How files of this spec are partitioned."""

    spec_id: int
    fields: tuple[PartitionField, ...]

    @property
    def is_unpartitioned(self) -> bool:
        """Whether the tuple says nothing: no fields, or only void ones. Such a delete file is global."""
        return all(f.transform.name == "void" for f in self.fields)


def parse_spec(document: Mapping[str, Any], path: str) -> PartitionSpec:
    """A partition spec as recorded. CorruptTableError ("invalid-metadata") for one that cannot be understood."""
    spec_id, fields = document.get("spec-id"), document.get("fields")
    if not is_id(spec_id) or not isinstance(fields, list):
        raise invalid(path, f"a partition spec has the id {spec_id!r} and {type(fields).__name__} for fields")
    return PartitionSpec(spec_id, parse_partition_fields(fields, path))


def parse_partition_fields(fields: list[Any], path: str) -> tuple[PartitionField, ...]:
    """The fields of a spec; version 1 leaves their ids out, which then count from 1000."""
    partition_fields = []
    for position, document in enumerate(fields):
        if not isinstance(document, dict):
            raise invalid(path, f"{document!r} is no partition field")
        field_id, name = document.get("field-id"), document.get("name")
        if field_id is None:
            field_id = 1000 + position
        sources = document.get("source-ids") or [document.get("source-id")]
        whole = is_id(field_id) and isinstance(sources, list) and sources and all(map(is_id, sources))
        if not whole or not isinstance(name, str) or not isinstance(document.get("transform"), str):
            raise invalid(path, f"a partition field cannot be understood: {document!r}")
        partition_fields.append(PartitionField(field_id, name, parse_transform(document["transform"]), tuple(sources)))
    return tuple(partition_fields)


def is_id(value: Any) -> TypeGuard[int]:
    """Whether a JSON value is an id: a whole number of 32 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31
