"""The quality page: alerts first, then each load of a column, every version, every partition."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.pages.app import open_page, text
from tests.pages.tables import LogWriter, flights, remove

pytestmark = pytest.mark.app


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine alike loads, then one without a single delay, taken back by the next."""
    log = LogWriter(tmp_path_factory.mktemp("spoilt") / "flights").create()
    for number in range(9):
        log.commit("WRITE", log.add(f"load-{number}", flights(1), 1))
    bad = log.add("bad", flights(1).with_columns(delay=pl.lit(None, pl.Int32)), 1)
    log.commit("WRITE", bad, user="night-feed")
    log.commit("DELETE", remove(bad), user="li")
    return log.root


def test_the_bad_load_its_writer_and_its_repair_are_named(spoilt: Path) -> None:
    app = open_page("quality", spoilt)
    assert not app.exception
    said = text(app)
    assert "v10: delay is null in 100.0 %, usually 20.0 %" in said
    assert "by night-feed, 2026-03-11 06:00 UTC; repaired by v11" in said


def test_loads_that_are_alike_raise_no_alarm(good: Path) -> None:
    app = open_page("quality", good)
    assert not app.exception
    assert "is null in" not in text(app)


def test_the_column_of_an_alert_is_looked_at_first_and_a_link_may_name_another(spoilt: Path) -> None:
    assert "Loads of delay" in text(open_page("quality", spoilt))
    assert "Loads of carrier" in text(open_page("quality", spoilt, column="carrier"))


def test_every_version_is_told_for_the_whole_table(spoilt: Path) -> None:
    app = open_page("quality", spoilt, tab="Whole table", column="delay")
    assert not app.exception
    frame = app.dataframe[0].value
    assert frame["version"].to_list()[0] == "v11"
    assert frame["null"].round(1).to_list()[:3] == [20.0, 28.0, 20.0]


def test_partitions_of_the_version_shown_are_told_apart(good: Path) -> None:
    app = open_page("quality", good, tab="By partition", column="delay")
    assert not app.exception
    frame = app.dataframe[0].value
    assert frame["partition_text"].to_list() == ["month=1", "month=2", "month=3"]
    assert frame["null"].to_list() == [20.0, 20.0, 20.0]
    assert frame["max_text"].to_list() == ["19", "38", "57"]
