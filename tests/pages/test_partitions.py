"""The partitions page by number of keys, and one partition's life."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from lakeview.app import widths
from lakeview.app.partitions import panels
from tests.builders.actions import add, info, remove
from tests.builders.history import START, DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.pages.app import column_widths, open_page, text

pytestmark = pytest.mark.app


def table_with(app: AppTest, column: str) -> Any:
    return next(frame.value for frame in app.dataframe if column in frame.value.columns)


def partitioned(root: Path, *parts: dict[str, str]) -> Path:
    """A commit and a file a partition, one each day."""
    history = DeltaHistory(root)
    history.create(dict.fromkeys(parts[0], "string") | {"x": "long"}, partition_by=tuple(parts[0]))
    for i, part in enumerate(parts):
        path = "/".join(f"{k}={v}" for k, v in part.items()) + f"/f{i}.parquet"
        history.commit(add(path, size=1000 + i, records=10, partition=part), at=START + timedelta(days=i))
    return root


def test_who_wrote_a_partition_is_not_cut_on_a_narrow_page(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t")
    history.create({"m": "string", "x": "long"}, partition_by=("m",))
    for name in ("a", "b"):
        adds = add(f"m=9/{name}.parquet", size=1000, records=127_268, partition={"m": "9"})
        gone = [] if name == "a" else [remove("m=9/a.parquet", partition={"m": "9"})]
        history.commit(info(operation="overwrite", userName="pyiceberg 0.12.0"), adds, *gone)
    app = open_page("partitions", tmp_path / "t")
    pixels = column_widths(next(frame for frame in app.dataframe if "files_change" in frame.value.columns))
    assert pixels["writer"] >= widths.heading_width("pyiceberg 0.12.0")
    assert sum(pixels.values()) <= widths.PLACE - widths.TICK_BOXES


DAYS = [{"d": str(date(2024, 1, 1) + timedelta(days=i))} for i in range(60) if i != 7]


@pytest.mark.parametrize(
    ("parts", "title"),
    [
        pytest.param(DAYS, "1 missing in between; bytes, from the log; a click opens", id="a calendar of days"),
        pytest.param(DAYS[:9], "1 missing in between; rows, from the log", id="bars of a few days"),
        pytest.param(
            [{"hour": h} for h in ("9", "10", "12")], "1 missing in between; rows, from the log", id="bars of numbers"
        ),
        pytest.param([{"c": "AA"}, {"c": "B6"}], "rows, from the log; dashed line: median", id="bars of names"),
        pytest.param([{"c": f"{i}"} for i in range(61)], "the last 60 of 61; stronger is more rows", id="many names"),
        pytest.param([{"c": "AA", "d": "1"}, {"c": "B6", "d": "2"}], "a click opens", id="a grid"),
        pytest.param(
            [{"c": "AA", "d": "1", "e": "x"}, {"c": "B6", "d": "2", "e": "y"}], "a click opens", id="rectangles"
        ),
    ],
)
def test_the_picture_goes_by_the_keys(tmp_path: Path, parts: list[dict[str, str]], title: str) -> None:
    app = open_page("partitions", partitioned(tmp_path / "t", *parts))
    assert not app.exception
    assert title in text(app)
    assert len(table_with(app, "share")) == len(parts)


@pytest.mark.parametrize(("records", "names_gray"), [([1, 2], False), ([1, None], True)])
def test_gray_cells_are_explained_where_there_are_any(records: list[int | None], names_gray: bool) -> None:
    writes = pl.DataFrame({"partition_text": ["c=1", "c=2"], "records": records})
    assert ("gray unknown" in panels.writes_note(writes, writes)) is names_gray


def test_the_next_partition_is_expected_by_the_cadence(tmp_path: Path) -> None:
    app = open_page("partitions", partitioned(tmp_path / "t", *DAYS[:5]))
    tile = next(m for m in app.metric if m.label == "Next partition")
    assert tile.value == "2024-01-06"
    assert "overdue" in tile.delta
    earlier = open_page("partitions", tmp_path / "t", version="4")
    assert not earlier.exception
    assert "Next partition" not in [metric.label for metric in earlier.metric], "what came next is in later versions"


def test_one_partition_is_linked_to_and_chosen(good: Path) -> None:
    app = open_page("partitions", good, partition="month=2")
    assert app.selectbox(key="pick_partition").value == "month=2"
    assert table_with(app, "files_change")["version"].to_list() == ["v2"]
    onward = {link.label: parse_qs(link.proto.query_string) for link in app.page_link}
    files, rows = (
        next(query for label, query in onward.items() if name in label) for name in ("Its files", "Its rows")
    )
    assert (files["partition"], rows["where"]) == (["month=2"], ["month = 2"])
    app.selectbox(key="pick_partition").set_value("month=3").run()
    assert app.query_params["partition"] == "month=3"
    assert table_with(app, "files_change")["version"].to_list() == ["v3"]


def test_a_partition_that_is_not_there_is_said_not_to_be(good: Path) -> None:
    app = open_page("partitions", good, partition="month=99")
    assert not app.exception
    partition = app.selectbox(key="pick_partition").value
    assert f"**month=99 is no partition of v6.** :gray[{partition} is shown; perhaps" in text(app).replace("\\", "")


def test_hidden_partitions_are_read_as_months_with_their_gaps(tmp_path: Path) -> None:
    fields = [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "day", "required": False, "type": "date"},
    ]
    history = IcebergHistory(tmp_path / "notes", fields, [(2, "month", "day_month")])
    for i, month in enumerate((1, 2, 4, 5)):
        history.append(f"f{i}", [{"id": i, "day": date(2024, month, 3)}])
    app = open_page("partitions", history.address, partition="day_month=2024-04")
    assert not app.exception
    assert "1 missing in between" in text(app)
    assert app.selectbox(key="pick_partition").value == "day_month=2024-04"
    assert len(table_with(app, "files_change")) == 1


def test_a_table_that_has_only_files_from_before_it_was_partitioned_says_so(tmp_path: Path) -> None:
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    history = IcebergHistory(tmp_path / "notes", fields, [])
    history.append("f", [{"id": 1}])
    history.partition_by((1, "identity", "id")).evolve(fields)
    app = open_page("partitions", history.address)
    assert not app.exception
    assert "is in a partition.** :gray[It is partitioned by id since the last of them was written." in text(app)


def by_months_and_then(root: Path, *spec: tuple[int, str, str]) -> IcebergHistory:
    """Rows of two months, partitioned by month, and a table that is then partitioned otherwise."""
    fields = [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "day", "required": False, "type": "date"},
    ]
    history = IcebergHistory(root, fields, [(2, "month", "day_month")])
    for month in (1, 2):
        history.append(f"f{month}", [{"id": month, "day": date(2024, month, 3)}])
    history.partition_by(*spec).evolve(fields)
    return history


def test_a_version_under_an_earlier_spec_has_the_partitions_of_its_files(tmp_path: Path) -> None:
    history = by_months_and_then(tmp_path / "notes")
    app = open_page("partitions", history.address)
    assert not app.exception
    assert "**By day_month**" in text(app)
    assert table_with(app, "share")["partition"].to_list() == ["day_month=2024-01", "day_month=2024-02"]


def test_partitions_of_two_specs_are_two_pictures(tmp_path: Path) -> None:
    history = by_months_and_then(tmp_path / "notes", (2, "day", "on"))
    history.append("f3", [{"id": 3, "day": date(2024, 3, 3)}])
    app = open_page("partitions", history.address)
    assert not app.exception
    assert [note in text(app) for note in ("by day_month]]", "by on]]")] == [True, True]
    assert len(table_with(app, "share")) == 3
