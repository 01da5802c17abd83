"""Constraints and the statistics of files to proofs: satisfied, violated and in which files, or unknown.

No data is read. Bounds and null counts prove a verdict, or it is unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.model.schema import leaf_name
from lakeview.model.snapshot import Snapshot
from lakeview.predicates.printing import POLARS
from lakeview.predicates.proofs import Evidence, proofs
from lakeview.predicates.tree import Path, complement, paths
from lakeview.views.quality.constraints import MOST_RULES, NO_STATISTICS, Rule
from lakeview.views.schema.columns import cut_rule


class Verdict(StrEnum):
    """What is proved of a constraint: some row violates it, every row satisfies it, or neither."""

    VIOLATED = "violated"
    UNKNOWN = "unknown"
    SATISFIED = "satisfied"


CONSTRAINTS = pl.Schema(
    {
        "rule_id": pl.Int64(),
        "kind": pl.String(),
        "name": pl.String(),
        "rule": pl.String(),
        "verdict": pl.String(),
        "certainty": pl.String(),
        "files": pl.Int64(),
        "files_satisfying": pl.Int64(),
        "files_violating": pl.Int64(),
        "records_violating": pl.Int64(),
        "why": pl.String(),
        "violating": pl.String(),
    }
)
"""One row a constraint, violated ones first, then unknown ones. `kind`: check, invariant, generated, length or required
(a column that may not be null); `verdict`: Verdict; `certainty`: exact (every file is proved to satisfy or to violate
it), bound (`files_violating` do, more may), unknown. Of `files`, every row of `files_satisfying` is proved to satisfy
it, one of each of `files_violating` to violate it (null where the verdict is unknown). `records_violating`: live rows
at least, null unless violated; `why`: what is missing for a proof, null where there is one; `violating`: the filter for
the violating rows, in the SQL of polars, null where the rule is more than comparisons with values."""

VIOLATING_FILES = pl.Schema(
    {
        "rule_id": pl.Int64(),
        "path": pl.String(),
        "deletion_vector": pl.String(),
        "partition_text": pl.String(),
        "records_violating": pl.Int64(),
    }
)
"""One row a constraint and file in which rows are proved to violate it, `records_violating` at least."""

VIOLATIONS = pl.Schema(
    {
        "name": pl.String(),
        "path": pl.String(),
        "partition_text": pl.String(),
        "records_violating": pl.Int64(),
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "writer": pl.String(),
        "operation": pl.String(),
    }
)
"""VIOLATING_FILES with the constraint's name and the commit that wrote each file; null where no commit is recorded."""


@dataclass(frozen=True, slots=True)
class ConstraintVerdicts:
    """`rules`: CONSTRAINTS; `files`: VIOLATING_FILES; `left_out`: how many constraints were not evaluated."""

    rules: pl.DataFrame
    files: pl.DataFrame
    left_out: int


def constraint_verdicts(
    snapshot: Snapshot, rules: Sequence[Rule], statistics: pl.DataFrame, most: int = MOST_RULES
) -> ConstraintVerdicts:
    """The verdicts that STATISTICS of `rule_columns` prove on the first `most` rules."""
    if not rules:  # reads no files: a table may have a million of them
        return ConstraintVerdicts(pl.DataFrame(schema=CONSTRAINTS), pl.DataFrame(schema=VIOLATING_FILES), 0)
    files = snapshot.files
    live = files["records"] - files["deleted_records"]
    evidence = _evidence(snapshot, statistics, {path for rule in rules[:most] for path in paths(rule.node)})
    rows, files_violating = [], []
    for number, rule in enumerate(rules[:most]):
        file_proofs = proofs(rule.node, evidence, live)
        if not rule.decisive:
            file_proofs = file_proofs.with_columns(violations=pl.lit(0, pl.Int64))
        rows.append(_verdict_row(number, rule, file_proofs))
        columns = files.select("path", "deletion_vector", "partition_text").with_columns(
            pl.lit(number, pl.Int64).alias("rule_id"), file_proofs["violations"].alias("records_violating")
        )
        files_violating.append(columns.filter(pl.col("records_violating") > 0).select(VIOLATING_FILES.names()))
    order = pl.col("verdict").replace_strict({v.value: i for i, v in enumerate(Verdict)}, return_dtype=pl.Int64)
    frame = pl.DataFrame(rows, schema=CONSTRAINTS, orient="row").sort(order, maintain_order=True)
    return ConstraintVerdicts(
        frame, pl.concat([pl.DataFrame(schema=VIOLATING_FILES), *files_violating]), max(0, len(rules) - most)
    )


