"""Metadata and manifests that are sound in form, with anything where something else belongs: designed answers only."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import time
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lakeview.iceberg.deletes.positions import VectorPlace
from lakeview.iceberg.metadata.table_metadata import parse_metadata
from lakeview.iceberg.opening import open_iceberg
from lakeview.model.errors import CorruptTableError, LakeviewError, UnsupportedTableError
from lakeview.storage import open_storage
from tests.builders.iceberg import LIST_SCHEMA, IcebergHistory
from tests.builders.iceberg_metadata import document, snapshot, text
from tests.fuzz.test_structured import JSON, NUMBERS, TEXTS

QUICK = settings(max_examples=25, suppress_health_check=list(HealthCheck))
FEW = settings(QUICK, max_examples=8)
FIELDS: list[dict[str, Any]] = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "city", "required": False, "type": "string"},
]
SOUND: dict[str, Any] = document(
    snapshots=[snapshot(1), snapshot(2, parent_snapshot_id=1, summary={"operation": "append", "added-records": "3"})],
    refs={"main": {"snapshot-id": 2, "type": "branch"}, "t": {"snapshot-id": 1, "type": "tag"}},
    snapshot_log=[{"timestamp-ms": 1, "snapshot-id": 1}],
    metadata_log=[{"timestamp-ms": 1, "metadata-file": "a"}],
    properties={"a": "b"},
    statistics=[{"snapshot-id": 1, "statistics-path": "s", "blob-metadata": []}],
) | {"current-snapshot-id": 2}


def bent(value: Any, draw: st.DrawFn, times: int) -> Any:
    """The value with so many of its parts, at any depth, replaced by anything, or left out."""
    whole = json.loads(json.dumps(value))
    for _ in range(times):
        at = whole
        while isinstance(at, dict | list) and at:
            key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
            if not isinstance(at[key], dict | list) or not at[key] or draw(st.booleans()):
                if draw(st.booleans()):
                    at[key] = draw(JSON)
                else:
                    del at[key]
                break
            at = at[key]
    return whole


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Metadata with up to three parts that are not what they should be."""
    content: dict[str, Any] = bent(SOUND, draw, draw(st.integers(1, 3)))
    return content


@QUICK
@given(documents())
def test_bent_metadata_is_refused_or_can_be_shown(content: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "metadata").mkdir()
        (Path(folder) / "metadata" / "v1.metadata.json").write_bytes(text(content))
        with suppress(LakeviewError):
            table = open_iceberg(folder)
            for question in (table.history, table.versions, table.schemas, table.snapshot, table._repr_html_):
                with suppress(LakeviewError):
                    question()


MANIFEST = st.fixed_dictionaries(
    {},
    optional={
        "manifest_length": NUMBERS, "partition_spec_id": NUMBERS, "content": NUMBERS, "sequence_number": NUMBERS,
        "added_snapshot_id": NUMBERS, "added_files_count": NUMBERS, "existing_rows_count": NUMBERS,
        "first_row_id": NUMBERS, "manifest_path": TEXTS,
    },
)  # fmt: skip
_INTS = {"partition_spec_id", "content", "added_files_count"}


