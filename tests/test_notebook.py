"""Tables and snapshots in a notebook: every picture, and what they show of themselves."""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from IPython.core.formatters import IPythonDisplayFormatter

import lakeview as lv
from lakeview import notebook as nb
from lakeview.charts.theme import StackedChart
from lakeview.delta.table import DeltaTable
from lakeview.iceberg.table import IcebergTable
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.schema import Schema
from lakeview.sharing.client.table import SharedTable
from tests.views.story import flights

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
SCHEMA = Schema((Field("id", LONG), Field("month", LONG), Field("carrier", STRING)))


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """A small partitioned table of three versions that was just written."""
    table = lv.create_table(str(tmp_path / "flights"), SCHEMA, partition_by=["month"])
    table.append(pl.DataFrame({"id": [1, 2], "month": [1, 1], "carrier": ["AA", None]}))
    table.append(pl.DataFrame({"id": [3], "month": [2], "carrier": ["UA"]}))
    return table


def titles(chart: StackedChart) -> list[str]:
    return [str(panel.get("title", "")) for panel in chart.to_dict()["vconcat"]]


@pytest.mark.slow
def test_a_table_shows_its_timeline(table: Any) -> None:
    chart = nb.timeline(table)
    assert titles(chart)[:4] == ["Rows", "Live bytes, B", "Rows added and removed", "Commits"]
    assert titles(chart)[-1].startswith("Can it still be read?")
    assert "params" not in chart.to_dict()
    assert titles(nb.timeline(table, measure="files"))[2] == "Files added and removed"


def test_a_snapshot_or_a_table_shows_files_and_partitions(table: Any) -> None:
    assert titles(nb.files(table)) == titles(nb.files(table.snapshot()))
    assert titles(nb.partitions(table))[0] == "Rows; dashed: median"
    assert "2" in {row["partition"][-1] for row in _rows(nb.partition_writes(table)) if "partition" in row}


def test_nulls_are_told_by_version(table: Any) -> None:
    cells = [row for row in _rows(nb.nulls(table)) if row.get("column") == "carrier"]
    assert {(cell["version"], cell["share"]) for cell in cells} == {
        ("v0", "unknown"),  # no files yet
        ("v1", "50.0 %"),
        ("v2", "33.3 %"),
    }


def test_two_versions_show_what_changed_in_the_schema(table: Any) -> None:
    same = nb.schema_diff(table, 0)
    assert same.to_dict()["title"]["text"] == "Schema, v0 to v2"


def test_where_there_is_nothing_to_draw_a_sentence_says_so(tmp_path: Path) -> None:
    empty = lv.create_table(str(tmp_path / "empty"), SCHEMA)
    assert "This table has no partitions" in nb.partitions(empty).to_json()
    assert "The log does not tell when partitions were written" in nb.partition_writes(empty).to_json()


def test_pictures_need_no_log_for_a_snapshot_made_of_frames() -> None:
    assert titles(nb.files(flights().snapshot()))[0] == "Files"


class Shell:
    """A notebook's shell, as far as displays are concerned."""

    def __init__(self) -> None:
        self.display_formatter = self
        self.ipython_display_formatter = IPythonDisplayFormatter()


def test_tables_and_snapshots_draw_themselves(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = Shell()
    displays: list[Any] = []
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    monkeypatch.setattr("IPython.display.display", lambda *values: displays.extend(values))
    assert nb.register()
    assert shell.ipython_display_formatter(table)
    assert shell.ipython_display_formatter(table.snapshot())
    html, timeline, snapshot_html, files = displays
    assert "flights" in html.data
    assert "version" in snapshot_html.data
    assert titles(timeline)[:2] == ["Rows", "Files"]
    assert titles(files)[0] == "Files"
    assert not shell.ipython_display_formatter("anything else")


def test_outside_a_notebook_nothing_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not nb.register()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not nb.register()


def _rows(chart: StackedChart) -> list[dict[str, Any]]:
    return [row for rows in chart.to_dict().get("datasets", {}).values() for row in rows]


@pytest.mark.spark
@pytest.mark.slow
def test_the_tour_runs_and_holds_no_path_of_the_machine_that_ran_it(demo_lake: Path) -> None:
    executed: Any = _executing().execute(NOTEBOOKS / "tour.ipynb", demo_lake)
    text = json.dumps(executed)
    assert str(demo_lake.parent) not in text
    pictures = [o for c in executed.cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
    assert len(pictures) >= 7


def test_the_tour_that_is_kept_was_executed_and_names_no_machine() -> None:
    notebook: Any = json.loads((NOTEBOOKS / "tour.ipynb").read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [o for cell in code for o in cell["outputs"] if o["output_type"] == "error"]
    for cell in code:  # letters of a picture may spell anything
        for output in cell["outputs"]:
            output.get("data", {}).pop("image/png", None)
    text = json.dumps(notebook)
    assert not [place for place in ("/root/", "/home/", "/tmp/", "/Users/") if place in text]


def _executing() -> Any:
    """The script beside the notebooks, which is no package."""
    spec = importlib.util.spec_from_file_location("execute_notebooks", NOTEBOOKS / "execute.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", [DeltaTable, IcebergTable, SharedTable])
def test_help_describes_every_method_of_a_table(kind: type[lv.Table]) -> None:
    methods = inspect.getmembers(kind, inspect.isfunction)
    assert not [name for name, method in methods if not name.startswith("_") and not inspect.getdoc(method)]
