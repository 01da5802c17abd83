"""The quality page: alerts first, then each load of a column, every version, every partition."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

import pyarrow as pa
import pytest
import streamlit as st

from lakeview.app.quality import panels
from tests.builders.actions import Action, metadata, protocol
from tests.builders.feeds import ids_file
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.builders.iceberg_branches import BranchedHistory
from tests.pages.app import open_page, text

pytestmark = pytest.mark.app


def test_the_bad_load_its_writer_and_its_repair_are_named(spoilt: Path) -> None:
    app = open_page("quality", spoilt)
    assert not app.exception
    page_text = text(app)
    assert "v10: delay is null in 100 % of 20 rows, expected 20.0 %" in page_text
    assert "days ago, 2026-03-11 06:00 UTC; repaired by v11, li, 1 day later" in page_text


def test_the_heatmap_of_many_loads_is_of_some_of_them_and_says_so(
    spoilt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panels, "MOST_LOADS", 3)
    app = open_page("quality", spoilt)
    loads = len(app.dataframe[0].value)
    assert f"2 of {loads} loads, the newest anomalies among them; without partition columns: month" in text(app)


def test_a_click_in_the_heatmap_is_one_step_of_history(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[dict[str, str]] = []

    class Parameters(dict[str, str]):
        def get_all(self, key: str) -> list[str]:
            return [self[key]]

        def from_dict(self, parameters: dict[str, str]) -> None:
            written.append(parameters)

        def __setitem__(self, key: str, value: str) -> None:
            pytest.fail(f"{key} is a step of its own")

    monkeypatch.setattr(st, "query_params", Parameters(table="t", column="a"))
    monkeypatch.setattr(st, "session_state", {"cells": {"selection": {"picked": [{"column": "b", "commit": 5}]}}})
    panels._pick_cell("cells")
    assert written == [{"table": ["t"], "column": "b", panels.LOAD: "5"}]


def test_the_heatmap_of_many_columns_is_of_some_of_them_and_says_so(
    spoilt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panels, "MOST_COLUMNS", 1)
    assert "1 of 2 columns, those with anomalies first" in text(open_page("quality", spoilt))


def test_loads_that_are_alike_raise_no_alarm(good: Path) -> None:
    app = open_page("quality", good)
    assert not app.exception
    assert "is null in" not in text(app)


def test_the_column_of_an_alert_is_looked_at_first_and_a_link_may_name_another(spoilt: Path) -> None:
    assert "Loads of delay" in text(open_page("quality", spoilt))
    app = open_page("quality", spoilt, column="carrier", load="8")
    assert "Loads of carrier" in text(app)
    assert {":blue[Its commit :material/chevron_right:]", ":blue[Its rows :material/chevron_right:]"} <= {
        link.label for link in app.page_link
    }
    assert [m.value for m in app.markdown if "in v8" in m.value] == ["**carrier** in v8 &ensp; null 0 %, expected 0 %"]


def test_every_version_is_told_for_the_whole_table(spoilt: Path) -> None:
    app = open_page("quality", spoilt, tab="Whole table", column="delay")
    assert not app.exception
    frame = app.dataframe[0].value
    assert frame["version"].to_list()[0] == "v11"
    assert frame["null"].round(1).to_list()[:3] == [20.0, 28.0, 20.0]


def test_a_link_to_a_column_that_no_load_has_says_which_is_shown(good: Path) -> None:
    app = open_page("quality", good, column="dela")
    column = app.selectbox(key="column").value
    line = f"**dela is no column whose loads are compared.** :gray[{column} is shown; perhaps delay is meant.]"
    assert line in text(app)


def test_partitions_of_the_version_shown_are_told_apart(good: Path) -> None:
    app = open_page("quality", good, tab="By partition", column="delay")
    assert not app.exception
    frame = app.dataframe[0].value
    assert frame["partition_text"].to_list() == ["month=1", "month=2", "month=3"]
    assert frame["null"].to_list() == [20.0, 20.0, 20.0]
    assert frame["max_text"].to_list() == ["19", "38", "57"]


def test_partitions_of_a_time_before_a_column_are_no_measure_for_its_nulls(tmp_path: Path) -> None:
    def rows(part: str, *values: int | None) -> Action:
        table = pa.table({"id": pa.array([1, 2], pa.int64())})
        nulls = {"id": 0}
        if values:
            table = table.append_column("seen", pa.array(values, pa.int64()))
            nulls["seen"] = values.count(None)
        stats = {"numRecords": 2, "nullCount": nulls}
        return history.data(f"{part}.parquet", table, stats=stats, partitionValues={"part": part})

    kinds = {"id": "long", "part": "string"}
    history = DeltaHistory(tmp_path / "t").commit(protocol(), metadata(kinds, partition_by=("part",)))
    history.commit(*map(rows, "abcd"))
    history.commit(metadata({**kinds, "seen": "long"}, partition_by=("part",)))
    history.commit(rows("e", 1, 2)).commit(rows("f", 3, 4)).commit(rows("g", None, None))
    rows_read = open_page("quality", tmp_path / "t", tab="By partition", column="seen").dataframe[0].value
    assert rows_read["null"].to_list() == [100.0] * 4 + [0.0, 0.0, 100.0]
    assert rows_read["unusual"].to_list() == [""] * 6 + ["\N{BLACK UP-POINTING TRIANGLE}"]


def test_a_branch_is_told_by_its_own_loads(tmp_path: Path) -> None:
    fields = [{"id": 1, "name": "amount", "required": False, "type": "long"}]
    history = BranchedHistory(tmp_path / "t", fields)
    history.append("a", [{"amount": 1}])
    history.branch("audit")
    with history.on("audit"):
        history.append("b", [{"amount": 77}])
    app = open_page("quality", tmp_path / "t", ref="audit", tab="Whole table", column="amount")
    assert not app.exception
    assert app.dataframe[0].value["max_text"].to_list() == ["77", "1"]
    assert open_page("quality", tmp_path / "t", tab="Whole table").dataframe[0].value["max_text"].to_list() == ["1"]


def test_a_column_that_is_gone_since_the_version_shown_is_no_hindrance(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long", "gone": "long"})
    history.commit(ids_file(history, "a", 1)).commit(metadata({"id": "long"}))
    app = open_page("quality", tmp_path / "t", version="1")
    assert not app.exception
    assert "Loads of id" in text(app)
    assert "**Since the load before: unknown.** :gray[There is one load" in text(app)


def test_days_from_old_events_are_told_against_what_is_usual(tmp_path: Path) -> None:
    log = DeltaHistory(tmp_path / "t").create({"day": "date"})
    for number in range(4):
        day = date(2013, 1, 1) + timedelta(days=number)
        stats = {
            "numRecords": 1,
            "minValues": {"day": str(day)},
            "maxValues": {"day": str(day)},
            "nullCount": {"day": 0},
        }
        log.commit(log.data(f"f{number}", {"day": [day]}, stats=stats), at=datetime(2026, 6, 2 + number, tzinfo=UTC))
    app = open_page("quality", tmp_path / "t")
    assert not app.exception
    specs = " ".join(chart.proto.spec for chart in app.get("vega_lite_chart"))
    assert "Beyond the baseline of 4,900 days from newest day to commit, days" in specs


def test_a_table_that_no_load_reaches_is_late_by_its_commits_not_by_the_events_of_the_last_one(tmp_path: Path) -> None:
    log = DeltaHistory(tmp_path / "t").create({"day": "date"})
    for number in range(8):
        day = date(2026, 6, 1) + timedelta(days=number)
        stats = {"numRecords": 1, "minValues": {"day": str(day)}, "maxValues": {"day": str(day)}}
        at = datetime(2026, 6, 1 + number, 4, tzinfo=UTC) + timedelta(days=2)
        log.commit(log.data(f"f{number}", {"day": [day]}, stats=stats), at=at)
    app = open_page("overview", tmp_path / "t")
    (last,) = [metric for metric in app.metric if metric.label == "Last commit"]
    assert last.delta == "every 1 day"
    assert "No new data for longer than expected" in text(app)
    specs = "".join(chart.proto.spec for chart in open_page("quality", tmp_path / "t").get("vega_lite_chart"))
    assert "From newest day to commit (the newest: 2 days behind)" in specs


def test_the_tables_own_rules_are_proved_or_left_open(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create(
        {"a": "long", "b": "long"},
        properties={"delta.constraints.positive": "a > 0", "delta.constraints.order": "a < b"},
    )
    for i, (low, nulls) in enumerate([(1, 0), (-5, 0), (2, 1)]):
        stats = {"numRecords": 3, "minValues": {"a": low}, "maxValues": {"a": 9}, "nullCount": {"a": nulls}}
        history.commit(history.data(f"f{i}", {"a": pa.array([low, 9, None if nulls else 9])}, stats=stats))
    app = open_page("quality", tmp_path / "t")
    assert not app.exception
    assert "positive is violated" in text(app)
    assert "positive is violated" in text(open_page("overview", tmp_path / "t"))
    assert "2 constraints, v3: proved by the statistics of its files or left open; no data is read" in text(app)
    rules = next(f.value for f in app.dataframe if "rule" in f.value)
    assert rules[["verdict", "rule", "files_violating", "records_violating"]].fillna(-1).values.tolist() == [
        ["\N{MULTIPLICATION X} violated", "a > 0", 2, 2],
        ["? unknown", "a < b", -1, -1],
    ]
    (link,) = [link for link in app.page_link if "Rows that violate positive" in link.label]
    where = parse_qs(link.proto.query_string)["where"][0]
    data = open_page("data", tmp_path / "t", where=where)
    assert data.button(key="read").label.startswith("Read rows: reads 2 files")
    data.button(key="read").click().run()
    assert data.dataframe[0].value["a"].fillna(0).to_list() == [-5, 0]
    broken = next(f.value for f in app.dataframe if "records_violating" in f.value and "path" in f.value)
    assert broken[["name", "version", "path"]].values.tolist() == [["positive", "v3", "f2"], ["positive", "v2", "f1"]]


def test_a_number_without_statistics_is_not_called_no_number(silent: Path) -> None:
    page_text = text(open_page("quality", silent))
    assert "has no range to compare.** :gray[It is not numeric, or no load has it in its statistics.]" in page_text


def test_a_table_without_rules_says_so(good: Path) -> None:
    app = open_page("quality", good)
    assert "This table has no constraints." in text(app)


def test_required_fields_of_the_second_format_are_proved(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "id", "required": True, "type": "long"}])
    history.append("a", [{"id": 1}, {"id": 2}])
    app = open_page("quality", history.address)
    assert not app.exception
    rules = next(f.value for f in app.dataframe if "rule" in f.value)
    assert rules[["verdict", "kind", "rule"]].values.tolist() == [
        ["\N{CHECK MARK} satisfied", "required", "id IS NOT NULL"]
    ]


def test_an_alert_leads_to_the_commit_to_blame(spoilt: Path) -> None:
    links = [link.proto for link in open_page("quality", spoilt).main.get("page_link")]
    assert [link.page for link in links if "commit=10" in link.query_string.split("&")] == ["timeline"]
