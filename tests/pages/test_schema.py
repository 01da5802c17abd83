"""The schema page: the rules of columns and of the whole table beside the types."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.app import open_page, text
from tests.pages.tables import LogWriter

FIELDS = (
    {"name": "month", "type": "integer", "nullable": True, "metadata": {}},
    {"name": "carrier", "type": "string", "nullable": True, "metadata": {"CURRENT_DEFAULT": "'UA'"}},
    {"name": "delay", "type": "long", "nullable": True, "metadata": {"delta.generationExpression": "arrived - due"}},
)


@pytest.fixture
def ruled(tmp_path: Path) -> Path:
    """A table with a default, a generated column and two constraints."""
    log = LogWriter(tmp_path / "ruled")
    described = log.metadata(FIELDS)
    described["metaData"]["configuration"] |= {
        "delta.constraints.plausible": "delay < 10000",
        "delta.constraints.odd": "carrier <> '*<b>$x$'",
    }
    log.commit("CREATE TABLE", {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, described)
    return log.root


def test_rules_stand_beside_their_columns_and_constraints_below(ruled: Path) -> None:
    app = open_page("schema", ruled)
    assert not app.exception
    columns, constraints = (element.value for element in app.dataframe)
    assert columns.set_index("name")["rules"].fillna("").to_dict() == {
        "month": "",
        "carrier": "default 'UA'",
        "delay": "generated as arrived - due",
    }
    assert constraints.to_dict("records") == [
        {"name": "plausible", "rule": "delay < 10000"},
        {"name": "odd", "rule": "carrier <> '*<b>$x$'"},
    ]
    assert "2 constraints · a write that breaks one is refused" in text(app)


def test_a_table_without_rules_has_no_place_for_them(good: Path) -> None:
    app = open_page("schema", good)
    assert not app.exception
    assert len(app.dataframe) == 1
    assert "Constraints" not in text(app)
