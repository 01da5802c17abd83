"""Frames to the columns that their schema declares, and conditions to the label of the first that holds."""

from collections.abc import Mapping
from typing import Any

import polars as pl


def conform(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """The columns that the schema declares, in its order and with its types; others are left out."""
    return frame.select(schema.names()).cast(schema)


def first_label(labels: Mapping[Any, pl.Expr | pl.Series | str], otherwise: object = None) -> pl.Expr:
    """The label (a text or a number) of the first condition, or column of truths, that holds in a row; a null holds
    not. `otherwise`: the label where none holds, null without one."""
    return pl.coalesce(
        *(pl.when(condition).then(pl.lit(label)) for label, condition in labels.items()),
        otherwise if isinstance(otherwise, pl.Expr) else pl.lit(otherwise),
    )
