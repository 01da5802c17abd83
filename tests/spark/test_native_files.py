"""Which files are left to Python: those that Spark would skip, take for a pattern, or read with other rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring
import pytest

from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.model.errors import DataFileMissingError
from lakeview.model.schema import Schema
from lakeview.rows.tasks import Fallback, FileTask
from lakeview.spark import native_files
from lakeview.spark.native_files import NativeFile, divide
from lakeview.spark.native_layout import native_layout

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
SCHEMA = Schema.from_arrow(ROWS.schema)


def task(folder: Path, name: str, **settings: Any) -> FileTask:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(ROWS, path, compression=settings.pop("compression", "snappy"))
    return FileTask(str(folder), name, SCHEMA, size=path.stat().st_size, **settings)


@pytest.mark.parametrize("name", ["a.parquet", "sp ace%20é+#&'\".parquet", "p=a%3Ab/x.parquet", "_dir/x.parquet"])
def test_names_that_spark_reads(tmp_path: Path, name: str) -> None:
    native, others = divide([task(tmp_path, name)], SCHEMA)
    assert [file.path for file in native] == [str(tmp_path / name)]
    assert others == []


@pytest.mark.parametrize(
    "name",
    [
        "_a.parquet",
        ".a.parquet",
        "a._COPYING_",
        "a:b.parquet",
        "[a].parquet",
        "a*.parquet",
        "{a,b}.parquet",
        "a?b",
        "back\\slash.parquet",
        "two\nlines.parquet",
        "p=a:b/x.parquet",
    ],
)
def test_names_that_spark_skips_or_takes_for_patterns(tmp_path: Path, name: str) -> None:
    file_task = task(tmp_path, name)
    assert divide([file_task], SCHEMA) == ([], [file_task])


def test_the_footer_of_a_file_that_is_as_it_was_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = task(tmp_path, "a.parquet"), task(tmp_path, "b.parquet")
    divide([first, second], SCHEMA)
    footers: list[object] = []
    read = native_files._rows

    def count(footer: pq.FileMetaData) -> int | None:
        footers.append(footer)
        return read(footer)

    monkeypatch.setattr(native_files, "_rows", count)
    pq.write_table(pa.table({"id": ["a", "b", "c"]}), tmp_path / "b.parquet")
    second = replace(second, size=(tmp_path / "b.parquet").stat().st_size)
    native, others = divide([first, second], SCHEMA)
    assert (len(native), others, len(footers)) == (1, [second], 1)


def test_files_that_need_lakeviews_own_reader(tmp_path: Path) -> None:
    plain = task(tmp_path, "plain.parquet")
    twice = task(tmp_path, "twice.parquet")
    others = [
        task(tmp_path, "codec.parquet", compression="brotli"),
        task(tmp_path, "tracked.parquet", fallbacks={"id": Fallback(1)}),
        replace(task(tmp_path, "shorter.parquet"), size=1),
        replace(plain, path="gone.parquet"),
        twice,
        replace(twice, path="./twice.parquet"),
        task(tmp_path, "selected.parquet", selected_rows=DeletionVector("i", "x", None, 1, 1)),
    ]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    others.append(replace(plain, path="broken.parquet", size=4))
    native, others_left = divide([plain, *others], SCHEMA)
    assert [Path(file.path).name for file in native] == ["plain.parquet", "twice.parquet"]
    assert others_left == [other for other in others if other is not twice]


def test_a_deletion_vector_that_is_gone_is_said_before_any_row_is_read(tmp_path: Path) -> None:
    vector = DeletionVector("p", (tmp_path / "gone.bin").as_uri(), 1, 40, 1)
    with pytest.raises(DataFileMissingError, match="deletion vector file"):
        divide([task(tmp_path, "a.parquet", deleted_rows=vector)], SCHEMA)


def test_deleted_rows_beyond_the_file_are_left_to_the_reader_that_refuses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bitmap(vector: DeletionVector, storage: object) -> pyroaring.BitMap64:
        return pyroaring.BitMap64([vector.cardinality])

    monkeypatch.setattr(DeletionVector, "bitmap", bitmap)
    tasks = [task(tmp_path, f"{n}.parquet", deleted_rows=DeletionVector("u", "x", None, 1, n)) for n in (0, 2, 3)]
    native, others = divide(tasks, SCHEMA)
    assert [file.deleted_rows for file in native] == [pyroaring.BitMap64([0]), pyroaring.BitMap64([2])]
    assert others == tasks[2:]
    monkeypatch.setattr(native_files, "_BITMAP_BYTES", 8)
    assert divide(tasks[:2], SCHEMA)[1] == tasks[1:2]


def test_words_hold_a_bit_for_each_deleted_row() -> None:
    layout = native_layout(list(ROWS.schema), list(SCHEMA), "name")
    assert layout is not None
    file = NativeFile("x", layout, {}, None, pyroaring.BitMap64([0, 63, 64, 130]))
    assert file.words().tolist() == [1 - (1 << 63), 1, 4]
    assert NativeFile("x", layout, {}).words().tolist() == []
