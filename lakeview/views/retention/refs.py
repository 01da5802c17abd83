"""Branches, tags and a policy to how long each version is kept where versions expire by age.

"Snapshot Retention Policy" of the Iceberg specification: a tag keeps its version; a branch keeps its newest versions
up to a number, and older ones up to an age, until the first that it does not; what no ref reaches is kept by age.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from lakeview.views.retention.policy import RetentionPolicy

NEVER = 2**62
"""The retention in milliseconds of what a clean-up takes whatever it is told."""

_MS = timedelta(milliseconds=1)


def version_ages(
    placed: pl.DataFrame,
    commits: pl.DataFrame | None,
    refs: pl.DataFrame | None,
    policy: RetentionPolicy,
    now: datetime,
) -> pl.Series:
    """For each version (`version, position, timestamp`, oldest first) the least retention in milliseconds that keeps
    it. Without COMMITS each version is its successor's parent; a branch's own age limit overrules what is asked."""
    stamps = placed["timestamp"]
    ages = (pl.Series([now], dtype=stamps.dtype).new_from_index(0, placed.height) - stamps).dt.total_milliseconds()
    own = [max(age or 0, 0) for age in ages.to_list()]
    place = dict(zip(placed["version"].to_list(), range(placed.height), strict=True))
    parents = [place.get(parent) for parent in _parents(placed, commits)]
    reached: dict[int, int] = {}
    for ref in [] if refs is None else refs.iter_rows(named=True):
        start = place.get(ref["version"])
        if start is None or _expired(ref, own[start], policy):
            continue
        for position, needs in _kept(ref, start, own, parents, policy):
            reached[position] = min(reached.get(position, NEVER), needs)
    return pl.Series("needs_ms", [reached.get(i, own[i]) for i in range(placed.height)], dtype=pl.Int64)


def _expired(ref: dict[str, object], age: int, policy: RetentionPolicy) -> bool:
    """Whether the ref itself goes: "the main branch never expires"."""
    own = ref["max_ref_age_ms"]
    limit = own if isinstance(own, int) else None if policy.ref_age is None else policy.ref_age // _MS
    return not ref["default"] and limit is not None and age > limit


def _kept(
    ref: dict[str, object], start: int, ages: list[int], parents: list[int | None], policy: RetentionPolicy
) -> list[tuple[int, int]]:
    """The versions of a ref with what each needs, newest first."""
    if ref["kind"] == "tag":
        return [(start, 0)]
    least = ref["min_versions_kept"] if isinstance(ref["min_versions_kept"], int) else policy.versions_kept
    limit = ref["max_version_age_ms"]
    found: list[tuple[int, int]] = []
    seen: set[int] = set()
    at: int | None = start
    needs = 0
    while at is not None and at not in seen:
        seen.add(at)
        if len(found) >= max(least, 1):
            asked = ages[at] if not isinstance(limit, int) else 0 if ages[at] <= limit else NEVER
            needs = max(needs, asked)  # "until the first that is not kept"
        found.append((at, needs))
        at = parents[at]
    return found


def _parents(placed: pl.DataFrame, commits: pl.DataFrame | None) -> list[int | None]:
    if commits is None:
        return placed["version"].shift(1).to_list()
    return placed.join(commits.select("version", "parent"), on="version", how="left", maintain_order="left")[
        "parent"
    ].to_list()
