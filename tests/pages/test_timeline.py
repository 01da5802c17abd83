"""The timeline: its filters, the choice of one commit, and that commit's drawer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import lakeview as lv
from lakeview.app import commits, timeline_filters, widths
from lakeview.app.components import BROKEN_LINES, ROW_HEIGHT
from lakeview.app.query import budget
from lakeview.inspection import inspection
from tests.builders.actions import add as add_action
from tests.builders.actions import info
from tests.builders.actions import remove as remove_action
from tests.builders.history import DeltaHistory
from tests.pages.app import column_widths, open_page, text
from tests.pages.tables import LogWriter, flights, remove


def test_the_newest_commit_is_open_at_first(good: Path) -> None:
    app = open_page("timeline", good)
    assert "v6 · DELETE" in text(app)


def test_a_link_opens_the_drawer_of_a_commit(good: Path) -> None:
    app = open_page("timeline", good, commit="4")
    assert app.selectbox(key="pick_commit").value == "4"
    assert "v4 · ADD COLUMNS" in text(app)


def test_a_link_to_a_commit_that_is_not_there_says_which_is_shown(good: Path) -> None:
    assert "**The log has no commit 99.** :gray[v6 is shown.]" in text(open_page("timeline", good, commit="99"))


def test_choosing_a_commit_opens_its_drawer_and_writes_the_url(good: Path) -> None:
    app = open_page("timeline", good)
    app.selectbox(key="pick_commit").set_value("2").run()
    assert "v2 · WRITE" in text(app)
    assert app.query_params["commit"] == "2"


def test_the_drawer_says_who_wrote_what(good: Path) -> None:
    app = open_page("timeline", good, commit="5")
    facts = dict(app.table[0].value.itertuples(index=False, name=None))
    assert facts["writer"] == "ingest"
    assert facts["engine"] == "a test"
    assert facts["committed"] == "2026-03-06 06\\:00\\:00 UTC"
    assert ":green[**+**] 1 file, " in text(app)
    assert ", 60 rows" in text(app)


def test_the_drawer_and_the_table_of_commits_name_one_writer(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    history.commit(info(operation="WRITE", engineInfo="Engine/1.0"), add_action("a.parquet"))
    app = open_page("timeline", tmp_path / "t")
    facts = dict(app.table[0].value.itertuples(index=False, name=None))
    assert facts["writer"] == app.dataframe[0].value["writer"][0] == "Engine/1.0"


def test_the_drawer_shows_lists_as_text_and_an_engine_once(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    deep = "[" * 3_000
    parameters = {"partitionBy": '["day","hub/region"]', "zOrderBy": "[]", "predicate": '["(a = 1)"]', "mode": deep}
    engine = {"engineInfo": "delta-rs:py-1.6.6", "clientVersion": "delta-rs.py-1.6.6"}
    history.commit(info(operation="WRITE", operationParameters=parameters, **engine), add_action("a.parquet"))
    facts = dict(open_page("timeline", tmp_path / "t").table[0].value.itertuples(index=False, name=None))
    assert [facts[name] for name in parameters] == ["day, hub/region", "none", "(a = 1)", "\\[" * 3_000]
    assert facts["engine"] == "delta-rs\\:py-1.6.6"


def test_commits_can_be_narrowed_to_a_lane(good: Path) -> None:
    app = open_page("timeline", good)
    app.pills(key="lanes").set_value(["schema"]).run()
    assert not app.exception
    assert app.dataframe[0].value["version"].to_list() == ["v4"]
    assert "1 of 7 commits" in text(app)
    assert "v6 · DELETE" not in text(app)
    assert "v4 · ADD COLUMNS" in text(app)


def test_the_open_commit_stays_marked_in_the_table_when_filters_change_its_rows(good: Path) -> None:
    app = open_page("timeline", good, commit="4")
    before = app.dataframe[0].proto
    app.pills(key="lanes").set_value(["schema"]).run()
    after = app.dataframe[0].proto
    assert json.loads(before.selection_default)["selection"]["rows"] == [2]
    assert json.loads(after.selection_default)["selection"]["rows"] == [0]
    assert after.id != before.id  # under the same id the browser keeps its own selection, and marks no other row


def test_commits_can_be_narrowed_to_a_writer(good: Path) -> None:
    app = open_page("timeline", good)
    app.selectbox(key="writer").set_value("li").run()
    assert app.dataframe[0].value["version"].to_list() == ["v6", "v4"]


def test_a_filter_that_nothing_passes_says_so(good: Path) -> None:
    app = open_page("timeline", good)
    app.pills(key="lanes").set_value(["schema"]).run()
    app.selectbox(key="writer").set_value("ingest").run()
    assert not app.exception
    assert "No commit matches these filters" in text(app)


def test_a_commit_that_the_filters_leave_out_stays_open_if_it_was_chosen(good: Path) -> None:
    app = open_page("timeline", good, commit="2")
    app.selectbox(key="writer").set_value("li").run()
    assert not app.exception
    assert "v2 · WRITE" in text(app)
    assert "v6 · DELETE" in text(open_page("timeline", good, writer="li"))


def test_filters_leave_the_panels_and_their_time_as_they_are(good: Path) -> None:
    def panels(**parameters: str) -> list[list[object]]:
        charts = open_page("timeline", good, **parameters).get("vega_lite_chart")
        specs = [json.loads(chart.proto.spec) for chart in charts]
        return [
            [spec.get("title"), [layer["encoding"].get("x", {}).get("scale") for layer in spec["layer"]]]
            for spec in specs
        ]

    assert panels()
    assert panels(lanes="schema") == panels()
    assert panels(lanes="schema", writer="ingest") == panels()


def test_the_drawer_leads_with_the_reason_then_what_changed_then_metadata(spoilt: Path) -> None:
    app = open_page("timeline", spoilt, commit="10")
    page_text = text(app)
    reason = "Bad load: delay is null in 100 % of 20 rows, expected 20.0 %; repaired by v11, li, 1 day later"
    assert reason in page_text
    parts = ("v10 · WRITE", reason, ":green[**+**] 1 file, ", "Table after it", "night-feed")
    tables = "".join(str(table.value) for table in app.table)
    places = [page_text.index(part) for part in parts[:-1]]
    assert places == sorted(places)
    assert parts[-1] in tables
    assert "Bad load" not in text(open_page("timeline", spoilt, commit="9"))


def test_rows_of_a_commit_are_those_it_changed_and_are_read(spoilt: Path) -> None:
    assert len(open_page("timeline", spoilt, commit="10").dataframe) == 1
    app = open_page("timeline", spoilt, commit="10", preview="True")
    assert not app.exception
    rows = app.dataframe[1].value
    assert len(rows) == 20
    assert rows["delay"].isna().all()
    assert "all 20 rows that it added" in text(app)
    (link,) = [link for link in app.get("page_link") if "All its changes on the Data page" in link.proto.label]
    assert {"tab=Changes", "version=10"} <= set(link.proto.query_string.split("&"))


def test_rows_that_a_commit_added_are_read_though_those_it_removed_are_gone(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "flights").create()
    wrong, right = log.add("wrong", flights(1, 30), 1), log.add("right", flights(1, 12), 1)
    log.commit("WRITE", wrong)
    log.commit("OVERWRITE", remove(wrong), right)
    log.commit("DELETE", remove(right))
    (log.root / wrong["add"]["path"]).unlink()
    app = open_page("timeline", log.root, commit="2", preview="True")
    assert len(app.dataframe[1].value) == 12
    app = open_page("timeline", log.root, commit="3", preview="True")
    assert "all 12 rows that it removed" in text(app)


def test_rows_of_a_large_commit_are_not_read_without_a_further_click(
    spoilt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "CHEAP", 100)
    app = open_page("timeline", spoilt, commit="10", preview="True")
    assert not app.exception
    assert len(app.dataframe) == 1
    assert "Its rows are in 1 file, " in text(app)


def test_every_filter_is_kept_in_the_url_and_a_link_sets_it(good: Path) -> None:
    app = open_page("timeline", good)
    app.pills(key="lanes").set_value(["schema", "append"]).run()
    app.selectbox(key="writer").set_value("li").run()
    assert app.query_params["lanes"] == "schema,append"
    assert app.query_params["writer"] == "li"
    linked = open_page("timeline", good, lanes="append,schema", writer="li", span="last 7 days")
    assert linked.dataframe[0].value["version"].to_list() == ["v4"]
    app.pills(key="lanes").set_value([]).run()
    app.selectbox(key="writer").set_value("all writers").run()
    assert "lanes" not in app.query_params
    assert "writer" not in app.query_params


def test_words_of_a_link_that_are_no_filter_filter_nothing(good: Path) -> None:
    app = open_page("timeline", good, lanes="nothing", writer="nobody", **{"from": "yesterday", "to": "9"})
    assert not app.exception
    assert len(app.dataframe[0].value) == 7
    line = "**nobody is no writer of these commits.** :gray[those of all writers are shown; choose from ingest, li.]"
    assert line in text(app)


def test_a_link_may_name_a_writer_beyond_those_to_choose_from(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.app.timeline_filters._MOST_WRITERS", 0)
    app = open_page("timeline", good, writer="li")
    assert app.selectbox(key="writer").options == ["all writers", "li"]
    assert "is no writer" not in text(app)


def charts_to_select_in(app: AppTest) -> set[str]:
    """The ids of the charts in which something can be clicked or dragged."""
    ids = {chart.proto.id for chart in app.get("vega_lite_chart")} - {""}
    assert ids
    return ids


def at(day: int, hour: int = 6) -> datetime:
    """A moment of March as the slider has them: in UTC, without saying so."""
    return datetime(2026, 3, day, hour, tzinfo=UTC).replace(tzinfo=None)


def test_a_range_of_time_in_a_link_narrows_commits_and_sets_the_slider(good: Path) -> None:
    app = open_page("timeline", good, **{"from": "2026-03-02T06:00", "to": "2026-03-04T06:00"})
    assert app.dataframe[0].value["version"].to_list() == ["v3", "v2", "v1"]
    assert app.slider(key="range").value == (at(2), at(4))


def test_the_slider_writes_its_range_to_the_url_and_any_time_takes_it_away(good: Path) -> None:
    app = open_page("timeline", good)
    before = charts_to_select_in(app)
    app.slider(key="range").set_range(at(5), at(7, 7)).run()
    assert (app.query_params["from"], app.query_params["to"]) == ("2026-03-05T06:00", "2026-03-07T07:00")
    assert app.dataframe[0].value["version"].to_list() == ["v6", "v5", "v4"]
    assert charts_to_select_in(app).isdisjoint(before), "of charts that stay a browser keeps the gray brush"
    app.button(key="any-time").click().run()
    assert "from" not in app.query_params
    assert len(app.dataframe[0].value) == 7


def test_the_drawer_of_a_schema_change_says_what_changed(good: Path) -> None:
    page_text = text(open_page("timeline", good, commit="4"))
    assert "added **cancelled**" in page_text
    assert "added" not in text(open_page("timeline", good, commit="5"))


def test_the_writers_tab_says_who_writes_what(good: Path) -> None:
    app = open_page("timeline", good, tab="Writers")
    assert not app.exception
    rows = app.dataframe[0].value.set_index("writer")
    assert rows["commits"].to_dict() == {"ingest": 5, "li": 2}
    assert rows.loc["ingest", "engines"] == "a test"
    work = app.dataframe[1].value.set_index("writer")
    assert work.loc["ingest", "append"] == 4
    assert work.loc["ingest", "rows"] == "120"


@pytest.mark.parametrize(("engines", "height"), [(["a/1"], ROW_HEIGHT), (["a/1", "a/1 b/2" * 6], BROKEN_LINES)])
def test_the_engines_of_a_writer_are_broken_where_they_do_not_fit(
    engines: list[str], height: int, tmp_path: Path
) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    for engine in engines:
        history.commit(info(operation="WRITE", userName="maintenance", engineInfo=engine))
    tables = open_page("timeline", tmp_path / "t", tab="Writers").dataframe
    assert [table.proto.row_height for table in tables] == [height, ROW_HEIGHT]
    if height == BROKEN_LINES:
        assert column_widths(tables[0])["writer"] > widths.heading_width("maintenance"), "a word is broken, too"


def test_operations_and_writers_of_the_list_beside_the_chart_share_its_room(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    for operation, writer in (("WRITE", "nightly-feed"), ("VACUUM START", "maintenance"), ("VACUUM END", "data-desk")):
        history.commit(info(operation=operation, userName=writer))
    pixels = column_widths(open_page("timeline", tmp_path / "t").dataframe[0])
    growth = (509 - commits._PLACE) // len(pixels)  # on a page of 1440 pixels
    assert pixels["operation"] + growth >= 104, "pixels of `■ VACUUM START`"
    assert pixels["writer"] + growth >= 86, "pixels of `maintenance`"
    assert sum(pixels.values()) <= commits._PLACE - widths.TICK_BOXES


def test_the_tab_of_lives_says_how_long_files_stay(good: Path) -> None:
    app = open_page("timeline", good, tab="File lifetimes")
    assert not app.exception
    assert {m.label: m.value for m in app.metric}["Files ever added"] == "4"
    rows = app.dataframe[0].value.set_index("version")
    assert rows["live"].to_dict() == {"v5": 0, "v3": 100, "v2": 100, "v1": 100}
    assert rows.loc["v5", "ended"] == "v6"
    assert rows.loc["v5", "lifetime"] == "1 day"


def test_the_writers_of_files_are_not_cut_on_a_narrow_page(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    history.commit(info(operation="STREAMING UPDATE", userName="maintenance-eu"), add_action("a.parquet"))
    pixels = column_widths(open_page("timeline", tmp_path / "t", tab="File lifetimes").dataframe[0])
    assert pixels["writer"] >= widths.heading_width("maintenance-eu")
    assert sum(pixels.values()) <= widths.PLACE


def test_the_tab_of_the_audit_names_the_commit_and_the_engine(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    history.commit(info(operation="DELETE", engineInfo="Engine/1.0"), remove_action("a.parquet"))
    app = open_page("timeline", tmp_path / "t", tab="Audit")
    assert not app.exception
    wrong = app.dataframe[0].value
    assert wrong[["version", "engine", "title"]].values.tolist() == [["v1", "Engine/1.0", "A remove names a live file"]]
    laws = app.table[0].value.set_index("law")  # whose cells break into lines: no sentence loses its end
    assert laws.loc["A remove names a live file", "what it asks for"].endswith("Add File and Remove File]")
    claims = [f["title"] for f in lv.open_table(history.address).health().iter_rows(named=True)]
    assert "A commit of Engine/1.0 violates a law: a remove names a live file" in claims


def test_the_audit_of_a_long_log_is_asked_for(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "MAX_AUDIT_BYTES", 0)
    app = open_page("timeline", good, tab="Audit")
    assert not app.table
    app.button(key="run-audit").click().run()
    assert not app.exception
    assert app.query_params["audit"] == "1"
    assert app.table


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 251 versions: two pages of commits."""
    log = LogWriter(tmp_path_factory.mktemp("long") / "flights").create()
    for _ in range(250):
        log.commit("WRITE")
    return log.root


