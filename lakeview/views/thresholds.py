"""Every threshold that decides what an anomaly, a small file, a late load or a costly history is, with its reason.

A view or a chart that judges imports its limit from here; a finding states the limit that it applied.
"""

from datetime import timedelta

import polars as pl

MIB = 1 << 20

# -- loads: what is expected of one

BASELINE_WINDOW = 20
"""The baseline of a load is made of this many loads, or gaps between loads, before it: a month of working days."""

BASELINE_MIN = 5
"""With fewer loads or gaps than this there is no baseline: their median would follow each of them."""

LOAD_TIMES = 3.0
"""A load is an anomaly with this many times the expected rows, or one in this many; daily loads double at weekends."""

ANOMALY_SPREADS = 6.0
"""A value is an anomaly only if it also is this many median absolute deviations away: about 4 standard deviations."""

BAND_SPREADS = 3.0
"""The expected range that charts draw, in median absolute deviations: narrower than what a finding reports."""

ANOMALY_NULL_SHARE = 0.05
"""A null share is unusual from this distance to the median on; smaller ones are noise in small loads."""

NULL_JUMP = 0.1
"""A null share is an anomaly this far above the largest of the baseline ..."""

NULL_JUMP_FROM_ZERO = 0.01
"""... and this far where the baseline has no nulls at all ..."""

NULL_ROWS = 3
"""... and has so many nulls more: in loads of a few rows one null is a large share."""

RANGE_WIDTHS = 5.0
"""A value is an anomaly outside the expected range by this many times its width: ids and dates grow by one."""

REVERTED_SHARE = 0.9
"""A load is reverted when a later commit removes this share of its bytes, and little else."""

REVERTED_ROUTINE = 0.2
"""Where more loads than this share are reverted, or repeat others, that is the rule, and it says nothing of one."""

REPEAT_ROWS, REPEAT_COLUMNS = 20, 3
"""A load of this many rows repeats another one where all statistics are equal and this many columns have a range: fewer
rows, and columns of few values, are equal by chance."""

REPEAT_DISTINCT = 0.8
"""Loads are told apart by a column with as many mins or maxes as this share of them: ids and times have one a load."""

REWRITES_ROUTINE = 0.5
"""Where more loads than this share rewrite files, as those of merges do, they are what others are compared with."""

LOST_SHARE, LOST_ROWS = 0.5, 100
"""An overwrite of a whole table that leaves less than this share of so many rows loses rows, unless one before it left
as few: what is loaded daily is about as large as the day before, and in small tables rows go by hand."""

LAG_DAYS, LAG_GAPS = 1.0, 0.5
"""Newest events are late by this many days and median gaps between loads at least: time zones, cut-off times and the
lengths of months move them by less."""

GAP_DAYS = 5 / 24
"""A gap between loads is an anomaly from this length on: a job that runs again after hours is no news."""

HISTORICAL_DAYS, HISTORICAL_LOADS, HISTORICAL_DAYS_MAX = 365.0, 20.0, 3_650.0
"""Loads bring history, not news, when events lie further back than a year and than twenty loads take; or ten years."""

SHIFT_SHARE = 0.001
"""Between two versions a null share has shifted from this on: one row in a thousand."""
LOOSE_SHIFT_SHARE = 0.01
"""As SHIFT_SHARE, where one of the two shares is a bound: bounds move by what files do not count."""

# -- freshness: when the next load is late

JOB_GAP = timedelta(minutes=1)
"""Commits of one job lie closer than this; the cadence is then that of jobs."""

CADENCE_SPAN = timedelta(hours=1)
"""Commits that all lie within less than this are a beginning, and have no cadence."""

LATE_TIMES = 2.0
"""A table is late after this many times the expected gap, and after 95 % of the gaps: one load may be skipped."""

LATE_PARTITION_STEPS = 1.5
"""A partition is late when it came this many steps between partitions after a later one: one may overtake another."""

OUT_OF_ORDER_SHARE = 0.25
"""Where more partitions than this share come after later ones, they are no sequence in time, and none is late."""

# -- layout: files and partitions

SMALL_FILE_BYTES = MIB
"""A request for a file costs as much as reading about this many bytes."""

TARGET_LOW, TARGET_HIGH = 64 * MIB, 256 * MIB
"""The file sizes that engines write by default after compaction (Delta OPTIMIZE, Iceberg rewrite_data_files)."""

FILES_TIMES, FILES_EXCESS = 3, 20
"""Files are too many from this many times the needed ones on, with this many to be saved: fewer cost nothing."""

SMALL_TABLE_BYTES = TARGET_LOW
"""Below this size the layout of files and partitions is a note: one task reads the whole table in a second."""

SKEW_TIMES = 10.0
"""A partition is skewed from this many times the median bytes or files on: one task then runs ten times as long."""

DELETED_SHARE = 0.1
"""Deleted rows are many from this share on: readers decode them only to drop them."""
DELETED_ROWS = 1_000
"""Fewer deleted rows are a note: they take less time than the files that hold them take to open."""

DELETE_FILES_TIMES, DELETE_FILES_MIN = 0.5, 20
"""Delete files are many from one for two data files on, and from this number on."""

# -- the log and the history

HISTORY_SHARE, HISTORY_BYTES = 0.4, 64 * MIB
"""History is costly from this share of all retained bytes and this size on; below, a cleanup saves nothing."""

CHECKPOINT_INTERVAL, CHECKPOINT_TIMES = 10, 10
"""A checkpoint is stale after this many times the commits between two, by default so many (Delta, Table properties)."""

LOG_SHARE, LOG_BYTES = 0.1, 64 * MIB
"""A log is large from this share of the live bytes and this size on: it is read before any data."""

TOMBSTONES_TIMES, TOMBSTONES_MIN = 5, 10_000
"""Tombstones are many from this many times the live files and this number on: each checkpoint repeats them."""

SAFE_RETENTION = timedelta(days=7)
"""A long query or a slow writer may need removed files for up to this time (Delta Lake, VACUUM)."""


def is_unusual_share(distance: pl.Expr, spread: pl.Expr) -> pl.Expr:
    """True for a null share at this distance from the median of others, whose deviations have the median `spread`."""
    return (distance > ANOMALY_NULL_SHARE) & (distance > ANOMALY_SPREADS * spread)


def percent(share: float) -> str:
    """A limit as text: `10 %`."""
    return f"{share:.0%}".replace("%", " %")
