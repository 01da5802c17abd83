"""Tables of a format that a test knows, opened as everybody opens them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.iceberg.table import IcebergTable


class HasAddress(Protocol):
    """A table, or what a builder wrote."""

    @property
    def address(self) -> str: ...


def open_delta_table(place: str | Path | HasAddress, **options: Any) -> DeltaTable:
    """The Delta table at a place, as its log is now."""
    table = lv.open_table(_address(place), **options)
    assert isinstance(table, DeltaTable), table
    return table


def open_iceberg_table(place: str | Path | HasAddress, **options: Any) -> IcebergTable:
    """The Iceberg table at a place, as its metadata is now."""
    table = lv.open_table(_address(place), **options)
    assert isinstance(table, IcebergTable), table
    return table


def _address(place: str | Path | HasAddress) -> str | Path:
    return place if isinstance(place, (str, Path)) else place.address
