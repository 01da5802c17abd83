"""The pipelines page: the newest run in a sentence, a run by the link, rows that failed, and text that is no markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

import lakeview as lv
from lakeview.model.pipelines import EXPECTATIONS, FOLDER, LINEAGE, RUNS
from tests.pages.app import open_page, text
from tests.pages.test_hostile_text import LIVE, markdown_texts
from tests.views.test_pipelines import CHECKS, EVENTS, READS, event, expectation, read

EVIL = "![m](x) [l](x) :red[r] $e$ `c` <script>"


def record(root: Path, **frames: pl.DataFrame) -> Path:
    for name, rows in frames.items():
        table: Any = lv.create_table(str(root / FOLDER / name), rows.to_arrow().schema)
        table.append(rows)
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    checks = CHECKS.with_columns(
        sample=pl.when(pl.col("rows_failed") > 0).then(pl.lit('[{"id": 3, "price": -1.5}]')),
        quarantine=pl.when(pl.col("rows_failed") > 0).then(pl.lit("lake/q")),
        quarantine_version=pl.lit(4),
    )
    return record(tmp_path_factory.mktemp("lake"), runs=EVENTS, expectations=checks, lineage=READS)


def frame_with(app: AppTest, column: str) -> Any:
    return next(table.value for table in app.dataframe if column in table.value.columns)


def test_the_first_line_is_about_the_newest_run_which_is_shown(root: Path) -> None:
    app = open_page("pipelines", root=str(root))
    assert not app.exception
    assert "p: a run began" in text(app)
    assert [text.split()[-1] for text in frame_with(app, "outcome")["outcome"]] == [
        "running",
        "failed",
        "interrupted",
        "succeeded",
    ]
    assert app.selectbox(key="run").value == "r4"
    assert "No step of this run is recorded" in text(app)


def test_a_run_of_the_link_shows_its_steps_failed_rows_and_lineage(root: Path) -> None:
    app = open_page("pipelines", root=str(root), run="r1")
    assert not app.exception
    assert list(frame_with(app, "step")["step"]) == ["check", "publish"]
    (checks,) = [table.value for table in app.table if "condition" in table.value.columns]
    assert list(checks["expectation"]) == ["\N{BLACK DIAMOND} priced", "\N{CHECK MARK} named"]
    assert checks["rows failed"][0].split() == ["2", "of", "10,", "20.0", "%"]
    assert frame_with(app, "price").to_dict("list") == {"id": ["3"], "price": ["-1.5"]}
    assert "2 rows of 10 failed **price > 0**" in text(app)
    (quarantine,) = [link for link in app.page_link if "quarantine" in link.label]
    assert "version=4" in quarantine.proto.query_string
    assert list(frame_with(app, "address")["name"]) == ["orders", "staging", "staging", "raw", "raw"]
    app.selectbox(key="output").set_value("staging v2").run()
    assert list(frame_with(app, "address")["version"]) == ["v2", "v3"]
    assert app.query_params["run"] == "r1"
    app.selectbox(key="run").set_value("r3").run()
    assert any("price > 0 failed" in code.value for code in app.code)


def test_recorded_text_is_no_markup_and_a_broken_sample_is_shown_as_it_is(tmp_path: Path) -> None:
    runs = pl.DataFrame(
        [event(EVIL, "run", "failed", 0, 1, error=EVIL), event(EVIL, EVIL, EVIL, 0, 1, dataset=EVIL, error=EVIL)],
        schema=RUNS,
    ).with_columns(pipeline=pl.lit(EVIL))
    checks = pl.DataFrame(
        [expectation(EVIL, EVIL, 2, 1) | {"condition": EVIL, "sample": f"[{EVIL}"}], schema=EXPECTATIONS
    )
    lineage = pl.DataFrame([read(EVIL, EVIL, EVIL, None, 1, EVIL, 2)], schema=LINEAGE)
    app = open_page("pipelines", root=str(record(tmp_path, runs=runs, expectations=checks, lineage=lineage)))
    assert not app.exception
    assert EVIL in text(app)
    assert [words for words in markdown_texts(app) if LIVE.search(words)] == []
    assert f"[{EVIL}" in [code.value for code in app.code]


def test_a_root_without_runs_says_how_a_pipeline_begins(tmp_path: Path) -> None:
    app = open_page("pipelines", root=str(tmp_path))
    assert not app.exception
    assert "No run of a pipeline is recorded" in text(app)
    assert "lakeview pipeline init" in app.code[0].value
    assert "No root is named" in text(open_page("pipelines"))


@pytest.mark.usefixtures("fresh_server")
def test_a_root_outside_the_allowed_ones_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEVIEW_ROOTS", str(tmp_path))
    assert "outside-roots" in text(open_page("pipelines", root=str(root)))
