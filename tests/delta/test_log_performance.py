"""What reading a log touches: which row groups, which columns, which files. Counts, never times."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.log import checkpoint_parquet, table_log
from lakeview.delta.log.checkpoints import Checkpoint
from lakeview.delta.log.state import LastListing
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import NotATableError
from lakeview.storage import open_storage
from tests.builders.actions import add, info, metadata, protocol, remove
from tests.builders.history import CHECKPOINT_SHAPE, DeltaHistory, log_name, parquet_actions
from tests.builders.opening import open_delta_table
from tests.builders.stores import FarStorage

PARSED = pa.struct({"numRecords": pa.int64(), "minValues": pa.struct({"id": pa.int64()})}.items())
VECTOR = pa.struct({"storageType": pa.string(), "pathOrInlineDv": pa.string(), "cardinality": pa.int64()}.items())
SHAPE = {**CHECKPOINT_SHAPE, "add": {**CHECKPOINT_SHAPE["add"], "stats_parsed": PARSED, "deletionVector": VECTOR}}


def checkpoint(groups: list[list[dict[str, Any]]]) -> bytes:
    """A checkpoint with these actions, one list a row group."""
    tables = [pq.read_table(BytesIO(parquet_actions(rows, SHAPE))) for rows in groups]
    sink = BytesIO()
    with pq.ParquetWriter(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.getvalue()


def files(start: int, end: int, **more: Any) -> list[dict[str, Any]]:
    return [add(f"f{i}", size=i, **more) for i in range(start, end)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], list[str]]]:
    """(row groups, columns) of every read of a Parquet file."""
    requests: list[tuple[list[int], list[str]]] = []
    original = pq.ParquetFile.iter_batches

    def watched(self: pq.ParquetFile, *arguments: Any, **keywords: Any) -> Any:
        requests.append((list(keywords["row_groups"]), sorted(keywords["columns"])))
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    return requests


def write_checkpoint(history: DeltaHistory, groups: list[list[dict[str, Any]]]) -> DeltaTable:
    history.create().write(log_name(0, "checkpoint.parquet"), checkpoint(groups))
    return open_delta_table(history.address)


def test_opening_reads_the_one_row_group_that_says_what_the_table_is(
    history: DeltaHistory, reads: list[tuple[list[int], list[str]]]
) -> None:
    # of fewer rows than two thousand all row groups are read
    groups = [files(0, 5), files(5, 10), [*files(10, 12), protocol(), metadata()], files(12, 2020)]
    snapshot = write_checkpoint(history, groups).snapshot()
    assert snapshot.schema.names == ["id", "city"]
    keys = ["metaData.id", "metaData.schemaString", "protocol.minReaderVersion", "protocol.minWriterVersion"]
    # the keys of each row group tell, up to the one that has both
    assert reads == [*(([group], keys) for group in range(3)), ([2], ["metaData", "protocol"])]
    assert snapshot.num_files == 2020


def test_a_listing_reads_the_leaves_it_shows(history: DeltaHistory, reads: list[tuple[list[int], list[str]]]) -> None:
    removed = [{"remove": {"path": f"r{i}", "dataChange": True}} for i in range(5)]
    table = write_checkpoint(history, [files(0, 5, records=1), removed, [protocol(), metadata()]])
    table.snapshot()
    reads.clear()
    assert table.files(columns=["path", "size"]).height == 5
    assert reads == [([0], ["add.path", "add.size"])], "no statistics, no vectors that are null, no other row group"
    reads.clear()
    assert table.files(columns=["path", "size", "records"])["records"].to_list() == [1] * 5
    assert reads == [([0], ["add.path", "add.stats"])], "and no size, which is known"
    reads.clear()
    assert table.snapshot().num_records == 5
    assert table.files(columns=["path", "records"]).height == 5
    assert reads == [], "what was loaded is not read again"


def test_counts_come_from_structs_where_they_are_whole(
    history: DeltaHistory, reads: list[tuple[list[int], list[str]]]
) -> None:
    parsed = {"numRecords": 4, "minValues": {"id": 1}}
    table = write_checkpoint(history, [files(0, 5, stats_parsed=parsed, records=3), [protocol(), metadata()]])
    table.snapshot()
    reads.clear()
    assert table.files(columns=["records"])["records"].to_list() == [4] * 5
    assert reads == [([0], ["add.path", "add.stats_parsed.numRecords"])]


def test_a_listing_serves_the_lives_of_files_as_well(
    history: DeltaHistory, reads: list[tuple[list[int], list[str]]]
) -> None:
    write_checkpoint(history, [files(0, 5, records=1), [protocol(), metadata()]])
    history.without(0)
    table = lv.open_table(history.address)
    assert table.snapshot().files.height == 5
    reads.clear()
    assert table.lifetimes().select("path", "size", "records").rows() == [(f"f{i}", i, 1) for i in range(5)]
    assert not reads


def test_statistics_that_were_read_count_the_rows_as_well(
    history: DeltaHistory, reads: list[tuple[list[int], list[str]]]
) -> None:
    texts = ['{"numRecords":7}', '{"numRecords":8,', '{"minValues":{}}', f'{{"numRecords":{2**60}}}', "no JSON"]
    adds = [{"add": {**add(f"f{i}")["add"], "stats": text}} for i, text in enumerate(texts)]
    table = write_checkpoint(history, [[*adds, *files(5, 6)], [protocol(), metadata()]])
    counts = lv.open_table(history.address).files(columns=["path", "records"])
    assert counts["records"].to_list() == [7, 8, None, None, None, None]
    table.statistics()
    reads.clear()
    assert table.files(columns=["path", "records"]).equals(counts)
    assert reads == []


def test_counts_of_both_kinds_add_up(history: DeltaHistory) -> None:
    parsed = {"numRecords": 4}
    mixed = [*files(0, 2, stats_parsed=parsed), *files(2, 4, records=3), *files(4, 5)]
    table = write_checkpoint(history, [mixed, [protocol(), metadata()]])
    assert table.files(columns=["path", "records"])["records"].to_list() == [4, 4, 3, 3, None]


def test_the_halves_of_a_large_checkpoint_are_read_at_once_and_in_order(
    history: DeltaHistory, reads: list[tuple[list[int], list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_parquet, "_MANY_ROWS", 3)
    groups = [files(0, 2, records=1), files(2, 5, records=2), [protocol(), metadata()], files(5, 9), files(9, 11)]
    table = write_checkpoint(history, groups)
    table.snapshot()
    reads.clear()
    file_rows = table.files(columns=["path", "size", "records"])
    assert file_rows["path"].to_list() == [f"f{i}" for i in range(11)]
    assert file_rows["records"].to_list() == [1, 1, 2, 2, 2, *[None] * 6]
    assert sorted(groups for groups, _ in reads) == [[0, 1], [3, 4]]
    assert table.statistics()["_path"].to_list() == file_rows["path"].to_list()


def test_statistics_of_few_files_bring_their_listing_along(
    history: DeltaHistory, reads: list[tuple[list[int], list[str]]]
) -> None:
    early = [*files(0, 3, stats={"numRecords": 1, "minValues": {"id": 7}}), protocol(), metadata()]
    history.create().write(log_name(0, "checkpoint.parquet"), parquet_actions(early))
    removal, late = remove("f1"), add("g", stats={"numRecords": 5, "minValues": {"id": 9}})
    table = open_delta_table(history.commit(removal, late).address)
    statistics = table.statistics()
    assert statistics["_path"].to_list() == ["f0", "f2", "g"]
    assert statistics["id"].struct.field("min").to_list() == [7, 7, 9]
    reads.clear()
    requests = dict(table.storage.requests)
    listing = table.files()
    assert (reads, dict(table.storage.requests)) == ([], requests)
    assert listing.equals(open_delta_table(history.address).files())
    assert listing["records"].to_list() == [1, 1, 5]


def test_what_is_known_of_other_files_is_not_put_beside_these(history: DeltaHistory) -> None:
    write_checkpoint(history, [files(0, 3, records=1), [protocol(), metadata()]])
    storage = open_storage(history.address)
    (place,) = TableLog(storage).checkpoints()
    sizes = Checkpoint(storage, place).adds(["size"])
    last = LastListing()
    last.set(place, sizes.with_columns(path=pl.col("path") + "-before"))  # as of a file that was written anew
    file_rows = Checkpoint(storage, place, last).adds(["size", "records"])
    assert file_rows.select("path", "size", "records").rows() == [(f"f{i}", i, 1) for i in range(3)]


def test_the_newest_metadata_is_found_without_reading_older_commits(history: DeltaHistory) -> None:
    history.create()
    for version in range(1, 400):
        history.commit(add(f"f{version}"))
    history.commit(protocol(), metadata({"new": "long"}))
    store = FarStorage(history.address)
    assert DeltaTable(store).snapshot().schema.names == ["new"]
    assert store.requests["read"] < 20


def test_a_log_of_absurd_versions_is_answered_at_once(history: DeltaHistory) -> None:
    far = 10**18
    history.create()
    for version in (far, far + 1):
        history.commit(add(f"f{version}"), version=version)
    history.write(log_name(far - 1, "checkpoint.parquet"), parquet_actions([protocol(), metadata(), add("base")]))
    table = lv.open_table(history.address)
    assert table.latest_version == far + 1
    assert table.snapshot().num_files == 3
    assert table.history()["version"].to_list() == [far + 1, far, 0]
    assert table.history(1, before=far + 1)["version"].to_list() == [far]
    assert table.versions()["version"].to_list() == [far + 1, far, far - 1, 0]


def test_reading_a_log_brings_no_pandas(history: DeltaHistory) -> None:
    history.create().commit(add("f", records=1)).checkpoint().commit(add("g", records=1))
    code = (
        "import sys, lakeview as lv\n"
        f"table = lv.open_table({str(history.address)!r})\n"
        "table.snapshot().files, table.history(), table.versions()\n"
        "print('pandas' in sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "False"


def copied(history: DeltaHistory) -> DeltaHistory:
    """A year of commits, all files of one time; a checkpoint near the end, and its hint."""
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    for month in range(1, 13):
        written_at = info(timestamp=int(datetime(2026, month, 1, tzinfo=UTC).timestamp() * 1000))
        first = [protocol(), metadata()] if month == 1 else []
        history.commit(written_at, *first, add(str(month)), at=moment)
    return history.checkpoint(9).hint({"version": 9})


@pytest.mark.parametrize("hint", [{"version": 9}, {"version": 99}, b"garbage", None], ids=str)
def test_opening_lists_the_log_from_the_checkpoint_that_the_hint_names(history: DeltaHistory, hint: object) -> None:
    copied(history)
    if hint is None:
        history.remove("_delta_log/_last_checkpoint")
    else:
        history.hint(hint)
    log = TableLog(open_storage(history.address))
    assert log.is_partial == (hint == {"version": 9})
    assert [c.version for c in log.listed_commits()] == list(range(9 if log.is_partial else 0, 12))
    assert (log.latest, log.segment(11).commits) == (11, range(10, 12))
    assert log.versions() == list(range(12))
    assert not log.is_partial


def test_a_time_is_the_same_whether_or_not_the_log_was_listed_whole(history: DeltaHistory) -> None:
    """A copy gave every file one time: of the commits after the checkpoint alone that cannot be seen."""
    table = open_delta_table(copied(history).address)
    early = table.snapshot().timestamp
    assert early == datetime(2026, 12, 1, tzinfo=UTC)
    assert table.history()["timestamp"][0] == early


def test_a_hint_that_may_not_be_read_is_none(history: DeltaHistory, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text('{"version": 9}')
    Path(copied(history).address, "_delta_log/_last_checkpoint").unlink()
    Path(history.address, "_delta_log/_last_checkpoint").symlink_to(outside)
    assert not TableLog(open_storage(history.address)).is_partial
    log = tmp_path / "file" / "_delta_log"
    log.parent.mkdir()
    log.write_bytes(b"in the way")
    with pytest.raises(NotATableError, match="holds neither commits nor a complete checkpoint"):
        TableLog(open_storage(str(log.parent)))


@pytest.mark.parametrize(("batch", "reads_again"), [(4, 0), (3, 1)], ids=["short log is cached", "long one is not"])
def test_the_bytes_of_a_long_local_log_are_not_retained(
    history: DeltaHistory, monkeypatch: pytest.MonkeyPatch, batch: int, reads_again: int
) -> None:
    monkeypatch.setattr(table_log, "_BATCH", batch)
    history.create()
    for name in ("a", "b", "c"):
        history.commit(add(name))
    table = open_delta_table(history)
    assert table.history().height == 4
    before = table.storage.requests["read"]
    table.commit(2)
    assert table.storage.requests["read"] - before == reads_again
