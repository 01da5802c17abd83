"""What the tasks of a merge do: keys of files, the clauses for files with their source rows, and those that insert."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring

from lakeview.delta.write.file_changes import paths_of
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.merge import Merge
from lakeview.delta.write.merge_rows import MergeRows
from lakeview.delta.write.row_changes import RowChanges
from lakeview.delta.write.row_operations import RowOutcome, RowWork
from lakeview.rows.batches import batches_of
from lakeview.rows.matching import frame_of
from lakeview.spark.dml.jobs import attempt, outcome_batch, parts_of
from lakeview.spark.dml.merge_source import OWN, ROW

FILE, GROUP = f"{OWN}file", f"{OWN}group"
"""The columns of the number of a file, and of the files that one task merges into together."""


@dataclass
class MergeOutcome:
    """What a task did for some files. `counts`: of rows; `matched_source_rows`: the source rows that matched any."""

    row_outcome: RowOutcome
    counts: Counter[str]
    matched_source_rows: pyroaring.BitMap64


def key_rows(
    work: RowWork, columns: Sequence[str], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The number of each file, and the keys that it has; a null matches nothing."""
    storage = work.storage()
    for part in parts_of(batches):
        for number, file in part:
            for batch in file.batches(storage, file.task.schema.select(list(dict.fromkeys(columns)))):
                frame = frame_of(batch)
                keys = pl.DataFrame([frame[c].alias(n) for c, n in zip(columns, schema.names[1:], strict=True)])
                distinct = keys.unique().drop_nulls().to_arrow()
                numbers = pa.array([number] * distinct.num_rows, pa.int32())
                rows = pa.Table.from_arrays([numbers, *distinct.columns], names=schema.names)
                yield from rows.cast(schema).to_batches()


def merge_rows(work: RowWork, plan: Merge, files: dict[int, LiveFile], table: pa.Table) -> pa.Table:
    """The clauses for rows of the table, of the files of one group and the source rows that have keys of them."""
    group = [files[number] for number in sorted(pc.unique(table.column(FILE)).to_pylist())]
    frame = pl.DataFrame(pl.from_arrow(table.drop_columns([FILE, GROUP]))).unique(ROW, maintain_order=True)
    done = attempt(lambda: _merge_files(work, plan, group, frame.drop(ROW), frame[ROW]))
    return pa.Table.from_batches([outcome_batch([done])])


def merge_alone(work: RowWork, plan: Merge, files: Sequence[LiveFile]) -> MergeOutcome:
    """The clauses for rows of the table, of files that no source row meets."""
    return _merge_files(work, plan, files, plan.source, pl.Series([], dtype=pl.Int64))


def _merge_files(
    work: RowWork, plan: Merge, files: Sequence[LiveFile], source: pl.DataFrame, ids: pl.Series
) -> MergeOutcome:
    counts: Counter[str] = Counter()
    matches = pyroaring.BitMap64()

    def do(rows: RowChanges) -> None:
        merging = MergeRows(replace(plan, source=source), rows)
        merging.change(list(files))
        counts.update(merging.counts)
        matches.update(ids.gather(list(merging.matched_source_rows)).to_list())

    done = work.run(do)
    del counts["numSourceRows"]
    return MergeOutcome(done, counts, matches)


def insert_rows(
    work: RowWork, plan: Merge, met_bytes: bytes, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The clauses that insert, of the source rows of a task that are not among those that matched."""
    matches = pyroaring.BitMap64.deserialize(met_bytes)
    yield outcome_batch([attempt(lambda: _inserted_rows(work, plan, matches, batches))])


def _inserted_rows(
    work: RowWork, plan: Merge, matches: pyroaring.BitMap64, batches: Iterable[pa.RecordBatch]
) -> MergeOutcome:
    counts: Counter[str] = Counter()

    def do(rows: RowChanges) -> None:
        def new_rows() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                frame = pl.DataFrame(pl.from_arrow(batch))
                unmet = [number not in matches for number in frame[ROW]]
                source = frame.drop(ROW).filter(pl.Series(unmet, dtype=pl.Boolean))
                merging = MergeRows(replace(plan, source=source), rows)
                tables: list[pa.Table] = []
                merging.insert(tables.append)
                counts.update(merging.counts)
                for table in tables:
                    yield from batches_of(table)

        adds = rows.writer.write(new_rows())
        rows.files.adds += adds
        rows.files.paths += paths_of(adds)

    done = work.run(do)
    del counts["numSourceRows"]
    done.whole_adds = list(done.adds)
    return MergeOutcome(done, counts, pyroaring.BitMap64())
