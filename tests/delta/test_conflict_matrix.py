"""Which operation may follow which that another writer committed meanwhile: every pair, asserted cell by cell.

A cell says what becomes of the operation of its row, which began before that of its column was committed. `.`: it
follows, and the table has the rows that it has after the two in turn. Else it is refused, because the other one added
rows that it would have read (A), removed a file that it read (R) or removes too (D), changed the metadata (M), or
changed the protocol (P) or the progress of an application (T) that it changes too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.transaction import Transaction
from lakeview.model.errors import CommitConflictError
from tests.builders.opening import open_delta_table

LETTERS = {
    "concurrent-append": "A",
    "concurrent-delete-read": "R",
    "concurrent-delete-delete": "D",
    "metadata-changed": "M",
    "protocol-changed": "P",
    "concurrent-transaction": "T",
}
ROWS = pl.Schema({"id": pl.Int64, "city": pl.String, "n": pl.Int64})
TOUCHED = {"the same row": 1, "another row of the file": 2, "another file": 3, "another partition": 11}
NEW = {"the same row": 9, "another row of the file": 8, "another file": 8, "another partition": 19}
OURS = "the same row"
BEFORE = [(i, 0) for i in (1, 2, 3, 4, 11, 12, 13, 14)]


def rows(ids: list[int], n: int) -> pl.DataFrame:
    """Rows of Rome below 10, of Oslo above."""
    return pl.DataFrame({"id": ids, "city": ["Rome" if i < 10 else "Oslo" for i in ids], "n": n}, schema=ROWS)


def merge(txn: Transaction, ids: list[int], n: int) -> None:
    txn.merge(rows(ids, n), "id").when_matched_update().when_not_matched_insert().execute()


def operations(place: str, n: int) -> dict[str, Callable[[Transaction], Any]]:
    """Each operation, on a row of that place or on its partition; what it writes has this `n`."""
    touched, new = TOUCHED[place], NEW[place]
    city = "Rome" if touched < 10 else "Oslo"
    same = place == OURS
    return {
        "append": lambda txn: txn.append(rows([new], n)),
        "insert": lambda txn: txn.merge(rows([new], n), "id").when_not_matched_insert().execute(),
        "overwrite": lambda txn: txn.overwrite(rows([new], n), f"city = '{city}'"),
        "replace": lambda txn: txn.overwrite(rows([touched], n), f"id = {touched}"),
        "delete": lambda txn: txn.delete(f"id = {touched}"),
        "update": lambda txn: txn.update({"n": str(n)}, f"id = {touched}"),
        "merge": lambda txn: merge(txn, [new, touched], n),
        "optimize": lambda txn: txn.optimize(f"city = '{city}'"),
        "schema": lambda txn: txn.add_column("more", pl.Int64),
        "property": lambda txn: txn.set_properties({"owner": str(n)}),
        "protocol": lambda txn: txn.upgrade_protocol(["v2Checkpoint" if n == 1 else "domainMetadata"]),
        "txn": lambda txn: txn.set_transaction("app" if same else "another", 5),
    }


def rows_of(table: DeltaTable) -> list[tuple[int, int]]:
    return sorted(open_delta_table(table.address).scan().select("id", "n").collect().iter_rows())


def after(there: list[tuple[int, int]], operation: str, place: str, n: int) -> list[tuple[int, int]]:
    """The `id` and `n` of each row after an operation of `operations`."""
    touched, new = (TOUCHED[place], n), (NEW[place], n)
    others = [row for row in there if row[0] != touched[0]]
    match operation:
        case "append":
            return [*there, new]
        case "insert":
            return there if new[0] in dict(there) else [*there, new]
        case "overwrite":
            return [*(row for row in there if (row[0] < 10) != (touched[0] < 10)), new]
        case "replace":
            return [*others, touched]
        case "delete":
            return others
        case "update":
            return [*others, touched] if touched[0] in dict(there) else there
        case "merge":
            return [*(row for row in others if row[0] != new[0]), touched, new]
        case _:
            return there


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of two rows in each of two partitions; rows are deleted by vectors, or their files are rewritten."""
    place = tmp_path_factory.mktemp("matrix") / "table"
    vectors = "true" if request.param else "false"
    new = lv.create_table(
        str(place), dict(ROWS), partition_by=["city"], properties={"delta.enableDeletionVectors": vectors}
    )
    assert isinstance(new, DeltaTable)
    for first, _ in BEFORE[::2]:
        new.append(rows([first, first + 1], 0))
    return place


@pytest.fixture
def copies(table: Path, tmp_path: Path) -> Iterator[DeltaTable]:
    """Copies of the table, one after another."""

    def each() -> Iterator[DeltaTable]:
        while True:
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
            shutil.copytree(table, tmp_path / "copy")
            yield open_delta_table(tmp_path / "copy")

    return each()


