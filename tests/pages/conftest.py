"""Tables for the pages, made once for a run, and an app without a demo lake unless a test asks for one."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner

from lakeview.app import components
from tests.pages import tables

_DATA_NAME = re.compile(r'"(data|view|param)[-_][0-9a-f]+"')
"""Names that Altair gives to data, views and parameters: by their content, or by a count."""


@pytest.fixture(scope="session", autouse=True)
def components_are_looked_for_once() -> Iterator[None]:
    """Every app of AppTest reads what each installed package says of itself, for components: half of a test's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(autouse=True)
def no_demo_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo lake's place is a folder that is not there; caches are those of a fresh server."""
    place = tmp_path / "no-demo-lake"
    monkeypatch.setenv("LAKEVIEW_DEMO", str(place))
    monkeypatch.delenv("LAKEVIEW_ROOTS", raising=False)
    st.cache_data.clear()
    st.cache_resource.clear()
    return place


@pytest.fixture(scope="session", autouse=True)
def charts_are_checked() -> Iterator[None]:
    """Pages send charts without validation: here each specification is validated the first time that it is drawn."""
    valid: set[str] = set()

    def checked(drawn: components._Unchecked) -> dict[str, Any]:
        spec: dict[str, Any] = drawn.chart.to_dict(validate=False)
        shape = _DATA_NAME.sub("", json.dumps({key: spec[key] for key in spec if key != "datasets"}, default=str))
        if shape not in valid:
            drawn.chart.to_dict()
            valid.add(shape)
        return spec

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components._Unchecked, "to_dict", checked)
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
