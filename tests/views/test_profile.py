"""The profile of rows column by column, and samples of files and of rows."""

from __future__ import annotations

import random
from collections import Counter

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from lakeview.views.data import preview, profile
from lakeview.views.data.profile import DISTRIBUTIONS
from tests.views.at_once import distributions

ROWS = pl.DataFrame({"^x$": [1, 2, None], "x": ["b", "a", "a"], "l": [[1], None, [2]], "n": [None] * 3, "": [1.5] * 3})


def test_any_names_and_types_will_do() -> None:
    columns, rows = profile.profile(ROWS.lazy())
    assert (columns.schema, rows) == (profile.PROFILE, 3)
    assert columns.drop("type", "null_share", "distribution").rows() == [
        ("^x$", 1, 2, "1", "2"),
        ("x", 0, 2, "a", "b"),
        ("l", 1, None, None, None),
        ("n", 3, None, None, None),
        ("", 0, 1, "1.5", "1.5"),
    ]
    assert_frame_equal(profile.distribution(columns), distributions(ROWS))


def test_columns_that_do_not_fit_in_memory_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = profile.profile(ROWS.lazy())
    monkeypatch.setattr(profile, "_CELLS", 1)
    assert_frame_equal(profile.profile(ROWS.lazy())[0], whole)


def test_no_rows_or_columns() -> None:
    columns, rows = profile.profile(pl.LazyFrame())
    assert (columns.schema, columns.height, rows) == (profile.PROFILE, 0, 0)
    row = profile.profile(pl.LazyFrame(schema={"x": pl.Int64()}))[0].row(0, named=True)
    assert (row["null_share"], row["distinct"], row["min_text"]) == (None, 0, None)
    assert profile.distribution(columns).schema == DISTRIBUTIONS


def test_files_of_a_sample_fit_and_are_drawn_evenly() -> None:
    files = pl.DataFrame({"path": [f"part-{i}.parquet" for i in range(20)], "size": [*[10] * 19, None]})
    samples = [preview.sample_files(files, 55, seed) for seed in range(400)]
    assert {sample.height for sample in samples} == {5}
    assert preview.sample_files(files.sample(fraction=1, shuffle=True), 55, 3).equals(samples[3]), "the seed alone"
    times = Counter(pl.concat(samples)["path"])
    assert len(times) == 19
    assert all(60 < count < 150 for count in times.values()), "400 · 5 / 19 each"
    assert preview.sample_files(files, 9, 0).is_empty()


@pytest.mark.parametrize(("count", "files"), [(1, 1), (8, 1), (9, 3), (12, 3), (13, 4), (99, 5)])
def test_the_first_files_hold_the_first_rows(count: int, files: int) -> None:
    rows = pl.DataFrame({"path": list("abcde"), "records": [10, None, 4, 4, None], "deleted_records": [2, 0, 0, 0, 0]})
    assert preview.first_files(rows, count)["path"].to_list() == list("abcde"[:files])


def test_a_file_that_does_not_fit_does_not_end_the_sample() -> None:
    files = pl.DataFrame({"path": ["large", *(f"small-{i}" for i in range(9))], "size": [65, *[1] * 9]})
    assert {preview.sample_files(files, 64, seed).height for seed in range(10)} == {9}


def test_rows_of_a_sample_are_drawn_evenly_over_all_batches() -> None:
    rng = random.Random(1)
    parts = [pl.LazyFrame({"x": range(start, start + 100), "^y$": ["a"] * 100}) for start in range(0, 1000, 100)]
    samples = [preview.sample_rows(pl.concat(parts), 10, seed) for seed in rng.sample(range(10**6), 100)]
    assert {(sample.height, sample["x"].n_unique(), tuple(sample.columns)) for sample in samples} == {
        (10, 10, ("x", "^y$"))
    }
    thirds = Counter(pl.concat(samples)["x"] // 334)
    assert all(250 < count < 420 for count in thirds.values())
    assert preview.sample_rows(parts[0], 500, 1).height == 100
    assert preview.sample_rows(parts[0].rename({"^y$": "sample key"}), 5, 1).columns == ["x", "sample key"]
    assert preview.sample_rows(pl.LazyFrame(schema={"x": pl.Int64()}), 5, 1).is_empty()
