"""Rows that deletion vectors delete: left out wherever the vector lies, and never brought back by a broken one."""

from __future__ import annotations

import pickle
import struct
import uuid
from io import BytesIO
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeview as lv
from lakeview.delta.data.deletion_vectors import DeletionVector, file_of, z85_decoded
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, CorruptTableError, DataFileMissingError
from lakeview.rows.difference import Without
from lakeview.rows.parquet import read_task
from lakeview.storage import Storage, open_storage
from tests.builders.actions import add, metadata, protocol, remove
from tests.builders.history import CHECKPOINT_SHAPE, DeltaHistory
from tests.builders.opening import open_delta_table
from tests.builders.vectors import (
    Descriptor,
    absolute,
    deleting,
    entry,
    inline,
    native,
    portable,
    relative,
    vector_file,
    z85,
    z85_padded,
)

NAME = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
FILE = f"deletion_vector_{NAME}.bin"
WITH_VECTORS = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])


def masked(history: DeltaHistory, vector: Descriptor | None, rows: int = 10) -> DeltaHistory:
    """A table of one file with rows 0 to `rows`, some of them deleted."""
    more = {} if vector is None else {"deletionVector": vector}
    data = history.data("f", {"id": list(range(rows))}, stats={"numRecords": rows}, **more)
    return history.commit(WITH_VECTORS, metadata({"id": "long"}), data)


def ids(history: DeltaHistory, version: int | None = None) -> list[int]:
    return sorted(lv.open_table(history.address).scan(version).collect()["id"])


def corrupt(history: DeltaHistory) -> CorruptTableError:
    with pytest.raises(CorruptTableError) as caught:
        lv.open_table(history.address).scan().collect()
    assert not isinstance(caught.value, DataFileMissingError)
    assert caught.value.kind == "corrupt-deletion-vector"
    return caught.value


# -- where they lie


def test_one_in_a_file_below_the_table(address: str) -> None:
    history = DeltaHistory(address)
    data = portable([0, 3, 9])
    history.write(FILE, vector_file(data)[0])
    assert ids(masked(history, relative(NAME, data, 3))) == [1, 2, 4, 5, 6, 7, 8]


def test_one_in_a_folder_with_a_random_prefix_among_others(history: DeltaHistory) -> None:
    first, second = portable([0]), portable([1, 2])
    data, offsets = vector_file(first, second, first)
    history.write(f"aB/{FILE}", data)
    assert ids(masked(history, relative(NAME, second, 2, offset=offsets[1], prefix="aB"), 4)) == [0, 3]


def test_one_by_absolute_path_which_is_decoded_once(history: DeltaHistory) -> None:
    data = portable([1])
    history.write("vectors of%20/v.bin", vector_file(data)[0])
    assert ids(masked(history, absolute(f"file://{history.address}/vectors%20of%2520/v.bin", data, 1), 3)) == [0, 2]


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(deleting(1, 2, 3), id="portable, filled with zeros"),
        pytest.param(inline(native([1, 2, 3]), 3), id="native"),
        pytest.param({**deleting(1, 2, 3), "pathOrInlineDv": z85_padded(portable([1, 2, 3]))}, id="as Rust pads"),
    ],
)
def test_one_inside_the_log(history: DeltaHistory, vector: Descriptor) -> None:
    assert ids(masked(history, vector, 5)) == [0, 4]


def test_one_outside_the_table_needs_an_allowed_root(history: DeltaHistory, tmp_path: Path) -> None:
    data = portable([1])
    (tmp_path / "elsewhere.bin").write_bytes(vector_file(data)[0])
    masked(history, absolute(str(tmp_path / "elsewhere.bin"), data, 1))
    table = lv.open_table(history.address)
    assert table.snapshot().num_records == 9
    with pytest.raises(AccessDeniedError):
        table.scan().collect()
    task = table.tasks()[0]
    allowed = open_storage(history.address, config=Config(roots=(str(tmp_path),)))
    assert sum(batch.num_rows for batch in read_task(task, allowed)) == 9


@pytest.mark.parametrize("prefix", ["../../", "/etc/", "s3://other/"])
def test_a_prefix_that_leaves_the_table_is_refused(history: DeltaHistory, prefix: str) -> None:
    masked(history, relative(NAME, portable([1]), 1, prefix=prefix))
    with pytest.raises(AccessDeniedError):
        lv.open_table(history.address).scan().collect()


