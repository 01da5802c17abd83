"""What is shown of nulls and rows is true of the rows: drawn tables whose columns came one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.model.column_values import least_records
from lakeview.views.units import format_version
from tests.builders.actions import metadata, protocol, remove
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.builders.vectors import deleting

COLUMNS = ("a", "b", "c", "d")


def drawn_rows(draw: Random, names: list[str]) -> list[dict[str, Any]]:
    null = draw.choice((0.0, 0.3, 1.0))
    return [
        {name: None if draw.random() < null else draw.randrange(9) for name in names} for _ in range(draw.randint(1, 6))
    ]


def delta(root: Path, draw: Random) -> str:
    """Appends with and without statistics, columns that come, go and come again, deletion vectors, and logs whose
    beginning was cleaned up."""
    history, names = DeltaHistory(str(root)), list(COLUMNS[:2])
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    history.commit(protocol(3, 7, **features), metadata(dict.fromkeys(names, "long")))
    live: dict[str, tuple[dict[str, Any], int]] = {}
    for number in range(draw.randint(3, 8)):
        what = draw.random()
        if what < 0.1 and len(names) > 1:
            names.pop()  # its files stay, and have it when it comes again
            history.commit(metadata(dict.fromkeys(names, "long")))
        elif what < 0.3 and len(names) < len(COLUMNS):
            names.append(COLUMNS[len(names)])
            history.commit(metadata(dict.fromkeys(names, "long")))
        elif what < 0.45 and live:
            path = draw.choice(sorted(live))
            added, rows = live.pop(path)
            deleted_rows = sorted(draw.sample(range(rows), draw.randint(1, rows)))
            again = {**added, "deletionVector": deleting(*deleted_rows)}
            if "stats" in added:
                again["stats"] = added["stats"].replace('"numRecords"', '"tightBounds": false, "numRecords"')
            history.commit(remove(path), {"add": again})
        else:
            path, rows_of = f"f{number}", drawn_rows(draw, names)
            table = pa.table({n: pa.array([r[n] for r in rows_of], pa.int64()) for n in names})
            columns_counted = names if draw.random() < 0.7 else names[:1]
            stats = {"numRecords": len(rows_of), "nullCount": {n: table[n].null_count for n in columns_counted}}
            action = history.data(path, table, stats=stats if draw.random() < 0.9 else None)
            live[path] = action["add"], len(rows_of)
            history.commit(action)
    if draw.random() < 0.4:
        kept_from = draw.randrange(1, history.version + 1)
        history.checkpoint(kept_from).without(*range(kept_from))
    return str(root)


def iceberg(root: Path, draw: Random) -> str:
    """Appends, new columns, also after the last snapshot, and position deletes."""

    def fields(count: int) -> list[dict[str, Any]]:
        return [{"id": i + 1, "name": n, "required": False, "type": "long"} for i, n in enumerate(COLUMNS[:count])]

    history, count = IcebergHistory(root / "t", fields(2), version=2), 2
    files: list[tuple[str, int]] = []
    for number in range(draw.randint(3, 8)):
        what = draw.random()
        if what < 0.3 and count < len(COLUMNS):
            count += 1
            history.evolve(fields(count))
        elif what < 0.5 and files:
            path, rows = draw.choice(files)
            history.delete_positions(f"d{number}", {path: sorted(draw.sample(range(rows), draw.randint(1, rows)))})
        else:
            rows_of = drawn_rows(draw, list(COLUMNS[:count]))
            files.append((history.append(f"f{number}", rows_of), len(rows_of)))
    return history.address


@pytest.mark.parametrize("build", [delta, iceberg])
@pytest.mark.parametrize("seed", range(25))
def test_every_null_share_and_row_count_is_true_of_the_rows(
    tmp_path: Path, build: Callable[[Path, Random], str], seed: int
) -> None:
    address = build(tmp_path, Random(seed))
    table = lv.open_table(address)
    check(table, lv.scan(address).collect())


@pytest.mark.app
@pytest.mark.parametrize("name", ["airlines", "claims", "daily_delays", "departures", "flights", "weather"])
def test_the_shares_of_the_demo_lake_are_true_of_its_rows(demo_lake: Path, name: str) -> None:
    address = str(demo_lake / name)
    check(lv.open_table(address), lv.scan(address).collect())


def check(table: lv.Table, rows: pl.DataFrame) -> None:
    look = lv.inspect(table)
    certain = not look.snapshot.files["deleted_records"].has_nulls()
    snapshot = look.snapshot
    if snapshot.num_records is not None:
        assert snapshot.num_records == rows.height
    least = least_records(snapshot.files, snapshot.delete_files)
    assert least is None or least <= rows.height
    (newest,) = look.timeline().filter(pl.col("version") == snapshot.version).select("records", "least_records").rows()
    assert newest[0] in (None, rows.height)
    assert newest[1] == (least if newest[0] is None else rows.height), "one answer on every page"
    tree = look.columns().tree.filter("leaf").select("path", "null_share", "null_share_mark")
    lives = lv.views.schema.column_history.column_lives(look.schema_versions()).filter(pl.len().over("column") == 1)
    since = dict(lives.select("column", "since").iter_rows())
    absent = look.columns().tree.drop_nulls("absent_share").select("path", "absent_share", "absent", "absent_text")
    for path, share, when, text in absent.iter_rows():
        assert text[0] in "≤≈" or share <= rows[path].null_count() / rows.height + 1e-9, (path, text)
        if since.get(path) is not None:
            assert when in ("in no file yet", f"before {format_version(since[path])}"), "one answer on every page"
    states = look.column_states()
    for path, share, mark in tree.drop_nulls("null_share").iter_rows():
        true = rows[path].null_count() / rows.height if rows.height else 0.0
        assert mark != "≈" or snapshot.files["records"].has_nulls() or not certain, (path, share, true)
        assert holds(share, mark, true), (path, share, mark, true)
        last = states.filter((pl.col("column") == path) & (pl.col("version") == snapshot.version)).tail(1)
        for null_share, its_mark in last.drop_nulls("null_share").select("null_share", "mark").iter_rows():
            assert holds(null_share, its_mark, true), ("state", path, null_share, its_mark, true)


def holds(share: float, mark: str, true: float) -> bool:
    match mark:
        case "≥":
            return share <= true + 1e-9
        case "≤":
            return share >= true - 1e-9
        case "≈":
            return True
    return share == pytest.approx(true)
