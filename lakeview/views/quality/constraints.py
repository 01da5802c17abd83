"""A version's own constraints and its files' statistics to what is proved: kept, broken by which files, or unknown.

Nothing is read of the data. A verdict is proved by bounds and counts of nulls, or there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

import polars as pl

from lakeview.model.errors import InvalidRequestError
from lakeview.model.frames import UTC_MILLIS
from lakeview.model.schema import Schema, StructType, leaf_name
from lakeview.model.snapshot import Snapshot
from lakeview.predicates.condition import constraint_expression
from lakeview.predicates.expressions import parse
from lakeview.predicates.printing import POLARS
from lakeview.predicates.proofs import Evidence, proofs
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
    complement,
    join,
    leaves,
    map_leaves,
    paths,
)
from lakeview.views.schema.rules import cut_rule


class Verdict(StrEnum):
    """What is proved of a constraint: every row keeps it, some row breaks it, or neither."""

    BROKEN = "broken"
    UNKNOWN = "unknown"
    KEPT = "kept"


KEPT_RULES = pl.Schema(
    {
        "rule_id": pl.Int64(),
        "kind": pl.String(),
        "name": pl.String(),
        "rule": pl.String(),
        "verdict": pl.String(),
        "certainty": pl.String(),
        "files": pl.Int64(),
        "files_kept": pl.Int64(),
        "files_broken": pl.Int64(),
        "records_broken": pl.Int64(),
        "why": pl.String(),
        "breaking": pl.String(),
    }
)
"""One row a constraint: what is broken first, then what is not known. `kind`: check, invariant, generated, length or
required (a column that may not be null); `verdict`: Verdict; `certainty`: exact (every file is proved to keep or to
break it), bound (`files_broken` do, more may), unknown. Of `files`, in `files_kept` every row is proved to keep it, in
`files_broken` one is proved to break it (null where the verdict is unknown). `records_broken`: live rows at least, null
unless broken; `why`: what is missing for a proof, null where there is one; `breaking`: the filter that finds the rows
which break it, as polars reads SQL, null where the rule is more than comparisons with values."""

BROKEN_FILES = pl.Schema(
    {
        "rule_id": pl.Int64(),
        "path": pl.String(),
        "deletion_vector": pl.String(),
        "partition_text": pl.String(),
        "records_broken": pl.Int64(),
    }
)
"""One row a constraint and file in which rows are proved to break it, `records_broken` at least."""

BROKEN_SINCE = pl.Schema(
    {
        "name": pl.String(),
        "path": pl.String(),
        "partition_text": pl.String(),
        "records_broken": pl.Int64(),
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "writer": pl.String(),
        "operation": pl.String(),
    }
)
"""BROKEN_FILES with the constraint's name and the commit that wrote each file; null where no log tells it."""

MOST_RULES = 200
_MOST_LEAVES = 3