# -- what they mean


def test_positions_count_over_row_groups_and_batches(history: DeltaHistory) -> None:
    rows = 150_000
    dead_ids = {0, 65_535, 65_536, 99_999, 100_000, rows - 1, *range(20_000, 30_000)}
    buffer = BytesIO()
    pq.write_table(pa.table({"id": range(rows), "t": ["x"] * rows}), buffer, row_group_size=7_777)
    history.write("f", buffer.getvalue())
    history.commit(
        WITH_VECTORS,
        metadata({"id": "long", "t": "string"}),
        add("f", records=rows, deletionVector=deleting(*dead_ids)),
    )
    scan = lv.open_table(history.address).scan()
    live_ids = set(range(rows)) - dead_ids
    assert scan.select("id").collect()["id"].to_list() == sorted(live_ids)
    assert scan.select(pl.len()).collect().item() == len(live_ids)
    assert scan.filter(pl.col("id") >= 99_998).collect()["id"].to_list() == sorted(i for i in live_ids if i >= 99_998)
    assert scan.head(3).collect()["id"].to_list() == [1, 2, 3]


def test_counts_are_of_live_rows_and_files_of_physical_ones(history: DeltaHistory) -> None:
    table = lv.open_table(masked(history, deleting(2, 5)).address)
    snapshot = table.snapshot()
    assert (snapshot.num_records, snapshot.num_files) == (8, 1)
    assert snapshot.files.select("records", "deleted_records").row(0) == (10, 2)
    assert snapshot.files["deletion_vector"][0].startswith("i")


def test_every_row_may_be_gone(history: DeltaHistory) -> None:
    table = lv.open_table(masked(history, deleting(*range(10))).address)
    assert table.scan().collect().height == table.snapshot().num_records == 0
    assert table.scan().collect_schema().names() == ["id"]


def test_each_version_has_its_own_vector_whatever_the_order_of_actions(history: DeltaHistory) -> None:
    masked(history, None)
    first, second = deleting(1), deleting(1, 2)
    history.commit(add("f", records=10, deletionVector=first), remove("f"))
    history.commit(remove("f", deletionVector=first), add("f", records=10, deletionVector=second))
    history.commit(add("f", records=10), remove("f", deletionVector=second))
    assert [10 - len(ids(history, version)) for version in range(4)] == [0, 1, 2, 0]


def test_one_in_a_checkpoint(history: DeltaHistory) -> None:
    data = portable([4, 5])
    history.write(FILE, vector_file(b"other", data)[0])
    masked(history, relative(NAME, data, 2, offset=1 + len(entry(b"other"))))
    vector = pa.struct(
        {"storageType": pa.string(), "pathOrInlineDv": pa.string(), "offset": pa.int32(), "sizeInBytes": pa.int32(),
         "cardinality": pa.int64()}.items()
    )  # fmt: skip
    with_vectors = {**CHECKPOINT_SHAPE, "add": {**CHECKPOINT_SHAPE["add"], "deletionVector": vector}}
    history.checkpoint(shape=with_vectors).without(0)
    assert ids(history) == [0, 1, 2, 3, 6, 7, 8, 9]


def test_filters_see_bounds_that_are_only_bounds(history: DeltaHistory) -> None:
    stats = {"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 3}, "nullCount": {"id": 1},
             "tightBounds": False}  # fmt: skip
    history.commit(
        WITH_VECTORS, metadata({"id": "long"}),
        history.data("f", {"id": [1, None, 3]}, stats=stats, deletionVector=deleting(0, 1)),
    )  # fmt: skip
    table = lv.open_table(history.address)
    assert table.scan().filter(pl.col("id").is_null()).collect().height == 0
    assert table.scan().filter(pl.col("id") == 1).collect().height == 0
    assert table.scan().filter(pl.col("id") != 1).collect()["id"].to_list() == [3]
    assert table.scan().filter(pl.col("id").is_not_null()).collect().height == 1
    bounds = table.statistics()["id"].struct.unnest()
    assert (bounds["exact"][0], bounds["null_count_exact"][0]) == (False, False)


def test_tasks_travel_with_their_vectors(history: DeltaHistory) -> None:
    masked(history, deleting(*range(9)))
    task = pickle.loads(pickle.dumps(lv.open_table(history.address).tasks()[0]))
    assert [batch.to_pylist() for batch in read_task(task)] == [[{"id": 9}]]


