"""Table properties and REFS to the retention policy that a vacuum or snapshot expiration follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import polars as pl

from lakeview.model.intervals import LONGEST, interval

_Rule = Literal["removed files", "old versions"]

FILES_KEPT = "delta.deletedFileRetentionDuration"
_VERSION_AGE = "history.expire.max-snapshot-age-ms"
_VERSIONS_KEPT = "history.expire.min-snapshots-to-keep"
_REF_AGE = "history.expire.max-ref-age-ms"

_DEFAULT_FILES_KEPT = timedelta(days=7)
"""Without the property engines retain removed files for a week (Delta Lake, Table properties)."""

_DEFAULT_VERSION_AGE = timedelta(days=5)
"""Without the property engines expire snapshots of more than five days (Iceberg, Table properties)."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """What a cleanup removes.

    `rule`: removed files by the time of their removal, or versions by their age with their files. `keep`: the age up
    to which they are retained; `declared`: the property that sets it, None for the engines' default. `versions_kept`:
    how many versions a branch retains at any age. `ref_age`: the age from which branches and tags without a limit of
    their own expire, None for never.
    """

    rule: _Rule
    keep: timedelta
    declared: str | None
    versions_kept: int = 0
    ref_age: timedelta | None = None


def retention_policy(properties: Mapping[str, str], refs: pl.DataFrame | None = None) -> RetentionPolicy:
    """The policy of a table. With REFS versions expire by age; without any (one line of versions) removed files go.

    A value that cannot be understood counts as not set, as engines refuse it: the doctor names it.
    """
    if refs is None or refs.is_empty():
        keep = interval(properties.get(FILES_KEPT))
        declared = None if keep is None else FILES_KEPT
        return RetentionPolicy("removed files", _DEFAULT_FILES_KEPT if keep is None else keep, declared)
    age = _milliseconds(properties.get(_VERSION_AGE))
    least = _whole(properties.get(_VERSIONS_KEPT))
    return RetentionPolicy(
        "old versions",
        _DEFAULT_VERSION_AGE if age is None else age,
        None if age is None else _VERSION_AGE,
        versions_kept=1 if least is None else max(least, 1),
        ref_age=_milliseconds(properties.get(_REF_AGE)),
    )


def _milliseconds(text: str | None) -> timedelta | None:
    number = _whole(text)
    return None if number is None else min(timedelta(milliseconds=min(number, 10**14)), LONGEST)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else None
