"""A merge: what becomes of rows that a source matches, of those that it does not, and of its own that match none; and
its clauses as expressions over the rows of both sides."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import polars as pl

from lakeview.delta.write.assignments import Assignments, check_assignments
from lakeview.delta.write.schema_changes import Path
from lakeview.delta.write.target import Progress
from lakeview.model.arguments import names_of
from lakeview.model.clock import Clock
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import choices
from lakeview.model.schema import Schema
from lakeview.predicates.row_wise import row_wise
from lakeview.rows.matching import check_condition, evaluate, matching_rows

SOURCE, TARGET = "source", "target"
"""What the two sides are called in conditions and assignments."""

When = Literal["matched", "not matched", "not matched by source"]
Does = Literal["update", "delete", "insert"]


@dataclass(frozen=True, slots=True)
class Clause:
    """What becomes of rows of one kind for which `where` is true, all without it.

    `assignments`: column of the table, or field of a struct -> its value; None takes every column from the source
    column of its name.
    """

    when: When
    does: Does
    where: str | pl.Expr | None = None
    assignments: Assignments | None = None

    def words(self) -> dict[str, str]:
        """The clause as a commit records it."""
        words: dict[str, str] = {"actionType": self.does}
        return words if self.where is None else {"predicate": str(self.where), **words}


@dataclass
class Merge:
    """A merge in the making: add clauses, then `execute`. Of clauses of one kind, the first that holds counts.

    In conditions and assignments `source.x` is a column of the source and `target.x` one of the table; a name alone is
    one of the table, and in clauses that insert one of the source.
    """

    source: pl.DataFrame
    on: str
    run: Callable[[Merge], int | None]
    clauses: list[Clause] = field(default_factory=list)
    progress: Progress | None = None

    def when_matched_update(
        self, assignments: Assignments | None = None, *, where: str | pl.Expr | None = None
    ) -> Self:
        """Set columns of rows that a source row matches; all that the source has without `assignments`."""
        return self._with(Clause("matched", "update", where, assignments))

    def when_matched_delete(self, *, where: str | pl.Expr | None = None) -> Self:
        """Delete rows that a source row matches."""
        return self._with(Clause("matched", "delete", where))

    def when_not_matched_insert(self, values: Assignments | None = None, *, where: str | pl.Expr | None = None) -> Self:
        """Insert source rows that match no row; with all the columns that they have without `values`."""
        return self._with(Clause("not matched", "insert", where, values))

    def when_not_matched_by_source_update(
        self, assignments: Assignments, *, where: str | pl.Expr | None = None
    ) -> Self:
        """Set columns of rows that no source row matches."""
        return self._with(Clause("not matched by source", "update", where, assignments))

    def when_not_matched_by_source_delete(self, *, where: str | pl.Expr | None = None) -> Self:
        """Delete rows that no source row matches."""
        return self._with(Clause("not matched by source", "delete", where))

    def execute(self, *, progress: Progress | None = None) -> int | None:
        """Do it; returns the version, None if nothing changed (within a transaction: None, until that commits).

        `progress`: called with the bytes of the files done, and of all that may hold a match.
        InvalidRequestError (kind ambiguous-merge) names the key of a row that several source rows match.
        """
        if not self.clauses:
            raise InvalidRequestError(
                "the merge has no clause, and would change nothing", fix="add one, such as when_matched_update()"
            )
        self.progress = progress
        return self.run(self)

    def of(self, when: When) -> list[Clause]:
        """The clauses of one kind, in their order."""
        return [c for c in self.clauses if c.when == when]

    def parameters(self) -> Mapping[str, Any]:
        """operationParameters, in the words of other engines."""
        kinds: dict[str, When] = {
            "matchedPredicates": "matched",
            "notMatchedPredicates": "not matched",
            "notMatchedBySourcePredicates": "not matched by source",
        }
        clauses = {key: _json([c.words() for c in self.of(when)]) for key, when in kinds.items()}
        return {"predicate": _json([self.on]), **clauses}

    def _with(self, clause: Clause) -> Self:
        last = self.of(clause.when)[-1:]
        if last and last[0].where is None:
            raise InvalidRequestError(
                f"a clause follows one without a condition for rows that are {clause.when}, and would never be reached",
                fix="give the clause before it a condition",
            )
        self.clauses.append(clause)
        return self


def condition_of(on: str | Sequence[str], source: Sequence[str] = ()) -> str:
    """The condition of a merge: as it is given, or equality of columns that are named, one of the `source` as text."""
    if isinstance(on, str) and on not in source:
        if on.isidentifier() and on.lower() not in ("true", "false"):  # a name, which is no condition by itself
            raise InvalidRequestError(
                f"the source has no column {on} to match rows on",
                fix=f"{choices(on, source)}, or write a condition",
                place="on",
                kind="unknown-column",
            )
        return on
    on = names_of(on, "on")
    if not on:
        raise InvalidRequestError("the merge names no key", fix="say on which columns rows match", place="on")
    names = ['"' + name.replace('"', '""') + '"' for name in on]
    return " AND ".join(f"{TARGET}.{name} = {SOURCE}.{name}" for name in names)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def merge_metrics(files: Mapping[str, int], rows: Mapping[str, int]) -> dict[str, int]:
    """operationMetrics of a merge, in the words of other engines; the commit counts files that come and go."""
    names = ["numSourceRows", "numTargetRowsInserted"]
    names += [f"numTarget{what}{done}" for what in ("Files", "Bytes") for done in ("Added", "Removed")]
    names += [
        f"numTargetRows{when}{did}" for when in ("", "Matched", "NotMatchedBySource") for did in ("Updated", "Deleted")
    ]
    counts = {name: rows.get(name, 0) for name in names} | dict(rows)
    return counts | {
        "numTargetRowsCopied": files.get("numCopiedRows", 0),
        "numTargetChangeFilesAdded": files.get("numAddedChangeFiles", 0),
        **{
            f"numTargetDeletionVectors{done}": files.get(f"numDeletionVectors{done}", 0)
            for done in ("Added", "Updated", "Removed")
        },
        "numOutputRows": counts["numTargetRowsInserted"]
        + counts["numTargetRowsUpdated"]
        + files.get("numCopiedRows", 0),
    }


_SUBJECT = "the condition of a clause"


@dataclass(frozen=True)
class ClauseRule:
    """A clause, its expressions checked; `values`: of each column or field that it sets, by its path, None for the
    source column of its name (which a name such as ^x$ could not tell polars). `variants`: those of them that are
    variants."""

    clause: Clause
    where: pl.Expr | None
    values: Mapping[Path, pl.Expr | None]
    variants: frozenset[Path] = frozenset()

    def values_of(self, rows: pl.DataFrame, stored_rows: pl.DataFrame | None = None) -> dict[Path, pl.Series]:
        """The values of rows, by path. `stored_rows`: those with variants as their bytes, which variants are set by."""
        by_name = any(e is None for e in self.values.values())
        source = rows[SOURCE].struct.unnest() if by_name else pl.DataFrame()
        return {
            path: source[path[0]]
            if e is None
            else evaluate(
                rows if stored_rows is None or path not in self.variants else stored_rows,
                e,
                f"the value of column {'.'.join(path)}",
            )
            for path, e in self.values.items()
        }

    def holds(self, frame: pl.DataFrame) -> pl.Series:
        """For which rows of both sides the clause's condition is true."""
        if self.where is None:
            return pl.repeat(True, frame.height, eager=True)
        return matching_rows(frame, self.where, _SUBJECT)