def violations(verdicts: ConstraintVerdicts, lifetimes: pl.DataFrame, timeline: pl.DataFrame) -> pl.DataFrame:
    """VIOLATIONS, newest commits first: the files of ConstraintVerdicts looked up in LIFETIMES and TIMELINE."""
    names = verdicts.rules.select("rule_id", "name")
    # a deletion vector starts a new interval of the same file: its rows came with the first
    stays = lifetimes.group_by("path").agg(pl.col("added").first()).rename({"added": "version"})
    commits = timeline.with_row_index("place").select("version", "timestamp", "writer", "operation", "place")
    return (
        verdicts.files.join(names, on="rule_id", how="left", maintain_order="left")
        .join(stays, on="path", how="left", maintain_order="left")
        .join(commits, on="version", how="left", maintain_order="left")
        .sort("place", descending=True, nulls_last=True, maintain_order=True)
        .select(VIOLATIONS.names())
    )


def open_rules(rules: pl.DataFrame) -> list[tuple[str, str]]:
    """Name and filter of the violating rows, for each of CONSTRAINTS that is not proved and that a filter can test."""
    not_satisfied = rules.filter(pl.col("verdict") != Verdict.SATISFIED.value).drop_nulls("violating")
    return list(not_satisfied.select("name", "violating").iter_rows())


def _verdict_row(number: int, rule: Rule, files: pl.DataFrame) -> tuple[object, ...]:
    num_satisfied, violating_files = int(files["satisfied"].sum()), files.filter(pl.col("violations") > 0)
    if violating_files.height:
        verdict = Verdict.VIOLATED
        certainty = "exact" if num_satisfied + violating_files.height == files.height else "bound"
    elif num_satisfied == files.height:
        verdict, certainty = Verdict.SATISFIED, "exact"
    else:
        verdict, certainty = Verdict.UNKNOWN, "unknown"
    why = (rule.why or NO_STATISTICS) if verdict is Verdict.UNKNOWN else None
    rows = int(violating_files["violations"].sum()) if violating_files.height else None
    return (
        *(number, rule.kind, rule.name, cut_rule(rule.text), verdict.value, certainty),
        *(files.height, num_satisfied, None if verdict is Verdict.UNKNOWN else violating_files.height, rows, why),
        POLARS.print(complement(rule.node)) if rule.decisive else None,
    )


def _evidence(snapshot: Snapshot, statistics: pl.DataFrame, columns: set[Path]) -> dict[Path, Evidence]:
    """Evidence of these columns, a value a file in the order of `snapshot.files`."""
    files = snapshot.files
    keys = statistics.select(path="_path", deletion_vector="_deletion_vector").with_row_index("place")
    keys = keys.unique(["path", "deletion_vector"], keep="first", maintain_order=True)
    places = files.select("path", "deletion_vector").join(
        keys, on=["path", "deletion_vector"], how="left", nulls_equal=True, maintain_order="left"
    )["place"]
    parts = files["partition"].struct.unnest() if "partition" in files.columns else pl.DataFrame()
    evidence = {}
    for path in columns:
        name = leaf_name(path)
        if name in statistics.columns:
            bounds = statistics[name].alias("statistics").gather(places)  # a series called ^x$ would be a pattern
            evidence[path] = Evidence.of_statistics(bounds, files["records"])
        elif len(path) == 1 and path[0] in snapshot.partition_columns and path[0] in parts.columns:
            evidence[path] = Evidence.of_values(parts[path[0]])
    return evidence