@pytest.mark.parametrize(
    ("parameters", "newest"),
    [({}, "v250"), ({"commits-page": "2"}, "v50"), ({"commits-page": "9"}, "v250"), ({"commit": "3"}, "v50")],
    ids=["the first page at first", "the page of the link", "a page there is not", "the page of the commit"],
)
def test_a_long_table_of_commits_is_opened_at_the_page_of_the_link(
    long: Path, parameters: dict[str, str], newest: str
) -> None:
    assert open_page("timeline", long, **parameters).dataframe[0].value["version"].to_list()[0] == newest


def test_another_commit_turns_the_table_to_its_page(long: Path) -> None:
    app = open_page("timeline", long, **{"commits-page": "2"})
    app.selectbox(key="pick_commit").set_value("200").run()
    assert app.query_params["commit"] == "200"
    assert "commits-page" not in app.query_params
    assert app.dataframe[0].value["version"].to_list()[0] == "v250"


def test_what_is_unfolded_is_in_the_link(good: Path) -> None:
    app = open_page("timeline", good, commit="5", raw="True")
    assert not app.exception
    assert "month=4/load-4.parquet" in "".join(code.value for code in app.code)
    assert not open_page("timeline", good, commit="5").code


@pytest.mark.parametrize("tab", ["Writers", "File lifetimes", "Audit"])  # the first: `test_pages.py`
@pytest.mark.parametrize("kind", ["empty", "silent", "unsupported", "corrupt"])
def test_every_other_tab_draws_or_says_what_is_wrong(tab: str, kind: str, request: pytest.FixtureRequest) -> None:
    assert not open_page("timeline", request.getfixturevalue(kind), tab=tab).exception


def test_a_drag_over_the_chart_is_a_range_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, str] = {}
    monkeypatch.setattr(st, "query_params", state)
    first, last = (datetime(2026, 3, day, 6, tzinfo=UTC).timestamp() * 1000 for day in (2, 4))
    assert timeline_filters.take_span({"brushed": {"timestamp": [last, first]}})
    assert state == {"from": "2026-03-02T06:00", "to": "2026-03-04T06:00"}
    assert not timeline_filters.take_span({"brushed": {}})
    assert not timeline_filters.take_span({"picked": [{"version": "3"}]})
