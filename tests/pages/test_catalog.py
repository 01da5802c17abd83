"""A table of a catalog on the pages: opened by its name in a link, and refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.catalogs import newest, sqlite_catalog, table
from tests.pages.app import open_page, text


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog `prod` with the table `sales.orders`."""
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{tmp_path}/catalog.db")
    with sqlite_catalog(tmp_path / "catalog.db", {("sales", "orders"): newest(table(tmp_path / "orders", rows=2))}):
        pass


@pytest.mark.parametrize("page", ["overview", "files"])
def test_a_link_may_name_a_table_of_a_catalog(database: None, page: str) -> None:
    app = open_page(page, "catalog://prod/sales.orders")
    assert not app.exception
    assert "sales.orders" in text(app) + str([box.value for box in app.selectbox])


def test_a_name_that_the_catalog_does_not_hold_is_told(database: None) -> None:
    assert "the catalog holds no table of this name" in text(open_page("overview", "catalog://prod/sales.gone"))
