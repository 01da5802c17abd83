"""The constraints that a version's table states, as conditions over its columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import polars as pl

from lakeview.model.data_types import StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema, leaf_name
from lakeview.model.snapshot import Snapshot
from lakeview.predicates.condition import constraint_expression
from lakeview.predicates.expressions import parse
from lakeview.predicates.tree import (
    Comparison,
    IsIn,
    IsNull,
    Leaf,
    Node,
    Or,
    Path,
    StartsWith,
    Unknown,
    join,
    leaves,
    map_leaves,
    paths,
)
from lakeview.views.schema.columns import cut_rule

MOST_RULES = 200
_MOST_LEAVES = 3

_NO_WORD = "it is more than comparisons of a column with a value, tests for null, IN, AND and OR"
_ROW_BY_ROW = "it compares values of one row; statistics are by column"
_LENGTHS = "statistics contain no lengths"
NO_STATISTICS = "some files have no statistics for it, or bounds too wide"
_BELOW_NULL = "a struct above it may be null, and its nulls are counted with it"


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint as a condition. `node`: Unknown where statistics cannot decide it, `why` gives the reason;
    `decisive`: whether a row for which the condition is not true violates the constraint."""

    kind: str
    name: str
    text: str
    node: Node
    why: str | None = None
    decisive: bool = True


def stated_rules(snapshot: Snapshot) -> list[Rule]:
    """The constraints of a version: those its table states as expressions, then the columns that may not be null."""
    schema = snapshot.schema
    return [*_stated_rules(snapshot.rules, schema), *_required_in(StructType(schema.fields), (), True)]


def rule_columns(rules: Sequence[Rule], schema: Schema, most: int = MOST_RULES) -> list[str]:
    """The leaf columns whose statistics are needed, named as in STATISTICS."""
    leaves = {path for path, _ in schema.leaves()}
    columns = dict.fromkeys(path for rule in rules[:most] for path in paths(rule.node))
    return [leaf_name(path) for path in columns if path in leaves]


def _stated_rules(rules: pl.DataFrame, schema: Schema) -> Iterator[Rule]:
    for column, kind, name, text in rules.select("column", "kind", "name", "rule").iter_rows():
        if kind in ("check", "invariant"):
            node, refusal = condition(text, schema)
            yield Rule(
                kind,
                name or column or "",
                text,
                node,
                refusal or (_NO_WORD if any(isinstance(leaf, Unknown) for leaf in leaves(node)) else None),
            )
        elif kind == "generated":
            yield Rule(kind, column or "", text, Unknown(), _generated_reason(text))
        elif kind == "length":
            yield Rule(kind, column or "", text, Unknown(), _LENGTHS)


def _required_in(type_: StructType, above: Path, sure: bool) -> Iterator[Rule]:
    """Columns that may not be null, leaves and structs; one below a struct that may be null goes with it."""
    for field in type_.fields:
        path = (*above, field.name)
        inner = field.type if isinstance(field.type, StructType) else None
        if not field.nullable:
            text = f"{leaf_name(path)} IS NOT NULL"
            if inner is None:
                yield Rule(
                    "required",
                    leaf_name(path),
                    text,
                    IsNull(path, is_negated=True),
                    None if sure else _BELOW_NULL,
                    sure,
                )
            else:
                yield Rule("required", leaf_name(path), text, _some_value(path, inner), None, decisive=False)
        if inner is not None:
            yield from _required_in(inner, path, sure and not field.nullable)


def _some_value(path: Path, struct: StructType) -> Node:
    """That a value below a struct is not null: then the struct is not. If all are it may be all the same."""
    below = [(*path, *inner) for inner, _ in Schema(struct.fields).leaves()][:_MOST_LEAVES]
    return join(Or, [IsNull(leaf, is_negated=True) for leaf in below]) if below else Unknown()


def condition(text: str, schema: Schema) -> tuple[Node, str | None]:
    """Returns a constraint's expression, in Spark's SQL, as a tree over the columns of a schema, and why it was not
    evaluated: None where it was. The tree is Unknown then, and where statistics have no word for it.

    Names are looked up without regard to case, as Spark does. A text compared with a date is that date.
    """
    try:
        node = parse(constraint_expression(text))
    except InvalidRequestError as error:
        return Unknown(), _not_evaluated(error)
    types = {path: str(field.type) for path, field in schema.leaves()}
    return map_leaves(node, lambda leaf: _with_types(leaf, types)), None


def _generated_reason(text: str) -> str:
    """Why a generated column proves nothing: what its expression may not hold, or that it compares values of a row."""
    try:
        constraint_expression(text)
    except InvalidRequestError as error:
        return _not_evaluated(error)
    return _ROW_BY_ROW


def _not_evaluated(error: InvalidRequestError) -> str:
    return cut_rule(f"not evaluated: {error.message}")


def _with_types(node: Leaf, types: Mapping[Path, str]) -> Node:
    """The leaf with its column's name as the schema has it, and constants as the column's type compares with them."""
    match node:
        case Comparison(path, _, value):
            column = _resolve_path(path, types)
            constant = None if column is None else _value(value, types[column])
            return Unknown() if column is None or constant is None else replace(node, path=column, value=constant)
        case IsIn(path, values):
            column = _resolve_path(path, types)
            constant = None if column is None else _value(values, types[column])
            return Unknown() if column is None or constant is None else replace(node, path=column, values=constant)
        case IsNull(path) | StartsWith(path):
            column = _resolve_path(path, types)
            return Unknown() if column is None else replace(node, path=column)
    return node


def _resolve_path(path: Path, types: Mapping[Path, str]) -> Path | None:
    if path in types:
        return path
    matches = [leaf for leaf in types if tuple(map(str.casefold, leaf)) == tuple(map(str.casefold, path))]
    return matches[0] if len(matches) == 1 else None


def _value(value: pl.Series, type_: str) -> pl.Series | None:
    """The constants as the column's type compares with them; None for those that Spark would cast in its own way."""
    try:
        if type_ == "date" and value.dtype == pl.String():
            return value.str.to_date("%Y-%m-%d")
        if type_.startswith("timestamp") and value.dtype == pl.String():
            return None  # which moment a text is depends on the zone of the session that wrote
        if type_.startswith("decimal") and value.dtype.is_float():
            return pl.Series([None if v is None else Decimal(repr(v)) for v in value.to_list()])
    except (pl.exceptions.PolarsError, ArithmeticError):
        return None
    return value