_NO_WORD = "it is more than comparisons of a column with a value, tests for null, IN, AND and OR"
_ROW_BY_ROW = "it compares values of one row, and statistics know no rows"
_LENGTHS = "statistics know no lengths"
_NO_STATISTICS = "some files have no statistics of it, or bounds too wide"
_BELOW_NULL = "a struct above it may be null, which takes its nulls along"


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint as a condition. `node`: Unknown where statistics can say nothing, `why` then says why; `decisive`:
    whether a row for which the condition is not true breaks the constraint."""

    kind: str
    name: str
    text: str
    node: Node
    why: str | None = None
    decisive: bool = True


@dataclass(frozen=True, slots=True)
class KeptRules:
    """`rules`: KEPT_RULES; `files`: BROKEN_FILES; `left_out`: how many constraints were not looked at."""

    rules: pl.DataFrame
    files: pl.DataFrame
    left_out: int


def stated_rules(snapshot: Snapshot) -> list[Rule]:
    """The constraints of a version: those its table states as expressions, then the columns that may not be null."""
    schema = snapshot.schema
    return [*_stated(snapshot.rules, schema), *_required(schema)]


def rule_columns(rules: Sequence[Rule], schema: Schema, most: int = MOST_RULES) -> list[str]:
    """The leaf columns whose statistics are needed, named as in STATISTICS."""
    leaves = {path for path, _ in schema.leaves()}
    asked = dict.fromkeys(path for rule in rules[:most] for path in paths(rule.node))
    return [leaf_name(path) for path in asked if path in leaves]


def kept_rules(
    snapshot: Snapshot, rules: Sequence[Rule], statistics: pl.DataFrame, most: int = MOST_RULES
) -> KeptRules:
    """What STATISTICS of `rule_columns` prove of the first `most` rules."""
    if not rules:  # a table of a million files pays nothing for rules it has not
        return KeptRules(pl.DataFrame(schema=KEPT_RULES), pl.DataFrame(schema=BROKEN_FILES), 0)
    files = snapshot.files
    live = files["records"] - files["deleted_records"]
    evidence = _evidence(snapshot, statistics, {path for rule in rules[:most] for path in paths(rule.node)})
    told, broken = [], []
    for number, rule in enumerate(rules[:most]):
        found = proofs(rule.node, evidence, live)
        if not rule.decisive:
            found = found.with_columns(violations=pl.lit(0, pl.Int64))
        told.append(_told(number, rule, found))
        columns = files.select("path", "deletion_vector", "partition_text").with_columns(
            pl.lit(number, pl.Int64).alias("rule_id"), found["violations"].alias("records_broken")
        )
        broken.append(columns.filter(pl.col("records_broken") > 0).select(BROKEN_FILES.names()))
    order = pl.col("verdict").replace_strict({v.value: i for i, v in enumerate(Verdict)}, return_dtype=pl.Int64)
    frame = pl.DataFrame(told, schema=KEPT_RULES, orient="row").sort(order, maintain_order=True)
    return KeptRules(frame, pl.concat([pl.DataFrame(schema=BROKEN_FILES), *broken]), max(0, len(rules) - most))


def broken_since(found: KeptRules, lifetimes: pl.DataFrame, timeline: pl.DataFrame) -> pl.DataFrame:
    """BROKEN_SINCE, newest commits first: the files of KeptRules looked up in LIFETIMES and TIMELINE."""
    names = found.rules.select("rule_id", "name")
    # a deletion vector makes a new stay of the same file: its rows came with the first
    stays = lifetimes.group_by("path").agg(pl.col("added").first()).rename({"added": "version"})
    commits = timeline.with_row_index("place").select("version", "timestamp", "writer", "operation", "place")
    return (
        found.files.join(names, on="rule_id", how="left", maintain_order="left")
        .join(stays, on="path", how="left", maintain_order="left")
        .join(commits, on="version", how="left", maintain_order="left")
        .sort("place", descending=True, nulls_last=True, maintain_order=True)
        .select(BROKEN_SINCE.names())
    )


def _told(number: int, rule: Rule, found: pl.DataFrame) -> tuple[object, ...]:
    kept, broken = int(found["satisfied"].sum()), found.filter(pl.col("violations") > 0)
    if broken.height:
        verdict = Verdict.BROKEN
        certainty = "exact" if kept + broken.height == found.height else "bound"
    elif kept == found.height:
        verdict, certainty = Verdict.KEPT, "exact"
    else:
        verdict, certainty = Verdict.UNKNOWN, "unknown"
    why = (rule.why or _NO_STATISTICS) if verdict is Verdict.UNKNOWN else None
    rows = int(broken["violations"].sum()) if broken.height else None
    return (
        *(number, rule.kind, rule.name, cut_rule(rule.text), verdict.value, certainty),
        *(found.height, kept, None if verdict is Verdict.UNKNOWN else broken.height, rows, why),
        POLARS.print(complement(rule.node)) if rule.decisive else None,
    )


def _stated(rules: pl.DataFrame, schema: Schema) -> Iterator[Rule]:
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


def _required(schema: Schema) -> Iterator[Rule]:
    """Columns that may not be null, leaves and structs; one below a struct that may be null goes with it."""
    yield from _required_in(StructType(schema.fields), (), True)


def _required_in(type_: StructType, above: Path, sure: bool) -> Iterator[Rule]:
    for field in type_.fields:
        path = (*above, field.name)
        inner = field.type if isinstance(field.type, StructType) else None
        if not field.nullable:
            text = f"{leaf_name(path)} IS NOT NULL"
            if inner is None:
                yield Rule(
                    "required", leaf_name(path), text, IsNull(path, negated=True), None if sure else _BELOW_NULL, sure
                )
            else:
                yield Rule("required", leaf_name(path), text, _some_value(path, inner), None, decisive=False)
        if inner is not None:
            yield from _required_in(inner, path, sure and not field.nullable)


def _some_value(path: Path, struct: StructType) -> Node:
    """That a value below a struct is not null: then the struct is not. If all are it may be all the same."""
    below = [(*path, *inner) for inner, _ in Schema(struct.fields).leaves()][:_MOST_LEAVES]
    return join(Or, [IsNull(leaf, negated=True) for leaf in below]) if below else Unknown()


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
    return map_leaves(node, lambda leaf: _typed(leaf, types)), None


def _generated_reason(text: str) -> str:
    """Why a generated column proves nothing: what its expression may not hold, or that it compares values of a row."""
    try:
        constraint_expression(text)
    except InvalidRequestError as error:
        return _not_evaluated(error)
    return _ROW_BY_ROW


def _not_evaluated(error: InvalidRequestError) -> str:
    return cut_rule(f"not evaluated: {error.message}")


def _typed(node: Leaf, types: Mapping[Path, str]) -> Node:
    """The leaf with its column's name as the schema has it, and constants as the column's type compares with them."""
    match node:
        case Comparison(path, _, value):
            found = _found(path, types)
            fitted = None if found is None else _value(value, types[found])
            return Unknown() if found is None or fitted is None else replace(node, path=found, value=fitted)
        case IsIn(path, values):
            found = _found(path, types)
            fitted = None if found is None else _value(values, types[found])
            return Unknown() if found is None or fitted is None else replace(node, path=found, values=fitted)
        case IsNull(path) | StartsWith(path):
            found = _found(path, types)
            return Unknown() if found is None else replace(node, path=found)
    return node


def _found(path: Path, types: Mapping[Path, str]) -> Path | None:
    if path in types:
        return path
    folded = [leaf for leaf in types if tuple(map(str.casefold, leaf)) == tuple(map(str.casefold, path))]
    return folded[0] if len(folded) == 1 else None


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


def _evidence(snapshot: Snapshot, statistics: pl.DataFrame, asked: set[Path]) -> dict[Path, Evidence]:
    """Evidence of these columns, a value a file in the order of `snapshot.files`."""
    files = snapshot.files
    keys = statistics.select(path="_path", deletion_vector="_deletion_vector").with_row_index("place")
    keys = keys.unique(["path", "deletion_vector"], keep="first", maintain_order=True)
    places = files.select("path", "deletion_vector").join(
        keys, on=["path", "deletion_vector"], how="left", nulls_equal=True, maintain_order="left"
    )["place"]
    parts = files["partition"].struct.unnest() if "partition" in files.columns else pl.DataFrame()
    found = {}
    for path in asked:
        name = leaf_name(path)
        if name in statistics.columns:
            found[path] = Evidence.of_statistics(statistics[name].gather(places), files["records"])
        elif len(path) == 1 and path[0] in snapshot.partition_columns and path[0] in parts.columns:
            found[path] = Evidence.of_values(parts[path[0]])
    return found
