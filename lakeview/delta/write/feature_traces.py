"""A version of a table to what it keeps for a feature beside its columns: properties, domains and ids of rows (today's
protocol, Disabled Features)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from lakeview.delta.data.column_rules import CLUSTERING
from lakeview.delta.data.row_tracking import MATERIALIZED
from lakeview.delta.log.actions import DomainMetadata
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.definition import ROW_TRACKING, SUSPENDED
from lakeview.delta.write.row_ids import DOMAIN

OPERATIONS: Mapping[str, str] = {
    "clustering": "CLUSTER BY", "domainMetadata": "DOMAIN METADATA CLEANUP", "rowTracking": "ROW TRACKING UNBACKFILL",
    "v2Checkpoint": "UNSET TBLPROPERTIES",
}  # fmt: skip
"""Features whose traces go by a commit of their own, before the one that drops the feature, and its operation: a domain
that is removed, and files without the ids they had, are actions that the feature itself allows."""

_UNSET_BEFORE: Mapping[str, tuple[str, ...]] = {
    "v2Checkpoint": ("delta.checkpointPolicy",), "rowTracking": (ROW_TRACKING, *MATERIALIZED.values()),
}  # fmt: skip
_UNSET_WITH: Mapping[str, tuple[str, ...]] = {
    "inCommitTimestamp": (
        "delta.enableInCommitTimestamps", "delta.inCommitTimestampEnablementVersion",
        "delta.inCommitTimestampEnablementTimestamp",
    ),
    "rowTracking": (SUSPENDED,),
    "checkpointProtection": ("delta.requireCheckpointProtectionBeforeVersion",),
}  # fmt: skip
_DOMAINS: Mapping[str, str] = {"clustering": CLUSTERING, "rowTracking": DOMAIN}


class Traces(NamedTuple):
    """What a version keeps for a feature: `properties`, and the live `domains`; `ids`: whether files have row ids."""

    properties: tuple[str, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    ids: bool = False

    @property
    def changes(self) -> dict[str, str | None]:
        """The properties to set or unset; other writers make no new ids of rows then."""
        unset: dict[str, str | None] = dict.fromkeys(self.properties)
        return {**unset, SUSPENDED: "true"} if self.ids or ROW_TRACKING in unset else unset


def traces(feature: str, state: Replay) -> Traces:
    """What a version keeps for a feature, all of which goes before the feature does."""
    domains: pl.DataFrame = state.domain_metadata()
    if feature != "domainMetadata":
        domains = domains.filter(domains["domain"] == _DOMAINS.get(feature, ""))
    removed = tuple(DomainMetadata(name, text, removed=True) for name, text in domains.iter_rows())
    properties = tuple(name for name in _UNSET_BEFORE.get(feature, ()) if name in state.properties)
    ids = feature == "rowTracking" and bool(state.adds(["base_row_id"])["base_row_id"].is_not_null().any())
    return Traces(properties, removed, ids)


def last_properties(feature: str, properties: Mapping[str, str]) -> dict[str, str | None]:
    """The properties that mean nothing without the feature and go with it, each to be unset."""
    names = (f"delta.feature.{feature}", *_UNSET_WITH.get(feature, ()))
    return dict.fromkeys(name for name in names if name in properties)
