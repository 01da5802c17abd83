"""RULES to what a schema page says of them: a few words beside each column, and the constraints of the table."""

from __future__ import annotations

import polars as pl

from lakeview.model.printable import shorten, shorten_column

COLUMN_RULES = pl.Schema({"path": pl.String(), "rules": pl.String()})
"""One row a column that has rules, all of them in one line."""

CONSTRAINTS = pl.Schema({"name": pl.String(), "rule": pl.String()})
"""One row a rule that the whole table keeps, in the order declared."""

RULE_LENGTH = 400
"""Rules longer than this are cut, with an ellipsis."""

_WORDS = {
    "default": "default ",
    "generated": "generated as ",
    "identity": "identity ",
    "invariant": "always ",
    "length": "",
    "collation": "collation ",
    "type change": "was widened from ",
    "clustering": "clustering column ",
}


def column_rules(rules: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_RULES from RULES. A kind without words of its own is shown by its name."""
    of_columns = rules.filter(pl.col("column").is_not_null())
    words = pl.col("kind").replace_strict(_WORDS, default=pl.col("kind") + " ", return_dtype=pl.String)
    texts = of_columns.select(path="column", rules=words + shorten_column(pl.col("rule"), RULE_LENGTH))
    return texts.group_by("path", maintain_order=True).agg(pl.col("rules").str.join(" · ")).cast(COLUMN_RULES)


def constraints(rules: pl.DataFrame) -> pl.DataFrame:
    """CONSTRAINTS from RULES; an order of rows is a wish, and no row breaks it."""
    of_table = rules.filter(pl.col("column").is_null() & (pl.col("kind") != "clustering"))
    return of_table.select("name", rule=shorten_column(pl.col("rule"), RULE_LENGTH)).cast(CONSTRAINTS)


def cut_rule(text: str) -> str:
    """One rule as it is shown."""
    return shorten(text, RULE_LENGTH)
