"""What charts are sent as: with escapes for what is unseen, while a click on a mark means the table's own text."""

from __future__ import annotations

import json
from typing import Any

import altair as alt
import polars as pl
import pytest
import streamlit as st

from lakeview import charts
from lakeview.app.chart_specs import plain_spec
from lakeview.app.row_links import note_unseen, picked_marks
from lakeview.views.partitions.layout import PARTITION_CELLS

UNSEEN = "so\N{ZERO WIDTH SPACE}uth"
SHOWN = r"so\u200buth"


def heatmap(hub: str) -> Any:
    days = ["2026-01-01", "2026-01-02"]
    cells = {"x": days, "y": [hub, hub], "partition_text": [f"day={day}/hub={hub}" for day in days]}
    counts = {name: [1, 2] for name in ("files", "bytes", "records")}
    return charts.partition_maps.partition_heatmap(pl.DataFrame(cells | counts, PARTITION_CELLS), ("day", "hub"))[0]


def test_what_is_unseen_is_an_escape_wherever_a_chart_shows_it() -> None:
    spec = plain_spec(heatmap(UNSEEN))
    sent = json.dumps(spec.to_dict(), ensure_ascii=False)
    assert UNSEEN not in sent
    assert sent.count(json.dumps(SHOWN)) > 2  # the domain of the axis and each cell
    assert spec.unseen[SHOWN] == UNSEEN
    assert spec.unseen[f"day=2026-01-01/hub={SHOWN}"] == f"day=2026-01-01/hub={UNSEEN}"


def test_a_chart_of_plain_texts_is_sent_as_it_is() -> None:
    chart = heatmap("south")
    spec = plain_spec(chart)
    assert (spec.chart is chart, dict(spec.unseen)) == (True, {})


def test_a_literal_of_an_expression_shows_the_escape() -> None:
    axis = alt.Axis(labelExpr=f"{{'0': '{UNSEEN}', '1': 'a\\'b'}}[datum.value]")
    spec = plain_spec(alt.Chart(pl.DataFrame({"a": [0]})).mark_point().encode(alt.X("a:O", axis=axis))).to_dict()
    assert spec["encoding"]["x"]["axis"]["labelExpr"] == r"{'0': 'so\\u200buth', '1': 'a\'b'}[datum.value]"


def test_a_click_on_a_mark_means_the_text_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, Any] = {"map": {"selection": {"picked": [{"hub": SHOWN, "commit": 5}, {"hub": "north"}]}}}
    monkeypatch.setattr(st, "session_state", state)
    note_unseen("map", {SHOWN: UNSEEN})
    assert picked_marks("map") == [{"hub": UNSEEN, "commit": 5}, {"hub": "north"}]
    note_unseen("map", {})
    assert picked_marks("map")[0] == {"hub": SHOWN, "commit": 5}
