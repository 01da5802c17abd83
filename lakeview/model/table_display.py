"""How a table shows itself: its findings, a line of text, and HTML."""

import importlib
from html import escape
from typing import cast

import polars as pl

from lakeview.model.errors import LakeviewError
from lakeview.model.table import Table


class TableDisplay(Table):
    """What the tables of all readers show of themselves; apart from `Table`, since findings come from an inspection,
    which needs it."""

    def health(self) -> pl.DataFrame:
        # above this layer: imported by name when it is asked for
        return cast("pl.DataFrame", importlib.import_module("lakeview.inspection").inspect(self).health())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r}, latest={self.latest_version})"

    def _repr_html_(self) -> str:
        heading = f"<p><b>{escape(self.address)}</b> · {escape(self.format)}</p>"
        try:
            return heading + self.snapshot()._repr_html_()
        except LakeviewError as error:
            return f"{heading}<p>{escape(error.message)}</p>"