def within(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers cut to what the file's own types hold: a writer cannot write others."""
    return {
        k: (v & (2**31 - 1) if k in _INTS else (v + 2**63) % 2**64 - 2**63) if isinstance(v, int) else v
        for k, v in changes.items()
    }


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> IcebergHistory:
    story = IcebergHistory(tmp_path_factory.mktemp("bent") / "t", FIELDS, [(1, "bucket[4]", "b")], version=3)
    first = story.append("a", [{"id": i, "city": "x"} for i in range(4)])
    story.delete_vectors("v", {first: [1]})
    return story


def read_everything_of(history: IcebergHistory, name: str, rows: Any, schema: Any) -> None:
    """The table with a file of its metadata replaced, asked everything."""
    path = history.root / "metadata" / name
    sound = path.read_bytes()
    out = io.BytesIO()
    fastavro.writer(out, schema, rows)
    path.write_bytes(out.getvalue())
    try:
        with suppress(LakeviewError):
            table = open_iceberg(history.address)
            questions = (
                table.history, table.files, table.statistics, table.check, table.lifetimes,
                lambda: table.plan("id = 1"), lambda: table.scan().collect(), lambda: table.snapshot().delete_files,
            )  # fmt: skip
            for question in questions:
                with suppress(LakeviewError):
                    question()
    finally:
        path.write_bytes(sound)


@pytest.mark.slow
@FEW
@given(st.lists(MANIFEST, min_size=2, max_size=2))
def test_a_bent_manifest_list_is_answered_by_design(history: IcebergHistory, changes: list[dict[str, Any]]) -> None:
    with (history.root / "metadata" / "snap-1002.avro").open("rb") as file:
        rows = [dict(row) for row in fastavro.reader(file) if isinstance(row, dict)]
    bent_rows = [row | within(change) for row, change in zip(rows, changes, strict=True)]
    read_everything_of(history, "snap-1002.avro", bent_rows, LIST_SCHEMA)


ENTRY = st.fixed_dictionaries(
    {}, optional={"status": st.integers(-1, 3), "snapshot_id": NUMBERS, "sequence_number": NUMBERS}
)
PAIRS = st.lists(st.fixed_dictionaries({"key": st.integers(0, 3), "value": st.integers(-5, 2**62)}), max_size=3)
BOUNDS = st.lists(st.fixed_dictionaries({"key": st.integers(0, 3), "value": st.binary(max_size=9)}), max_size=3)
FILE = st.fixed_dictionaries(
    {},
    optional={
        "content": st.integers(-1, 4), "file_path": TEXTS, "file_format": TEXTS, "record_count": NUMBERS,
        "file_size_in_bytes": NUMBERS, "value_counts": PAIRS, "null_value_counts": PAIRS, "lower_bounds": BOUNDS,
        "upper_bounds": BOUNDS, "equality_ids": st.lists(st.integers(-1, 4), max_size=3), "first_row_id": NUMBERS,
        "referenced_data_file": TEXTS, "content_offset": NUMBERS, "content_size_in_bytes": NUMBERS,
    },
)  # fmt: skip


CLAIMS = ((-1, 42), (2**62, 42), (4, 2**62), (4, -1), (2**63 - 1, 2**63 - 1), (4, 0), (10**6, 42))


@pytest.mark.parametrize(("offset", "size"), CLAIMS)
def test_a_vector_in_a_place_that_is_none_is_corrupt(history: IcebergHistory, offset: int, size: int) -> None:
    store = open_storage(history.address)
    with pytest.raises(CorruptTableError, match="data/v"):
        VectorPlace("data/v", offset, size, 1).bitmap(store)


@pytest.mark.slow
@FEW
@pytest.mark.parametrize("name", ["manifest-1001.avro", "manifest-1002.avro"])
@example(entry={}, file={"record_count": -1})
@given(entry=ENTRY, file=FILE)
def test_a_bent_manifest_is_answered_by_design(
    history: IcebergHistory, name: str, entry: dict[str, Any], file: dict[str, Any]
) -> None:
    with (history.root / "metadata" / name).open("rb") as opened:
        reader = fastavro.reader(opened)
        rows = [dict(row) for row in reader if isinstance(row, dict)]
        schema = reader.writer_schema
    changed = {k: v if k == "status" else within({k: v})[k] for k, v in entry.items()}
    rows[0] = rows[0] | changed | {"data_file": rows[0]["data_file"] | within(file)}
    read_everything_of(history, name, rows, schema)


def deep(depth: int) -> str:
    """A schema of lists in lists."""
    opening = '{"type": "list", "element-id": 3, "element-required": false, "element": '
    return opening * depth + '"int"' + "}" * depth


def schema_text(type_: str) -> bytes:
    whole = text(document())
    return whole.replace(b'"type": "date"', f'"type": {type_}'.encode())


ABSURD: Mapping[str, bytes] = {
    "a schema ten thousand deep": schema_text(deep(10_000)),
    "a schema a hundred deep": schema_text(deep(100)),
    "a snapshot id beyond 64 bits": text(document(snapshots=[snapshot(2**63)])),
    "a current snapshot beyond 64 bits": text(document(current_snapshot_id=10**30)),
    "a field id beyond 32 bits": schema_text('"date", "x": 1').replace(b'"id": 2', b'"id": 4294967296'),
    "a column that names a type of a million letters": schema_text(json.dumps("x" * 1_000_000) + ', "id": -7'),
    "a bomb": gzip.compress(b'{"format-version": 2, "location": "' + b"x" * 40_000_000),
    "brackets without end": b"[" * 1_000_000,
    "objects without end": b'{"a":' * 1_000_000,
    "numbers without end": text(document()).replace(b"1700000000000", b"9" * 100_000),
    "a version without end": b'{"format-version": ' + b"9" * 100_000 + b"}",
}


@pytest.mark.parametrize("case", ABSURD)
def test_absurd_metadata_is_refused_in_little_time_and_memory(case: str) -> None:
    data = ABSURD[case]
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises((CorruptTableError, UnsupportedTableError)) as caught:
            parse_metadata(data, "v1.metadata.json")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.fix
    assert len(str(caught.value)) < 2000
    assert time.process_time() - started < 20
    assert most < 300_000_000
