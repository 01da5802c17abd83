"""Branches, tags and a policy to how long each version is retained where versions expire by age.

"Snapshot Retention Policy" of the Iceberg specification: a tag retains its version; a branch retains its newest
versions up to a number, and older ones up to an age, until the first that it does not; versions that no ref reaches
are retained by age.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from lakeview.views.retention.policy import RetentionPolicy

NEVER = 2**62
"""The retention in milliseconds of what every cleanup removes."""

_MS = timedelta(milliseconds=1)


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
    reached: dict[int, int] = {}
    for ref in [] if refs is None else refs.iter_rows(named=True):
        start = place.get(ref["version"])
        if start is None or _expired(ref, own[start], policy):
            continue
        for position, needs in _version_needs(ref, start, own, parents, policy):
            reached[position] = min(reached.get(position, NEVER), needs)
    return pl.Series("needs_ms", [reached.get(i, own[i]) for i in range(versions.height)], dtype=pl.Int64)


def _expired(ref: dict[str, object], age: int, policy: RetentionPolicy) -> bool:
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
    visited: set[int] = set()
    at: int | None = start
    needs = 0
    while at is not None and at not in visited:
        visited.add(at)
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
