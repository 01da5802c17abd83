"""Table properties and REFS to the retention policy that a vacuum or snapshot expiration follows, and to how long it
retains each version.

"Snapshot Retention Policy" of the Iceberg specification: a tag retains its version; a branch retains its newest
versions up to a number, and older ones up to an age, until the first that it does not; versions that no ref reaches
are retained by age.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
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

NEVER = 2**62
"""The retention in milliseconds of what every cleanup removes."""

_MS = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """What a cleanup removes.

    `rule`: removed files by the time of their removal, or versions by their age with their files. `keep`: the age up
    to which they are retained; `declared_text`: the property that sets it, None for the engines' default.
    `versions_kept`: how many versions a branch retains at any age. `ref_age`: the age from which branches and
    tags without a limit of their own expire, None for never.
    """

    rule: _Rule
    keep: timedelta
    declared_text: str | None
    versions_kept: int = 0
    ref_age: timedelta | None = None


def retention_policy(properties: Mapping[str, str], refs: pl.DataFrame | None = None) -> RetentionPolicy:
    """The policy of a table. With REFS versions expire by age; without any (one line of versions) removed files go.

    A value that cannot be understood counts as not set, as engines refuse it: the doctor names it.
    """
    if refs is None or refs.is_empty():
        keep = interval(properties.get(FILES_KEPT))
        property_name = None if keep is None else FILES_KEPT
        return RetentionPolicy("removed files", _DEFAULT_FILES_KEPT if keep is None else keep, property_name)
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


def version_ages(
    versions: pl.DataFrame,
    commits: pl.DataFrame | None,
    refs: pl.DataFrame | None,
    policy: RetentionPolicy,
    now: datetime,
) -> pl.Series:
    """For each version (`version, position, timestamp`, oldest first) the minimum retention in milliseconds that
    retains it. Without COMMITS each version is its successor's parent; a branch's own age limit takes precedence."""
    stamps = versions["timestamp"]
    ages = (pl.Series([now], dtype=stamps.dtype).new_from_index(0, versions.height) - stamps).dt.total_milliseconds()
    own = [max(age or 0, 0) for age in ages.to_list()]
    place = dict(zip(versions["version"].to_list(), range(versions.height), strict=True))
    parents = [place.get(parent) for parent in _parents(versions, commits)]
    least_needs: dict[int, int] = {}
    for ref in [] if refs is None else refs.iter_rows(named=True):
        start = place.get(ref["version"])
        if start is None or _is_expired(ref, own[start], policy):
            continue
        for position, needs in _version_needs(ref, start, own, parents, policy):
            least_needs[position] = min(least_needs.get(position, NEVER), needs)
    return pl.Series("needs_ms", [least_needs.get(i, own[i]) for i in range(versions.height)], dtype=pl.Int64)


def _is_expired(ref: dict[str, object], age: int, policy: RetentionPolicy) -> bool:
    """Whether the ref itself goes: "the main branch never expires"."""
    own = ref["max_ref_age_ms"]
    limit = own if isinstance(own, int) else None if policy.ref_age is None else policy.ref_age // _MS
    return not ref["default"] and limit is not None and age > limit


def _version_needs(
    ref: dict[str, object], start: int, ages: list[int], parents: list[int | None], policy: RetentionPolicy
) -> list[tuple[int, int]]:
    """The versions of a ref with what each needs, newest first."""
    if ref["kind"] == "tag":
        return [(start, 0)]
    least = ref["min_versions_kept"] if isinstance(ref["min_versions_kept"], int) else policy.versions_kept
    limit = ref["max_version_age_ms"]
    needs_by_position: list[tuple[int, int]] = []
    positions: set[int] = set()
    at: int | None = start
    needs = 0
    while at is not None and at not in positions:
        positions.add(at)
        if len(needs_by_position) >= max(least, 1):
            age = ages[at] if not isinstance(limit, int) else 0 if ages[at] <= limit else NEVER
            needs = max(needs, age)  # "until the first that is not kept"
        needs_by_position.append((at, needs))
        at = parents[at]
    return needs_by_position


def _parents(versions: pl.DataFrame, commits: pl.DataFrame | None) -> list[int | None]:
    if commits is None:
        return versions["version"].shift(1).to_list()
    return versions.join(commits.select("version", "parent"), on="version", how="left", maintain_order="left")[
        "parent"
    ].to_list()
