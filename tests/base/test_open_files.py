"""Rows of new files are encoded before many of them are in memory."""

from __future__ import annotations

import pyarrow as pa

from lakeview.rows.open_files import OpenFiles


class Recorded:
    """A file that records its row groups."""

    size = 1

    def __init__(self) -> None:
        self.groups: list[int] = []

    @property
    def rows(self) -> int:
        return sum(self.groups)

    def write(self, rows: pa.Table) -> None:
        self.groups.append(rows.num_rows)

    def close(self) -> list[int]:
        return self.groups

    def discard(self) -> None:
        raise AssertionError("no file is dropped")


def test_two_batches_of_a_data_file_are_a_row_group() -> None:
    batches = [pa.record_batch({"id": pa.nulls(65_536)})] * 5
    files: OpenFiles[None, list[int]] = OpenFiles(lambda _: Recorded())
    assert files.write_all(batches, lambda rows: [((), None, rows)]) == [[131_072, 131_072, 65_536]]
