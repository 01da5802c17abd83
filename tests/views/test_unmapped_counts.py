"""Null counts of columns that a name mapping leaves without a name: files without field ids give null there."""

from __future__ import annotations

import json

import polars as pl
import pytest

from lakeview.inspection.absent_columns import without_unmapped_counts
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.table_metadata import TableMetadata

ENTRIES = [{"field-id": 1, "names": ["a", "A"]}, {"field-id": 2, "names": []}, {"names": ["other"]}, 7]


@pytest.mark.parametrize(
    ("mapping", "columns"),
    [
        pytest.param(json.dumps(ENTRIES), {"a"}, id="columns without a name are unknown"),
        pytest.param(json.dumps({"fields": ENTRIES}), {"a"}, id="an object is taken for its fields"),
        pytest.param(None, {"a", "b", "^c$"}, id="without a mapping all counts hold"),
        pytest.param("{", {"a", "b", "^c$"}, id="a mapping that is none changes nothing"),
        pytest.param("7", {"a", "b", "^c$"}, id="nor does a number"),
    ],
)
def test_null_counts_of_columns_without_a_mapped_name_are_unknown(mapping: str | None, columns: set[str]) -> None:
    names = ("a", "b", "^c$")
    schema = Schema(tuple(Field(name, PrimitiveType("long"), id=i) for i, name in enumerate(names, 1)))
    properties = {} if mapping is None else {"schema.name-mapping.default": mapping}
    snapshot = Snapshot(TableMetadata("memory://t", "iceberg", 0, None, schema, properties=properties))
    recorded = {"min": 1, "max": 2, "null_count": 0}
    statistics = pl.DataFrame([{"_path": "f", **dict.fromkeys(names, recorded)}])
    counts = without_unmapped_counts(snapshot, statistics)
    assert counts.columns == statistics.columns
    assert {n for n in names if counts[n].struct.unnest()["null_count"].item() is not None} == columns
    assert [counts[n].struct.unnest()["max"].item() for n in names] == [2, 2, 2]
