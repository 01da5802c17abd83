"""Metrics by column, compared with a look at each file's own."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeview.iceberg.manifests.entries import ENTRIES
from lakeview.iceberg.manifests.statistics import Metrics

MetricsOfFile = list[tuple[int | None, bytes | None]] | None

_some = st.none() | st.lists(st.tuples(st.none() | st.integers(1, 4), st.none() | st.binary(max_size=2)), max_size=4)


def entries(metrics_by_file: list[MetricsOfFile]) -> pl.DataFrame:
    values = [None if each is None else [{"key": k, "value": v} for k, v in each] for each in metrics_by_file]
    return pl.DataFrame({"lower_bounds": pl.Series(values, dtype=ENTRIES["lower_bounds"])})


def naive(metrics_by_file: list[MetricsOfFile], field_id: int) -> list[bytes | None]:
    return [next((v for k, v in each or () if k == field_id), None) for each in metrics_by_file]


@given(st.lists(_some, max_size=5))
def test_any_metrics_are_found(metrics_by_file: list[MetricsOfFile]) -> None:
    metrics = Metrics(entries(metrics_by_file))
    for field_id in range(6):
        values = metrics.value("lower_bounds", field_id)
        assert (values.to_list(), values.dtype) == (naive(metrics_by_file, field_id), pl.Binary())


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        ([1, 2, 3], [1, 2, 3], [1, 2, 3]),
        ([1, 2, 3], [1, 3, 2], [1, 2, 3]),
        ([1, 2, 3], [1, 2], [1, 2, 3]),
        ([1, 2], [1, 2], [1, 3]),
        ([1, 1], [1, 1], [1, 1]),
        ([1, 2], [1, None], [1, 2]),
        ([1, 2], [2, 1], [2, 1]),
    ],
)
def test_lists_that_are_alike_or_nearly_so(a: list[int], b: list[int], c: list[int]) -> None:
    metrics_by_file: list[MetricsOfFile] = [
        [(key, bytes([file, place])) for place, key in enumerate(keys)] for file, keys in enumerate((a, b, c))
    ]
    frame = entries(metrics_by_file)
    parts = pl.concat([frame.slice(0, 1), frame.slice(1, 2)], rechunk=False)
    for metrics in (Metrics(frame), Metrics(parts), Metrics(frame.slice(1))):
        for field_id in range(5):
            expected = naive(metrics_by_file, field_id)[3 - metrics.height :]
            assert metrics.value("lower_bounds", field_id).to_list() == expected
