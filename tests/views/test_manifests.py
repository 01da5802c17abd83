"""How a version is listed, what each way of partitioning still holds, and estimates of distinct values."""

from __future__ import annotations

from typing import Any

import polars as pl

from lakeview import views
from lakeview.model.frames import MANIFESTS, PARTITION_SPECS, STATISTICS_FILES


def framed(rows: list[dict[str, Any]], schema: pl.Schema) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=schema), pl.DataFrame(rows)], how="diagonal_relaxed").cast(schema)


COUNTS = {"files_added": 1, "files_existing": 2, "files_deleted": 0, "rows_added": 10, "rows_existing": 20}
LISTING = framed(
    [
        {"path": "a", "content": "data", "size": 100, "spec_id": 0, "overlaps": 1, **COUNTS},
        {"path": "b", "content": "data", "size": 300, "spec_id": 0, "overlaps": 0, **COUNTS, "files_deleted": 4},
        {"path": "c", "content": "deletes", "size": 200, "spec_id": 0, "overlaps": None, **COUNTS},
        {"path": "d", "content": "data", "size": 200, "spec_id": 1, "overlaps": None},
    ],
    MANIFESTS,
)


def test_manifests_are_counted_by_content_and_overlap() -> None:
    assert views.files.manifests.manifest_facts(LISTING) == views.files.manifests.ManifestFacts(3, 1, 800, 200.0, 1, 1)


def test_without_ranges_overlap_is_unknown() -> None:
    assert views.files.manifests.manifest_facts(LISTING.tail(1)).overlapping is None
    assert views.files.manifests.manifest_facts(LISTING.clear()) == views.files.manifests.ManifestFacts(
        0, 0, 0, None, None, 0
    )


def test_each_spec_says_what_it_still_holds() -> None:
    specs = framed([{"spec_id": i, "text": f"way {i}", "default": i == 2} for i in range(3)], PARTITION_SPECS)
    specs_in_use = views.files.manifests.spec_use(specs, LISTING)
    assert specs_in_use.schema == views.files.manifests.SPEC_USE
    # deletes are no data; a manifest without counts leaves its spec's unknown; a spec without manifests holds nothing
    assert specs_in_use.select("files", "rows", "manifests", "state").rows() == [
        (6, 60, 2, ""),
        (None, None, 1, ""),
        (0, 0, 0, "new files"),
    ]


def test_a_spec_without_files_is_unused_unless_new_files_use_it() -> None:
    specs = framed([{"spec_id": 5, "default": False}, {"spec_id": 6, "default": True}], PARTITION_SPECS)
    assert views.files.manifests.spec_use(specs, LISTING)["state"].to_list() == ["unused", "new files"]


def test_specs_without_fields_leave_a_table_unpartitioned() -> None:
    field = {"source": ["day"], "name": "day", "transform": "identity"}
    plain = framed([{"spec_id": 0, "fields": []}], PARTITION_SPECS)
    assert not views.files.manifests.is_partitioned(plain)
    element = PARTITION_SPECS["fields"]
    assert isinstance(element, pl.List)
    fields = pl.Series("fields", [[{name: field.get(name) for name in _field_names(element)}]], dtype=element)
    assert views.files.manifests.is_partitioned(plain.with_columns(fields))


def _field_names(fields: pl.List) -> list[str]:
    assert isinstance(fields.inner, pl.Struct)
    return [field.name for field in fields.inner.fields]


def test_a_manifest_lists_added_and_existing_files() -> None:
    rows = views.files.manifests.manifest_rows(LISTING)
    assert rows.schema == views.files.manifests.MANIFEST_ROWS
    assert rows.select("file", "files", "rows", "files_deleted").rows() == [
        ("a", 3, 30, 0),
        ("b", 3, 30, 4),
        ("c", 3, 30, 0),
        ("d", None, None, None),
    ]


def test_delete_files_without_kinds_are_called_deletes() -> None:
    deletes = pl.DataFrame(
        {"path": ["x/d1.parquet"], "partition_text": ["day=1"], "size": [10], "records": [3], "modified": [None]}
    )
    rows = views.files.manifests.delete_file_rows(deletes)
    assert rows.schema == views.files.manifests.DELETE_FILE_ROWS
    assert rows.select("file", "kind").row(0) == ("d1.parquet", "deletes")
    rows_read = views.files.manifests.delete_file_rows(deletes.with_columns(content=pl.lit("equality deletes")))
    assert rows_read["kind"].to_list() == ["equality deletes"]


def test_the_newest_estimate_of_each_column_counts() -> None:
    blobs = framed(
        [
            {"version": 1, "columns": ["a"], "ndv": 5},
            {"version": 2, "columns": ["a"], "ndv": 7},
            {"version": 1, "columns": ["b"], "ndv": 3},
            {"version": 9, "columns": ["a"], "ndv": 100},
            {"version": 2, "columns": ["a", "b"], "ndv": 50},
            {"version": 2, "columns": ["c"], "ndv": None},
        ],
        STATISTICS_FILES,
    )
    counts = views.files.manifests.distinct_values(blobs, [3, 2, 1])
    assert counts.schema == views.files.manifests.DISTINCT
    assert sorted(counts.rows()) == [("a", 7), ("b", 3)]
    assert views.files.manifests.distinct_values(blobs, []).is_empty()
