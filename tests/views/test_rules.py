"""What is said of a table's rules."""

from __future__ import annotations

import polars as pl

from lakeview import views
from lakeview.model.frames import RULES
from lakeview.views.schema.columns import RULE_LENGTH

RULE_ROWS = pl.DataFrame(
    [
        (None, "check", "positive", "amount > 0"),
        (None, "check", "^x$", "<script>"),
        ("amount", "default", None, "0"),
        ("amount", "clustering", None, "2 of 2"),
        ("s.^x$", "generated", None, "upper(city)"),
        ("city", "length", None, "varchar(10)"),
        ("id", "identity", None, "from 1, by 1"),
        ("id", "sealed", None, "for good"),
    ],
    schema=RULES,
    orient="row",
)


def test_each_column_has_its_rules_in_one_line() -> None:
    rules = views.schema.columns.column_rules(RULE_ROWS)
    assert rules.schema == views.schema.columns.COLUMN_RULES
    assert dict(rules.rows()) == {
        "amount": "default 0 · clustering column 2 of 2",
        "s.^x$": "generated as upper(city)",
        "city": "varchar(10)",
        "id": "identity from 1, by 1 · sealed for good",
    }


def test_constraints_are_those_of_the_whole_table() -> None:
    rules = views.schema.columns.constraints(RULE_ROWS)
    assert rules.schema == views.schema.columns.CONSTRAINTS
    assert rules.rows() == [("positive", "amount > 0"), ("^x$", "<script>")]


def test_without_rules_nothing_is_said() -> None:
    nothing = pl.DataFrame(schema=RULES)
    assert views.schema.columns.column_rules(nothing).schema == views.schema.columns.COLUMN_RULES
    assert views.schema.columns.column_rules(nothing).is_empty()
    assert views.schema.columns.constraints(nothing).is_empty()


def test_a_long_rule_is_cut() -> None:
    long = pl.DataFrame([("a", "default", None, "x" * 1_000_000)], schema=RULES, orient="row")
    assert len(views.schema.columns.column_rules(long)["rules"][0]) == len("default ") + RULE_LENGTH
