"""Health and retention: the simulator, the findings, the engines and the doctor, on both formats."""

from __future__ import annotations

import re
from pathlib import Path

import deltalake
import pytest
from streamlit.testing.v1 import AppTest

import lakeview as lv
from lakeview.app.components import escape
from tests.builders.actions import metadata, protocol
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.builders.iceberg_branches import BranchedHistory
from tests.pages.app import open_page, text
from tests.pages.tables import corrupt, file_missing

pytestmark = pytest.mark.app


def rows(app: AppTest, column: str, *, last: bool = False) -> dict[str, dict[str, str]]:
    """A table of the page by one of its columns: the first that has it, or the last."""
    frames = [f.value for f in (*app.dataframe, *app.table) if column in f.value.columns]
    rows_found = (
        frames[-1 if last else 0]
        .replace({r"\\": "", "\N{NO-BREAK SPACE}": " ", "\N{NON-BREAKING HYPHEN}": "-"}, regex=True)
        .to_dict("records")
    )
    return {row[column]: row for row in rows_found}


def has_doctors_answer(app: AppTest) -> bool:
    return "**No commit is missing or broken**" in text(app)


def test_the_retention_begins_at_the_tables_own(good: Path) -> None:
    app = open_page("health", good)
    assert app.slider(key="keep").value == 7
    assert "removed files are retained for 7 days, the engines' default" in text(app)
    assert "Versions lost 1 6 stay" in text(app)
    assert any("RETAIN 168 HOURS" in code.value for code in app.code)


@pytest.mark.parametrize(
    ("declared", "text_shown", "hours"),
    [("interval 1 hours", "1 h", 1), ("interval 36 hours", "1 day 12 h", 36), ("interval 250 hours", "10 days", 250)],
)
def test_a_retention_that_is_no_whole_days_is_where_the_simulator_begins(
    tmp_path: Path, declared: str, text_shown: str, hours: int
) -> None:
    history = DeltaHistory(tmp_path / "short").create(properties={"delta.deletedFileRetentionDuration": declared})
    app = open_page("health", Path(history.address))
    slider = app.select_slider(key="keep")
    assert slider.value == text_shown
    assert "Less than the" not in text(app)
    assert any(f"RETAIN {hours} HOURS" in code.value for code in app.code)
    slider.set_value("0 s").run()
    assert app.query_params["keep"] == "0 s"
    assert "engines refuse it until" in text(app)
    assert "Current data is safe; " in text(app)


def test_a_link_keeps_the_retention(good: Path) -> None:
    longest = int(open_page("health", good).slider(key="keep").max)
    app = open_page("health", good, keep=str(longest))
    assert app.slider(key="keep").value == longest
    assert "Versions lost 0" in text(app)
    assert "Freed nothing" in text(app)


def test_moving_the_slider_moves_the_figures_and_the_command(good: Path) -> None:
    app = open_page("health", good)
    app.slider(key="keep").set_value(3).run()
    assert not app.exception
    assert any("RETAIN 72 HOURS" in code.value for code in app.code)
    assert "engines refuse it until spark.databricks.delta.retentionDurationCheck.enabled is false" in text(app)


def test_findings_come_with_limit_and_remedy(good: Path) -> None:
    (line,) = [m for m in open_page("health", good).markdown if "There is no checkpoint yet" in m.value]
    assert "7 commits since the first; expected every 10, stale from 100" in line.value
    assert "10 times the interval" in line.help


def test_engines_answer_with_their_source(good: Path) -> None:
    app = open_page("health", good)
    engines = rows(app, "engine")
    trino = engines["Trino main branch"]
    assert (trino["read"], trino["write"]) == ("✓ reads", "✓ writes")
    assert "checked" not in trino, "all on the day that the note above has"
    assert re.search(r"rules of 20\d\d-\d\d-\d\d", text(app))
    assert trino["source"].startswith("https://github.com/trinodb/trino/")


