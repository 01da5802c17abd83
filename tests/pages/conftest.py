"""Tables for the pages, made once for a run, and an app without a demo lake unless a test asks for one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import local_script_runner

from lakeview.app import chart_specs
from lakeview.app.query import runner, worker
from lakeview.app.query.answers import Answer
from lakeview.app.query.request import Request
from tests.charts.drawing import check_specification, silent_fields
from tests.pages import tables


@pytest.fixture(scope="session", autouse=True)
def components_are_looked_for_once() -> Iterator[None]:
    """Every app of AppTest reads what each installed package says of itself, for components: half of a test's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(scope="session", autouse=True)
def a_run_is_waited_for_by_its_thread() -> Iterator[None]:
    """AppTest looks a thousand times a second whether its script has ended, and takes the interpreter's lock from it
    each time."""

    def wait(running: local_script_runner.LocalScriptRunner, timeout: float) -> None:
        thread = running._script_thread
        assert thread is not None
        thread.join(timeout)
        if thread.is_alive():
            running.request_stop()
            pytest.fail(f"the script has run for {timeout} seconds")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_script_runner, "require_widgets_deltas", wait)
        yield


@pytest.fixture(autouse=True)
def no_demo_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo lake's place is a folder that is not there."""
    place = tmp_path / "no-demo-lake"
    monkeypatch.setenv("LAKEVIEW_DEMO", str(place))
    monkeypatch.delenv("LAKEVIEW_ROOTS", raising=False)
    return place


@pytest.fixture
def fresh_server() -> None:
    """Nothing is cached, as on a server that just started. (Tables of tests are at addresses of their own: what was
    read of one that several tests open may stay.)"""
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def queries_in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries are answered here: a process for each costs more than the page that asks. Tests of the processes have
    `own_processes` among their fixtures."""

    def answer(query: Request, *, seconds: float, on_wait: Callable[[runner.Progress], object], **_: object) -> Answer:
        on_wait(runner.Progress(0.0, 0, has_begun=True))
        return worker.answer(query, lambda _: None)

    if "own_processes" not in request.fixturenames:
        monkeypatch.setattr(runner, "run", answer)


@pytest.fixture
def own_processes() -> None:
    """Each query has a process of its own, as in the app."""


@pytest.fixture(scope="session", autouse=True)
def charts_are_checked() -> Iterator[None]:
    """Pages send charts without validation: here each is checked by Vega-Lite's schema (`drawing.py`), and none has
    tooltips with empty fields."""

    to_dict = chart_specs.PlainSpecChart.to_dict

    def checked(content: chart_specs.PlainSpecChart) -> dict[str, Any]:
        spec = to_dict(content)
        check_specification(spec)
        assert silent_fields(content.chart) == set(), "a tooltip names fields without a value"
        return spec

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chart_specs.PlainSpecChart, "to_dict", checked)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_page_waits_for_polars_with_the_interpreters_lock() -> Iterator[None]:
    """`pandas_rows` says why: two sessions at once ended the app."""

    def refuse(_: pl.DataFrame, *__: object, **___: object) -> None:
        raise AssertionError("pages give Streamlit their rows by table_cells.pandas_rows")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl.DataFrame, "to_pandas", refuse)
        patch.setattr(pl.Series, "to_pandas", refuse)
        yield


@pytest.fixture(autouse=True)
def own_main() -> Iterator[None]:
    """AppTest leaves the app as `__main__`, which processes that later tests spawn would then run."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tables.good(tmp_path_factory.mktemp("good") / "flights")


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tables.empty(tmp_path_factory.mktemp("empty") / "orders")


@pytest.fixture(scope="session")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tables.silent(tmp_path_factory.mktemp("silent") / "events")


@pytest.fixture(scope="session")
def unsupported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tables.unsupported(tmp_path_factory.mktemp("unsupported") / "flights")


@pytest.fixture(scope="session")
def corrupt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tables.corrupt(tmp_path_factory.mktemp("corrupt") / "flights")


@pytest.fixture(scope="session")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tables.spoilt(tmp_path_factory.mktemp("spoilt") / "flights")
