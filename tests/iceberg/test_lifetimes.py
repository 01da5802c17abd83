"""Lives of files with statistics: what the manifests of the whole history tell of each column, read once."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeview as lv
from lakeview import views
from lakeview.errors import InvalidRequestError
from lakeview.views.column_loads import column_loads
from lakeview.views.column_states import column_states
from tests.builders.iceberg import IcebergHistory

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "note", "required": False, "type": "string"},
]


@pytest.fixture
def history(tmp_path: Path) -> IcebergHistory:
    """Three loads, the second without notes; the first is removed at last."""
    told = IcebergHistory(tmp_path / "t", FIELDS)
    first = told.append("a", [{"id": i, "note": "x"} for i in range(4)])
    told.append("b", [{"id": i, "note": None} for i in range(10, 12)])
    told.append("c", [{"id": 50, "note": "z"}])
    told.remove(first)
    return told


def test_loads_and_states_are_told_by_statistics_alone(history: IcebergHistory) -> None:
    table = lv.open_table(history.address)
    lives = table.lifetimes(columns=["id", "note"])
    line = views.timeline(table.history(), table.lifetimes())
    loads = column_loads(lives, line)
    notes = loads.filter(loads["column"] == "note").select("records", "null_count", "null_share", "min_text")
    assert notes.rows() == [(4, 0, 0.0, "x"), (2, 2, 1.0, None), (1, 0, 0.0, "z")]
    ids = column_states(lives, line).filter(column="id").select("records", "null_count", "low", "high", "range_is")
    assert ids.rows() == [
        (4, 0, 0.0, 3.0, "exact"),
        (6, 0, 0.0, 11.0, "exact"),
        (7, 0, 0.0, 50.0, "exact"),
        (3, 0, 10.0, 50.0, "exact"),
    ]


def test_each_version_is_told_as_its_own_statistics_tell_it(history: IcebergHistory) -> None:
    table = lv.open_table(history.address)
    states = column_states(table.lifetimes(columns=["id"]), views.timeline(table.history(), table.lifetimes()))
    for version, low, high in states.select("version", "low", "high").iter_rows():
        said = table.statistics(version, ["id"])["id"].struct
        assert (said.field("min").min(), said.field("max").max()) == (low, high)


def test_rows_that_a_load_wrote_are_known_though_deletes_may_apply(history: IcebergHistory) -> None:
    history.delete_equal("d", [history.fields["id"]], [{"id": 50}])
    table = lv.open_table(history.address)
    lives = table.lifetimes(columns=["note"])
    assert lives["records"].null_count() == lives.height
    loads = column_loads(lives, views.timeline(table.history(), table.lifetimes()))
    assert loads["null_share"].to_list() == [0.0, 1.0, 0.0]


def test_a_column_that_is_not_there_is_named(history: IcebergHistory) -> None:
    with pytest.raises(InvalidRequestError, match="there is no column nothing"):
        lv.open_table(history.address).lifetimes(columns=["nothing"])