def clause_rule(clause: Clause, sides: Schema, table: Schema, source: Schema, clock: Clock) -> ClauseRule:
    """A clause over rows of these columns, `sides`. InvalidRequestError for one that is no clause of this table."""
    where = None if clause.where is None else row_wise(clause.where, sides)
    if where is not None:
        check_condition(where, sides, _SUBJECT)
    if clause.does == "delete":
        return ClauseRule(clause, where, {})
    if clause.assignments is None:
        if clause.does == "insert":
            table.require(source.names, place="source")
        return ClauseRule(clause, where, dict.fromkeys((n,) for n in source.names if n in table))
    assignments = check_assignments(clause.assignments, table, sides, is_new=clause.does == "insert", clock=clock)
    values = {path: assignment.value for path, assignment in assignments.items()}
    return ClauseRule(clause, where, values, frozenset(path for path, a in assignments.items() if a.is_variant))


def text_names(rules: Sequence[ClauseRule], table: Schema) -> frozenset[str]:
    """The columns of a table that rules read and that, if they are variants, they read as text."""
    texts = [e for rule in rules for path, e in rule.values.items() if e is not None and path not in rule.variants]
    names = {n for e in (*texts, *(r.where for r in rules if r.where is not None)) for n in e.meta.root_names()}
    return frozenset(table.names if TARGET in names else names)


def both_sides(own: pl.DataFrame, sides: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Columns by their own names, and each side as a struct by its name."""
    columns = {name: own[name] for name in own.columns if name not in (TARGET, SOURCE)}
    return pl.DataFrame({**columns, **{side: frame.to_struct(side) for side, frame in sides.items()}})
