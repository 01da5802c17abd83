"""Health and retention: the simulator, the findings, the engines and the doctor, on both formats."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.builders.iceberg import IcebergHistory
from tests.pages.app import open_page, text
from tests.pages.tables import corrupt, file_missing

pytestmark = pytest.mark.app


def rows(app: AppTest, column: str, *, last: bool = False) -> dict[str, dict[str, str]]:
    """A table of the page by one of its columns: the first that has it, or the last."""
    found = [f.value for f in app.dataframe if column in f.value.columns]
    return {row[column]: row for row in found[-1 if last else 0].to_dict("records")}


def tables_of_findings(app: AppTest) -> int:
    return sum("finding" in f.value.columns for f in app.dataframe)


def test_the_retention_begins_at_the_tables_own(good: Path) -> None:
    app = open_page("health", good)
    assert app.slider(key="keep").value == 7
    assert "removed files are kept for 7 days, the engines' default" in text(app)
    assert "Versions lost 1 v5" in text(app)
    assert any("RETAIN 168 HOURS" in code.value for code in app.code)


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


def test_findings_come_with_limit_and_remedy(good: Path) -> None:
    found = rows(open_page("health", good), "finding")
    assert found["The checkpoint is recent"]["evidence"] == "7 commits since the first"
    assert found["The checkpoint is recent"]["state"] == "✓ passes"


def test_engines_answer_with_their_source(good: Path) -> None:
    engines = rows(open_page("health", good), "engine")
    trino = engines["Trino 483"]
    assert (trino["read"], trino["write"]) == ("✓ reads", "✓ writes")
    assert trino["source"].startswith("https://trino.io/")


def test_the_doctor_is_asked_by_a_button_and_stays_in_the_link(good: Path) -> None:
    app = open_page("health", good)
    button = app.button(key="examine")
    assert button.label.startswith("Examine the log: reads 7 files, ")
    button.click().run()
    assert not app.exception
    assert app.query_params["doctor"] in ("1", ["1"])
    assert tables_of_findings(app) == 2
    assert tables_of_findings(open_page("health", good, doctor="1")) == 2
    assert tables_of_findings(open_page("health", good)) == 1


def test_the_doctor_sees_tables_that_do_not_open(tmp_path: Path) -> None:
    app = open_page("health", corrupt(tmp_path / "t"), doctor="1")
    assert not app.exception
    assert any("broken" in row["state"] for row in rows(app, "finding", last=True).values())


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
    assert "versions are kept for 5 days, the engines' default" in text(app)
    assert any("expire_snapshots(table => 'notes'" in code.value for code in app.code)
    assert "Versions lost 4" in text(app)
    engines = rows(app, "engine")
    assert engines["PyIceberg 0.12"]["read"] == "✕ fails"
    assert engines["PyIceberg 0.12"]["blame"].startswith("equality deletes")


def test_a_table_without_a_version_says_so(tmp_path: Path) -> None:
    app = open_page("health", IcebergHistory(tmp_path / "t", FIELDS).address)
    assert not app.exception
    assert "There is nothing to clean up" in text(app)
