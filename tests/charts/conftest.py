"""Charts of these tests are checked against Vega-Lite's schema in Rust."""

from __future__ import annotations

from typing import Any

import altair as alt
import pytest
from altair.utils import schemapi

from tests.charts.drawing import check_specification


@pytest.fixture(autouse=True)
def charts_are_checked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Altair checks each part when it is made, and the whole again, in Python: more than half of these tests' time."""

    def check(cls: type, instance: dict[str, Any], schema: object = None) -> None:
        if issubclass(cls, alt.TopLevelMixin):
            check_specification(instance)

    monkeypatch.setattr(schemapi, "DEBUG_MODE", False)
    monkeypatch.setattr(schemapi.SchemaBase, "validate", classmethod(check))
