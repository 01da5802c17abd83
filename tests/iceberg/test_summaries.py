"""Summaries of many snapshots, told apart by key, say what each of them says by itself; pages of a history are parts
of the whole."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.summaries import summaries_frame
from lakeview.iceberg.metadata.table_metadata import parse_metadata
from lakeview.iceberg.metadata.versions import commits
from tests.builders.iceberg_metadata import document, snapshot

KEYS = ("operation", "total-data-files", "added-data-files", "not there")
MANY = 200
PLAIN = {"operation": "append", "engine-name": "spark", "added-data-files": "3", "total-data-files": "12", "app": "x"}
COUNTS = ["0", "7", "007", "-0", "-5", "+5", " 5", "", "1e3", "1.0", "9" * 18, "9" * 19, "\u0663", "many", '3"']


def summary(rng: random.Random) -> dict[str, Any]:
    counts: dict[str, Any] = {k: v for k, v in PLAIN.items() if rng.random() < 0.8}
    for key in (
        "added-position-deletes",
        "removed-delete-files",
        "total-delete-files",
        "changed-x",
        'a "key"',
        "\u00e9",
    ):
        if rng.random() < 0.5:
            counts[key] = rng.choice(COUNTS)
    return counts


def entries(summaries: list[bytes]) -> list[SnapshotEntry]:
    return [SnapshotEntry(i, i, recorded_summary=msgspec.Raw(s)) for i, s in enumerate(summaries)]


def decoded(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows, JSON decoded: the order of keys is nobody's business."""
    return [{**row, **{k: json.loads(row[k]) for k in ("parameters", "metrics")}} for row in frame.to_dicts()]


CASES: dict[str, list[Any]] = {
    "the same keys in all": [{**PLAIN, "added-data-files": str(i)} for i in range(MANY)],
    "nothing at all": [{} for _ in range(MANY)],
    "counts of all spellings": [{**PLAIN, "added-data-files": COUNTS[i % len(COUNTS)]} for i in range(MANY)],
    "texts with quotes and line breaks": [{**PLAIN, "app": f'"{i}"\n\\'} for i in range(MANY)],
    "a key that one of them has alone": [PLAIN] * 77 + [{**PLAIN, "wap.id": "1"}] + [PLAIN] * 99,
    "each with keys of its own": [{f"key {i} {k}": "1" for k in range(3)} | PLAIN for i in range(MANY)],
    "one with a number": [PLAIN] * MANY + [{**PLAIN, "added-data-files": 3}],
    "one with a list": [PLAIN] * MANY + [{**PLAIN, "app": ["a"]}],
    "one with a null": [PLAIN] * MANY + [{**PLAIN, "app": None}],
    "one that is no object": [PLAIN] * MANY + [5],
}


@pytest.mark.parametrize("case", CASES)
def test_many_summaries_say_together_what_each_says_alone(case: str) -> None:
    rows = entries([json.dumps(s).encode() for s in CASES[case]])
    alone = pl.concat([summaries_frame([entry], KEYS) for entry in rows])
    assert decoded(summaries_frame(rows, KEYS)) == decoded(alone)


@pytest.mark.parametrize("seed", range(6))
def test_summaries_of_several_writers_say_together_what_each_says_alone(seed: int) -> None:
    rng = random.Random(seed)
    rows = entries([json.dumps(summary(rng), ensure_ascii=rng.random() < 0.5).encode() for _ in range(MANY)])
    alone = pl.concat([summaries_frame([entry], KEYS) for entry in rows])
    assert decoded(summaries_frame(rows, KEYS)) == decoded(alone)


def test_a_summary_of_broken_text_tells_nothing_and_the_others_all() -> None:
    texts = [json.dumps(PLAIN).encode()] * MANY + [b'{"a": "\xff"}']
    frame = summaries_frame(entries(texts), KEYS)
    assert frame["operation"].to_list() == ["append"] * MANY + [None]
    assert json.loads(frame["metrics"][0]) == {"added-data-files": 3, "total-data-files": 12}


def history(count: int, ref_at: int) -> bytes:
    snapshots = [
        snapshot(i, parent_snapshot_id=i - 1 or None, sequence_number=i, schema_id=0, summary=PLAIN)
        for i in range(1, count + 1)
    ]
    refs = {"main": {"snapshot-id": count, "type": "branch"}, "tag": {"snapshot-id": ref_at, "type": "tag"}}
    return json.dumps(document(snapshots=snapshots, refs=refs, current_snapshot_id=count)).encode()


@pytest.mark.parametrize("limit", [0, 1, 30, 99, 500, None])
@pytest.mark.parametrize("before", [None, 100, 60, 1, 777], ids=["", "the newest", "some", "the oldest", "none"])
def test_a_page_of_a_history_is_a_part_of_the_whole(limit: int | None, before: int | None) -> None:
    metadata = parse_metadata(history(100, ref_at=40), "v1.metadata.json")
    whole = commits(metadata)
    assert whole["version"].to_list() == list(range(100, 0, -1))
    assert whole.filter(pl.col("refs").list.contains("tag"))["version"].to_list() == [40]
    expected = whole if before is None else whole.filter(pl.col("version") < (before if before <= 100 else 0))
    assert_frame_equal(commits(metadata, limit, before), expected if limit is None else expected.head(limit))


@pytest.mark.parametrize(("added_files", "size"), [("0", 0), (None, 0), ("2", None)])
def test_a_snapshot_that_adds_delete_files_alone_adds_no_bytes_of_data(
    added_files: str | None, size: int | None
) -> None:
    counts = {"added-delete-files": "1", "added-files-size": "900", "total-data-files": "3"}
    text_summary = {"operation": "delete", **counts} | ({"added-data-files": added_files} if added_files else {})
    of_table = document(snapshots=[snapshot(1, schema_id=0, summary=text_summary)], refs={}, current_snapshot_id=1)
    row = commits(parse_metadata(json.dumps(of_table).encode(), "v1.metadata.json")).row(0, named=True)
    assert (row["bytes_added"], row["bytes_removed"]) == (size, 0)