def test_rows_that_one_vector_deletes_and_another_does_not(history: DeltaHistory) -> None:
    storage = open_storage(masked(history, None).address)
    before, after = (DeletionVector.of(_columns(deleting(*rows))) for rows in ([1, 2], [2, 3, 4]))
    assert before is not None
    assert after is not None
    assert list(Without(after, before).bitmap(storage)) == [3, 4]
    assert list(Without(before, after).bitmap(storage)) == [1]


def test_what_removes_a_file_with_a_deletion_vector_names_both(history: DeltaHistory) -> None:
    table = open_delta_table(masked(history, deleting(1)).address)
    (vector,) = table.files()["deletion_vector"]
    table.overwrite(pl.DataFrame({"id": [1]}))
    assert table.snapshot().num_files == 1
    assert table.state().removes(["vector"])["deletion_vector"].to_list() == [vector]


@pytest.mark.parametrize(("before", "parts"), [(0, 1), (64 * 1024, 2)], ids=["near the start", "far in"])
def test_of_a_file_of_many_vectors_only_the_one_asked_for_is_read(
    history: DeltaHistory, monkeypatch: pytest.MonkeyPatch, before: int, parts: int
) -> None:
    vector = portable([1, 3])
    data, offsets = vector_file(*([bytes(before)] if before else []), vector, bytes(1_000_000))
    masked(history, {**relative(NAME, vector, 2), "offset": offsets[-2]}).write(FILE, data)
    table = open_delta_table(history.address)
    sizes: list[int] = []
    real = type(table.storage).read_range

    def read_and_count(storage: Storage, path: str, start: int, length: int) -> bytes:
        part = real(storage, path, start, length)
        sizes.append(len(part))
        return part

    monkeypatch.setattr(type(table.storage), "read_range", read_and_count)
    assert table.scan().collect()["id"].to_list() == [0, 2, 4, 5, 6, 7, 8, 9]
    assert len(sizes) == parts
    assert sum(sizes) == 1 + 4 + len(vector) + 4


# -- what is broken


def test_a_file_that_is_gone_is_named_and_only_rows_need_it(history: DeltaHistory) -> None:
    masked(history, relative(NAME, portable([1]), 1))
    table = lv.open_table(history.address)
    assert table.snapshot().num_records == 9
    with pytest.raises(DataFileMissingError, match=FILE) as caught:
        table.scan().collect()
    assert caught.value.place == FILE
    facts = table.versions().row(0, named=True)
    assert (facts["readable"], facts["reason"]) == (
        False, "1 of its data files and deletion vectors is missing from the store",
    )  # fmt: skip


def test_a_path_that_leads_nowhere_is_a_file_that_is_gone(history: DeltaHistory) -> None:
    masked(history, absolute("file:{{FOLDER}}/v.bin", portable([1]), 1))
    with pytest.raises(DataFileMissingError, match="is no absolute path"):
        lv.open_table(history.address).scan().collect()


DATA = portable([1, 2, 3])
WHOLE = vector_file(DATA)[0]


@pytest.mark.parametrize(
    ("file", "change", "why"),
    [
        pytest.param(b"", {}, "its file begins with nothing", id="an empty file"),
        pytest.param(WHOLE[:-1], {}, "reach beyond the file's", id="a file cut short"),
        pytest.param(b"\x02" + WHOLE[1:], {}, "its file begins with 02; 01 is the one known", id="another version"),
        pytest.param(WHOLE[:-1] + b"\0", {}, "its checksum does not fit its bytes", id="another checksum"),
        pytest.param(WHOLE[:9] + b"\2" + WHOLE[10:], {}, "its checksum does not fit its bytes", id="another byte"),
        pytest.param(WHOLE, {"offset": -1}, "bytes at -1", id="a negative offset"),
        pytest.param(WHOLE, {"offset": 2**62}, "387,904, from which on its file has 0 bytes", id="far offset"),
        pytest.param(WHOLE, {"offset": None}, "the log says", id="no offset, which means 0, where the version is"),
        pytest.param(
            WHOLE, {"offset": len(WHOLE) - 3}, "from which on its file has 3 bytes", id="the last three bytes"
        ),
        pytest.param(WHOLE, {"sizeInBytes": 7}, f"it holds {len(DATA)} bytes, and the log says 7", id="another size"),
        pytest.param(WHOLE, {"sizeInBytes": -1}, "the log says -1 bytes", id="a negative size"),
        pytest.param(
            b"\x01" + struct.pack(">i", 2**31 - 1) + DATA, {"sizeInBytes": 2**31 - 1}, "reach beyond", id="2 GiB"
        ),
        pytest.param(
            b"\x01" + struct.pack(">i", -5) + DATA, {"sizeInBytes": -5}, "the log says -5 bytes", id="size below 0"
        ),
        pytest.param(WHOLE, {"cardinality": 4}, "it deletes 3 rows, and the log says 4", id="another cardinality"),
        pytest.param(WHOLE, {"cardinality": -1}, "it deletes 3 rows, and the log says -1", id="negative cardinality"),
        pytest.param(vector_file(b"no bitmap at all")[0], {"sizeInBytes": 16}, "no magic number", id="no bitmap"),
    ],
)
def test_a_broken_file_gives_no_rows(history: DeltaHistory, file: bytes, change: Descriptor, why: str) -> None:
    history.write(FILE, file)
    masked(history, {**relative(NAME, DATA, 3), **change})
    error = corrupt(history)
    assert why in error.message
    assert error.place == FILE


