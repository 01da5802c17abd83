"""Laws of what is not a file: protocol, row ids, in-commit timestamps and transaction versions."""

import json
from collections.abc import Iterator

import polars as pl

from lakeview.delta.audit.records import CommitRecord
from lakeview.delta.audit.run import Run
from lakeview.delta.log.actions import DomainMetadata, supported_features, table_protocol, version_text
from lakeview.delta.log.commit_info import whole
from lakeview.delta.log.times import in_commit_start
from lakeview.model.audit_cases import Case, proven, unknowable, violated

_HIGH_WATER_MARK, _ROW_TRACKING = "rowIdHighWaterMark", "delta.rowTracking"


def protocols_keep_features(run: Run) -> Iterator[Case]:
    """protocol-keeps-features."""
    for record in run.records:
        before, _ = run.definitions[record.version - 1]
        if (
            record.protocol is not None
            and before is not None
            and "DROP FEATURE" not in (record.info.operation or "").upper()
        ):
            missing = sorted(supported_features(before) - supported_features(record.protocol))
            if missing:
                yield violated(
                    record.version, f"the protocol no longer names {', '.join(missing)}", version_text(before),
                    version_text(record.protocol),
                )  # fmt: skip
            else:
                yield proven(record.version)


def row_ids_unique(run: Run) -> Iterator[Case]:
    """row-ids-unique, of commits that give files their first row ids."""
    ids = run.events.filter(pl.col("added") & pl.col("base_row_id").is_not_null())
    if ids.is_empty():
        return
    every = ids if run.base is None else pl.concat([run.base.filter(pl.col("base_row_id").is_not_null()), ids])
    # those of files that a restore brings back from before are known
    every = every.with_columns(_times_of_ids(run).alias("begun"))
    every = every.filter((pl.col("default_row_commit_version") >= pl.col("begun")).fill_null(value=True))
    # a file keeps its ids through new deletion vectors and restores
    fresh = every.unique(["key", "begun"], keep="first", maintain_order=True).with_columns(
        pl.when(pl.col("records") > 0).then(pl.col("base_row_id") + pl.col("records")).alias("end")
    )
    by_id = fresh.filter(pl.col("end").is_not_null()).sort("begun", "base_row_id", "version")
    overlaps = by_id.with_columns(
        pl.col("end").cum_max().shift(1).over("begun").alias("until"),
        pl.col("version").cum_max().shift(1).over("begun").alias("other"),
    ).filter(pl.col("base_row_id") < pl.col("until"))
    wrong: dict[int, Case] = {}
    for version, other, start, until, key in overlaps.select("version", "other", "base_row_id", "until", "key").rows():
        at = max(version, other)
        if at >= run.first:
            wrong[at] = violated(at, "two files have the same row ids", f"at least {until:,}", f"{start:,}", key)
    marks = _marks(run)
    # a restore brings files back whose first add lies before the log
    is_older = pl.col("default_row_commit_version") < run.first
    new = fresh.filter((pl.col("version") >= run.first) & ~is_older.fill_null(value=False))
    lowest = (
        new.group_by("version")
        .agg(pl.col("base_row_id").min().alias("low"), pl.col("end").null_count())
        .sort("version")
    )
    for version, low, has_no_count in lowest.iter_rows():
        mark = max(((v, m) for v, m in marks.items() if v < version), default=None)
        if version in wrong:
            yield wrong[version]
        elif mark is not None and low <= mark[1]:
            yield violated(version, "fresh row ids are not above the high-water mark", f"above {mark[1]:,}", f"{low:,}")
        elif has_no_count:
            yield unknowable(version, "files with row ids do not count their rows")
        else:
            yield proven(version)


def _times_of_ids(run: Run) -> pl.Expr:
    """The version at which ids began that a version gives: they begin at 0 again once the feature was dropped."""
    begun: pl.Expr = pl.lit(-1, pl.Int64)
    for record in run.records:
        if any(domain.domain == _ROW_TRACKING and domain.removed for domain in record.domains):
            begun = pl.when(pl.col("version") >= record.version).then(record.version).otherwise(begun)
    return begun


def _marks(run: Run) -> dict[int, int]:
    """The high-water mark of row ids by the version that records it."""
    by_version: dict[int, int] = {}
    steps = [(run.first - 1, run.domains), *((record.version, record.domains) for record in run.records)]
    for version, domains in steps:
        marks = [_mark(each) for each in domains if each.domain == _ROW_TRACKING]
        by_version.update((version, mark) for mark in marks if mark is not None)
    return by_version


def _mark(domain: DomainMetadata) -> int | None:
    """What a domain of row tracking records; once it is removed, ids begin at 0 again."""
    if domain.removed:
        return -1
    try:
        value = json.loads(domain.configuration)
    except (ValueError, RecursionError):
        return None
    return whole(value.get(_HIGH_WATER_MARK)) if isinstance(value, dict) else None


def in_commit_timestamps_increase(run: Run) -> Iterator[Case]:
    """in-commit-timestamps-increase, of commits of tables that use them."""
    before: CommitRecord | None = None
    for record in run.records:
        protocol, metadata = run.definitions[record.version]
        if protocol is None or metadata is None:
            continue
        if in_commit_start(table_protocol(protocol), metadata.properties) is None:
            before = None
            continue
        own = record.info.in_commit_timestamp
        if own is None:
            yield violated(record.version, "the commit has no in-commit timestamp, which the table asks for")
        elif before is None and record.version == run.first > 0:
            yield unknowable(record.version, f"commit {record.version - 1} is not in the log any more")
        elif before is None or before.info.in_commit_timestamp is None:
            yield proven(record.version)
        elif own <= before.info.in_commit_timestamp:
            last = before.info.in_commit_timestamp
            yield violated(record.version, "the timestamp is not later than the one before", f"above {last}", str(own))
        else:
            yield proven(record.version)
        before = record


def transactions_advance(run: Run) -> Iterator[Case]:
    """transactions-advance; a lower version is legal, so that it proves nothing."""
    last: dict[str, int] = {}
    for record in run.records:
        back = [(t.app_id, last[t.app_id], t.version) for t in record.txns if last.get(t.app_id, t.version) > t.version]
        last |= {t.app_id: t.version for t in record.txns}
        if back:
            name, before, now = back[0]
            yield unknowable(record.version, f"application {name} went back from {before:,} to {now:,}")
        elif record.txns:
            yield proven(record.version)
