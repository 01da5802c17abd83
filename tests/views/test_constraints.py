"""The verdicts that statistics prove on constraints: satisfied, violated and where, or unknown; compared with rows."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from lakeview import open_table, views
from lakeview.model.table import Table
from lakeview.views.quality.verdicts import ConstraintVerdicts
from tests.builders.actions import metadata, protocol, schema_string
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.builders.statistics import file_statistics
from tests.builders.vectors import deleting

COLUMNS = {"a": "long", "b": "long", "s": "string", "d": "date", "x": "double", "p": "integer"}
ARROW = {"a": pa.int64(), "b": pa.int64(), "s": pa.string(), "d": pa.date32(), "x": pa.float64()}
Row = dict[str, Any]


def delta_table(
    root: Path, rules: Sequence[str], files: Sequence[Sequence[Row]], *, required: tuple[str, ...] = ()
) -> Table:
    """Files of these rows, whose `p` is the partition that the first row names; statistics as writers make them."""
    history = DeltaHistory(root)
    properties: dict[str, str | None] = {f"delta.constraints.r{i}": text for i, text in enumerate(rules)}
    schema = schema_string(COLUMNS, required)
    history.commit(protocol(1, 3), metadata(schema=schema, partition_by=("p",), properties=properties))
    for i, rows in enumerate(files):
        arrow = pa.table({n: pa.array([row.get(n) for row in rows], t) for n, t in ARROW.items()})
        value = rows[0].get("p") if rows else None
        partition = {"p": None if value is None else str(value)}
        stats = file_statistics(arrow)
        history.commit(history.data(f"f{i}.parquet", arrow, stats=stats, partitionValues=partition))
    return open_table(history.address)


def verdicts_of(table: Table) -> ConstraintVerdicts:
    """What is proved of the latest version."""
    snapshot = table.snapshot()
    rules = views.quality.constraints.stated_rules(snapshot)
    return views.quality.verdicts.constraint_verdicts(
        snapshot, rules, table.statistics(columns=views.quality.constraints.rule_columns(rules, snapshot.schema))
    )


def one(table: Table) -> Row:
    """What is proved of the only constraint."""
    (rule,) = verdicts_of(table).rules.iter_rows(named=True)
    return dict(rule)


def a(*values: int | None) -> list[Row]:
    return [{"a": value} for value in values]


CASES: dict[str, tuple[str, list[list[Row]], tuple[str, str, int, int | None, int | None]]] = {
    "every value is above": ("a > 0", [a(1, 2), a(3)], ("satisfied", "exact", 2, 0, None)),
    "the least value is not": ("a > 0", [a(1, 2), a(0, 3)], ("violated", "exact", 1, 1, 1)),
    "a null breaks it, as it does for those who write": ("a > 0", [a(1, None, None)], ("violated", "exact", 0, 1, 2)),
    "unless nulls are allowed": ("a IS NULL OR a > 0", [a(1, None)], ("satisfied", "exact", 1, 0, None)),
    "which allows no other value": ("a IS NULL OR a > 0", [a(-1, None)], ("violated", "exact", 0, 1, 1)),
    "no value of the file keeps it": ("a > 10", [a(1, 2, 3)], ("violated", "exact", 0, 1, 3)),
    "what lies between the ends is not known": ("a <> 2", [a(1, 3)], ("unknown", "unknown", 0, None, None)),
    "an end of the range is among the rows": ("a <> 3", [a(1, 3), a(1, 5)], ("violated", "bound", 0, 1, 1)),
    "one value, and it is in the list": ("a IN (1, 2)", [a(1, 1)], ("satisfied", "exact", 1, 0, None)),
    "the ends are not in the list": ("a IN (1, 2)", [a(1, 7)], ("violated", "exact", 0, 1, 1)),
    "between two values": ("a BETWEEN 1 AND 5", [a(1, 5)], ("satisfied", "exact", 1, 0, None)),
    "a list with null that nothing passes": ("a NOT IN (5, NULL)", [a(1)], ("violated", "exact", 0, 1, 1)),
    "two columns, one after the other": (
        "a > 0 AND b > 0", [[{"a": 1, "b": 0}], [{"a": 1, "b": 1}]], ("violated", "exact", 1, 1, 1),
    ),
    "either of two columns": ("a > 0 OR b > 0", [[{"a": -1, "b": 1}]], ("satisfied", "exact", 1, 0, None)),
    "no row is known to lack both": (
        "a > 0 OR b > 0", [[{"a": -1, "b": 1}, {"a": 1, "b": -1}]], ("unknown", "unknown", 0, None, None),
    ),
    "the other column is the same in every row": (
        "a > 0 OR b > 0", [[{"a": -1, "b": -1}, {"a": 1, "b": -1}]], ("violated", "exact", 0, 1, 1),
    ),
    "a partition's value": ("p < 3", [[{"p": 1}], [{"p": 3}, {"p": 3}]], ("violated", "exact", 1, 1, 2)),
    "a partition without a value": ("p IS NOT NULL", [[{"p": 1}], [{"p": None}]], ("violated", "exact", 1, 1, 1)),
    "names in another case": ("A > 0", [a(1)], ("satisfied", "exact", 1, 0, None)),
    "names in back-quotes, texts in double quotes": (
        '`s` = "x"', [[{"s": "x"}], [{"s": "y"}]], ("violated", "exact", 1, 1, 1),
    ),
    "a text for a date": ("d >= '2024-01-01'", [[{"d": date(2024, 1, 1)}]], ("satisfied", "exact", 1, 0, None)),
    "a date before it": ("d >= DATE '2024-01-01'", [[{"d": date(2023, 12, 31)}]], ("violated", "exact", 0, 1, 1)),
    "a text cut by its writer is no value": ("s < 'y'", [[{"s": "z" * 40}]], ("violated", "exact", 0, 1, 1)),
    "with one end cut the other is not known to be among the rows": (
        "s <> 'a'", [[{"s": "z" * 40}, {"s": "a"}]], ("unknown", "unknown", 0, None, None),
    ),
    "numbers may be NaN, which is above all": ("x < 5.0", [[{"x": 1.0}]], ("unknown", "unknown", 0, None, None)),
    "and so above what is asked": ("x > 0.5", [[{"x": 1.0}]], ("satisfied", "exact", 1, 0, None)),
    "two columns of a row": ("a < b", [[{"a": 1, "b": 2}]], ("unknown", "unknown", 0, None, None)),
    "a function": ("length(s) > 3", [[{"s": "x"}]], ("unknown", "unknown", 0, None, None)),
    "no condition at all": ("a >", [a(1)], ("unknown", "unknown", 0, None, None)),
    "a column that is not there": ("z > 0", [a(1)], ("unknown", "unknown", 0, None, None)),
    "nested so deep that nobody reads it": ("(" * 5_000, [a(1)], ("unknown", "unknown", 0, None, None)),
    "a table without rows": ("a > 0", [], ("satisfied", "exact", 0, 0, None)),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "files", "expected"), CASES.values(), ids=list(CASES))
def test_a_constraint_is_checked_against_statistics(
    rule: str, files: list[list[Row]], expected: tuple[Any, ...], tmp_path: Path
) -> None:
    row = one(delta_table(tmp_path / "t", [rule], files))
    proved = tuple(row[n] for n in ("verdict", "certainty", "files_satisfying", "files_violating", "records_violating"))
    assert proved == expected
    assert (row["why"] is None) == (row["verdict"] != "unknown")
    assert row["files"] == len(files)


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        ("a > 0", "(`a` <= 0 OR `a` IS NULL)"),
        ("s NOT IN ('x', 'y')", "(`s` IN ('x', 'y') OR `s` IS NULL)"),
        ("a IN (1, 2, 3, 4, 5, 6)", "(`a` NOT IN (1, 2, 3, 4, 5, 6) OR `a` IS NULL)"),
        ("s <> 'it''s'", None),
        ("d >= '2024-01-01' AND a IS NULL", "((`d` < DATE '2024-01-01' OR `d` IS NULL) OR `a` IS NOT NULL)"),
        ("a < b", None),
        ("a > 0 AND length(s) > 3", None),
    ],
)
def test_the_rows_that_break_it_are_found_by_a_filter(rule: str, where: str | None, tmp_path: Path) -> None:
    assert one(delta_table(tmp_path / "t", [rule], [a(1)]))["violating"] == where


def test_files_that_break_it_are_named(tmp_path: Path) -> None:
    verdicts = verdicts_of(delta_table(tmp_path / "t", ["a > 0"], [a(1), a(-1, -1), a(None, 5)]))
    assert verdicts.files.schema == views.quality.verdicts.VIOLATING_FILES
    assert verdicts.files.select("path", "records_violating").rows() == [("f1.parquet", 2), ("f2.parquet", 1)]


def test_of_very_many_constraints_the_first_are_looked_at(tmp_path: Path) -> None:
    table = delta_table(tmp_path / "t", ["a > 0", "b > 0", "p > 0"], [a(1)])
    snapshot = table.snapshot()
    rules = views.quality.constraints.stated_rules(snapshot)
    columns = views.quality.constraints.rule_columns(rules, snapshot.schema, 1)
    verdicts = views.quality.verdicts.constraint_verdicts(snapshot, rules, table.statistics(columns=columns), 1)
    assert (columns, verdicts.rules["rule"].to_list(), verdicts.left_out) == (["a"], ["a > 0"], 2)


def test_a_column_that_may_not_be_null(tmp_path: Path) -> None:
    table = delta_table(tmp_path / "t", [], [a(1), a(None, None, 3)], required=("a",))
    rule = one(table)
    assert (rule["kind"], rule["name"], rule["rule"]) == ("required", "a", "a IS NOT NULL")
    assert (rule["verdict"], rule["certainty"], rule["records_violating"]) == ("violated", "exact", 2)


def test_rows_that_were_deleted_break_nothing(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t")
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors", "checkConstraints"]}
    history.commit(
        protocol(3, 7, **features), metadata({"a": "long"}, properties={"delta.constraints.positive": "a > 0"})
    )
    wide = {"numRecords": 3, "minValues": {"a": -1}, "maxValues": {"a": 5}, "nullCount": {"a": 1}, "tightBounds": False}
    columns = {"a": pa.array([-1, None, 5], pa.int64())}
    history.commit(history.data("f", columns, stats=json.dumps(wide), deletionVector=deleting(0, 1)))
    rule = one(open_table(history.address))
    assert (rule["verdict"], rule["why"]) == ("unknown", "some files have no statistics for it, or bounds too wide")


def test_a_file_of_which_every_row_was_deleted_keeps_everything(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t")
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors", "checkConstraints"]}
    history.commit(
        protocol(3, 7, **features), metadata({"a": "long"}, properties={"delta.constraints.positive": "a > 0"})
    )
    columns = {"a": pa.array([-1], pa.int64())}
    history.commit(history.data("f", columns, stats={"numRecords": 1}, deletionVector=deleting(0)))
    assert one(open_table(history.address))["verdict"] == "satisfied"


def test_without_statistics_nothing_is_proved(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"a": "long"}, properties={"delta.constraints.positive": "a > 0"})
    history.commit(history.data("f", {"a": pa.array([1], pa.int64())}))
    rule = one(open_table(history.address))
    assert (rule["verdict"], rule["certainty"], rule["records_violating"]) == ("unknown", "unknown", None)


def test_what_statistics_cannot_tell_is_listed_with_its_reason(tmp_path: Path) -> None:
    fields = [
        {"name": "a", "type": "long", "nullable": True, "metadata": {}},
        {"name": "g", "type": "long", "nullable": True, "metadata": {"delta.generationExpression": "a + 1"}},
        {"name": "i", "type": "long", "nullable": True, "metadata": {"delta.invariants": "i > 0"}},
        {"name": "v", "type": "string", "nullable": True, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}},
    ]
    history = DeltaHistory(tmp_path / "t")
    history.commit(protocol(1, 4), metadata(schema=json.dumps({"type": "struct", "fields": fields})))
    rows = pa.table({"a": [1], "g": [2], "i": [3], "v": ["abc"]})
    history.commit(history.data("f", rows, stats=file_statistics(rows)))
    rules = verdicts_of(open_table(history.address)).rules
    assert rules.select("kind", "name", "verdict", "why").rows() == [
        ("generated", "g", "unknown", "it compares values of one row; statistics are by column"),
        ("length", "v", "unknown", "statistics contain no lengths"),
        ("invariant", "i", "satisfied", None),
    ]


def nested(required: bool) -> list[dict[str, Any]]:
    """A struct with a required column, itself required or not."""
    inner = [{"id": 3, "name": "in", "required": True, "type": "long"}]
    return [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "s", "required": required, "type": {"type": "struct", "fields": inner}},
    ]


def test_required_fields_of_the_second_format(tmp_path: Path) -> None:
    fields = [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "note", "required": False, "type": "string"},
    ]
    history = IcebergHistory(tmp_path / "t", fields)
    history.append("a", [{"id": 1}, {"id": 2}])
    assert one(open_table(history.address))["verdict"] == "satisfied"
    # a writer that minds no rule: its field is optional while it writes
    history.evolve([fields[0] | {"required": False}, fields[1]])
    history.append("b", [{"id": None, "note": "x"}, {"id": 5, "note": None}])
    history.evolve(fields)
    history.append("c", [{"id": 7, "note": "y"}])
    rule = one(open_table(history.address))
    assert (rule["rule"], rule["verdict"], rule["certainty"]) == ("id IS NOT NULL", "violated", "exact")
    assert (rule["files"], rule["files_violating"], rule["records_violating"]) == (3, 1, 1)


def test_rows_deleted_of_the_second_format(tmp_path: Path) -> None:
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    history = IcebergHistory(tmp_path / "t", fields, version=3)
    path = history.append("a", [{"id": None}, {"id": 2}])
    history.evolve([fields[0] | {"required": True}])
    history.delete_vectors("v", {path: [0]})
    assert one(open_table(history.address))["verdict"] == "unknown"


@pytest.mark.parametrize("seed", range(3))
def test_what_is_proved_is_true_of_the_rows(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    rules = [_rule(dice, 2) for _ in range(30)]
    values: list[int | None] = [None, 0, 1, 2, 3]
    files = [
        [
            {"a": dice.choice(values), "b": dice.choice(values[dice.randrange(3) :]), "p": part}
            for _ in range(dice.randint(1, 3))
        ]
        for part in [dice.choice([None, 1, 2]) for _ in range(6)]
    ]
    table = delta_table(tmp_path / "t", rules, files)
    verdicts = verdicts_of(table)
    proved = 0
    violations = {row["rule_id"]: row["violating"] for row in verdicts.rules.iter_rows(named=True)}
    for number, where in violations.items():  # what is offered to find them by finds them, and nothing else
        assert table.scan().filter(pl.sql_expr(where)).collect().height == sum(
            _breaking(rules[number], rows) for rows in files
        )
    broken = {(rule, path): rows for rule, path, _, _, rows in verdicts.files.iter_rows()}
    for rule_row in verdicts.rules.iter_rows(named=True):
        truths = [_breaking(rules[rule_row["rule_id"]], rows) for rows in files]
        assert rule_row["files_satisfying"] <= truths.count(0)
        assert rule_row["verdict"] != "satisfied" or not any(truths)
        for i, truth in enumerate(truths):
            assert broken.get((rule_row["rule_id"], f"f{i}.parquet"), 0) <= truth
        proved += rule_row["files_satisfying"] + (rule_row["files_violating"] or 0)
    assert proved > 90  # of 180


def _rule(dice: random.Random, depth: int) -> str:
    if depth and dice.random() < 0.6:
        return f"({_rule(dice, depth - 1)} {dice.choice(['AND', 'OR'])} {_rule(dice, depth - 1)})"
    column = dice.choice("abp")
    match dice.randrange(4):
        case 0:
            return f"{column} IS {dice.choice(['', 'NOT '])}NULL"
        case 1:
            return f"{column} {dice.choice(['', 'NOT '])}IN ({dice.randrange(4)}, {dice.randrange(4)})"
        case 2:
            return f"NOT ({column} {dice.choice(['=', '<', '>='])} {dice.randrange(4)})"
    return f"{column} {dice.choice(['=', '<>', '<', '<=', '>', '>='])} {dice.randrange(4)}"


def _breaking(rule: str, rows: list[Row]) -> int:
    """How many rows the rule is not true of: false, or null as SQL has it."""
    frame = pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.Int64, "p": pl.Int64})
    with pl.SQLContext(t=frame) as context:
        true = context.execute(f"SELECT * FROM t WHERE {rule}", eager=True).height
    return frame.height - true


def test_a_table_without_rules_costs_nothing(tmp_path: Path) -> None:
    snapshot = delta_table(tmp_path / "t", [], [a(1)]).snapshot()
    verdicts = views.quality.verdicts.constraint_verdicts(
        snapshot, views.quality.constraints.stated_rules(snapshot), pl.DataFrame()
    )
    assert (verdicts.rules.schema, verdicts.rules.height) == (views.quality.verdicts.CONSTRAINTS, 0)
    assert (verdicts.files.schema, verdicts.files.height) == (views.quality.verdicts.VIOLATING_FILES, 0)


def test_what_is_broken_is_a_finding(tmp_path: Path) -> None:
    table = delta_table(tmp_path / "t", ["a > 0", "b > 0", "p > 0", "d IS NULL"], [[{"a": -1, "b": -1, "p": -1}]])
    (finding,) = views.health.findings.rule_findings(verdicts_of(table))
    assert finding.claim == "3 of the table's constraints are violated"
    assert finding.evidence.startswith("a > 0 in 1 file, 1 row or more; b > 0 in 1 file")
    assert (finding.severity, finding.page) == ("attention", "quality")
    only = delta_table(tmp_path / "only", ["a <> 3"], [a(1, 3), a(1, 5)])
    (finding,) = views.health.findings.rule_findings(verdicts_of(only))
    assert (finding.claim, finding.evidence) == ("r0 is violated", "a <> 3 in at least 1 file, 1 row or more")
    assert views.health.findings.rule_findings(verdicts_of(delta_table(tmp_path / "kept", ["a > 0"], [a(1)]))) == []


@pytest.mark.parametrize(("end", "verdict"), [("00.123", "unknown"), ("00.124", "satisfied")])
def test_a_timestamp_cut_by_its_writer_proves_nothing_about_its_last_millisecond(
    end: str, verdict: str, tmp_path: Path
) -> None:
    """Rows keep microseconds, bounds milliseconds: 10:00:00.123456 breaks the first rule, and .123 would not."""
    rule = f"t <= TIMESTAMP_NTZ '2026-01-01 10:00:{end}'"
    history = DeltaHistory(tmp_path / "t").create({"t": "timestamp_ntz"}, properties={"delta.constraints.r": rule})
    cut = {"t": "2026-01-01T10:00:00.123"}
    stats = {"numRecords": 1, "minValues": cut, "maxValues": cut, "nullCount": {"t": 0}}
    value = datetime.fromisoformat("2026-01-01T10:00:00.123456")
    history.commit(history.data("f", pa.table({"t": pa.array([value], pa.timestamp("us"))}), stats=stats))
    assert one(open_table(history.address))["verdict"] == verdict