@pytest.mark.parametrize(
    ("vector", "why"),
    [
        pytest.param({**deleting(1), "pathOrInlineDv": "abc"}, "its text is not Z85", id="no whole group"),
        pytest.param({**deleting(1), "pathOrInlineDv": "ab d~"}, "its text is not Z85", id="letters it does not have"),
        pytest.param({**deleting(1), "pathOrInlineDv": "%%%%%"}, "more than four bytes", id="a number of 33 bits"),
        pytest.param({**deleting(1), "pathOrInlineDv": "#####"}, "its text is not Z85", id="nothing but filling"),
        pytest.param(
            {**deleting(1), "pathOrInlineDv": "#$$$$"}, "more bytes than it says", id="a last group too large"
        ),
        pytest.param({**deleting(1), "sizeInBytes": 3}, "and the log says 3", id="less than there is"),
        pytest.param({**deleting(1), "sizeInBytes": 2**40}, "and the log says 1,099", id="more than there is"),
        pytest.param({**deleting(1), "cardinality": 2**40}, "the log says 1,099,511,627,776", id="2^40 rows"),
        pytest.param({**deleting(1), "storageType": "x"}, "storage type 'x'", id="a storage type no one knows"),
        pytest.param({**deleting(1), "storageType": "u", "pathOrInlineDv": "ab"}, "storage type 'u'", id="no uuid"),
        pytest.param(
            {**deleting(1), "storageType": "u", "pathOrInlineDv": "~" * 20}, "not Z85", id="a uuid that is none"
        ),
        pytest.param(deleting(3, 10), "holds 10 rows, and its deletion vector names row 10", id="beyond the file"),
        pytest.param(deleting(*range(5000)), "names row 4,999", id="more rows than the file has"),
    ],
)
def test_a_broken_descriptor_gives_no_rows(history: DeltaHistory, vector: Descriptor, why: str) -> None:
    masked(history, vector)
    assert why in corrupt(history).message
    assert lv.open_table(history.address).snapshot().num_files == 1


@given(st.binary(max_size=40))
def test_z85_gives_back_what_went_in(data: bytes) -> None:
    assert z85_decoded(z85_padded(data), "v") == data
    assert z85_decoded(z85(data + bytes(-len(data) % 4)), "v")[: len(data)] == data


@given(st.text(max_size=40) | st.text("0#%$abZ", max_size=20))
def test_text_that_is_no_z85_is_corrupt(text: str) -> None:
    try:
        data = z85_decoded(text, "v")
    except CorruptTableError:
        return
    assert z85_decoded(z85_padded(data), "v") == data


def test_the_file_in_a_unique_id() -> None:
    assert file_of(f"uab{z85(NAME.bytes)}@4") == f"ab/{FILE}"
    assert file_of(f"u{z85(NAME.bytes)}") == FILE
    assert file_of("p/a%20b/v.bin@17") == "/a b/v.bin"
    assert file_of("iwi5b=") is None


def _columns(vector: Descriptor) -> dict[str, object]:
    names = {"storage_type": "storageType", "path_or_inline_dv": "pathOrInlineDv", "offset": "offset",
             "size_in_bytes": "sizeInBytes", "cardinality": "cardinality"}  # fmt: skip
    return {ours: vector.get(theirs) for ours, theirs in names.items()}
