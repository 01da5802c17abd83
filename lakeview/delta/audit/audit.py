"""Every law over every run of a log: commits to AUDIT."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache

import polars as pl

from lakeview.delta.audit import conservation, definitions, files, metrics, reads
from lakeview.delta.audit.run import Run, read_runs
from lakeview.delta.log.table_log import TableLog
from lakeview.model.audit_cases import Case, case_frame
from lakeview.model.frames import AUDIT

Times = Callable[[], pl.DataFrame]

_LAWS: Mapping[str, Callable[[Run], Iterator[Case]]] = {
    "rearrangement-conserves-rows": conservation.rearrangements_conserve_rows,
    "rearrangement-conserves-nulls": conservation.rearrangements_conserve_nulls,
    "remove-names-live-file": files.removes_name_live_files,
    "one-action-per-file": files.one_action_per_file,
    "removed-file-stays-removed": files.removed_files_stay_removed,
    "one-vector-per-path": files.one_vector_per_path,
    "vectors-only-grow": files.vectors_only_grow,
    "append-removes-nothing": files.appends_remove_nothing,
    "append-only-table": files.append_only,
    "overwrite-leaves-own-files": files.overwrites_leave_own_files,
    "metrics-equal-actions": metrics.metrics_equal_actions,
    "row-counts-fit-operation": conservation.row_counts_fit_operations,
    "reads-unchanged": reads.reads_unchanged,
    "protocol-keeps-features": definitions.protocols_keep_features,
    "row-ids-unique": definitions.row_ids_unique,
    "in-commit-timestamps-increase": definitions.in_commit_timestamps_increase,
    "transactions-advance": definitions.transactions_advance,
}
"""What judges each law, by its id; the law of restores needs the times of the log as well."""


def audit(log: TableLog, times: Times, start: int | None = None, end: int | None = None) -> pl.DataFrame:
    """AUDIT of the commits from `start` to `end`, both included; commits that cannot be read have no rows.

    `times`: TIMES of the log. Works whatever the table's protocol asks for. Costs each commit once, the checkpoint
    below each unbroken run of them, and for commits that rearrange data the statistics of their files.
    """
    known_times = cache(times)
    frames = [pl.DataFrame(schema={**AUDIT, "law_order": pl.Int64()})]
    for run in read_runs(log, start, end):
        cases = [(case, law) for law, judge in _LAWS.items() for case in judge(run)]
        cases += [(case, "restore-equals-target") for case in files.restores_equal_target(run, known_times)]
        frames.append(_frame(run, cases))
    rows = pl.concat(frames, how="diagonal")
    if start is not None:
        rows = rows.filter(pl.col("version") >= start)
    if rows.height:
        rows = rows.drop("timestamp").join(known_times().select("version", "timestamp"), on="version", how="left")
    return rows.sort("version", "law_order").select(AUDIT.names())


def _frame(run: Run, cases: list[tuple[Case, str]]) -> pl.DataFrame:
    """AUDIT of one run without timestamps, and `law_order`."""
    heads = pl.DataFrame(
        [(r.version, r.version, r.info.operation, r.info.engine, r.info.client_version) for r in run.records],
        schema={n: AUDIT[n] for n in ("version", "position", "operation", "engine", "client_version")},
        orient="row",
    )
    rows = case_frame(cases).join(heads, on="version", how="left")
    return rows.with_columns(pl.lit(None, AUDIT["timestamp"]).alias("timestamp"))