def test_the_first_line_counts_engines_that_cannot_read_the_table(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t")
    needs = protocol(3, 7, readerFeatures=["timestampNtz"], writerFeatures=["timestampNtz"])
    history.commit(needs, metadata({"at": "timestamp_ntz"}))
    app = open_page("health", tmp_path / "t")
    (line,) = [m.value for m in app.markdown if m.value.startswith("**Findings**")]
    assert re.search(r"; \d+ of \d+ engines cannot read v0\b", line)


def test_a_note_on_engines_is_said_once_and_whole(good: Path) -> None:
    (notes,) = [m.value for m in open_page("health", good).markdown if "column mapping by name" in m.value]
    assert notes.count("column mapping by name, not by id") == 1
    assert "KQL databases 2026, Microsoft Fabric SQL endpoint 2026" in notes


def upgraded(folder: Path, feature: str) -> str:
    """A table that its second commit made ask for something."""
    history = DeltaHistory(folder)
    history.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metadata({"a": "long"}))
    features = {"readerFeatures": [feature], "writerFeatures": [feature]}
    history.commit({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    history.commit(history.data("f.parquet", {"a": [1, 2]}))
    return str(folder)


def test_the_feature_to_blame_and_the_commit_that_turned_it_on(tmp_path: Path) -> None:
    app = open_page("health", upgraded(tmp_path, "columnMapping"))
    assert not app.exception
    polars = rows(app, "engine")["polars 2.1"]
    assert polars["read"] == "✕ fails"
    assert polars["because of"] == "columnMapping"
    assert text(app).count("columnMapping (v1, ") == 1, "what enabled it is said once, and not for each engine"
    reads = [row["read"] for row in rows(app, "engine").values()]
    assert reads == sorted(reads, key=["✕ fails", "? unknown", "✓ reads"].index)  # problems first
    assert "This version requires: columnMapping (v1)." in text(app)


def test_who_could_read_it_once_it_is_shared(tmp_path: Path) -> None:
    app = open_page("health", upgraded(tmp_path, "deletionVectors"))
    recipients = rows(app, "engine", last=True)
    duckdb = recipients["DuckDB (duck_delta_share) 0.1.0"]
    assert duckdb["read"] == "✕ fails"
    assert duckdb["because of"] == "delta responses"
    assert "delta responses (" in text(app)
    assert recipients["delta-sharing for Python (pandas) 1.4.2"]["read"] == "✓ reads"
    assert recipients["Tableau (Delta Sharing connector) 2026"]["read"] == "? unknown"
    assert "write" not in duckdb


def test_a_feature_whose_history_is_gone_says_unknown(tmp_path: Path) -> None:
    upgraded(tmp_path, "columnMapping")
    log = tmp_path / "_delta_log"
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    for version in (0, 1):
        (log / f"{version:020d}.json").unlink()
    app = open_page("health", tmp_path)
    assert not app.exception
    polars = rows(app, "engine")["polars 2.1"]
    assert polars["because of"] == "columnMapping"
    assert "columnMapping (unknown)" in text(app)


def test_the_doctor_is_asked_by_a_button_and_stays_in_the_link(good: Path) -> None:
    app = open_page("health", good)
    button = app.button(key="examine")
    assert button.label.startswith("Examine the log: reads 7 files, ")
    button.click().run()
    assert not app.exception
    assert app.query_params["doctor"] in ("1", ["1"])
    assert has_doctors_answer(app)
    assert has_doctors_answer(open_page("health", good, doctor="1"))
    assert not has_doctors_answer(open_page("health", good))


def test_what_the_doctor_says_is_there_in_full(good: Path) -> None:
    findings = lv.open_table(good).check()
    app = open_page("health", good, doctor="1")
    assert f"All {len(findings)} checks pass" in text(app)
    lines = [line.value.partition("  \n")[0] for line in app.markdown]
    for finding in findings:
        assert f"**{escape(finding.claim)}** :gray[{escape(finding.evidence)}]" in lines
    assert not [f for f in app.dataframe if "finding" in f.value.columns], "a table cuts its texts"


def test_the_doctor_sees_tables_that_do_not_open(tmp_path: Path) -> None:
    app = open_page("health", corrupt(tmp_path / "t"), doctor="1")
    assert not app.exception
    assert any(line.value.startswith(":red[:material/error:]") for line in app.markdown)
    assert any("**rule** " in line.value and "**remedy** " in line.value for line in app.markdown)


def test_a_version_that_is_broken_stays_broken_in_the_ribbon(tmp_path: Path) -> None:
    app = open_page("health", file_missing(tmp_path / "t"))
    assert not app.exception
    assert "broken" in text(app)


FIELDS = [{"id": 1, "name": "id", "required": False, "type": "long"}]


def test_versions_expire_where_they_do(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "notes", FIELDS, version=2)
    for number in range(4):
        history.append(f"f{number}", [{"id": number}])
    history.delete_equal("d", [history.fields["id"]], [{"id": 3}])
    app = open_page("health", history.address, keep="0")
    assert not app.exception
    assert "versions are retained for 5 days, the engines' default" in text(app)
    assert any("expire_snapshots(table => 'notes'" in code.value for code in app.code)
    assert "Versions lost 4" in text(app)
    engines = rows(app, "engine")
    assert engines["PyIceberg 0.12"]["read"] == "✕ fails"
    assert engines["PyIceberg 0.12"]["because of"] == "equality deletes"
    assert "equality deletes (v1005" in text(app)


def test_an_upgrade_of_the_format_is_blamed_on_its_metadata_file(tmp_path: Path) -> None:
    history = BranchedHistory(tmp_path / "notes", FIELDS)
    history.append("a.parquet", [{"id": 1}])
    history.record(format_version=3, next_row_id=1)
    entries = [
        {"timestamp-ms": 1_600_000_000_000 + n, "metadata-file": f"{history.location}/metadata/v{n}.metadata.json"}
        for n in (1, 2, 3)
    ]
    history.record(metadata_log=entries)
    app = open_page("health", history.address)
    assert not app.exception
    athena = rows(app, "engine")["Amazon Athena engine 3"]
    assert athena["read"] == "✕ fails"
    assert athena["because of"] == "format version 3"
    assert "format version 3 (v3.metadata.json, 2020-09-13)" in text(app)


def test_an_engine_is_found_by_its_name_or_by_the_feature_that_stops_it(tmp_path: Path) -> None:
    table = upgraded(tmp_path, "columnMapping")
    every, duckdb = (open_page("health", table, **search) for search in ({}, {"find-engine": "DuckDB"}))
    assert rows(duckdb, "engine").keys() == {name for name in rows(every, "engine") if "DuckDB" in name} != set()
    stopped = rows(open_page("health", table, **{"find-engine": "columnmapping"}), "engine")
    assert {row["because of"] for row in stopped.values()} == {"columnMapping"}
    assert "The rules know" in text(open_page("health", table, **{"find-engine": "no such engine"}))


def test_a_table_without_a_version_says_so(tmp_path: Path) -> None:
    app = open_page("health", IcebergHistory(tmp_path / "t", FIELDS).address)
    assert not app.exception
    assert "Cleanup cannot be simulated" in text(app)
