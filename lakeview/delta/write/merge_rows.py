"""The rows of a merge: which source row matches each row of the table, and what the clauses make of both."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain

import numpy as np
import polars as pl
import pyarrow as pa
import pyroaring

from lakeview.delta.write.assignments import rules_of_changes, updated_rows, with_other_fields
from lakeview.delta.write.group_reader import FileGroup, GroupReader, RowsNeeded
from lakeview.delta.write.live_files import FILES_AT_ONCE, POSITION, LiveFile, positions_of, together
from lakeview.delta.write.merge import SOURCE, TARGET, ClauseRule, Merge, When, both_sides, clause_rule, text_names
from lakeview.delta.write.merge_source import SOURCE_ROW, MergeSource, Pairs, key_range, with_names
from lakeview.delta.write.rewrites import Change, Numbers, Rewrite
from lakeview.delta.write.row_changes import RowChanges
from lakeview.delta.write.row_rules import RowRules
from lakeview.delta.write.stored_columns import readable_rows
from lakeview.model.data_types import Field, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import example_text
from lakeview.model.schema import Schema
from lakeview.predicates.joins import JoinCondition, join_condition
from lakeview.rows.matching import check_condition, frame_of, matching_rows
from lakeview.storage.interface import ahead

_SUBJECT = "the condition of the merge"
_MOST_PAIRS = 4_000_000
"""Rows of a join without keys that are compared at once."""

_NO_PAIRS = pl.DataFrame(schema={POSITION: pl.Int64(), SOURCE_ROW: pl.Int64()})


class MergeRows:
    """One merge over the live files of a table.

    The source is in memory; of the table, one batch at a time. A row that more than one source row matches is an
    error, unless the one clause for rows that match deletes them all.
    """

    def __init__(self, merge: Merge, work: RowChanges) -> None:
        self._schema = schema = work.context.schema
        self._work = work
        self._source = MergeSource(merge.source, schema)
        source_schema = self._source.schema
        sides = (Field(TARGET, StructType(schema.fields)), Field(SOURCE, StructType(source_schema.fields)))
        self._condition: JoinCondition = join_condition(merge.on, Schema(sides))
        if self._condition.rest is not None:
            check_condition(self._condition.rest, Schema(sides), _SUBJECT)
        own = tuple(f for f in schema if f.name not in (TARGET, SOURCE))
        others = tuple(f for f in source_schema if f.name not in (TARGET, SOURCE))

        def rules_for(when: When, columns: Schema) -> list[ClauseRule]:
            return [clause_rule(clause, columns, schema, source_schema, work.writer.clock) for clause in merge.of(when)]

        self._matched_rules = rules_for("matched", Schema((*own, *sides)))
        self._unmatched_rules = rules_for("not matched by source", Schema((*own, sides[0])))
        self._inserts = rules_for("not matched", Schema((*others, sides[1])))
        self._text_names = text_names([*self._matched_rules, *self._unmatched_rules], schema)
        self._rules: RowRules = rules_of_changes(work.context)
        self._met = pyroaring.BitMap64()
        self.counts: Counter[str] = Counter(numSourceRows=merge.source.height)

    def files_needed(self) -> pl.Expr | None:
        """What rows of the table the merge can change, as a condition by which files are skipped; None for all."""
        if self._unmatched_rules:
            return None
        condition = self._condition.left_only
        for number, (column, _) in enumerate(self._condition.keys):
            expression = key_range(column, self._keys[f"{number}"])
            condition = expression if condition is None else condition & expression
        return condition

    @property
    def left_only(self) -> pl.Expr | None:
        """What of the condition is about rows of the table alone."""
        return self._condition.left_only

    @property
    def matched_source_rows(self) -> pyroaring.BitMap64:
        """The source rows that matched a row of the files so far, by their number."""
        return self._met

    def check_keys(self) -> tuple[tuple[str, str], ...]:
        """The columns that have to be equal, of the table and of the source. InvalidRequestError if they never are."""
        self._keys  # noqa: B018 (made here, so that what does not compare is refused here)
        return self._condition.keys

    @cached_property
    def _keys(self) -> pl.DataFrame:
        """Of each source row SOURCE_ROW, and its keys by their number, as `comparable_keys`."""
        return self._source.keys(self._condition.keys)

    # -- changing rows

    def change(self, files: list[LiveFile], each: Iterable[LiveFile] | None = None) -> None:
        """Apply the clauses for rows of the table, file by file; all rows that change go to the same new files. `each`:
        the files again, taken one by one as they are changed."""
        self._work.write(self._change_rows(files, files if each is None else each))

    @property
    def _changes_all(self) -> bool:
        """Whether one clause applies to all rows that match, and none to others."""
        return not self._unmatched_rules and bool(self._matched_rules) and self._matched_rules[0].where is None

    @property
    def _rows_needed(self) -> RowsNeeded | None:
        if self._work.context.vectors or not self._changes_all:
            return None
        return RowsNeeded(self._work.schema, all_may_go=self._matched_rules[0].clause.does == "delete")

    def insert(self, append: Callable[[pa.Table], None]) -> None:
        """Apply the clauses for source rows that matched nothing, once all files have been seen."""
        if not self._inserts:
            return
        rows = self._source.without(self._met)
        frame = both_sides(rows, {SOURCE: rows})
        rest = pl.repeat(True, frame.height, eager=True)
        for rule in self._inserts:
            holds = rest & rule.holds(frame)
            rest = rest & ~holds
            part = frame.filter(holds)
            if part.height:
                append(pl.DataFrame({path[0]: v for path, v in rule.values_of(part).items()}).to_arrow())
                self.counts["numTargetRowsInserted"] += part.height

    def _change_rows(self, files: list[LiveFile], each: Iterable[LiveFile]) -> Iterator[Rewrite]:
        columns = self._schema.names if self._condition.rest is not None else [c for c, _ in self._condition.keys]
        schema = self._schema.select(list(dict.fromkeys(columns)))
        reader = GroupReader(self._work.storage, schema, self._rows_needed)
        groups = ahead(lambda group: self._pairs(reader.group(group), len(group)), together(files), FILES_AT_ONCE)
        for _, (file, pairs) in zip(each, chain.from_iterable(groups), strict=True):
            self._met |= pairs.matched_source_rows
            if self._changes_all:
                yield from self._apply_to_all(self._matched_rules[0], file, pairs)
                continue
            removals = pyroaring.BitMap64()
            yield from map(Rewrite, self._clauses(file, pairs, pairs.positions, self._matched_rules, removals))
            if self._unmatched_rules:
                rest = pairs.every - pairs.positions
                yield from map(Rewrite, self._clauses(file, None, rest, self._unmatched_rules, removals))
            yield from self._work.remove(file, removals, None)

    def _pairs(self, group: FileGroup, files: int) -> list[tuple[LiveFile, Pairs]]:
        """The files of a group, and what the source matches of each."""
        pairs = [Pairs() for _ in range(files)]
        for portion in group.portions():
            frame = frame_of(portion.rows).with_columns(pl.Series(POSITION, np.arange(portion.rows.num_rows)))
            matches = pl.concat([_NO_PAIRS, *self._join(frame)]).sort(POSITION, maintain_order=True)
            places, sources = matches[POSITION].to_numpy(), matches[SOURCE_ROW].to_numpy()
            for number, part in portion.by_file(places):
                pairs[number].add(portion.positions[places[part]], sources[part])
            if self._unmatched_rules:
                for number, part in portion.by_file(np.arange(frame.height)):
                    pairs[number].every |= pyroaring.BitMap64(portion.positions[part].astype(np.uint64))
        for ambiguous in (p for p in pairs if p.is_ambiguous):
            self._refuse(ambiguous)
        return list(zip(group.with_rows([len(p.positions) for p in pairs]), pairs, strict=True))

    def _join(self, frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Pairs of rows for which the condition holds, of one batch of the table."""
        keys = self._condition.keys
        if keys:
            left = pl.DataFrame({POSITION: frame[POSITION], **{f"{i}": frame[c] for i, (c, _) in enumerate(keys)}})
            on = [pl.col(f"{i}") for i in range(len(keys))]
            if left.schema["0"].is_float():
                on.append(pl.lit(0))  # of one key that is sorted, as one row is, polars finds no NaN
            pairs = left.join(self._keys, on=on, how="inner")
            yield from self._filter_pairs(frame, pairs.select(POSITION, SOURCE_ROW))
            return
        rows = max(1, _MOST_PAIRS // max(self._source.frame.height, 1))
        for part in frame.iter_slices(rows):
            yield from self._filter_pairs(part, part.select(POSITION).join(self._source.numbers, how="cross"))

    def _filter_pairs(self, frame: pl.DataFrame, pairs: pl.DataFrame) -> Iterator[pl.DataFrame]:
        if self._condition.rest is not None and pairs.height:
            target = pairs.select(POSITION).join(frame, on=POSITION, how="left", maintain_order="left")
            source = self._source.at(pairs[SOURCE_ROW])
            both = both_sides(pl.DataFrame(height=pairs.height), {TARGET: target, SOURCE: source})
            pairs = pairs.filter(matching_rows(both, self._condition.rest, _SUBJECT))
        yield pairs

    def _refuse(self, pairs: Pairs) -> None:
        only = self._matched_rules[0] if len(self._matched_rules) == 1 else None
        if not self._matched_rules or (only is not None and only.clause.does == "delete" and only.where is None):
            return
        rows = pairs.first_ambiguous()
        row = self._source.frame.row(int(rows[0]), named=True)
        key = ", ".join(f"{other} = {example_text(row[other])}" for _, other in self._condition.keys)
        raise InvalidRequestError(
            f"{len(rows)} rows of the source match one row of the table"
            f"{f' ({key})' if key else ''}: which of them counts is not known",
            fix="leave one row for each key in the source, or narrow the condition",
            place="on",
            kind="ambiguous-merge",
        )

    # -- clauses

    def _apply_to_all(self, rule: ClauseRule, file: LiveFile, pairs: Pairs) -> Iterator[Rewrite]:
        """Apply a clause without a condition to all rows of a file that the source matches. It is known before they are
        read that they change: where the file is written again, it is read once for them and for the others."""
        self._count(rule, len(pairs.positions))
        if rule.clause.does == "delete":
            yield from self._work.remove(file, pairs.positions)
            return
        yield from self._work.replace(file, pairs.positions, self._update_of_all, pairs.sources)

    @cached_property
    def _update_of_all(self) -> Change:
        """The first clause for rows that match, applied to rows of any files, with the numbers of their source rows."""
        rule = self._matched_rules[0]

        def change(rows: pa.RecordBatch, numbers: Numbers) -> pa.RecordBatch:
            return self._update(rule, self._both(rows, self._source.at(pl.Series(numbers))), rows)

        return change

    def _clauses(
        self,
        file: LiveFile,
        pairs: Pairs | None,
        positions: pyroaring.BitMap64,
        rules: list[ClauseRule],
        removals: pyroaring.BitMap64,
    ) -> Iterator[pa.RecordBatch]:
        """Apply the clauses to the rows of a file at these positions: gives the rows that take the place of others, and
        adds to `removals` those that go."""
        if not rules or not positions:
            return
        for batch in file.batches_with_positions(self._work.storage, self._work.schema, selection=positions):
            places = pl.DataFrame({POSITION: pl.from_arrow(batch.column(POSITION))})
            source = None
            if pairs is not None:
                source = self._source.at(pl.Series(pairs.sources_at(places[POSITION].to_numpy())))
            both = self._both(batch, source)
            rest = pl.repeat(True, both.height, eager=True)
            for rule in rules:
                holds = rest & rule.holds(both)
                rest = rest & ~holds
                if holds.any():
                    removals |= positions_of(places.filter(holds))
                    yield from self._apply(rule, both.filter(holds), batch.filter(holds.to_arrow()))

    def _both(self, rows: pa.RecordBatch, source: pl.DataFrame | None) -> pl.DataFrame:
        """Rows of the table, and beside each the source row that it matches."""
        own = with_names(frame_of(readable_rows(rows, self._schema, self._text_names)), self._schema.names)
        return both_sides(own, {TARGET: own} if source is None else {TARGET: own, SOURCE: source})

    def _apply(self, rule: ClauseRule, both: pl.DataFrame, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._count(rule, rows.num_rows)
        if rule.clause.does != "delete":
            yield self._update(rule, both, rows)
        elif self._work.context.feed:
            self._work.record("delete", [rows.select(self._schema.names)])

    def _count(self, rule: ClauseRule, rows: int) -> None:
        what = f"{rule.clause.does.capitalize()}d"
        suffix = "NotMatchedBySource" if rule.clause.when == "not matched by source" else "Matched"
        self.counts[f"numTargetRows{what}"] += rows
        self.counts[f"numTargetRows{suffix}{what}"] += rows

    def _update(self, rule: ClauseRule, both: pl.DataFrame, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with what a clause sets, before and after as change data."""
        values = {p: v.to_arrow() for p, v in rule.values_of(both, self._as_stored(rule, both, rows)).items()}
        if self._work.context.fill_missing and rule.clause.assignments is None:
            values = {p: with_other_fields(v, rows.column(p[0]), self._schema[p[0]].type) for p, v in values.items()}
        return updated_rows(rows, values, self._rules, self._work)

    def _as_stored(self, rule: ClauseRule, both: pl.DataFrame, rows: pa.RecordBatch) -> pl.DataFrame:
        """The rows with variants as their bytes, if the rule sets one."""
        if not rule.variants:
            return both
        own = with_names(frame_of(rows), self._schema.names)
        source = {SOURCE: both[SOURCE].struct.unnest()} if SOURCE in both.columns else {}
        return both_sides(own, {TARGET: own, **source})