MATRICES = {
    ("rewrites", "the same row"): """
             append   insert   overwrite replace  delete   update   merge    optimize schema   property protocol txn
   append    .        .        .        .        .        .        .        .        M        M        .        .
   insert    A        A        A        R        R        R        A        .        M        M        .        .
   overwrite A        A        D        D        D        D        D        D        M        M        .        .
   replace   .        .        D        D        D        D        D        D        M        M        .        .
   delete    .        .        D        D        D        D        D        D        M        M        .        .
   update    .        .        D        D        D        D        D        D        M        M        .        .
   merge     A        A        D        D        D        D        D        D        M        M        .        .
   optimize  .        .        D        D        D        D        D        D        M        M        .        .
   schema    .        .        .        .        .        .        .        .        M        M        .        .
   property  .        .        .        .        .        .        .        .        M        M        .        .
   protocol  .        .        .        .        .        .        .        .        M        M        P        .
   txn       .        .        .        .        .        .        .        .        M        M        .        T
    """,
    ("rewrites", "another file"): """
             append   insert   overwrite replace  delete   update   merge    optimize
   append    .        .        .        .        .        .        .        .
   insert    .        .        R        R        R        R        R        .
   overwrite A        A        D        D        D        D        D        D
   replace   .        .        D        .        .        .        .        D
   delete    .        .        D        .        .        .        .        D
   update    .        .        D        .        .        .        .        D
   merge     .        .        D        R        R        R        R        D
   optimize  .        .        D        D        D        D        D        D
    """,
    ("rewrites", "another partition"): """
             append   insert   overwrite replace  delete   update   merge    optimize
   append    .        .        .        .        .        .        .        .
   insert    .        .        R        R        R        R        R        .
   overwrite .        .        .        .        .        .        .        .
   replace   .        .        .        .        .        .        .        .
   delete    .        .        .        .        .        .        .        .
   update    .        .        .        .        .        .        .        .
   merge     .        .        R        R        R        R        R        .
   optimize  .        .        .        .        .        .        .        .
    """,
    ("vectors", "the same row"): """
             append   insert   overwrite replace  delete   update   merge    optimize
   append    .        .        .        .        .        .        .        .
   insert    A        A        A        .        .        .        A        .
   overwrite A        A        D        D        D        D        D        D
   replace   .        .        D        A        .        A        A        D
   delete    .        .        D        A        .        A        A        D
   update    .        .        D        A        D        A        A        D
   merge     A        A        D        A        R        A        A        D
   optimize  .        .        D        .        .        .        .        D
    """,
    ("vectors", "another row of the file"): """
             append   insert   overwrite replace  delete   update   merge    optimize
   append    .        .        .        .        .        .        .        .
   insert    .        .        R        .        .        .        .        .
   overwrite A        A        D        D        D        D        D        D
   replace   .        .        D        .        .        .        .        D
   delete    .        .        D        .        .        .        .        D
   update    .        .        D        .        .        .        .        D
   merge     .        .        D        R        R        R        R        D
   optimize  .        .        D        .        .        .        .        D
    """,
}
"""By the way rows are deleted and the place that the other operation changes: ours has the row with id 1, of Rome."""


def cases() -> list[Any]:
    """Each row of each matrix: ours, and what becomes of it by the operation of the other."""
    rows_of_matrices = []
    for (deletes, place), text in MATRICES.items():
        (*winners,), *lines = (line.split() for line in text.strip().splitlines())
        for ours, *cells in lines:
            expected = dict(zip(winners, cells, strict=True))
            name = f"{deletes}-{place}-{ours}"
            rows_of_matrices.append(pytest.param(deletes == "vectors", place, ours, expected, id=name))
    return rows_of_matrices


@pytest.mark.parametrize(("table", "place", "ours", "expected"), cases(), indirect=["table"])
def test_what_may_follow_what(copies: Iterator[DeltaTable], place: str, ours: str, expected: dict[str, str]) -> None:
    ours_here, theirs = operations(OURS, 1)[ours], operations(place, 2)
    cells = {}
    for winner in expected:
        copy = next(copies)
        mine = copy.transaction("MINE")
        ours_here(mine)
        with open_delta_table(copy.address).transaction("THEIRS") as txn:
            theirs[winner](txn)
        try:
            mine.commit()
        except CommitConflictError as error:
            cells[winner] = LETTERS[error.kind]
            continue
        cells[winner] = "."
        in_turn = after(after(BEFORE, winner, place, 2), ours, OURS, 1)
        assert rows_of(copy) == sorted(in_turn), f"{ours} after {winner}"
    assert cells == expected
