"""Batches of streams that run again: whether a table has them, also where their snapshots have expired."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import RemoveSnapshotsUpdate, update_table_metadata

from lakeview.iceberg.metadata.table_metadata import parse_metadata
from lakeview.iceberg.write.context import write_context
from lakeview.iceberg.write.data_file import write_files
from lakeview.iceberg.write.metadata_file import StreamBatch
from lakeview.iceberg.write.snapshot_commit import CommitOptions, SnapshotCommit
from lakeview.rows.batches import batches_of
from tests.builders.catalogs import RestState, newest, rest_catalog, table
from tests.builders.iceberg import IcebergHistory
from tests.builders.opening import open_iceberg_table

NAMES = ("sales", "orders")


@contextmanager
def in_folder(history: IcebergHistory, _: pytest.MonkeyPatch) -> Iterator[tuple[str, Callable[[], Path]]]:
    yield history.address, lambda: Path(newest(history))


@contextmanager
def in_catalog(history: IcebergHistory, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Callable[[], Path]]]:
    state = RestState([NAMES[:1]], {NAMES: newest(history)})
    with rest_catalog(state) as address:
        patch.setenv("PYICEBERG_CATALOG__PROD__URI", address)
        yield "catalog://prod/sales.orders", lambda: Path(str(state.tables[NAMES]))


@pytest.mark.parametrize("where", [in_folder, in_catalog])
def test_a_batch_whose_snapshot_has_expired_is_not_written_again(
    where: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyiceberg expires the snapshots of the query, all but the one that another writer made after them."""
    with where(table(tmp_path / "orders"), monkeypatch) as (address, current):
        for epoch in (0, 1):
            assert ingest(address, epoch, 10 + epoch) is not None
        open_iceberg_table(address).append(pl.DataFrame({"id": [20]}))
        metadata = TableMetadataUtil.parse_raw(current().read_text())
        expired = [each.snapshot_id for each in metadata.snapshots if each.snapshot_id != metadata.current_snapshot_id]
        metadata_after = update_table_metadata(
            metadata, (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": expired}),)
        )
        current().write_text(metadata_after.model_dump_json())
        assert open_iceberg_table(address).history().height == 1
        assert [ingest(address, epoch, 10 + epoch) for epoch in (0, 1)] == [None, None]
        assert ingest(address, 1, 30, query="another") is not None
        assert ingest(address, 2, 12) is not None
        assert sorted(open_iceberg_table(address).scan().collect()["id"]) == [0, 10, 11, 12, 20, 30]


def ingest(address: str, epoch: int, number: int, query: str = "q") -> int | None:
    opened_table = open_iceberg_table(address)
    context = write_context(opened_table.state)
    files = write_files(context, batches_of(pl.DataFrame({"id": [number]})), opened_table.state.storage)
    return SnapshotCommit(opened_table, context, files, CommitOptions(batch=StreamBatch(query, epoch))).run()


def snapshot(number: int, parent: int | None, epoch: int | None = None) -> dict[str, Any]:
    summary = {} if epoch is None else dict(StreamBatch("q", epoch).summary)
    return {
        "snapshot-id": number, "parent-snapshot-id": parent, "sequence-number": number, "timestamp-ms": number,
        "manifest-list": "s3://old/table/metadata/list.avro", "summary": {"operation": "append", **summary},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("snapshots", "current", "recorded", "last"),
    [
        pytest.param([snapshot(8, 7, 4), snapshot(9, 8, 5)], 9, "5@9", 5, id="there"),
        pytest.param([snapshot(9, 8)], 9, "5@7", 5, id="expired"),
        pytest.param([snapshot(6, None, 5), snapshot(9, 8)], 9, "5@6", 5, id="kept by a tag, cut off from main"),
        pytest.param([snapshot(8, 7, 4), snapshot(9, 8, 5)], 8, "5@9", 4, id="rolled back to another batch"),
        pytest.param([snapshot(8, 7), snapshot(9, 8, 5)], 8, "5@9", None, id="rolled back to no batch"),
        pytest.param([snapshot(9, None, 5)], -1, "5@9", None, id="rolled back to nothing"),
        pytest.param([snapshot(9, 8, 6)], 9, "5@7", 6, id="by the sink of Iceberg since"),
        pytest.param([snapshot(9, 8)], 9, "five@7", None, id="set by hand to no number"),
        pytest.param([snapshot(9, 8)], 9, "5", 5, id="set by hand to a number"),
    ],
)
def test_the_last_batch_is_that_of_the_history_or_of_the_property(
    tmp_path: Path, snapshots: list[dict[str, Any]], current: int, recorded: str, last: int | None
) -> None:
    document = table(tmp_path / "table", rows=0).document
    document |= {"snapshots": snapshots, "current-snapshot-id": current, "refs": {}, "last-sequence-number": 9}
    document["properties"] = {"lakeview.stream.q": recorded}
    metadata = parse_metadata(json.dumps(document).encode(), "v1.metadata.json")
    epochs = [epoch for epoch in range(9) if StreamBatch("q", epoch).is_committed(metadata)]
    assert epochs == ([] if last is None else list(range(last + 1)))
    assert not StreamBatch("another", 0).is_committed(metadata)
